// The chain's clique view: T - 1 edges of L x width entries (padding is 0), or one row for a sequence of length 1.
#include "structures/chain.h"
#include "structures/chain_program.h"

namespace partwise {

using chain::check_now_and_then;
using chain::Sums;
using chain::View;

std::vector<Index> Chain::clique_offsets(Index i) const {
    const Index T = length(i);
    std::vector<Index> offsets{0};
    if (T == 1) offsets.push_back(width());
    for (Index t = 1; t < T; ++t) offsets.push_back(t * n_labels() * width());
    return offsets;
}

double Chain::clique_marginals(Index i, const double* scores, double temperature, double* out, Workspace& ws) const {
    const Index T = length(i);
    const Index block = n_labels() * width();
    Workspace::Frame frame(ws);
    Cut cut = Cut::kNone;
    View view = prepare(i, scores, 1.0 / temperature, frame, cut);
    const bool safe = is_safe(view, cut);
    Sums sums;
    sums.node = T == 1 ? out : frame.take(T * width());
    (safe && tied_ ? sums.edges : sums.edge) = T == 1 ? nullptr : out;
    if (tied_ && T > 1 && !safe) {  // untie the edges, so that every edge gets its own marginals
        double* edges = frame.take((T - 1) * block);
        for (Index t = 1; t < T; ++t) copy(view.edge, edges + (t - 1) * block, block);
        view.edge = edges;
        view.edge_step = block;
    }
    sum_paths(i, view, safe, sums, ws);
    return temperature * sums.log_partition;
}

void Chain::slots_from_cliques(Index i, const double* cliques, double* slots) const {
    const Index T = length(i);
    const Index L = n_labels();
    const Index block = L * width();
    fill(slots, num_slots(i), 0.0);
    if (T == 1) copy(cliques, slots, width());
    for (Index t = 1; t < T; ++t) {
        const double* xi = cliques + (t - 1) * block;
        axpy(1.0, xi, slots + edge_begin(i) + (tied_ ? 0 : (t - 1) * block), block);
        for (Index a = 0; a < L; ++a) axpy(1.0, xi + a * width(), slots + t * width(), width());
        for (Index a = 0; t == 1 && a < L; ++a) {
            for (Index b = 0; b < L; ++b) slots[a] += xi[a * width() + b];
        }
    }
    add_ends(i, slots, slots);
}

// At inner positions, column sums of the edge before must equal row sums of the edge after. Padding must have no mass.
double Chain::clique_disagreement(Index i, const double* cliques, Workspace& ws) const {
    const Index T = length(i);
    const Index L = n_labels();
    const Index block = L * width();
    Workspace::Frame frame(ws);
    double* columns = frame.take(width());
    double worst = 0;
    for (Index t = 1; t < std::max<Index>(T, 2); ++t) {
        check_now_and_then(t);
        const double* xi = cliques + (t - 1) * block;
        const Index n_rows = T == 1 ? 1 : L;
        for (Index a = 0; a < n_rows; ++a) {
            double sum = 0;
            for (Index b = 0; b < width(); ++b) sum += xi[a * width() + b];
            if (t > 1) worst = std::max(worst, std::abs(sum - columns[a]));
        }
        fill(columns, width(), 0.0);
        for (Index a = 0; a < n_rows; ++a) axpy(1.0, xi + a * width(), columns, width());
        for (Index b = L; b < width(); ++b) worst = std::max(worst, std::abs(columns[b]));
    }
    return worst;
}

// H = sum_t H(xi_t) - sum over inner positions of H(mu_t), with mu_t(b) = sum_a xi_t(a, b).
double Chain::entropy_of_cliques(Index i, const double* cliques, double* gradient, Workspace& ws) const {
    const Index T = length(i);
    const Index L = n_labels();
    const Index block = L * width();
    Workspace::Frame frame(ws);
    double* mu = frame.take(width());
    double entropy = 0;
    const auto add = [&](double sign, const double* __restrict p) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index b = 0; b < L; ++b) sum += p[b] * fast_log(p[b]);
        entropy -= sign * sum;
    };
    const Index n_rows = T == 1 ? 1 : L;
    if (gradient) fill(gradient, T == 1 ? width() : (T - 1) * block, 0.0);
    for (Index t = 1; t < std::max<Index>(T, 2); ++t) {
        check_now_and_then(t);
        const double* xi = cliques + (t - 1) * block;
        const bool inner = t < T - 1;
        fill(mu, width(), 0.0);
        for (Index a = 0; a < n_rows; ++a) {
            add(1.0, xi + a * width());
            axpy(1.0, xi + a * width(), mu, width());
        }
        if (inner) add(-1.0, mu);
        for (Index a = 0; gradient && a < n_rows; ++a) {
            const double* __restrict row = xi + a * width();
            double* __restrict out = gradient + (t - 1) * block + a * width();
            for (Index b = 0; b < L; ++b) out[b] = (inner ? 1.0 + fast_log(mu[b]) : 0.0) - 1.0 - fast_log(row[b]);
        }
    }
    return entropy;
}

