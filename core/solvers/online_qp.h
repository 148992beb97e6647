// The quadratic program of k-best MIRA: the smallest step that meets a few hard constraints,
//
//   min 1/2 |d|^2   subject to   <d, psi_j> >= need_j,       d = sum_j alpha_j psi_j,  alpha >= 0,
//
// given by the inner products of the psi. Solved exactly by a dual active-set method (Goldfarb and Idnani 1983): the
// most violated constraint joins the active ones, with steps that keep alpha >= 0 and the active ones tight; one whose
// alpha becomes 0 leaves. A constraint that cannot be met together with the active ones is left out.
#pragma once

#include <vector>

#include "support/types.h"

namespace partwise {

class HardMargins {
   public:
    // gram: k rows of k inner products; need: k values. Returns how many constraints were left out.
    Index solve(const std::vector<double>& gram, const std::vector<double>& need);

    const std::vector<double>& alpha() const { return alpha_; }

   private:
    // need_j - <d, psi_j>
    double violation(std::size_t j) const;
    // How large rounding in a violation may be.
    double slack(std::size_t j) const;
    // Makes constraint j tight; false, and nothing changed, if it cannot be.
    bool add(std::size_t j);
    // z_ with G_PP z = G_Pj over the active constraints P.
    void project(std::size_t j);

    std::size_t k_ = 0;
    const std::vector<double>* gram_ = nullptr;
    const std::vector<double>* need_ = nullptr;
    std::vector<double> alpha_;
    std::vector<std::size_t> active_;
    std::vector<double> factor_;
    std::vector<double> z_;
    std::vector<char> left_out_;
};

}  // namespace partwise
