#include "structures/chain.h"

#include "structures/chain_covariance.h"
#include "structures/chain_program.h"
#include "support/sizes.h"

namespace partwise {

using chain::Sums;
using chain::View;

Chain::Chain(std::vector<Index> lengths, Index n_labels, bool tied, bool ends)
    : ChartStructure(std::move(lengths), n_labels), tied_(tied), ends_(ends) {
    Index total = 0;
    for (Index i = 0; i < num_examples(); ++i) {
        // Tied edges share slots, but the clique view has entries for each edge: their number must fit, too.
        const Index rows = checked_product(length(i), n_labels + 1, "the number of a sequence's slots");
        total = checked_sum(total, checked_product(rows, width(), "the number of a sequence's slots"),
                            "the number of slots");
    }
}

Index Chain::edge_slots(Index i) const { return (tied_ ? 1 : length(i) - 1) * n_labels() * width(); }
Index Chain::num_slots(Index i) const { return ends_begin(i) + (ends_ ? 2 * width() : 0); }

View Chain::prepare(Index i, const double* scores, double scale, Workspace::Frame& frame, Cut& cut) const {
    const Index T = length(i);
    const std::uint8_t* allowed = mask(i);
    View view{T, n_labels(), width(), scores, scores + edge_begin(i), tied_ ? 0 : n_labels() * width()};
    cut = Cut::kNone;
    const bool rule = !follow().empty();
    if (!allowed && !rule && !ends_ && scale == 1.0) return view;

    const Index n_edge = edge_slots(i);
    double* node = frame.take(T * width());
    double* edge = frame.take(n_edge);
    for (Index r = 0; r < T * width(); ++r) node[r] = scores[r] * scale;
    for (Index r = 0; r < n_edge; ++r) edge[r] = view.edge[r] * scale;
    if (ends_) {
        axpy(scale, scores + ends_begin(i), node, width());
        axpy(scale, scores + ends_begin(i) + width(), node + (T - 1) * width(), width());
    }
    if (!follow_scores_.empty() && T > 1) {
        const Index block = n_labels() * width();
        for (double* at = edge; at < edge + n_edge; at += block) axpy(1.0, follow_scores_.data(), at, block);
        cut = Cut::kByRule;
    }
    if (rule) {
        for (const Index t : {Index{0}, T - 1}) {
            for (Index a = 0; a < n_labels(); ++a) {
                if (!may_stand(i, t, a)) node[t * width() + a] = -kInfinity;
            }
        }
    }
    if (allowed) {
        if (cut == Cut::kByRule) cut = Cut::kByMask;  // is_safe()'s bound for rules assumes that no pair is masked
        for (Index t = 0; t < T; ++t) {
            for (Index a = 0; a < n_labels(); ++a) {
                bool closed = !allowed[t * width() + a];
                if (ends_ && t == 0) closed = closed || !allowed[ends_begin(i) + a];
                if (ends_ && t == T - 1) closed = closed || !allowed[ends_begin(i) + width() + a];
                if (closed) node[t * width() + a] = -kInfinity;
            }
        }
        for (Index row = 0; row < n_edge / width(); ++row) {
            for (Index b = 0; b < n_labels(); ++b) {
                if (!allowed[edge_begin(i) + row * width() + b]) {
                    edge[row * width() + b] = -kInfinity;
                    cut = Cut::kByMask;
                }
            }
        }
    }
    view.node = node;
    view.edge = edge;
    return view;
}

// Sums in scaled probabilities need forward rows in which no reachable label is far below the largest. If all pairs are
// allowed, one step leads from the largest label to every label, and the spread of scores bounds the ratio. A rule
// keeps the square of that bound if every label b may follow some label a that may itself follow all labels: two steps
// then lead from the largest label over a to b. (In IOB2, I-x may follow B-x, and B-x may follow every label.)
void Chain::follow_changed() {
    const Index L = n_labels();
    follow_scores_.clear();
    within_two_ = true;
    if (follow().pairs.empty()) return;
    follow_scores_.assign(L * width(), 0.0);
    std::vector<char> open(L, 1);  // labels that may follow all
    for (Index a = 0; a < L; ++a) {
        for (Index b = 0; b < L; ++b) {
            if (may_follow(a, b)) continue;
            follow_scores_[a * width() + b] = -kInfinity;
            open[b] = 0;
        }
    }
    for (Index b = 0; b < L && within_two_; ++b) {
        bool reached = open[b];
        for (Index a = 0; a < L && !reached; ++a) reached = open[a] && may_follow(a, b);
        within_two_ = reached;
    }
    // At the first position there is no step before: the labels that may follow all must be allowed to come first.
    for (Index a = 0; a < L; ++a)
        within_two_ = within_two_ && (!open[a] || follow().first.empty() || follow().first[a]);
}

bool Chain::is_safe(const View& view, Cut cut) const {
    if (cut == Cut::kByMask || (cut == Cut::kByRule && !within_two_)) return false;
    const Index T = view.length;
    const double edges = T > 1 ? chain::spread(view.edge, (tied_ ? 1 : T - 1) * n_labels(), n_labels(), width()) : 0.0;
    double nodes = 0;
    for (Index t = 0; t < T; ++t) {
        nodes = std::max(nodes, chain::spread(view.node + t * width(), 1, n_labels(), width()));
    }
    return nodes + edges <= (cut == Cut::kByRule ? chain::kSafeSpread / 2 : chain::kSafeSpread);
}

double Chain::weight_of(Index i, const double* scores, const Index* labels) const {
    const Index T = length(i);
    double value = 0;
    for (Index t = 0; t < T; ++t) value += scores[t * width() + labels[t]];
    for (Index t = 1; t < T; ++t) {
        const Index block = tied_ ? 0 : (t - 1) * n_labels() * width();
        value += scores[edge_begin(i) + block + labels[t - 1] * width() + labels[t]];
    }
    if (ends_) value += scores[ends_begin(i) + labels[0]] + scores[ends_begin(i) + width() + labels[T - 1]];
    return value;
}

bool Chain::best_path(const View& view, Index* labels, Workspace& ws) {
    Workspace::Frame frame(ws);
    double* values = frame.take(view.length * view.width);
    with_width(view.width, [&](auto w) { chain::best_prefixes<w()>(view, values); });
    chain::backtrack(view, values, labels);
    return values[(view.length - 1) * view.width + labels[view.length - 1]] > -kInfinity;
}

double Chain::maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const {
    Workspace::Frame frame(ws);
    Cut cut = Cut::kNone;
    std::vector<Index> labels(length(i));
    if (!best_path(prepare(i, scores, 1.0, frame, cut), labels.data(), ws)) nothing_left(i);
    labelling_of(i, labels.data(), best);
    return weight_of(i, scores, labels.data());
}

void Chain::sum_paths(Index i, const View& view, bool safe, Sums& sums, Workspace& ws) const {
    with_width(view.width,
               [&](auto w) { safe ? chain::scaled_sums<w()>(view, sums, ws) : chain::log_sums<w()>(view, sums, ws); });
    if (sums.log_partition == -kInfinity) nothing_left(i);
}

double Chain::log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                            Workspace& ws) const {
    if (temperature == 0.0) return maximum_as_sums(i, scores, marginals, entropy, ws);
    Workspace::Frame frame(ws);
    Cut cut = Cut::kNone;
    const View view = prepare(i, scores, 1.0 / temperature, frame, cut);
    if (entropy && !marginals) marginals = frame.take(num_slots(i));
    Sums sums;
    sums.node = marginals;
    sums.edge = marginals ? marginals + edge_begin(i) : nullptr;
    const bool safe = is_safe(view, cut);
    sum_paths(i, view, safe, sums, ws);
    if (marginals) add_ends(i, marginals, marginals);
    if (entropy && safe) {
        // H = log Z - <mu, scores / temperature>: no large numbers here, so little cancels.
        sums.entropy = std::max(0.0, sums.log_partition - dot(marginals, scores, num_slots(i)) / temperature);
    }
    if (entropy) *entropy = sums.entropy;
    return temperature * sums.log_partition;
}

