// One pass of block-coordinate Frank-Wolfe on the dual at temperature 0 (hinge, squared hinge).
//
// The block of example i is kept as x = s mu (slots), s, and l = kappa <x, c>; q = A'(g - count(y)) for the oracle's y.
// Fixed mass (s = 1): with d = mu - count(y), the gamma in [0, 1] that maximises
//   gain(gamma) = omega gamma <theta + kappa c, -d> - gamma^2 omega^2 / (2 l2) |A'd|^2
//   mu <- mu - gamma d,   w <- w + gamma omega / l2 A'd.
// Quadratic conjugate (phi*(s) = c/2 s^2, s >= 0):
//   x <- (1 + alpha) x + beta count(y),   alpha >= -1, beta >= 0, the exact maximum in the two of them.
//
// The weighted average of all iterates (weights 2 / (k + 2)) is kept as w - scale * lag: two sparse additions per step.
#pragma once

#include "solvers/objective.h"

namespace partwise {

struct BcfwOptions {
    double l2 = 0;
};

// What a pass updates in place.
struct BcfwState {
    const Objective& objective;
    double* weights;
    double* counts;   // s mu, slots end to end
    double* mass;     // s, a value per example
    double* linear;   // kappa <s mu, c>, a value per example
    double* lag;      // a value per weight
    double* average;  // [steps so far, scale of lag, b of the average]
    double* gaps;     // the blocks' gaps as last seen, a value per example; may be null
};

struct BcfwReport {
    Index visits = 0;
    Index steps = 0;          // visits that moved
    double gap_estimate = 0;  // sum of the blocks' gaps, each when it was visited
};

BcfwReport bcfw_epoch(const BcfwState& state, std::span<const Index> order, const BcfwOptions& options,
                      Interrupt& interrupt);

}  // namespace partwise
