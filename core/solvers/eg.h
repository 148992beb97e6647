// One pass of online exponentiated gradient (000 Figures 2 and 3) over Gibbs dual points.
//
// For the visited example, with theta = A_i w and slot scores s of its distribution p ~ exp(<count, s>):
//   s' = (1 - eta tau) s + eta (theta + kappa c),   d = mu(s) - mu(s'),   w' = w + omega / l2 A'd
//   D(old) - D(new) = omega [tau (H(s) - H(s')) + <theta + kappa c, d> + omega / (2 l2) |A'd|^2]
// Adaptive: eta_i is halved until that change is not positive, and grown a little afterwards (000, section 7).
#pragma once

#include "solvers/objective.h"

namespace partwise {

struct EgOptions {
    bool adaptive = true;
    double growth = 1.05;
    double max_step = kInfinity;
    int n_jobs = 1;
    Index round_size = 0;  // examples a lane visits between exchanges; 0: chosen here
};

struct EgReport {
    Index visits = 0;    // trial steps
    Index rejected = 0;  // of them, those that were halved
    double dual_gain = 0;
};

// State of all examples, updated in place. scores and marginals: slots end to end; the rest: a value an example.
struct EgState {
    double* weights;
    double* scores;
    double* marginals;
    double* entropies;
    double* step_sizes;
};

EgReport eg_epoch(const Objective& objective, double l2, std::span<const Index> order, EgState state,
                  const EgOptions& options, Interrupt& interrupt);

}  // namespace partwise
