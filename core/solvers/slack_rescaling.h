// The loss of slack rescaling: for example i
//
//   max over labellings y of c(y) (1 + m(y)),   c(y) = kappa <count(y), c>,  m(y) = <count(y), theta> - <g, theta>
//
// A structure maximises sums over slots, not this product. But the points (m(y), c(y)) of an example lie under their
// upper right hull, whose corners are maxima of alpha m + lambda c with alpha, lambda >= 0: each is found by a call of
// `maximize`. The product rises with both factors where they are positive, so its maximum over the hull is an upper
// bound of the loss, and the best corner found gives a lower bound. If costs are multiples of a unit, only multiples
// count between two corners, and if corners have neighbouring costs the bound is the loss itself. If a gap remains and
// the structure has `k_best`, up to kSlackBest labellings nearest to the hull's edge are examined: all others lie below
// the last of these, so the bound is the loss if the last one lies low enough.
#pragma once

#include "solvers/objective.h"

namespace partwise {

// The most calls of `maximize` per example.
constexpr int kSlackCalls = 64;
// The most labellings that are examined below one edge of the hull.
constexpr Index kSlackBest = 64;

// value: the sum of upper bounds. u and b come from the labellings found, with s = c(y): u = sum omega c(y) A'(g -
// count(y)) and b = sum omega c(y), so b - <u, w> is the sum of lower bounds. u is empty unless with_u is true.
Plane slack_plane(const Objective& objective, const double* w, bool with_u, int n_jobs, Interrupt& interrupt);

// The largest c(y) of all labellings of all examples of positive weight.
double largest_cost(const Objective& objective, int n_jobs, Interrupt& interrupt);

}  // namespace partwise
