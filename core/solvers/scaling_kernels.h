// The inner loops of iterative scaling and coordinate descent on one column: its moments, the change of the log
// partitions, and the update of S and T by (18)-(19) of Huang et al. 2010. The column's probabilities are copied once,
// so that all but the update read contiguous memory. Columns of a single slot have separate loops; with 0/1 features
// these take one exponential per column.
#pragma once

#include "features/feature_map.h"
#include "support/vector_math.h"

namespace partwise {

// S_w(x, y) and 1 / T_w(x) of (1), both up to a factor per example x. The value of slot r of example i is at r * n + i,
// so that a column of a single slot reads n neighbouring values.
struct Cells {
    double* potentials;
    double* inverse;
    const double* omega;  // null if all sample weights are 1
    Index n;
};

// sum_x omega_x E[f_t] (terms (41)) and sum_x omega_x Var[f_t] (terms of (31)) under P_w(.|x).
struct Moments {
    double mean = 0;
    double variance = 0;
};

// One column, with copies of P_w(y|x) and omega_x for its cells.
class ColumnView {
   public:
    const Column& column() const { return c_; }

    void load(const Cells& cells, const Column& c) {
        c_ = c;
        weighted_ = cells.omega != nullptr;
        if (len(p_.size()) < c.size) {
            p_.resize(c.size);
            omega_.resize(c.size);
        }
        const std::int32_t* __restrict examples = c.examples;
        const double* __restrict inverse = cells.inverse;
        double* __restrict p = p_.data();
        if (c.slot >= 0) {
            const double* __restrict s = cells.potentials + c.slot * cells.n;
            for (Index k = 0; k < c.size; ++k) p[k] = s[examples[k]] * inverse[examples[k]];
        } else {
            for (Index k = 0; k < c.size; ++k)
                p[k] = cells.potentials[c.slots[k] * cells.n + examples[k]] * inverse[examples[k]];
        }
        if (!weighted_) return;
        double* __restrict omega = omega_.data();
        for (Index k = 0; k < c.size; ++k) omega[k] = cells.omega[examples[k]];
    }

    double probability(Index k) const { return p_[k]; }
    double weight(Index k) const { return weighted_ ? omega_[k] : 1.0; }

   private:
    // Calls f with (whether all values are 1, whether there are sample weights) as compile-time constants.
    template <class F>
    auto dispatch(F&& f) const {
        const auto yes = std::true_type{};
        const auto no = std::false_type{};
        if (c_.values) return weighted_ ? f(no, yes) : f(no, no);
        return weighted_ ? f(yes, yes) : f(yes, no);
    }

   public:
    Moments moments() const {
        if (c_.slot >= 0) {
            return dispatch([&](auto binary, auto weighted) { return moments_of_slot<binary(), weighted()>(); });
        }
        Moments sum;
        for_each_example(c_, [&](Index, Index first, Index last) {
            double mean = 0;
            for (Index k = first; k < last; ++k) mean += probability(k) * value_at(c_, k);
            // Var[f] = E[(f - mean)^2], where f = 0 on the labels that have no cell in the column.
            double variance = 0;
            double rest = 1;
            for (Index k = first; k < last; ++k) {
                const double off = value_at(c_, k) - mean;
                variance += probability(k) * off * off;
                rest -= probability(k);
            }
            sum.mean += weight(first) * mean;
            sum.variance += weight(first) * (variance + std::max(rest, 0.0) * mean * mean);
        });
        return sum;
    }

    // sum_x omega_x log(T_{w + z e_t}(x) / T_w(x)), the sum in (17): the losses' change by a step z.
    double log_partition_change(double z) const {
        if (c_.slot >= 0) {
            return dispatch([&](auto binary, auto weighted) { return change_of_slot<binary(), weighted()>(z); });
        }
        double sum = 0;
        for_each_example(c_, [&](Index, Index first, Index last) {
            double change = 0;
            for (Index k = first; k < last; ++k) change += probability(k) * fast_expm1(z * value_at(c_, k));
            sum += weight(first) * fast_log1p(std::max(change, kLeastChange));
        });
        return sum;
    }

