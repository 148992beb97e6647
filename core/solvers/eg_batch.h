// Batch exponentiated gradient: all examples take a step at once, and the dual point after it comes as (u, b).
#pragma once

#include "solvers/objective.h"

namespace partwise {

// One step of size `step` for every example, from slot scores `scores` with weights w:
//   moved_i = (1 - step tau) scores_i + step (A_i w + kappa c_i)
// moved may be scores itself. Returns (u, b) of the Gibbs distributions of `moved`.
Plane eg_batch_step(const Objective& objective, const double* weights, double step, const double* scores, double* moved,
                    int n_jobs, Interrupt& interrupt);

}  // namespace partwise
