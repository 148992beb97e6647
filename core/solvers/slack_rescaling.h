// The loss of slack rescaling: for example i
//
//   max over labellings y of c(y) (1 + m(y)),   c(y) = kappa <count(y), c>,  m(y) = <count(y), theta> - <g, theta>
//
// A structure maximises sums over slots, not this product. But the points (m(y), c(y)) of an example lie under their
// upper right hull, whose corners are maxima of alpha m + lambda c, alpha, lambda >= 0: an ordinary call of `maximize`
// each. The product rises with both factors where they are positive, so that its maximum over the hull is an upper
// bound of the loss, and the best corner met a lower one, by a labelling. Where costs are multiples of a unit, only
// multiples of it count between two corners: with corners at neighbouring costs the bound is the loss itself. Where it is
// not, and the structure has `k_best`, the labellings nearest to the hull's edge are looked at, up to kSlackBest of them:
// the others lie below the last of these, and the bound is the loss if that is low enough.
#pragma once

#include "solvers/objective.h"

namespace partwise {

// Calls of `maximize` per example, at most.
constexpr int kSlackCalls = 64;
// Labellings below one edge of the hull that are looked at, at most.
constexpr Index kSlackBest = 64;

// value: the sum of upper bounds. u and b: of the labellings found, s = c(y): u = sum omega c(y) A'(g - count(y)),
// b = sum omega c(y); b - <u, w> is the sum of lower bounds. u is empty unless with_u.
Plane slack_plane(const Objective& objective, const double* w, bool with_u, int n_jobs, Interrupt& interrupt);

// The largest c(y) of any labelling of any example of positive weight.
double largest_cost(const Objective& objective, int n_jobs, Interrupt& interrupt);

}  // namespace partwise