void Chain::add_ends(Index i, const double* node_marginals, double* slots) const {
    if (!ends_) return;
    copy(node_marginals, slots + ends_begin(i), width());
    copy(node_marginals + (length(i) - 1) * width(), slots + ends_begin(i) + width(), width());
}

void Chain::labelling_of(Index i, const Index* labels, SlotCounts& out) const {
    const Index T = length(i);
    LabelSequences::labelling_of(i, labels, out);
    std::vector<Index> pairs(T - 1);
    for (Index t = 1; t < T; ++t) {
        const Index block = tied_ ? 0 : (t - 1) * n_labels() * width();
        pairs[t - 1] = edge_begin(i) + block + labels[t - 1] * width() + labels[t];
    }
    add_counted(pairs, out);
    if (ends_) {
        out.add(ends_begin(i) + labels[0], 1.0);
        out.add(ends_begin(i) + width() + labels[T - 1], 1.0);
    }
}

template <class F>
auto Chain::with_program(Index i, F&& f) const {
    return with_width(width(), [&](auto w) { return f(chain::Program<w()>{length(i), n_labels(), width(), tied_}); });
}

template <class Program>
const double* Chain::to_program(Index i, const Program& program, const double* values, double scale, bool,
                                Workspace::Frame& frame) const {
    Cut cut = Cut::kNone;
    const View view = prepare(i, values, scale, frame, cut);
    return chain::to_program(program, view.node, view.edge, -kInfinity, frame);
}

double Chain::gather(Index i, const double* scores, std::vector<Index>& used, SlotCounts& out) const {
    std::vector<Index> labels(length(i));
    for (const Index slot : used) {
        if (slot < edge_begin(i)) labels[slot / width()] = slot % width();
    }
    labelling_of(i, labels.data(), out);
    return weight_of(i, scores, labels.data());
}

void Chain::covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                               Workspace& ws) const {
    const Index T = length(i);
    Workspace::Frame frame(ws);
    Cut cut = Cut::kNone;
    const View view = prepare(i, scores, 1.0 / temperature, frame, cut);
    double* node_d = frame.take(T * width());
    copy(direction, node_d, T * width());
    if (ends_) {
        axpy(1.0, direction + ends_begin(i), node_d, width());
        axpy(1.0, direction + ends_begin(i) + width(), node_d + (T - 1) * width(), width());
    }
    const double* edge_d = direction + edge_begin(i);
    const bool safe = is_safe(view, cut);
    with_width(width(), [&](auto w) {
        const auto product = safe ? chain::scaled_covariance<w()> : chain::log_covariance<w()>;
        product(view, node_d, edge_d, out, out + edge_begin(i), ws);
    });
    add_ends(i, out, out);
}

template class ChartStructure<Chain, LabelSequences>;

}  // namespace partwise
