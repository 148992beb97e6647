#include "structures/graph.h"

#include "structures/junction_passes.h"

namespace partwise {

Graph::Gathered Graph::gather(const Compiled& c, const double* scores, double scale, double forbidden,
                              Workspace::Frame& frame) const {
    double* factors = frame.take(c.tree.factor_size);
    for (std::size_t k = 0; k < c.slots.size(); ++k) {
        factors[k] = c.slots[k] < 0 ? forbidden : scores[c.slots[k]] * scale;
    }
    double constant = 0;
    for (const Index slot : c.always) constant += scores[slot] * scale;
    return {factors, constant};
}

void Graph::scatter(Index i, const Compiled& c, const double* factors, double always, double* slots) const {
    fill(slots, num_slots(i), 0.0);
    for (std::size_t k = 0; k < c.slots.size(); ++k) {
        if (c.slots[k] >= 0) slots[c.slots[k]] += factors[k];
    }
    for (const Index slot : c.always) slots[slot] += always;
}

void Graph::labelling_of_rows(Index i, const Compiled& c, const Index* rows, SlotCounts& out) const {
    std::vector<Index> labels;
    for (const std::vector<Index>& left : c.labels) labels.push_back(left.front());
    for (std::size_t p = 0; p < c.vertices.size(); ++p) labels[c.vertices[p]] = c.labels[c.vertices[p]][rows[p]];
    labelling_of(i, labels.data(), out);
}

double Graph::find_best(Index i, const double* scores, const junction::Support* support, SlotCounts& best,
                        Workspace& ws) const {
    const Compiled& c = compiled(i);
    Workspace::Frame frame(ws);
    const Gathered g = gather(c, scores, 1.0, kLogOfZero, frame);
    double* tables = frame.take(c.tree.table_size);
    const double value = junction::max_up(c.tree, g.factors, tables, frame.take(c.tree.separated_size), ws, support);
    std::vector<Index> rows(c.vertices.size());
    junction::choose(c.tree, tables, len(rows.size()), rows.data());
    labelling_of_rows(i, c, rows.data(), best);
    return value;
}

double Graph::maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const {
    find_best(i, scores, nullptr, best, ws);
    return value_of(i, scores, best.view());
}

double Graph::log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                            Workspace& ws) const {
    if (temperature == 0.0) return maximum_as_sums(i, scores, marginals, entropy, ws);
    const Compiled& c = compiled(i);
    Workspace::Frame frame(ws);
    const Gathered g = gather(c, scores, 1.0 / temperature, kLogOfZero, frame);
    double* tables = frame.take(c.tree.table_size);
    double* separated = frame.take(c.tree.separated_size);
    double* entropies = entropy ? frame.take(c.tree.separated_size) : nullptr;
    const double log_z = junction::sum_up(c.tree, g.factors, tables, separated, entropies, ws);
    if (marginals || entropy) {
        double* factors = marginals ? g.factors : nullptr;  // their scores are no longer needed
        const double found = junction::sum_down(c.tree, tables, separated, entropies, factors, ws);
        if (entropy) *entropy = std::max(0.0, found);
    }
    if (marginals) scatter(i, c, g.factors, 1.0, marginals);
    return temperature * (log_z + g.constant);
}

void Graph::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    const Index first = layout_.vertex_ptr[i];
    Index rows_end = 0;
    for (Index v = first; v < layout_.vertex_ptr[i + 1]; ++v) {
        double* row = scores + row_begin_[v];
        for (Index a = 0; a < layout_.n_labels[v]; ++a) row[a] += scale;
        rows_end = row_begin_[v] + padded_width(layout_.n_labels[v]);
    }
    for (const Index slot : gold.slots) {
        if (slot < rows_end) scores[slot] -= scale;
    }
}

std::vector<Scored> Graph::k_best(Index i, const double* scores, Index k, Workspace& ws) const {
    const Compiled& c = compiled(i);
    Workspace::Frame frame(ws);
    const Gathered g = gather(c, scores, 1.0, kLogOfZero, frame);
    double* tables = frame.take(c.tree.table_size);
    const double best = junction::max_up(c.tree, g.factors, tables, frame.take(c.tree.separated_size), ws, nullptr);
    std::vector<Scored> out;
    const auto add = [&](const Index* rows) {
        Scored& next = out.emplace_back();
        labelling_of_rows(i, c, rows, next.labelling);
        next.value = value_of(i, scores, next.labelling.view());
    };
    if (c.vertices.empty()) {
        if (k > 0) add(nullptr);
        return out;
    }
    const std::vector<Index> rows = junction::k_best(c.tree, best, tables, k);
    for (std::size_t at = 0; at < rows.size(); at += c.vertices.size()) add(rows.data() + at);
    return out;
}

