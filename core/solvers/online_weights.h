// Weights of an online method, stored as w = scale * v so that w *= factor is one product, and the sum of the iterates,
//
//   sum over visits of rho w = rest + lead v
//
// so that a visit that leaves most of v alone changes little of the sum as well: when v becomes v + x, rest becomes
// rest - lead x, and after each visit lead grows by rho scale. `rest` is the caller's array `sum`; settle() completes
// it. Between passes scale is 1 and `sum` is the whole sum.
#pragma once

#include "features/feature_map.h"
#include "support/vector_math.h"

namespace partwise {

// Throws NumberError unless all scores of example i are finite.
inline void check_scores(Index i, const double* scores, Index n) {
    if (!all_finite(scores, n)) throw NumberError(concat("the scores of example ", i, " are no longer finite"));
}

class OnlineWeights {
   public:
    // sum: null if no average is wanted.
    OnlineWeights(const FeatureMap& features, double* weights, double* sum)
        : features_(features), v_(weights), sum_(sum) {}

    // out = A_i w
    void scores(Index i, double* out) const {
        features_.scores(i, v_, out);
        if (scale_ != 1.0) partwise::scale(scale_, out, features_.num_slots(i));
        check_scores(i, out, features_.num_slots(i));
    }

    void shrink(double factor) {
        scale_ *= factor;
        if (std::abs(scale_) < kSmallest) settle();
    }
    // w += step A_i' slots
    void add(Index i, const double* slots, double step) {
        features_.add_transpose(i, slots, step / scale_, v_);
        if (sum_ && lead_ != 0.0) features_.add_transpose(i, slots, -lead_ * (step / scale_), sum_);
    }
    // w += step x
    void add(const SparseVector& x, double step) {
        x.axpy(step / scale_, v_);
        if (sum_ && lead_ != 0.0) x.axpy(-lead_ * (step / scale_), sum_);
    }
    // Adds rho w to the sum of the iterates.
    void average(double rho) {
        lead_ += rho * scale_;
        mass_ += rho;
    }
    // The sum of all rho so far.
    double mass() const { return mass_; }

    // Completes the caller's arrays: scale becomes 1, and lead v is added to `sum`.
    void settle() {
        const Index d = features_.num_weights();
        if (sum_ && lead_ != 0.0) axpy(lead_, v_, sum_, d);
        if (scale_ != 1.0) partwise::scale(scale_, v_, d);
        lead_ = 0.0;
        scale_ = 1.0;
    }

   private:
    static constexpr double kSmallest = 1e-6;

    const FeatureMap& features_;
    double* v_;
    double* sum_;
    double scale_ = 1.0;
    double lead_ = 0.0;
    double mass_ = 0.0;
};

}  // namespace partwise
