// Sums over the labellings of a HistoryChain: marginals, the probability that constraints hold, entropy.
//
// Written once for doubles, which are fast, and for logarithms, which cannot underflow. alpha_t(s) is the probability
// of history s before position t with the labels before it allowed, beta_t(s) that the labels from t on are allowed:
//
//   alpha_{t+1}(s') = sum over (s, c) that lead to s' of alpha_t(s) p(c | t, s),    alpha_0 = 1 at the beginning
//   beta_t(s)       = sum over c of p(c | t, s) beta_{t+1}(s'),                      beta_T = 1
//
// both over allowed labels c. Without constraints beta is 1 everywhere and is not computed.
// p(c | t, s) = E_t(c) F_s(c) / Z_t(s) with E = exp(scores), F = exp(after), each divided by its largest value.
#pragma once

#include "structures/history_chain.h"
#include "structures/numbers.h"
#include "support/parallel.h"

namespace partwise::histories {

// exp(x) below 1e-308 is rounded to 0. Divided by a partition function of at least 1e-250, this changes a probability
// by at most 1e-58, which is negligible in sums of probabilities of at least 1e-30.
constexpr double kLeastPartition = 1e-250;
constexpr double kLeastSum = 1e-30;

inline bool is_below(double x, double least) { return x < least; }
inline bool is_below(LogNumber, double) { return false; }
inline double as_double(double x) { return x; }
inline double as_double(LogNumber x) { return is_zero(x) ? 0.0 : fast_exp(x.log); }

inline const double* table_of(const HistoryChain::View& view, const double*) { return view.factors; }
inline const LogNumber* table_of(const HistoryChain::View&, const LogNumber*) { return nullptr; }

// exp of n values over the largest of them
inline void set_exps(const double* x, Index n, double* out) {
    const double high = *std::max_element(x, x + n);
    for (Index k = 0; k < n; ++k) out[k] = fast_exp(x[k] - high);
}

inline void set_exps(const double* x, Index n, LogNumber* out) {
    for (Index k = 0; k < n; ++k) out[k] = {x[k]};
}

template <class Num>
class HistorySums {
   public:
    explicit HistorySums(const HistoryChain::View& view)
        : view_(view),
          row_(view.width),
          own_factors_(view.width),
          open_factors_(view.width),
          emissions_(view.n_labels),
          open_emissions_(view.n_labels),
          sums_(view.tags * view.n_labels),
          zeros_(view.width, 0.0) {}

    // Computes the sums, and expected counts (length rows of width) unless null. Returns false if numbers of this type
    // would lose digits; then use LogNumber.
    bool run(double* marginals) {
        const Index L = view_.n_labels;
        const Index S = view_.n_states;
        if (!forward() || (constrained() && !backward())) return false;
        if (!marginals) return true;
        std::vector<Num> joint(S);
        for (Index t = 0; t < view_.length; ++t) {
            const Num* before = alpha(t + 1);
            for (Index s = 0; s < S; ++s) joint[s] = constrained() ? before[s] * beta(t + 1)[s] : before[s];
            if (normalize(joint.data(), S) == kLogOfZero) return false;
            double* row = marginals + t * view_.width;
            fill(row, view_.width, 0.0);
            for (Index s = 0; s < S; ++s) {
                const Index label = view_.last(s);
                if (label < L) row[label] += as_double(joint[s]);
            }
        }
        return true;
    }
    double log_constant() const { return log_constant_; }
    // The entropy by the chain rule: that of each label given the history before it, under the constraints. After
    // run(), with logarithms.
    double entropy() {
        double total = 0;
        std::vector<double> p(view_.n_labels);
        std::vector<Num> joint(view_.n_states);
        for (Index t = 0; t < view_.length; ++t) {
            for (Index s = 0; s < view_.n_states; ++s)
                joint[s] = constrained() ? alpha(t)[s] * beta(t)[s] : alpha(t)[s];
            normalize(joint.data(), view_.n_states);
            for (Index s = 0; s < view_.n_states; ++s) {
                const double weight = as_double(joint[s]);
                if (weight == 0.0) continue;
                label_weights(t, s, p.data());
                for (const double x : p) total -= x > 0.0 ? weight * x * std::log(x) : 0.0;
            }
        }
        return std::max(total, 0.0);
    }
    // Probabilities of labels at t after a history, under the constraints. After run(), with logarithms.
    void label_weights(Index t, Index state, double* out) {
        const Index L = view_.n_labels;
        set_emissions(t);
        const Num* own = open_factors(state, factors(state));
        std::vector<Num> weights(L);
        for (Index c = 0; c < L; ++c) {
            weights[c] = own[c] * open_emissions_[c];
            if (constrained()) weights[c] = weights[c] * beta(t + 1)[view_.next(state, c)];
        }
        normalize(weights.data(), L);
        for (Index c = 0; c < L; ++c) out[c] = as_double(weights[c]);
    }