namespace {

// Rows of label pairs with less probability are left out: their entropy is below 1e-11.
constexpr double kNothing = 1e-14;

// Adds the entropy of one edge's table; if `inner`, subtracts that of its column sums, which are a separator.
template <int W>
void add_edge(const double* __restrict p, const double* __restrict d, double step, Index n_rows, Index padded,
              bool inner, double* __restrict sums, double* __restrict ways, Along& out) {
    const Index width = W > 0 ? W : padded;
    fill(sums, width, 0.0);
    fill(ways, width, 0.0);
    for (Index a = 0; a < n_rows; ++a, p += width, d += width) {
        double mass = 0;
#pragma omp simd reduction(+ : mass)
        for (Index b = 0; b < width; ++b) {
            sums[b] += p[b];
            ways[b] += d[b];
            mass += p[b] + step * d[b];
        }
        if (mass > kNothing) add_entropy(1.0, p, d, step, width, out);
    }
    if (inner) add_entropy(-1.0, sums, ways, step, width, out);
}

}  // namespace

Along Chain::entropy_along(Index i, const double* cliques, const double* direction, double step, Workspace& ws) const {
    const Index T = length(i);
    const Index block = n_labels() * width();
    Workspace::Frame frame(ws);
    double* sums = frame.take(width());
    double* ways = frame.take(width());
    Along out;
    const Index n_rows = T == 1 ? 1 : n_labels();
    with_width(width(), [&](auto w) {
        for (Index t = 1; t < std::max<Index>(T, 2); ++t) {
            check_now_and_then(t);
            const Index at = (t - 1) * block;
            add_edge<w()>(cliques + at, direction + at, step, n_rows, width(), t < T - 1, sums, ways, out);
        }
    });
    return out;
}

// p(y) = xi_1(y_0, y_1) prod_t p_t(y_t | y_{t-1}): the potentials are log xi_1, then log conditionals.
void Chain::scores_from_cliques(Index i, const double* cliques, double* out) const {
    const Index T = length(i);
    const Index block = n_labels() * width();
    fill(out, T == 1 ? width() : (T - 1) * block, 0.0);
    const Index n_rows = T == 1 ? 1 : n_labels();
    for (Index t = 1; t < std::max<Index>(T, 2); ++t) {
        const double* xi = cliques + (t - 1) * block;
        for (Index a = 0; a < n_rows; ++a) {
            double total = 1.0;
            if (t > 1) {
                total = 0;
                for (Index b = 0; b < n_labels(); ++b) total += xi[a * width() + b];
            }
            for (Index b = 0; b < n_labels(); ++b) {
                out[(t - 1) * block + a * width() + b] = safe_log(xi[a * width() + b]) - safe_log(total);
            }
        }
    }
}

bool Chain::slot_scores_from_cliques(Index i, const double* cliques, double* scores) const {
    const Index T = length(i);
    if (tied_ && T > 2) return false;
    fill(scores, num_slots(i), 0.0);
    scores_from_cliques(i, cliques, T == 1 ? scores : scores + edge_begin(i));
    return true;
}

void Chain::clique_entries(Index i, SlotView labelling, Index* entries, Workspace&) const {
    const Index T = length(i);
    std::vector<Index> labels(T);
    labels_of(i, labelling, labels.data());
    if (T == 1) entries[0] = labels[0];
    for (Index t = 1; t < T; ++t) entries[t - 1] = ((t - 1) * n_labels() + labels[t - 1]) * width() + labels[t];
}

// Finds the best path after setting the scores of label pairs outside of the support to -infinity.
double Chain::maximize_in_support(Index i, const double* scores, const double* cliques, double least, SlotCounts& best,
                                  Workspace& ws) const {
    const Index T = length(i);
    const Index block = n_labels() * width();
    Workspace::Frame frame(ws);
    Cut cut = Cut::kNone;
    View view = prepare(i, scores, 1.0, frame, cut);
    const Index size = T == 1 ? width() : block;
    double* open = frame.take(std::max<Index>(1, T - 1) * size);
    for (Index t = 1; t < std::max<Index>(T, 2); ++t) {
        const double* own = T == 1 ? view.node : view.edge_at(t);
        const double* q = cliques + (t - 1) * size;
        for (Index k = 0; k < size; ++k) open[(t - 1) * size + k] = q[k] > least ? own[k] : -kInfinity;
    }
    (T == 1 ? view.node : view.edge) = open;
    view.edge_step = block;
    std::vector<Index> labels(T);
    if (!best_path(view, labels.data(), ws)) no_support(i);
    labelling_of(i, labels.data(), best);
    return value_of(i, scores, best.view());
}

}  // namespace partwise
