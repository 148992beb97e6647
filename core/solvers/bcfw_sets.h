// Block-coordinate Frank-Wolfe that keeps the labellings of each block as atoms: pairwise steps, cached labellings.
//
// Block i is a working set with coefficients x_k (of sum 1 if the mass is fixed, otherwise >= 0). With C = omega_i /
// l2, values v_k = cost_k - <w, psi_k> and inner products G_kl = <psi_k, psi_l>, a visit's steps are made on these
// numbers: a change d of x changes v by -C G d. w changes by C sum_k d_k psi_k once, at the visit's end.
//   towards    x <- (1 - gamma) x + gamma e_s,  s = argmax v
//   pairwise   x <- x + gamma (e_s - e_a),      a = argmin of v over x_a > 0, gamma <= x_a
//   in a cone  x_k <- max(0, x_k + (v_k - c s) / (C G_kk + c)) for the k with the largest gain (s = sum of x)
// The first two are for a fixed mass, with the gamma that maximises the dual; the third is for phi*(s) = c/2 s^2.
#pragma once

#include "solvers/working_sets.h"

namespace partwise {

struct BcfwSetOptions {
    double l2 = 0;
    bool search = true;    // call the oracle and add its labelling to the working set
    bool pairwise = true;  // with fixed mass: whether steps are pairwise or towards one atom
    Index steps = 1;       // the most steps per visit
    Index now = 0;         // the stamp that atoms get when this visit adds or uses them
    Index keep = 0;        // remove atoms of coefficient 0 whose stamp is at most now - keep
    // merge a searched example's atoms as long as all atoms together take more bytes than this
    Index max_bytes = std::numeric_limits<Index>::max();
    Index violators = 1;  // the most labellings that a search adds; above 1 the structure must have k_best
};

// The arrays that a pass updates. gaps: each block's gap at its last visit, one value per example. Without a
// search, the gap over the known labellings.
struct BcfwSetState {
    const Objective& objective;
    double* weights;
    WorkingSets& sets;
    double* gaps;
};

struct BcfwSetReport {
    Index visits = 0;  // oracle calls
    Index steps = 0;
    Index merged = 0;
    Index work = 0;  // approximate count of numbers of rows and slots that were read or written
    double dual_gain = 0;
    double gap_estimate = 0;  // sum of the blocks' gaps, each as of its visit (see gaps)
    double bound = 0;         // b = sum_i omega_i (sum_k x_k cost_k - phi*(s_i)) after the last visit
};

BcfwSetReport bcfw_set_epoch(const BcfwSetState& state, std::span<const Index> order, const BcfwSetOptions& options,
                             Interrupt& interrupt);

}  // namespace partwise