std::vector<SlotCounts> Graph::sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                      Workspace& ws) const {
    const Compiled& c = compiled(i);
    Workspace::Frame frame(ws);
    const Gathered g = gather(c, scores, 1.0 / temperature, kLogOfZero, frame);
    double* tables = frame.take(c.tree.table_size);
    junction::sum_up(c.tree, g.factors, tables, frame.take(c.tree.separated_size), nullptr, ws);
    std::vector<SlotCounts> out(n);
    std::vector<Index> rows(c.vertices.size());
    for (SlotCounts& one : out) {
        junction::draw(c.tree, tables, rng, rows.data());
        labelling_of_rows(i, c, rows.data(), one);
    }
    return out;
}

void Graph::covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                               Workspace& ws) const {
    const Compiled& c = compiled(i);
    Workspace::Frame frame(ws);
    const Gathered g = gather(c, scores, 1.0 / temperature, kLogOfZero, frame);
    const Gathered d = gather(c, direction, 1.0, 0.0, frame);
    double* tables = frame.take(c.tree.table_size);
    double* separated = frame.take(c.tree.separated_size);
    double* moved = frame.take(c.tree.factor_size);
    junction::tangent(c.tree, g.factors, d.factors, tables, separated, moved, ws);
    scatter(i, c, moved, 0.0, out);
}

void Graph::labelling_of(Index i, const Index* labels, SlotCounts& out) const {
    const Index first = layout_.vertex_ptr[i];
    std::vector<Index> used;
    for (Index v = 0; v < num_vertices(i); ++v) {
        if (labels[v] < 0 || labels[v] >= layout_.n_labels[first + v]) {
            refuse(i, ": label ", labels[v], " of vertex ", v, " is not in [0, ", layout_.n_labels[first + v], ")");
        }
        used.push_back(row_begin_[first + v] + labels[v]);
    }
    for (Index c = layout_.clique_ptr[i]; c < layout_.clique_ptr[i + 1]; ++c) {
        Index slot = 0;
        const Index last = layout_.member_ptr[c + 1] - 1;
        for (Index k = layout_.member_ptr[c]; k <= last; ++k) {
            const Index v = layout_.members[k];
            const Index n = layout_.n_labels[first + v];
            slot = slot * (k == last ? padded_width(n) : n) + labels[v];
        }
        used.push_back(clique_begin_[c] + slot);
    }
    out.clear();
    add_counted(used, out);
}

void Graph::labels_of(Index i, SlotView labelling, Index* labels) const {
    const auto begin = row_begin_.begin() + layout_.vertex_ptr[i];
    const auto end = row_begin_.begin() + layout_.vertex_ptr[i + 1];
    const Index first = layout_.vertex_ptr[i];
    std::fill(labels, labels + num_vertices(i), Index{-1});
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
        const Index slot = labelling.slots[k];
        if (slot < 0 || slot >= num_slots(i)) refuse(i, " has no slot ", slot);
        const Index v = std::upper_bound(begin, end, slot) - begin - 1;
        const Index label = slot - begin[v];
        if (label >= layout_.n_labels[first + v]) continue;  // padding, or a clique's slot after the last row
        if (labels[v] >= 0 || labelling.counts[k] != 1.0) refuse(i, " does not have one label for vertex ", v);
        labels[v] = label;
    }
    for (Index v = 0; v < num_vertices(i); ++v) {
        if (labels[v] < 0) refuse(i, " has no label for vertex ", v);
    }
}

void Graph::check_labelling(Index i, SlotView labelling, Workspace&) const {
    compiled(i);  // an example that is too wide is refused here
    std::vector<Index> labels(num_vertices(i));
    labels_of(i, labelling, labels.data());
    SlotCounts right;
    labelling_of(i, labels.data(), right);
    check_counts(concat("example ", i), right, labelling, mask(i));
}

// The clique view: the tables of the junction tree, rows by columns.

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
    return value_of(i, scores, best.view());
}

}  // namespace partwise
