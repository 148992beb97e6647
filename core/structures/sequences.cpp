#include "structures/sequences.h"

#include "support/vector_math.h"

namespace partwise {

Sequences::Sequences(std::vector<Index> lengths, Index n_labels)
    : Structure(len(lengths.size())),
      lengths_(std::move(lengths)),
      n_labels_(n_labels),
      width_(padded_width(n_labels)) {
    if (n_labels < 1) throw InputError("a chain needs at least one label");
    for (Index i = 0; i < num_examples(); ++i) {
        if (length(i) < 1) throw InputError(name(i), " is empty");
    }
}

void Sequences::nothing_left(Index i) const { throw InputError("the mask of ", name(i), " allows no labelling"); }

void Sequences::check_mask(Index i) const {
    Workspace ws;
    const std::vector<double> zeros(num_slots(i), 0.0);
    if (log_partition(i, zeros.data(), 1.0, nullptr, nullptr, ws) == -kInfinity) nothing_left(i);
}

void Sequences::labels_of(Index i, SlotView labelling, Index* labels) const {
    const Index T = length(i);
    std::fill(labels, labels + T, Index{-1});
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
        const Index slot = labelling.slots[k];
        if (slot < 0 || slot >= num_slots(i)) throw InputError(name(i), ": no slot ", slot);
        if (slot >= T * width_) continue;
        const Index t = slot / width_;
        if (labels[t] >= 0 || slot % width_ >= n_labels_ || labelling.counts[k] != 1.0) {
            throw InputError(name(i), ", position ", t, ": expected exactly one label");
        }
        labels[t] = slot % width_;
    }
    for (Index t = 0; t < T; ++t) {
        if (labels[t] < 0) throw InputError(name(i), ", position ", t, ": no label");
    }
}

void LabelSequences::set_follow(Follow rule) {
    const auto check = [](const std::vector<std::uint8_t>& given, Index n, const char* what) {
        if (!given.empty() && len(given.size()) != n) throw InputError(what, ": ", n, " values are needed");
    };
    check(rule.pairs, n_labels() * n_labels(), "which labels may follow which");
    check(rule.first, n_labels(), "which labels may come first");
    check(rule.last, n_labels(), "which labels may come last");
    follow_ = std::move(rule);
    follow_changed();
}

void LabelSequences::labelling_of(Index i, const Index* labels, SlotCounts& out) const {
    out.clear();
    for (Index t = 0; t < length(i); ++t) out.add(t * width() + labels[t], 1.0);
}

Index LabelSequences::first_forbidden(Index i, const Index* labels) const {
    for (Index t = 0; !follow_.empty() && t < length(i); ++t) {
        if (!may_stand(i, t, labels[t]) || (t > 0 && !may_follow(labels[t - 1], labels[t]))) return t;
    }
    return -1;
}

void LabelSequences::check_rule(Index i) const {
    if (!follow_.empty()) check_mask(i);
}

void LabelSequences::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    for (Index t = 0; t < length(i); ++t) {
        for (Index a = 0; a < n_labels(); ++a) scores[t * width() + a] += scale;
    }
    for (const Index slot : gold.slots) {
        if (slot < length(i) * width()) scores[slot] -= scale;
    }
}

void LabelSequences::check_labelling(Index i, SlotView labelling, Workspace&) const {
    std::vector<Index> labels(length(i));
    labels_of(i, labelling, labels.data());
    const Index wrong = first_forbidden(i, labels.data());
    if (wrong >= 0) {
        throw InputError(name(i), ", position ", wrong, ": a rule for all sequences forbids the label");
    }
    SlotCounts right;
    labelling_of(i, labels.data(), right);
    check_counts(name(i), right, labelling, mask(i));
}

}  // namespace partwise
