// Slot scores from expected counts: for each example the Gibbs distribution p ~ exp(<count(y), v>) with given counts.
//
// Among all distributions with the expected counts mu, the one of largest entropy is a Gibbs distribution, and its
// scores v minimise
//   F(v) = log Z(v) - <mu, v>,   grad F = mu(v) - mu,
// a smooth convex function that has a minimum if mu belongs to a distribution without zeros. The minimiser is L-BFGS,
// one run per example. Its initial inverse Hessian is diagonal, with entries 1 / (logarithmic mean of mu_r and
// mu_r(v)): the first step is then v_r + log(mu_r / mu_r(v)).
#pragma once

#include "solvers/objective.h"

namespace partwise {

struct MatchOptions {
    double tolerance = 1e-4;     // sum of |mu(v) - mu| over the sum of mu
    Index max_inferences = 200;  // per example
};

struct MatchReport {
    Index inferences = 0;
    Index unmatched = 0;  // examples that stopped at max_inferences
    double largest = 0;   // the largest sum of |mu(v) - mu| over the sum of mu
};

// counts: mu, slots of all examples concatenated; slots with mu = 0 keep their scores, as no labelling uses them.
// scores: the start, replaced by the result. If the structure has rows, logs of their marginals are tried as well.
MatchReport match_counts(const Objective& objective, const double* counts, double* scores, const MatchOptions& options,
                         int n_jobs, Interrupt& interrupt);

}  // namespace partwise
