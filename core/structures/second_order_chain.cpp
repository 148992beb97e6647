#include "structures/second_order_chain.h"

#include "support/sizes.h"

namespace partwise {

using second_order::Program;
using second_order::View;

SecondOrderChain::SecondOrderChain(std::vector<Index> lengths, Index n_labels)
    : ChartStructure(std::move(lengths), n_labels) {
    const char* what = "the number of a sequence's slots";
    const Index tied = checked_product(n_labels, n_labels + 1, what);
    Index total = 0;
    for (Index i = 0; i < num_examples(); ++i) {
        const Index rows = checked_sum(length(i), tied, what);
        total = checked_sum(total, checked_product(rows, width(), what), "the number of slots");
    }
}

View SecondOrderChain::view_of(Index i, const double* slots) const {
    return {length(i), n_labels(), width(), slots, slots + pair_row(i) * width(), slots + triple_row(i) * width()};
}

View SecondOrderChain::prepare(Index i, const double* scores, double temperature, Workspace::Frame& frame,
                               bool& cut) const {
    const bool limited = mask(i) || !follow().empty();
    cut = false;
    if (!limited && temperature == 1.0) return view_of(i, scores);
    const double factor = 1.0 / temperature;
    double* out = frame.take(num_slots(i));
    for (Index r = 0; r < num_slots(i); ++r) out[r] = scores[r] * factor;
    for (Index row = 0; limited && row < num_slots(i) / width(); ++row) {
        for (Index c = 0; c < n_labels(); ++c) {
            if (allows(i, row, c)) continue;
            out[row * width() + c] = -kInfinity;
            cut = cut || row >= pair_row(i);
        }
    }
    return view_of(i, out);
}

bool SecondOrderChain::allows(Index i, Index row, Index c) const {
    const std::uint8_t* allowed = mask(i);
    if (allowed && !allowed[row * width() + c]) return false;
    if (follow().empty() || row >= triple_row(i)) return true;
    return row < pair_row(i) ? may_stand(i, row, c) : may_follow(row - pair_row(i), c);
}

bool SecondOrderChain::is_safe(const View& v) const {
    const Index L = v.n_labels;
    const double pairs = chain::spread(v.pair, L, L, v.width);
    const double triples = chain::spread(v.triple, L * L, L, v.width);
    double nodes = 0;
    for (Index t = 0; t < v.length; ++t) nodes = std::max(nodes, chain::spread(v.node + t * v.width, 1, L, v.width));
    return 2.0 * (nodes + pairs + triples) <= chain::kSafeSpread;
}

const double* SecondOrderChain::to_program(Index i, const Program& p, const double* slots, double scale, bool masked,
                                           Workspace::Frame& frame) const {
    const Index L = n_labels();
    double* out = frame.take(p.slots());
    const auto value = [&](Index row, Index c) {
        return masked && !allows(i, row, c) ? -kInfinity : slots[row * width() + c] * scale;
    };
    for (Index t = 0; t < length(i); ++t) {
        for (Index c = 0; c < L; ++c) out[t * L + c] = value(t, c);
    }
    for (Index b = 0; b < L; ++b) {
        for (Index c = 0; c < L; ++c) {
            out[p.pair_begin() + c * L + b] = value(pair_row(i) + b, c);
            for (Index a = 0; a < L; ++a) {
                out[p.triple_begin() + (b * L + c) * L + a] = value(triple_row(i) + a * L + b, c);
            }
        }
    }
    return out;
}

void SecondOrderChain::from_program(Index i, const Program& p, const double* own, double* slots) const {
    const Index L = n_labels();
    fill(slots, num_slots(i), 0.0);
    for (Index t = 0; t < length(i); ++t) copy(own + t * L, slots + t * width(), L);
    for (Index b = 0; b < L; ++b) {
        for (Index c = 0; c < L; ++c) {
            slots[(pair_row(i) + b) * width() + c] = own[p.pair_begin() + c * L + b];
            for (Index a = 0; a < L; ++a) {
                slots[(triple_row(i) + a * L + b) * width() + c] = own[p.triple_begin() + (b * L + c) * L + a];
            }
        }
    }
}

double SecondOrderChain::maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const {
    Workspace::Frame frame(ws);
    bool cut = false;
    const View view = prepare(i, scores, 1.0, frame, cut);
    std::vector<Index> labels(length(i));
    with_width(width(), [&](auto w) { second_order::best_labels<w()>(view, labels.data(), ws); });
    if (first_forbidden(i, labels.data()) >= 0) nothing_left(i);
    labelling_of(i, labels.data(), best);
    return value_of(i, scores, best.view());
}

double SecondOrderChain::log_partition(Index i, const double* scores, double temperature, double* marginals,
                                       double* entropy, Workspace& ws) const {
    if (temperature == 0.0) return maximum_as_sums(i, scores, marginals, entropy, ws);
    Workspace::Frame frame(ws);
    bool cut = false;
    const View view = prepare(i, scores, temperature, frame, cut);
    if (entropy && !marginals) marginals = frame.take(num_slots(i));
    if (!cut && is_safe(view)) {
        double* pair = marginals ? marginals + pair_row(i) * width() : nullptr;
        double* triple = marginals ? marginals + triple_row(i) * width() : nullptr;
        const double log_z = with_width(
            width(), [&](auto w) { return second_order::scaled_sums<w()>(view, marginals, pair, triple, ws); });
        // H = log Z - <mu, scores / temperature>: no large numbers here, so little cancels.
        if (entropy) *entropy = std::max(0.0, log_z - dot(marginals, scores, num_slots(i)) / temperature);
        return temperature * log_z;
    }
    return chart_sums(i, scores, temperature, marginals, entropy, ws);
}

double SecondOrderChain::gather(Index i, const double* scores, std::vector<Index>& used, SlotCounts& out) const {
    std::vector<Index> labels(length(i));
    for (const Index slot : used) {
        if (slot < length(i) * n_labels()) labels[slot / n_labels()] = slot % n_labels();
    }
    labelling_of(i, labels.data(), out);
    return value_of(i, scores, out.view());
}

void SecondOrderChain::labelling_of(Index i, const Index* labels, SlotCounts& out) const {
    const Index T = length(i);
    LabelSequences::labelling_of(i, labels, out);
    std::vector<Index> tied;
    for (Index t = 1; t < T; ++t) tied.push_back((pair_row(i) + labels[t - 1]) * width() + labels[t]);
    for (Index t = 2; t < T; ++t) {
        tied.push_back((triple_row(i) + labels[t - 2] * n_labels() + labels[t - 1]) * width() + labels[t]);
    }
    add_counted(tied, out);
}

template class ChartStructure<SecondOrderChain, LabelSequences>;

}  // namespace partwise
