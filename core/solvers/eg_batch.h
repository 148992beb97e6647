// Batch exponentiated gradient: all examples take a step at once, and the dual point after it comes as (u, b).
#pragma once

#include "solvers/objective.h"

namespace partwise {

// A dual point after a step, and what tells how far the step went:
//   sum_i omega_i KL(p_i || q_i) = log_partition of q - reference,   p after the step, q before it
struct EgMove {
    std::vector<double> u;
    double b = 0;
    double log_partition = 0;  // sum_i omega_i log Z_i after the step
    double reference = 0;      // sum_i omega_i (H(p_i) + <mu_i, scores of q_i>)
};

// A step of size `step` for every example, from slot scores `scores` with weights w:
//   moved_i = (1 - step tau) scores_i + step (A_i w + kappa c_i)
// moved may be scores itself; the reference is then that of `moved`.
EgMove eg_batch_step(const Objective& objective, const double* weights, double step, const double* scores,
                     double* moved, int n_jobs, Interrupt& interrupt);

// The point with slot scores A_i z + cost_scale c_i, which are never stored. The reference is for a point before with
// z = 0 and `old_cost_scale`; for another z there, <z, sum_i omega_i A_i'mu_i> is to be added.
EgMove eg_primal_point(const Objective& objective, const double* z, double cost_scale, double old_cost_scale,
                       int n_jobs, Interrupt& interrupt);

// sum_i omega_i A_i'g_i
std::vector<double> gold_features(const Objective& objective, int n_jobs, Interrupt& interrupt);

}  // namespace partwise
