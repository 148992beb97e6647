// Products with the Hessian of the sum of losses at one point, temperature > 0. The penalty's share is not here.
//
//   H v = sum_i omega_i A_i' [ s_i Cov_i(A_i v) / tau + h_i (g_i - mu_i) <g_i - mu_i, A_i v> ]
//
// with Cov_i the covariance of the counts under p_w, s_i = phi'(t_i) and h_i = phi''(t_i); s = 1 and h = 0 where the
// link's mass is fixed.
//
// The slot scores at w are kept, one number per slot: a product then meets the features twice and the structure once.
// Where a labelling is one part (fixed mass), p is kept instead: the structure's inference is then done once.
#pragma once

#include <vector>

#include "solvers/objective.h"

namespace partwise {

class Hessian {
   public:
    // The objective must outlive it. every > 1: every `every`-th run of examples, times the weight of all over the
    // weight of those; all examples where these are too few.
    // marginals: p_w where a labelling is one part and the mass fixed, if they are known already (they must
    // outlive it too); else null.
    Hessian(const Objective& objective, const double* weights, const double* marginals, Index every, int n_jobs,
            Interrupt& interrupt);

    const Objective& objective() const { return objective_; }
    std::vector<double> product(const double* direction, int n_jobs, Interrupt& interrupt) const;
    // sum_i omega_i sum_r A_rj^2 v_r / tau, v_r the mean of p (1 - p) over the labels where a labelling is one part,
    // else the expected count: something near the diagonal, to scale weights by. Fixed mass. The mean, because the
    // same change of an attribute's weights for all labels changes no loss: the curvature there is l2 alone, and a
    // scaling that differs between labels leads conjugate gradients into that direction.
    std::vector<double> diagonal(int n_jobs, Interrupt& interrupt) const;
    bool partial() const { return every_ > 1; }

   private:
    // out = the matrix between A_i' and A_i times `change`
    void apply(Index i, const double* change, double* out, Workspace& ws) const;

    const Objective& objective_;
    Index every_;
    double factor_ = 1.0;  // weight of all examples over the weight of those used
    bool keeps_marginals_ = false;
    std::vector<double> scores_;  // theta_i + kappa c_i, or p_i, all examples end to end; empty if p was given
    const double* kept_;          // where they are
};

}  // namespace partwise
