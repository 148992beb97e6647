// One pass of block-coordinate Frank-Wolfe on the dual at temperature 0 (hinge, squared hinge).
//
// The dual block of example i is stored as x = s mu (slots), its mass s, and l = kappa <x, c>. With the oracle's
// labelling y, q = A'(g - count(y)). Fixed mass (s = 1): with d = mu - count(y), the gamma in [0, 1] that maximises
//   gain(gamma) = omega gamma <theta + kappa c, -d> - gamma^2 omega^2 / (2 l2) |A'd|^2
//   mu <- mu - gamma d,   w <- w + gamma omega / l2 A'd.
// Quadratic conjugate (phi*(s) = c/2 s^2, s >= 0):
//   x <- (1 + alpha) x + beta count(y), with the alpha >= -1 and beta >= 0 that maximise the dual exactly.
//
// The average of all iterates, with weights 2 / (k + 2), is stored as w - scale * lag: two sparse additions per step.
#pragma once

#include "solvers/objective.h"

namespace partwise {

struct BcfwOptions {
    double l2 = 0;
};

// The arrays that a pass updates in place.
struct BcfwState {
    const Objective& objective;
    double* weights;
    double* counts;   // s mu, the slots of all examples concatenated
    double* mass;     // s, a value per example
    double* linear;   // kappa <s mu, c>, a value per example
    double* lag;      // (w - average) / scale, a value per weight
    double* average;  // [steps so far, scale of lag, b of the average]
    double* gaps;     // each block's gap at its last visit, a value per example; may be null
};

struct BcfwReport {
    Index visits = 0;
    Index steps = 0;          // visits that changed the dual point
    double gap_estimate = 0;  // sum of the blocks' gaps, each as of its visit
};

BcfwReport bcfw_epoch(const BcfwState& state, std::span<const Index> order, const BcfwOptions& options,
                      Interrupt& interrupt);

}  // namespace partwise
