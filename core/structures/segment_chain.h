// Segment chains (semi-Markov): a labelling cuts a sequence into segments of at most `max_length` positions and gives
// each a label.
//
// Slots of a sequence of length T with L labels, tables of rows of `width`, in this order:
//   inside   T rows: (u, b) is used by the segment with label b that position u lies in
//   first    T rows: (s, b), a segment with label b begins at s
//   last     T rows: (u, b), a segment with label b ends with position u
//   lengths  max_length rows, tied: (d - 1, b), a segment has d positions and label b
//   edges    L rows, tied: (a, b), a segment with label b follows one with label a
//   whole    a row for each listed segment (begin, end), in the order of (end, begin): it is a segment, with label b
// There is no slot for a segment that is not listed, so that memory does not grow with max_length. Cost: the number of
// positions with a wrong label; with segment_cost also 1/2 for each segment with a wrong (begin, label) and 1/2 for
// each with a wrong (end, label). Ties go to the lowest labels and the shortest segments, from the end of the sequence.
#pragma once

#include "structures/segment_masses.h"
#include "structures/sequences.h"

namespace partwise {

// Segments (begin, end) of all sequences, concatenated: those of sequence i have the numbers [ptr[i], ptr[i + 1]).
struct SegmentList {
    std::vector<Index> ptr;
    std::vector<Index> begins;
    std::vector<Index> ends;
};

class SegmentChain final : public Sequences {
   public:
    // max_lengths: of each label, at most max_length; empty: max_length for all.
    SegmentChain(std::vector<Index> lengths, Index n_labels, Index max_length, std::vector<Index> max_lengths,
                 SegmentList listed, bool segment_cost);

    Index max_length() const { return max_length_; }
    const std::vector<Index>& max_lengths() const { return max_lengths_; }
    const SegmentList& listed() const { return listed_; }
    bool segment_cost() const { return segment_cost_; }

    unsigned capabilities() const override { return kCovariance | kKBest | kSample; }
    Index num_slots(Index i) const override;
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override;
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override;
    void add_cost(Index i, SlotView gold, double scale, double* scores) const override;
    void check_labelling(Index i, SlotView labelling, Workspace& ws) const override;
    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override;
    std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                   Workspace& ws) const override;
    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace& ws) const override;

    // Probabilities that [begins[k], ends[k]) is a segment with label labels[k]. Ends must ascend.
    void segment_probabilities(Index i, const double* scores, double temperature, std::span<const Index> begins,
                               std::span<const Index> ends, std::span<const Index> labels, double* out,
                               Workspace& ws) const;

    // A labelling as a label per position, and whether a segment begins there.
    void labelling_of(Index i, const Index* labels, const std::uint8_t* begins, SlotCounts& out) const;
    // Reads labels and begins from a labelling; throws InputError if positions lack a label. Does not check all counts.
    void positions_of(Index i, SlotView labelling, Index* labels, std::uint8_t* begins) const;

    // Says which (position, label) may continue a segment (length * width bytes); other positions may have this label
    // only as the first of a segment. Empty: all may. This restriction is added to the mask of slots.
    void set_continuation(Index i, std::vector<std::uint8_t> allowed);

   private:
    const std::uint8_t* continuation(Index i) const {
        return continuation_.empty() || continuation_[i].empty() ? nullptr : continuation_[i].data();
    }
    Index n_listed(Index i) const { return listed_.ptr[i + 1] - listed_.ptr[i]; }
    // Row numbers of the tables: inside at 0, then
    Index first_row(Index i) const { return length(i); }
    Index last_row(Index i) const { return 2 * length(i); }
    Index lengths_row(Index i) const { return 3 * length(i); }
    Index edges_row(Index i) const { return 3 * length(i) + max_length_; }
    Index whole_row(Index i) const { return edges_row(i) + n_labels(); }

    // The tables in an array of all slots.
    segments::View view_of(Index i, const double* slots) const;
    template <class T>
    segments::TablesOf<T> tables_of(Index i, T* slots) const;
    // scores / temperature with -infinity where slots are masked or in no labelling.
    segments::View prepare(Index i, const double* scores, double temperature, Workspace::Frame& frame) const;
    template <segments::Mode mode, class F>
    void with_chart(Index i, const double* scores, double temperature, Workspace& ws, F&& f) const;
    // Whether a mask or a continuation forbids anything else than labels of positions.
    bool cuts_more_than_labels(Index i) const;
    // The segments of a labelling, from the end of the sequence, as slots.
    void labelling_of(Index i, const std::vector<segments::Segment>& segments, SlotCounts& out) const;
    void check_segment(Index i, Index begin, Index end, Index label) const;
    template <class... Parts>
    [[noreturn]] static void refuse(Index i, Index begin, Index end, const Parts&... what) {
        throw InputError(name(i), ": segment [", begin, ", ", end, ")", what...);
    }

    Index max_length_;
    std::vector<Index> max_lengths_;
    SegmentList listed_;
    bool segment_cost_;
    std::vector<std::vector<std::uint8_t>> continuation_;
};

}  // namespace partwise
