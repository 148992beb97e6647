// One pass of dual coordinate ascent that maximises each block exactly, if every labelling is one slot (SDCA).
//
// For the visited example, with theta = A_i w, distribution p over slots and A_i A_i' = diag(k), the dual as a function
// of the new distribution q is, up to a constant and the factor omega tau,
//   <t, q> + H(q) - 1/2 sum_a rho_a (q_a - p_a)^2,   t = (theta + kappa c) / tau,   rho = omega k / (l2 tau)
// The maximum solves, for the number nu that makes the sum of q one,
//   log q_a + rho_a q_a = t_a + rho_a p_a - nu.
// With an elastic net the last term bounds the conjugate's change from above (see ShrunkWeights), so the maximum is a
// step that does not lower the dual.
#pragma once

#include "solvers/objective.h"

namespace partwise {

struct SdcaReport {
    Index visits = 0;
    Index iterations = 0;  // number of Newton steps on all blocks
    Index refused = 0;     // number of blocks left alone, as their maximum was no better up to rounding
    double dual_gain = 0;
};

// pulled: the first and the end of the range of weights that have no penalty but are pulled to a centre with the
// strength `pull` (`PulledWeights`). The curvatures are |A_i' e_a|^2, with each such weight counted l2 / pull times.
struct SdcaOptions {
    double l2 = 0;
    double l1 = 0;
    std::pair<Index, Index> pulled = {0, 0};
    double pull = 1;
};

// What a pass updates in place. It only reads the curvatures of all slots of all examples (those of examples that are
// not visited are not read). scores: log p, the only form in which distributions are kept, as a number per slot is most
// of a run's memory. gains: the dual gain of each example's last visit.
struct SdcaState {
    const Objective& objective;
    const double* curvatures;
    double* weights;
    double* scores;
    double* entropies;
    double* gains;
    double* plane;  // u, with l1 > 0 only
};

// |A_i' e_a|^2 of every slot of these examples, concatenated, and -1 for slots that no labelling uses. Empty unless A_i
// A_i' is diagonal for all of these examples.
std::vector<double> slot_curvatures(const Objective& objective, std::span<const Index> examples, Interrupt& interrupt);

// Replaces the slot scores of each example by log p of their Gibbs distribution p (0 for slots that no labelling uses),
// and computes the entropy of p. Scores are first clipped to the gold slot's score plus or minus `reach`, so that no
// probability is rounded to 0.
void sdca_start(const Objective& objective, double reach, double* scores, double* entropies, int n_jobs,
                Interrupt& interrupt);

SdcaReport sdca_epoch(const SdcaState& state, std::span<const Index> order, const SdcaOptions& options,
                      Interrupt& interrupt);

}  // namespace partwise
