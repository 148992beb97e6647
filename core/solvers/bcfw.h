// One pass of block-coordinate Frank-Wolfe on the dual of the hinge (identity link) or squared hinge, temperature 0.
//
// The block of example i is kept as x = s mu (slots), s, and l = kappa <x, c>; q = A'(g - count(y)) for the oracle's y.
// Identity link (s = 1):  d = mu - count(y),  gain(gamma) = omega gamma <theta + kappa c, -d> - gamma^2 omega^2 / (2
// l2) |A'd|^2,
//   gamma in [0, 1] exactly;  mu <- mu - gamma d,  w <- w + gamma omega / l2 A'd.
// Squared link: x <- (1 + alpha) x + beta count(y), alpha >= -1, beta >= 0, the exact maximum in the two of them.
//
// The weighted average of all iterates (weights 2 / (k + 2)) is kept as w - scale * lag: two sparse additions a step.
#pragma once

#include "solvers/objective.h"

namespace partwise {

struct BcfwState {
    double* weights;
    double* counts;   // s mu, slots end to end
    double* mass;     // s, a value an example
    double* linear;   // kappa <s mu, c>, a value an example
    double* lag;      // a value a weight
    double* average;  // [steps so far, scale of lag, b of the average]
    double* gaps;     // the blocks' gaps as last seen, a value an example; may be null
};

struct BcfwReport {
    Index visits = 0;
    Index steps = 0;          // visits that moved
    double gap_estimate = 0;  // sum of the blocks' gaps, each when it was visited
};

BcfwReport bcfw_epoch(const Objective& objective, double l2, std::span<const Index> order, BcfwState state,
                      Interrupt& interrupt);

}  // namespace partwise
