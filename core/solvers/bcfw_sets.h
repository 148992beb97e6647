// Block-coordinate Frank-Wolfe with the labellings of each block kept apart: pairwise steps and cached labellings.
//
// Block i is a working set with coefficients x_k (of sum 1 where the mass is fixed, >= 0 where it is not). With
// C = omega_i / l2, values v_k = cost_k - <w, psi_k> and inner products G_kl = <psi_k, psi_l>, all of a block's steps
// are made on numbers: a change d of x changes v by -C G d, and w by C sum_k d_k psi_k, added once at the visit's end.
//   towards    x <- (1 - gamma) x + gamma e_s,  s = argmax v
//   pairwise   x <- x + gamma (e_s - e_a),      a = argmin of v over x_a > 0, gamma <= x_a
//   in a cone  x_k <- max(0, x_k + (v_k - c s) / (C G_kk + c)) for the k with the largest gain (s = sum of x)
// The first two are for a fixed mass, each with the gamma that maximises the dual; the third is for phi*(s) = c/2 s^2.
#pragma once

#include <limits>

#include "solvers/working_sets.h"

namespace partwise {

struct BcfwSetOptions {
    double l2 = 0;
    bool search = true;    // ask the oracle and add its answer
    bool pairwise = true;  // fixed mass: which of the two steps
    Index steps = 1;       // at most, a visit
    Index now = 0;         // the stamp of what is asked for or used in this visit
    Index keep = 0;        // forget atoms of coefficient 0 with a stamp of now - keep or older
    // merge a searched example's atoms while all atoms together take more
    Index max_bytes = std::numeric_limits<Index>::max();
    Index violators = 1;  // labellings that join after a search, at most; above 1 the structure must have k_best
};

// What a pass updates in place. gaps (a value per example): the gap of each block when it was visited, over known
// labellings if there was no search.
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
    Index work = 0;  // numbers of rows and slots that were read or written, about
    double dual_gain = 0;
    double gap_estimate = 0;  // sum of the blocks' gaps, each when it was visited (over known labellings if no search)
    double bound = 0;         // b = sum_i omega_i (sum_k x_k cost_k - phi*(s_i)) after the last visit
};

BcfwSetReport bcfw_set_epoch(const BcfwSetState& state, std::span<const Index> order, const BcfwSetOptions& options,
                             Interrupt& interrupt);

}  // namespace partwise
