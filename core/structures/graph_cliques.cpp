// The graph's clique view: the tables of its junction tree, rows by columns.
#include <algorithm>
#include <cmath>

#include "structures/graph.h"
#include "structures/numbers.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

// sums[s] = sum over rows
void column_sums(const junction::Clique& c, const double* table, double* sums) {
    fill(sums, c.columns, 0.0);
    for (Index r = 0; r < c.rows; ++r) axpy(1.0, table + r * c.columns, sums, c.columns);
}

}  // namespace

std::vector<Index> Graph::clique_offsets(Index i) const {
    const Compiled& c = compiled(i);
    std::vector<Index> offsets;
    for (const junction::Clique& each : c.tree.cliques) offsets.push_back(each.table);
    offsets.push_back(c.tree.table_size);
    return offsets;
}

double Graph::clique_marginals(Index i, const double* scores, double temperature, double* out, Workspace& ws) const {
    const Compiled& c = compiled(i);
    Workspace::Frame frame(ws);
    const Gathered g = gather(c, scores, 1.0 / temperature, kLogOfZero, frame);
    double* separated = frame.take(c.tree.separated_size);
    const double log_partition = junction::sum_up(c.tree, g.factors, out, separated, nullptr, ws);
    junction::sum_down(c.tree, out, separated, nullptr, nullptr, ws);
    return temperature * log_partition;
}

void Graph::slots_from_cliques(Index i, const double* cliques, double* slots) const {
    const Compiled& c = compiled(i);
    Workspace ws;
    Workspace::Frame frame(ws);
    double* factors = frame.take(c.tree.factor_size);
    junction::factors_of(c.tree, cliques, factors, ws);
    scatter(i, c, factors, 1.0, slots);
}

double Graph::clique_disagreement(Index i, const double* cliques, Workspace& ws) const {
    const Compiled& c = compiled(i);
    Workspace::Frame frame(ws);
    double* of_parents = frame.take(c.tree.separated_size);
    junction::separators_of(c.tree, cliques, of_parents);
    double worst = 0;
    for (const junction::Clique& each : c.tree.cliques) {
        if (each.parent < 0) continue;
        Workspace::Frame inner(ws);
        double* sums = inner.take(each.columns);
        column_sums(each, cliques + each.table, sums);
        for (Index s = 0; s < each.columns; ++s) {
            worst = std::max(worst, std::abs(sums[s] - of_parents[each.separated + s]));
        }
    }
    return worst;
}

// H = sum over cliques of H(clique) - H(separator)
double Graph::entropy_of_cliques(Index i, const double* cliques, double* gradient, Workspace& ws) const {
    const Compiled& c = compiled(i);
    double entropy = 0;
    for (const junction::Clique& each : c.tree.cliques) {
        Workspace::Frame frame(ws);
        const double* table = cliques + each.table;
        double* sums = frame.take(each.columns);
        column_sums(each, table, sums);
        const bool root = each.parent < 0;
        for (Index s = 0; s < each.columns; ++s) {
            const double separator = root ? 0.0 : safe_log(sums[s]);
            if (!root) entropy += sums[s] * separator;
            for (Index r = 0; r < each.rows; ++r) {
                const double own = safe_log(table[r * each.columns + s]);
                entropy -= table[r * each.columns + s] * own;
                if (gradient) gradient[each.table + r * each.columns + s] = (root ? -1.0 : separator) - own;
            }
        }
    }
    return entropy;
}

Along Graph::entropy_along(Index i, const double* cliques, const double* direction, double step, Workspace& ws) const {
    Along out;
    for (const junction::Clique& each : compiled(i).tree.cliques) {
        const double* table = cliques + each.table;
        const double* way = direction + each.table;
        add_entropy(1.0, table, way, step, each.rows * each.columns, out);
        if (each.parent < 0) continue;
        Workspace::Frame frame(ws);
        double* sums = frame.take(each.columns);
        double* ways = frame.take(each.columns);
        column_sums(each, table, sums);
        column_sums(each, way, ways);
        add_entropy(-1.0, sums, ways, step, each.columns, out);
    }
    return out;
}

// p(y) = product over cliques of p(variable | separator).
void Graph::scores_from_cliques(Index i, const double* cliques, double* out) const {
    const Compiled& c = compiled(i);
    Workspace ws;
    for (const junction::Clique& each : c.tree.cliques) {
        Workspace::Frame frame(ws);
        const double* table = cliques + each.table;
        double* sums = frame.take(each.columns);
        column_sums(each, table, sums);
        for (Index r = 0; r < each.rows; ++r) {
            for (Index s = 0; s < each.columns; ++s) {
                const double total = each.parent < 0 ? 1.0 : sums[s];
                out[each.table + r * each.columns + s] = safe_log(table[r * each.columns + s]) - safe_log(total);
            }
        }
    }
}

Index Graph::num_row_slots(Index i) const {
    const Index last = layout_.vertex_ptr[i + 1] - 1;
    return num_vertices(i) == 0 ? 0 : row_begin_[last] + padded_width(layout_.n_labels[last]);
}

void Graph::clique_entries(Index i, SlotView labelling, Index* entries, Workspace&) const {
    const Compiled& c = compiled(i);
    std::vector<Index> labels(num_vertices(i));
    labels_of(i, labelling, labels.data());
    std::vector<Index> rows(c.vertices.size());
    for (std::size_t p = 0; p < rows.size(); ++p) {
        const std::vector<Index>& left = c.labels[c.vertices[p]];
        rows[p] = std::lower_bound(left.begin(), left.end(), labels[c.vertices[p]]) - left.begin();
    }
    for (std::size_t p = 0; p < rows.size(); ++p) {
        const junction::Clique& each = c.tree.cliques[p];
        entries[p] = each.table + rows[p] * each.columns + junction::column_of(each, rows.data());
    }
}

double Graph::maximize_in_support(Index i, const double* scores, const double* cliques, double least, SlotCounts& best,
                                  Workspace& ws) const {
    const junction::Support support{cliques, least};
    if (find_best(i, scores, &support, best, ws) <= 0.5 * kLogOfZero) no_support(i);
    return value_of(i, scores, {best.slots, best.counts});
}

}  // namespace partwise
