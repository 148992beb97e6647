#include "structures/sequences.h"

#include <algorithm>
#include <map>

namespace partwise {

namespace {
std::string sequence(Index i) { return "sequence " + std::to_string(i); }
}  // namespace

Sequences::Sequences(std::vector<Index> lengths, Index n_labels)
    : Structure(len(lengths.size())),
      lengths_(std::move(lengths)),
      n_labels_(n_labels),
      width_(padded_width(n_labels)) {
    if (n_labels < 1) throw InputError("a chain needs at least one label");
    for (Index i = 0; i < num_examples(); ++i) {
        if (length(i) < 1) throw InputError(sequence(i), " is empty");
    }
}

void Sequences::set_follow(Follow rule) {
    const auto check = [](const std::vector<std::uint8_t>& given, Index n, const char* what) {
        if (!given.empty() && len(given.size()) != n) throw InputError(what, ": ", n, " values are needed");
    };
    check(rule.pairs, n_labels_ * n_labels_, "which labels may follow which");
    check(rule.first, n_labels_, "which labels may come first");
    check(rule.last, n_labels_, "which labels may come last");
    follow_ = std::move(rule);
    follow_changed();
}

void Sequences::follow_changed() {
    if (follow_.empty()) return;
    follow_ = {};
    throw InputError("this structure takes no rule about neighbouring labels: use masks");
}

void Sequences::check_follow(Index i, const Index* labels) const {
    if (follow_.empty()) return;
    for (Index t = 0; t < length(i); ++t) {
        if (!may_stand(i, t, labels[t]) || (t > 0 && !may_follow(labels[t - 1], labels[t]))) {
            throw InputError(sequence(i), ", position ", t, ": a rule for all sequences forbids the label");
        }
    }
}

void Sequences::nothing_left(Index i) const { throw InputError("the mask of ", sequence(i), " allows no labelling"); }

void Sequences::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    for (Index t = 0; t < length(i); ++t) {
        for (Index a = 0; a < n_labels_; ++a) scores[t * width_ + a] += scale;
    }
    for (const Index slot : gold.slots) {
        if (slot < length(i) * width_) scores[slot] -= scale;
    }
}

void Sequences::labels_of(Index i, SlotView labelling, Index* labels) const {
    const Index T = length(i);
    std::fill(labels, labels + T, Index{-1});
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
        const Index slot = labelling.slots[k];
        if (slot < 0 || slot >= num_slots(i)) throw InputError(sequence(i), ": no slot ", slot);
        if (slot >= T * width_) continue;
        const Index t = slot / width_;
        if (labels[t] >= 0 || slot % width_ >= n_labels_ || labelling.counts[k] != 1.0) {
            throw InputError(sequence(i), ", position ", t, ": expected exactly one label");
        }
        labels[t] = slot % width_;
    }
    for (Index t = 0; t < T; ++t) {
        if (labels[t] < 0) throw InputError(sequence(i), ", position ", t, ": no label");
    }
}

void check_counts(Index i, const SlotCounts& right, SlotView labelling, const std::uint8_t* allowed) {
    std::map<Index, double> difference;
    for (std::size_t k = 0; k < right.slots.size(); ++k) difference[right.slots[k]] += right.counts[k];
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) difference[labelling.slots[k]] -= labelling.counts[k];
    for (const auto& [slot, count] : difference) {
        if (count != 0.0) throw InputError(sequence(i), ": slot ", slot, " does not have the count its labels give it");
    }
    for (const Index slot : right.slots) {
        if (allowed && !allowed[slot]) {
            throw InputError(sequence(i), ": the labelling uses slot ", slot, ", which its mask forbids");
        }
    }
}

}  // namespace partwise
