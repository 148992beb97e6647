// One pass of factored sequential minimal optimisation on the dual at temperature 0 with the identity link (hinge).
//
// The block of example i is kept as marginals q of the structure's cliques. A visit takes two labellings,
//   y = argmax of <count(y), theta + kappa c>                       over all labellings,
//   z = argmin of <count(z), theta + kappa c>                       over those whose cliques' entries all have q > 0,
// and moves the mass gamma from z to y: q += gamma on y's entries, -= gamma on z's. gamma is at most the smallest q on
// those entries of z that y does not have. q then stays the marginals of a distribution: only marginals of labellings
// are added, and on a junction tree non-negative consistent marginals suffice. With d = count(z) - count(y),
//   gain(gamma) = omega gamma <theta + kappa c, -d> - gamma^2 omega^2 / (2 l2) |A'd|^2,   w += gamma omega / l2 A'd,
// with the gamma in [0, that smallest q] that maximises the gain.
#pragma once

#include "solvers/cliques.h"
#include "solvers/objective.h"

namespace partwise {

// The arrays that a pass updates in place.
struct SmoState {
    const Objective& objective;
    double* weights;
    double* cliques;  // marginals q of all examples, concatenated
    double* gaps;     // each block's gap <count(y) - mu, theta + kappa c> at its last visit
};

struct SmoOptions {
    double l2 = 0;
};

struct SmoReport {
    Index visits = 0;
    Index steps = 0;  // number of visits that moved mass
    double dual_gain = 0;
};

SmoReport smo_epoch(const SmoState& state, std::span<const Index> order, const SmoOptions& options,
                    Interrupt& interrupt);

}  // namespace partwise