    // S and T become those of w + z e_t, by (18)-(19).
    void update(const Cells& cells, double z, Index n_slots) const {
        double low = 1;  // smallest and largest 1 / T
        double high = 1;
        if (c_.slot >= 0) {
            c_.values ? update_slot<false>(cells, z, low, high) : update_slot<true>(cells, z, low, high);
        } else {
            for_each_example(c_, [&](Index i, Index first, Index last) {
                double ratio = 1;
                for (Index k = first; k < last; ++k) {
                    const double g = fast_exp(z * value_at(c_, k));
                    ratio += p_[k] * (g - 1.0);
                    cells.potentials[c_.slots[k] * cells.n + i] *= g;
                }
                cells.inverse[i] /= ratio;
                low = std::min(low, cells.inverse[i]);
                high = std::max(high, cells.inverse[i]);
            });
        }
        // Where T shrinks, the rounding of its old value remains (a T of at most 0 is only rounding). S is a product
        // and keeps its digits: sum it again, and scale it to a sum of 1, as its factor is free.
        constexpr double kLow = 1e-6;
        constexpr double kHigh = 1e3;
        if (low > kLow && high < kHigh) return;
        for (Index k = 0; k < c_.size; ++k) {
            const std::int32_t i = c_.examples[k];
            if (cells.inverse[i] > kLow && cells.inverse[i] < kHigh) continue;
            double sum = 0;
            for (Index r = 0; r < n_slots; ++r) sum += cells.potentials[r * cells.n + i];
            for (Index r = 0; r < n_slots; ++r) cells.potentials[r * cells.n + i] /= sum;
            cells.inverse[i] = 1.0;
        }
    }

   private:
    // P has rounding errors, so 1 - P is unknown where P is close to 1: T is assumed to keep at least this share.
    static constexpr double kLeast = 1e-10;
    static constexpr double kLeastChange = kLeast - 1.0;

    template <bool Binary, bool Weighted>
    Moments moments_of_slot() const {
        const double* __restrict p = p_.data();
        const double* __restrict omega = omega_.data();
        const double* __restrict values = c_.values;
        double mean = 0;
        double variance = 0;
#pragma omp simd reduction(+ : mean, variance)
        for (Index k = 0; k < c_.size; ++k) {
            const double pf = (Weighted ? omega[k] * p[k] : p[k]) * (Binary ? 1.0 : values[k]);
            mean += pf;
            variance += pf * (1.0 - p[k]) * (Binary ? 1.0 : values[k]);
        }
        return {mean, variance};
    }

    template <bool Binary>
    void update_slot(const Cells& cells, double z, double& lowest, double& highest) const {
        double* __restrict s = cells.potentials + c_.slot * cells.n;
        double* __restrict inverse = cells.inverse;
        const double* __restrict p = p_.data();
        const std::int32_t* __restrict examples = c_.examples;
        const double* __restrict values = c_.values;
        const double growth = Binary ? fast_exp(z) : 0.0;
        double low = lowest;
        double high = highest;
        // Each example occurs once in the column, so its cells can be written in parallel.
#pragma omp simd reduction(min : low) reduction(max : high)
        for (Index k = 0; k < c_.size; ++k) {
            const std::int32_t i = examples[k];
            const double g = Binary ? growth : fast_exp(z * values[k]);
            const double updated = inverse[i] / (1.0 + p[k] * (g - 1.0));
            s[i] *= g;
            inverse[i] = updated;
            low = updated < low ? updated : low;
            high = updated > high ? updated : high;
        }
        lowest = low;
        highest = high;
    }

    template <bool Binary, bool Weighted>
    double change_of_slot(double z) const {
        const double* __restrict p = p_.data();
        const double* __restrict omega = omega_.data();
        const double* __restrict values = c_.values;
        const double growth = Binary ? fast_expm1(z) : 0.0;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index k = 0; k < c_.size; ++k) {
            const double raw = p[k] * (Binary ? growth : fast_expm1(z * values[k]));
            const double change = fast_log1p(raw > kLeastChange ? raw : kLeastChange);
            sum += Weighted ? omega[k] * change : change;
        }
        return sum;
    }

    Column c_{};
    bool weighted_ = false;
    std::vector<double> p_;
    std::vector<double> omega_;
};

}  // namespace partwise
