// Labellings of segment chains: slots to segments and back, checks, costs.
#include <map>

#include "structures/segment_chain.h"
#include "structures/sequences.h"

namespace partwise {

using segments::Segment;
using segments::View;

namespace {
std::string sequence(Index i) { return "sequence " + std::to_string(i); }
std::string range(Index begin, Index end) {
    return "segment [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}
}  // namespace

void SegmentChain::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    const Index rows = segment_cost_ ? lengths_row(i) : first_row(i);
    const auto amount = [&](Index row) { return row < first_row(i) ? scale : 0.5 * scale; };
    for (Index row = 0; row < rows; ++row) {
        for (Index b = 0; b < n_labels_; ++b) scores[row * width_ + b] += amount(row);
    }
    for (const Index slot : gold.slots) {
        if (slot < rows * width_) scores[slot] -= amount(slot / width_);
    }
}

void SegmentChain::check_segment(Index i, Index begin, Index end, Index label) const {
    if (end - begin <= max_lengths_[label]) return;
    throw InputError(sequence(i), ": ", range(begin, end), " with label ", label, " has ", end - begin,
                     " positions, the maximum is ", max_lengths_[label]);
}

void SegmentChain::labelling_of(Index i, const std::vector<Segment>& found, SlotCounts& out) const {
    out.clear();
    std::map<Index, double> tied;
    for (std::size_t k = found.size(); k-- > 0;) {
        const auto [s, t, b] = found[k];
        for (Index u = s; u < t; ++u) out.add(u * width_ + b, 1.0);
        tied[(lengths_row(i) + t - s - 1) * width_ + b] += 1.0;
        if (k + 1 < found.size()) tied[(edges_row(i) + found[k + 1].label) * width_ + b] += 1.0;
    }
    for (std::size_t k = found.size(); k-- > 0;)
        out.add((first_row(i) + found[k].begin) * width_ + found[k].label, 1.0);
    for (std::size_t k = found.size(); k-- > 0;)
        out.add((last_row(i) + found[k].end - 1) * width_ + found[k].label, 1.0);
    for (const auto& [slot, count] : tied) out.add(slot, count);
    View view;
    add_list(i, view);
    for (std::size_t k = found.size(); k-- > 0;) {
        const auto [s, t, b] = found[k];
        const auto begins = view.begins.subspan(0, view.list_at(t + 1)).subspan(view.list_at(t));
        const auto at = std::lower_bound(begins.begin(), begins.end(), s);
        if (at != begins.end() && *at == s)
            out.add((whole_row(i) + view.list_at(t) + (at - begins.begin())) * width_ + b, 1.0);
    }
}

void SegmentChain::labelling_of(Index i, const Index* labels, const std::uint8_t* begins, SlotCounts& out) const {
    std::vector<Segment> found;  // from the end
    if (!begins[0]) throw InputError(sequence(i), ": no segment begins at position 0");
    for (Index t = length(i); t > 0;) {
        Index s = t - 1;
        while (!begins[s]) --s;
        for (Index u = s; u < t; ++u) {
            if (labels[u] != labels[s]) {
                throw InputError(sequence(i), ", position ", u, ": its label is not that of the segment it lies in");
            }
        }
        check_segment(i, s, t, labels[s]);
        found.push_back({s, t, labels[s]});
        t = s;
    }
    labelling_of(i, found, out);
}

void SegmentChain::positions_of(Index i, SlotView labelling, Index* labels, std::uint8_t* begins) const {
    const Index T = length(i);
    std::fill(labels, labels + T, Index{-1});
    std::fill(begins, begins + T, std::uint8_t{0});
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
        const Index slot = labelling.slots[k];
        if (slot < 0 || slot >= num_slots(i)) throw InputError(sequence(i), ": no slot ", slot);
        const Index row = slot / width_;
        if (row >= last_row(i)) continue;
        const Index t = row % T;
        if (slot % width_ >= n_labels_ || labelling.counts[k] != 1.0 || (row < T && labels[t] >= 0)) {
            throw InputError(sequence(i), ", position ", t, ": expected exactly one label");
        }
        (row < T) ? static_cast<void>(labels[t] = slot % width_) : static_cast<void>(begins[t] = 1);
    }
    for (Index t = 0; t < T; ++t) {
        if (labels[t] < 0) throw InputError(sequence(i), ", position ", t, ": no label");
    }
}

void SegmentChain::check_labelling(Index i, SlotView labelling, Workspace&) const {
    std::vector<Index> labels(length(i));
    std::vector<std::uint8_t> begins(length(i));
    positions_of(i, labelling, labels.data(), begins.data());
    SlotCounts right;
    labelling_of(i, labels.data(), begins.data(), right);
    check_counts(i, right, labelling, mask(i));
    const std::uint8_t* joins = continuation(i);
    for (Index t = 0; joins && t < length(i); ++t) {
        if (!begins[t] && !joins[t * width_ + labels[t]]) {
            throw InputError(sequence(i), ", position ", t, ": the mask wants a segment to begin here");
        }
    }
}

}  // namespace partwise
