#include "structures/history_rows.h"

#include <cmath>

#include "support/extremes.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

// exp(x) is 0 below 1e-308: what is lost of a sum of 1e-250 or more is nothing beside it.
constexpr double kLeastPartition = 1e-250;

double largest(const double* x, Index n) {
    double high = -kInfinity;
    PARTWISE_SIMD_MAX(high)
    for (Index k = 0; k < n; ++k) high = x[k] > high ? x[k] : high;
    return high;
}

double product_sum(const double* __restrict x, const double* __restrict y, const double* __restrict z, Index n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < n; ++k) sum += x[k] * y[k] * z[k];
    return sum;
}

}  // namespace

HistoryRows::HistoryRows(const HistoryChain::View& view)
    : view_(view), row_(view.width), emissions_(view.length * view.width), highs_(view.length) {
    const Index width = view.width;
    for (Index t = 0; t < view.length; ++t) {
        const double* __restrict from = view.scores + t * width;
        double* __restrict to = emissions_.data() + t * width;
        const double high = highs_[t] = largest(from, view.n_labels);
        for (Index c = 0; c < width; ++c) to[c] = fast_exp(from[c] - high);
    }
}

double* HistoryRows::scores(Index t, Index state) {
    view_.add_after(state, view_.scores + t * view_.width, row_.data());
    return row_.data();
}

double HistoryRows::log_partition(Index t, Index state) const {
    const Index width = view_.width;
    const double* emissions = emissions_.data() + t * width;
    const Index last = view_.last(state);
    const Index pair = view_.place(state);
    const double* first = view_.first_factors + last * width;
    const double sum = pair < 0 ? dot(emissions, first, width)
                                : product_sum(emissions, first, view_.second_factors + pair * width, width);
    if (sum >= kLeastPartition) {
        const double shift = highs_[t] + view_.first_highs[last] + (pair < 0 ? 0.0 : view_.second_highs[pair]);
        return shift + std::log(sum);
    }
    const double high = largest(row_.data(), width);
    double slow = 0;
#pragma omp simd reduction(+ : slow)
    for (Index c = 0; c < width; ++c) slow += fast_exp(row_[c] - high);
    return high + std::log(slow);
}

}  // namespace partwise
