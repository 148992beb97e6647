// Labellings of segment chains: slots to segments and back, checks, costs.
#include <ranges>

#include "structures/segment_chain.h"

namespace partwise {

using segments::Segment;

void SegmentChain::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    const Index rows = segment_cost_ ? lengths_row(i) : first_row(i);
    const auto amount = [&](Index row) { return row < first_row(i) ? scale : 0.5 * scale; };
    for (Index row = 0; row < rows; ++row) {
        for (Index b = 0; b < n_labels(); ++b) scores[row * width() + b] += amount(row);
    }
    for (const Index slot : gold.slots) {
        if (slot < rows * width()) scores[slot] -= amount(slot / width());
    }
}

void SegmentChain::check_segment(Index i, Index begin, Index end, Index label) const {
    if (end - begin <= max_lengths_[label]) return;
    refuse(i, begin, end, " with label ", label, " has ", end - begin, " positions, the maximum is ",
           max_lengths_[label]);
}

void SegmentChain::labelling_of(Index i, const std::vector<Segment>& found, SlotCounts& out) const {
    out.clear();
    std::vector<Index> tied;
    for (std::size_t k = found.size(); k-- > 0;) {
        const auto [s, t, b] = found[k];
        for (Index u = s; u < t; ++u) out.add(u * width() + b, 1.0);
        tied.push_back((lengths_row(i) + t - s - 1) * width() + b);
        if (k + 1 < found.size()) tied.push_back((edges_row(i) + found[k + 1].label) * width() + b);
    }
    for (std::size_t k = found.size(); k-- > 0;)
        out.add((first_row(i) + found[k].begin) * width() + found[k].label, 1.0);
    for (std::size_t k = found.size(); k-- > 0;)
        out.add((last_row(i) + found[k].end - 1) * width() + found[k].label, 1.0);
    add_counted(tied, out);
    const auto listed = std::views::iota(listed_.ptr[i], listed_.ptr[i + 1]);
    for (std::size_t k = found.size(); k-- > 0;) {
        const auto [s, t, b] = found[k];
        const auto order = [&](Index at) { return std::pair(listed_.ends[at], listed_.begins[at]); };
        const auto at = std::ranges::lower_bound(listed, std::pair(t, s), {}, order);
        if (at != listed.end() && order(*at) == std::pair(t, s))
            out.add((whole_row(i) + *at - listed.front()) * width() + b, 1.0);
    }
}

void SegmentChain::labelling_of(Index i, const Index* labels, const std::uint8_t* begins, SlotCounts& out) const {
    std::vector<Segment> found;  // from the end
    if (!begins[0]) throw InputError(name(i), ": no segment begins at position 0");
    for (Index t = length(i); t > 0;) {
        Index s = t - 1;
        while (!begins[s]) --s;
        for (Index u = s; u < t; ++u) {
            if (labels[u] != labels[s]) {
                throw InputError(name(i), ", position ", u, ": its label is not that of the segment it lies in");
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
    labels_of(i, labelling, labels);
    std::fill(begins, begins + T, std::uint8_t{0});
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
        const Index row = labelling.slots[k] / width();
        if (row < first_row(i) || row >= last_row(i)) continue;
        const Index t = row - first_row(i);
        if (labelling.slots[k] % width() >= n_labels() || labelling.counts[k] != 1.0) {
            throw InputError(name(i), ", position ", t, ": expected exactly one label");
        }
        begins[t] = 1;
    }
}

void SegmentChain::check_labelling(Index i, SlotView labelling, Workspace&) const {
    std::vector<Index> labels(length(i));
    std::vector<std::uint8_t> begins(length(i));
    positions_of(i, labelling, labels.data(), begins.data());
    SlotCounts right;
    labelling_of(i, labels.data(), begins.data(), right);
    check_counts(name(i), right, labelling, mask(i));
    const std::uint8_t* joins = continuation(i);
    for (Index t = 0; joins && t < length(i); ++t) {
        if (!begins[t] && !joins[t * width() + labels[t]]) {
            throw InputError(name(i), ", position ", t, ": the mask wants a segment to begin here");
        }
    }
}

}  // namespace partwise
