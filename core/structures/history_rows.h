// Scores of labels at a position of a HistoryChain after a history, and their log partition.
//
//   Z_t(s) = sum_c E_t(c) F_s(c),   E = exp(scores),   F = exp(after) = exp(first) exp(second)
//
// each divided by its largest value: one exponential per label of a position, none per history. Where the products are
// too small for doubles the sum is taken over exp of the sums.
#pragma once

#include <vector>

#include "structures/history_chain.h"

namespace partwise {

class HistoryRows {
   public:
    explicit HistoryRows(const HistoryChain::View& view);

    const HistoryChain::View& view() const { return view_; }
    // scores[t] + after[state], a row of width; good until the next call.
    double* scores(Index t, Index state);
    // log Z_t(state), after scores(t, state).
    double log_partition(Index t, Index state) const;

   private:
    HistoryChain::View view_;
    std::vector<double> row_;
    std::vector<double> emissions_;  // E, rows of width
    std::vector<double> highs_;      // what each row was divided by, as a logarithm
};

}  // namespace partwise
