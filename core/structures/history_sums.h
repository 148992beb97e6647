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

#include <vector>

#include "structures/history_chain.h"
#include "structures/numbers.h"

namespace partwise {

// exp of n values over the largest of them
void set_exps(const double* x, Index n, double* out);
void set_exps(const double* x, Index n, LogNumber* out);

template <class Num>
class HistorySums {
   public:
    explicit HistorySums(const HistoryChain::View& view);

    // Expected counts (length rows of width) or null. False if numbers of this kind lose digits: take LogNumber then.
    bool run(double* marginals);
    double log_constant() const { return log_constant_; }
    double entropy();  // after run(), of logarithms
    // Probabilities of labels at t after a history, given that the constraints hold; of logarithms. With constraints,
    // after run().
    void label_weights(Index t, Index state, double* out);

   private:
    bool constrained() const { return view_.open != nullptr; }
    // E_t, or with zeros for labels that are not open.
    void set_emissions(Index t);
    // F_s; good until the next call.
    const Num* factors(Index state);
    // The same with zeros where a label may not follow; own: F_s.
    const Num* open_factors(Index state, const Num* own);
    Num* alpha(Index t) { return alphas_.data() + t * view_.n_states; }
    Num* beta(Index t) { return betas_.data() + t * view_.n_states; }
    bool forward();
    bool backward();
    // Scaled to a sum of 1; the logarithm of what it was, kLogOfZero if it was too small to divide by.
    static double normalize(Num* x, Index n);

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

extern template class HistorySums<double>;
extern template class HistorySums<LogNumber>;

}  // namespace partwise
