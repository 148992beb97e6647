// One pass of dual coordinate ascent whose blocks are maximised exactly, where every labelling is one slot.
//
// For the visited example, with theta = A_i w, distribution p over slots and A_i A_i' = diag(k), the dual as a function
// of the new distribution q is, but for a constant and the factor omega tau,
//   <t, q> + H(q) - 1/2 sum_a rho_a (q_a - p_a)^2,   t = (theta + kappa c) / tau,   rho = omega k / (l2 tau)
// and its maximum solves, for one number nu that makes the sum of q one,
//   log q_a + rho_a q_a = t_a + rho_a p_a - nu.
// With an elastic net the last term is an upper bound of the conjugate's (see ShrunkWeights), and the maximum a step
// that does not lower the dual.
#pragma once

#include "solvers/objective.h"

namespace partwise {

struct SdcaReport {
    Index visits = 0;
    Index iterations = 0;  // Newton steps of all blocks
    Index refused = 0;     // blocks whose maximum was no better than where they stood, but for rounding
    double dual_gain = 0;
};

// pulled: the first and the end of the weights without a penalty, which are pulled to a centre with the strength `pull`
// (`PulledWeights`); the curvatures are |A_i' e_a|^2 with l2 / pull in place of 1 for these weights.
struct SdcaOptions {
    double l2 = 0;
    double l1 = 0;
    std::pair<Index, Index> pulled = {0, 0};
    double pull = 1;
};

// What a pass updates in place, except the curvatures: of all slots of all examples (those of examples that are not
// visited are not read). scores: log p, the only form in which the distributions are kept (a number per slot is most of
// the memory of a run). gains: dual gain of each example's last visit.
struct SdcaState {
    const Objective& objective;
    const double* curvatures;
    double* weights;
    double* scores;
    double* entropies;
    double* gains;
    double* plane;  // u, with l1 > 0 only
};

// |A_i' e_a|^2 of every slot of these examples, end to end, and -1 for slots that no labelling uses; empty unless
// A_i A_i' is diagonal for all of them.
std::vector<double> slot_curvatures(const Objective& objective, std::span<const Index> examples, Interrupt& interrupt);

// Turns slot scores into log p of their Gibbs distributions, in place (0 for slots that are not in use), and gives the
// entropies; differences to the gold slot's score are cut off at `reach`.
void sdca_start(const Objective& objective, double reach, double* scores, double* entropies, int n_jobs,
                Interrupt& interrupt);

SdcaReport sdca_epoch(const SdcaState& state, std::span<const Index> order, const SdcaOptions& options,
                      Interrupt& interrupt);

}  // namespace partwise
