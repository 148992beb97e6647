// Sequences of labels drawn one after another, each given the tags before it (the maxent tagger's decoder).
//
//   log p(y) = sum_t log p(y_t | t, s_t),    log p(c | t, s) = scores[t, c] + after[s, c] - log Z_t(s)
//
// The history s_t is the tags before position t: a with history = 1, b * tags + a with history = 2 (b before a), where
// tags = L + 1 and tag L stands for "before the sequence". Slots are the scores of labels at positions, T rows of
// `width`: slot t * width + c. The scores after histories are fixed when the structure is made:
//
//   after[a] = first[a],    after[b * tags + a] = first[a] + second[(b, a)]
//
// where only few pairs (b, a) have scores of their own.
//
// A labelling's value is its log-probability. That is no sum of slot scores (log Z_t depends on all of them), so this
// structure is for prediction: it is not linear(). Its log partition is that of the labellings which masks allow, 0
// without masks. The best labellings are those that a search finds which keeps `beam_width` histories at each position.
#pragma once

#include <mutex>

#include "structures/sequences.h"

namespace partwise {

class HistoryChain final : public LabelSequences {
   public:
    // first: n_labels + 1 rows of n_labels values; pairs: histories of two tags that have scores of their own,
    // ascending; second: a row for each of them. beam_width 0: all histories are kept.
    HistoryChain(std::vector<Index> lengths, Index n_labels, Index history, const std::vector<double>& first,
                 std::vector<Index> pairs, const std::vector<double>& second, Index beam_width);

    Index history() const { return shape_.history; }
    Index n_states() const { return shape_.n_states; }

    bool linear() const override { return false; }
    unsigned capabilities() const override { return kKBest | kSample; }
    Index num_slots(Index i) const override { return length(i) * width(); }
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override;
    // temperature 1, or 0 for the maximum.
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override;
    double value_of(Index i, const double* scores, SlotView labelling) const override;
    // A beam narrower than k is widened to k.
    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override;
    std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                   Workspace& ws) const override;

    // Rows of scores, one per history. factors: exp(score - the row's largest score); highs: these largest scores.
    struct Table {
        std::vector<double> scores;
        std::vector<double> factors;
        std::vector<double> highs;
    };

    struct Shape {
        Index n_labels;
        Index width;
        Index tags;
        Index history;
        Index n_states;

        Index last(Index state) const { return state % tags; }
        // Histories that differ in their oldest tag alone lead to the same histories. The number of this class.
        Index rest(Index state) const { return history == 1 ? 0 : state % tags; }
        Index next(Index state, Index label) const { return history == 1 ? label : state % tags * tags + label; }
    };

    // One sequence as searches and sums read it.
    struct View : Shape {
        const Table& first;   // tags rows of width; -infinity in padding
        const Table& second;  // a row of width per pair; 0 in padding
        std::span<const Index> pairs;
        const Index* places;  // each history's place in `pairs`, or -1; null: too many histories for a table
        Index length;
        const double* scores;        // length rows of `width`
        const std::uint8_t* follow;  // n_labels x n_labels; null: all
        const std::uint8_t* open{};  // length x n_labels: labels that an allowed labelling goes on from; null: all
        const double* factors{};     // exp(after) over the largest of each row, n_states rows; null: too large to keep

        // out = scores + after[state], rows of width
        void add_after(Index state, const double* own, double* out) const {
            const double* __restrict one = first.scores.data() + last(state) * width;
            for (Index c = 0; c < width; ++c) out[c] = own[c] + one[c];
            const Index pair = place(state);
            if (pair < 0) return;
            const double* __restrict two = second.scores.data() + pair * width;
            for (Index c = 0; c < width; ++c) out[c] += two[c];
        }
        // Where a history stands in `pairs`, or -1.
        Index place(Index state) const {
            if (places) return places[state];
            const auto found = std::lower_bound(pairs.begin(), pairs.end(), state);
            return found == pairs.end() || *found != state ? -1 : found - pairs.begin();
        }
        bool may_follow(Index state, Index label) const {
            return !follow || last(state) == n_labels || follow[last(state) * n_labels + label];
        }
    };

   protected:
    void check_mask(Index i) const override;

   private:
    // Fills `open` if there are constraints. Throws InputError if they allow no labelling.
    View view(Index i, const double* scores, std::vector<std::uint8_t>& open) const;
    View plain_view(Index i, const double* scores) const;
    const double* factors(const View& v) const;
    Index beam_width() const { return beam_width_ == 0 ? n_states() : beam_width_; }

    Shape shape_;
    Index beam_width_;
    Table first_;
    Table second_;
    std::vector<Index> pairs_;
    std::vector<Index> places_;
    mutable std::once_flag factors_once_;
    mutable std::vector<double> factors_;
};

}  // namespace partwise