   private:
    bool constrained() const { return view_.open != nullptr; }
    // E_t, or with zeros for labels that are not open.
    void set_emissions(Index t) {
        const Index L = view_.n_labels;
        set_exps(view_.scores + t * view_.width, L, emissions_.data());
        open_emissions_ = emissions_;
        if (!constrained()) return;
        for (Index c = 0; c < L; ++c) {
            if (!view_.open[t * L + c]) set_zero(open_emissions_[c]);
        }
    }
    // F_s; good until the next call.
    const Num* factors(Index state) {
        const Num* table = table_of(view_, own_factors_.data());
        if (table) return table + state * view_.width;
        view_.add_after(state, zeros_.data(), row_.data());
        set_exps(row_.data(), view_.width, own_factors_.data());
        return own_factors_.data();
    }
    // The same with zeros where a label may not follow; own: F_s.
    const Num* open_factors(Index state, const Num* own) {
        if (!view_.follow) return own;
        for (Index c = 0; c < view_.n_labels; ++c) {
            open_factors_[c] = own[c];
            if (!view_.may_follow(state, c)) set_zero(open_factors_[c]);
        }
        return open_factors_.data();
    }
    Num* alpha(Index t) { return alphas_.data() + t * view_.n_states; }
    Num* beta(Index t) { return betas_.data() + t * view_.n_states; }
    bool forward() {
        const Index L = view_.n_labels;
        const Index S = view_.n_states;
        const Index n_rests = view_.history == 1 ? 1 : view_.tags;
        alphas_.resize((view_.length + 1) * S);
        for (Num& x : alphas_) set_zero(x);
        set_one(alphas_[S - 1]);
        log_constant_ = 0;
        for (Index t = 0; t < view_.length; ++t) {
            Interrupt::check_current();
            set_emissions(t);
            for (Num& x : sums_) set_zero(x);
            const Num* from = alpha(t);
            for (Index s = 0; s < S; ++s) {
                if (is_zero(from[s])) continue;
                const Num* own = factors(s);
                const Num partition = dot_of(emissions_.data(), own, L);
                if (is_below(partition, kLeastPartition)) return false;
                add_scaled(from[s] / partition, open_factors(s, own), sums_.data() + view_.rest(s) * L, L);
            }
            Num* to = alpha(t + 1);
            for (Index r = 0; r < n_rests; ++r) {
                Num* row = to + (view_.history == 1 ? 0 : r * view_.tags);
                for (Index c = 0; c < L; ++c) row[c] = sums_[r * L + c] * open_emissions_[c];
            }
            const double log_sum = normalize(to, S);
            if (log_sum == kLogOfZero) return false;
            log_constant_ += log_sum;
        }
        // Without constraints the sum is 1: a different value is a rounding error, unless scores overflow.
        if (!constrained() && std::isfinite(log_constant_)) log_constant_ = 0;
        return true;
    }
    bool backward() {
        const Index L = view_.n_labels;
        const Index S = view_.n_states;
        const Index n_rests = view_.history == 1 ? 1 : view_.tags;
        betas_.resize((view_.length + 1) * S);
        for (Index s = 0; s < S; ++s) set_one(betas_[view_.length * S + s]);
        for (Index t = view_.length - 1; t >= 0; --t) {
            Interrupt::check_current();
            set_emissions(t);
            const Num* later = beta(t + 1);
            for (Index r = 0; r < n_rests; ++r) {
                const Num* row = later + (view_.history == 1 ? 0 : r * view_.tags);
                for (Index c = 0; c < L; ++c) sums_[r * L + c] = open_emissions_[c] * row[c];
            }
            Num* now = beta(t);
            for (Index s = 0; s < S; ++s) {
                if (is_zero(alpha(t)[s])) {  // no labelling passes through this history
                    set_zero(now[s]);
                    continue;
                }
                const Num* own = factors(s);
                const Num partition = dot_of(emissions_.data(), own, L);
                now[s] = dot_of(open_factors(s, own), sums_.data() + view_.rest(s) * L, L) / partition;
            }
            // The factor is arbitrary, because marginals are normalised later.
            if (normalize(now, S) == kLogOfZero) return false;
        }
        return true;
    }
    // Scales x to the sum 1. Returns the logarithm of the old sum, or kLogOfZero if the sum was too small.
    static double normalize(Num* x, Index n) {
        const Num sum = sum_of(x, n);
        if (is_below(sum, kLeastSum) || is_zero(sum)) return kLogOfZero;
        for (Index k = 0; k < n; ++k) x[k] = x[k] / sum;
        return log_of(sum);
    }

    HistoryChain::View view_;
    std::vector<double> row_;
    std::vector<Num> own_factors_;
    std::vector<Num> open_factors_;
    std::vector<Num> emissions_;
    std::vector<Num> open_emissions_;
    std::vector<Num> alphas_;  // length + 1 rows
    std::vector<Num> betas_;   // the same, if there are constraints
    std::vector<Num> sums_;    // scratch: tags rows of n_labels
    std::vector<double> zeros_;
    double log_constant_ = 0;
};

}  // namespace partwise::histories
