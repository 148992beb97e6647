#include "structures/second_order_chain.h"

#include <map>

#include "structures/width_dispatch.h"
#include "support/sizes.h"

namespace partwise {

using second_order::Program;
using second_order::View;

SecondOrderChain::SecondOrderChain(std::vector<Index> lengths, Index n_labels)
    : Sequences(std::move(lengths), n_labels) {
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

double* SecondOrderChain::to_program(Index i, const double* slots, double scale, bool masked,
                                     Workspace::Frame& frame) const {
    const Program p = program(i);
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

void SecondOrderChain::from_program(Index i, const double* own, double* slots) const {
    const Program p = program(i);
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
    for (Index t = 0; !follow().empty() && t < length(i); ++t) {
        if (!may_stand(i, t, labels[t]) || (t > 0 && !may_follow(labels[t - 1], labels[t]))) nothing_left(i);
    }
    labelling_of(i, labels.data(), best);
    return value_of(i, scores, {best.slots, best.counts});
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
    const double* own = to_program(i, scores, 1.0 / temperature, true, frame);
    double* expected = marginals ? frame.take(program(i).slots()) : nullptr;
    const double log_z = chart::log_partition(program(i), own, expected, entropy, ws);
    if (log_z == -kInfinity) nothing_left(i);
    if (marginals) from_program(i, expected, marginals);
    return temperature * log_z;
}

void SecondOrderChain::covariance_product(Index i, const double* scores, double temperature, const double* direction,
                                          double* out, Workspace& ws) const {
    Workspace::Frame frame(ws);
    const double* own = to_program(i, scores, 1.0 / temperature, true, frame);
    const double* along = to_program(i, direction, 1.0, false, frame);
    double* product = frame.take(program(i).slots());
    chart::covariance_product(program(i), own, along, product, ws);
    from_program(i, product, out);
}

std::vector<Scored> SecondOrderChain::k_best(Index i, const double* scores, Index k, Workspace& ws) const {
    Workspace::Frame frame(ws);
    const double* own = to_program(i, scores, 1.0, true, frame);
    std::vector<Scored> out;
    std::vector<Index> labels(length(i));
    const auto use = [&](Index slot) {
        if (slot < length(i) * n_labels()) labels[slot / n_labels()] = slot % n_labels();
    };
    chart::k_best(program(i), own, k, ws, use, [&] {
        Scored& next = out.emplace_back();
        labelling_of(i, labels.data(), next.labelling);
        next.value = value_of(i, scores, {next.labelling.slots, next.labelling.counts});
    });
    if (out.empty() && k > 0) nothing_left(i);
    return out;
}

std::vector<SlotCounts> SecondOrderChain::sample(Index i, const double* scores, double temperature, Index n,
                                                 std::mt19937_64& rng, Workspace& ws) const {
    if (!follow().empty()) check_mask(i);
    Workspace::Frame frame(ws);
    const double* own = to_program(i, scores, 1.0 / temperature, true, frame);
    std::vector<Index> labels(n * length(i));
    chart::sample(program(i), own, n, rng, ws, [&](Index j, Index slot) {
        if (slot < length(i) * n_labels()) labels[j * length(i) + slot / n_labels()] = slot % n_labels();
    });
    std::vector<SlotCounts> out(n);
    for (Index j = 0; j < n; ++j) labelling_of(i, labels.data() + j * length(i), out[j]);
    return out;
}

void SecondOrderChain::labelling_of(Index i, const Index* labels, SlotCounts& out) const {
    const Index T = length(i);
    out.clear();
    for (Index t = 0; t < T; ++t) out.add(t * width() + labels[t], 1.0);
    std::map<Index, double> tied;
    for (Index t = 1; t < T; ++t) tied[(pair_row(i) + labels[t - 1]) * width() + labels[t]] += 1.0;
    for (Index t = 2; t < T; ++t) {
        tied[(triple_row(i) + labels[t - 2] * n_labels() + labels[t - 1]) * width() + labels[t]] += 1.0;
    }
    for (const auto& [slot, count] : tied) out.add(slot, count);
}

void SecondOrderChain::check_labelling(Index i, SlotView labelling, Workspace&) const {
    std::vector<Index> labels(length(i));
    labels_of(i, labelling, labels.data());
    check_follow(i, labels.data());
    SlotCounts right;
    labelling_of(i, labels.data(), right);
    check_counts(i, right, labelling, mask(i));
}

void SecondOrderChain::check_mask(Index i) const {
    Workspace ws;
    Workspace::Frame frame(ws);
    double* zeros = frame.take(num_slots(i));
    fill(zeros, num_slots(i), 0.0);
    const double log_z = log_partition(i, zeros, 1.0, nullptr, nullptr, ws);
    if (log_z == -kInfinity) nothing_left(i);
}

}  // namespace partwise
