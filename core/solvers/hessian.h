// Products with the Hessian of the sum of losses at one point, temperature > 0. The penalty's part is not included.
//
//   H v = sum_i omega_i A_i' [ s_i Cov_i(A_i v) / tau + h_i (g_i - mu_i) <g_i - mu_i, A_i v> ]
//
// with Cov_i the covariance of the counts under p_w, s_i = phi'(t_i) and h_i = phi''(t_i); s = 1 and h = 0 where the
// link's mass is fixed.
//
// The slot scores at w are kept: a product then reads the features twice and calls the structure once. If a labelling
// is one part (fixed mass), the probabilities p are kept instead: inference is then done only once.
#pragma once

#include "solvers/objective.h"

namespace partwise {

class Hessian {
   public:
    // The objective must outlive this object. every > 1: use only every `every`-th run of examples, scaled by the ratio
    // of all sample weight to theirs; all examples if these runs are too few. marginals: p_w, if it is already known
    // and a labelling is one part with fixed mass (p_w must outlive this object too); else null.
    Hessian(const Objective& objective, const double* weights, const double* marginals, Index every, int n_jobs,
            Interrupt& interrupt);

    const Objective& objective() const { return objective_; }
    std::vector<double> product(const double* direction, int n_jobs, Interrupt& interrupt) const;
    // sum_i omega_i sum_r A_rj^2 v_r / tau: an approximate diagonal to scale weights by; fixed mass. v_r is the
    // expected count, or where a labelling is one part, the mean of p (1 - p) over the labels. The mean, because
    // changing an attribute's weights equally for all labels changes no loss: the curvature in that direction is l2
    // alone, and a scaling that differs between labels would lead conjugate gradients into that direction.
    std::vector<double> diagonal(int n_jobs, Interrupt& interrupt) const;
    bool partial() const { return every_ > 1; }

   private:
    // out = M_i change, where the Hessian is sum_i A_i' M_i A_i
    void apply(Index i, const double* change, double* out, Workspace& ws) const;

    const Objective& objective_;
    Index every_;
    double factor_ = 1.0;  // sample weight of all examples over that of the examples used
    bool keeps_marginals_ = false;
    std::vector<double> scores_;  // theta_i + kappa c_i or p_i, all examples concatenated; empty if p was given
    const double* kept_;          // the array that is used: scores_, or the given p
};

}  // namespace partwise
