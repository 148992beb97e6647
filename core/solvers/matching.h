// Slot scores from expected counts: the Gibbs distribution p ~ exp(<count(y), v>) of each example that has given ones.
//
// Among all distributions with the expected counts mu the one of largest entropy is a Gibbs distribution, and its scores
// minimise
//   F(v) = log Z(v) - <mu, v>,   grad F = mu(v) - mu,
// a smooth convex function with a minimum wherever mu is that of a distribution without zeros. Limited-memory BFGS per
// example, with the inverse of the diagonal that makes v_r + log(mu_r / mu_r(v)) its own first step: the logarithmic
// mean of mu_r and mu_r(v).
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

// counts: mu, slots end to end; slots of which it is 0 keep their scores (no labelling uses them). scores: where to
// start; replaced. Where a structure has rows, logs of their marginals are tried for a start too.
MatchReport match_counts(const Objective& objective, const double* counts, double* scores, const MatchOptions& options,
                         int n_jobs, Interrupt& interrupt);

}  // namespace partwise
