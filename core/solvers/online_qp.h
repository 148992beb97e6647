// The quadratic program of k-best MIRA: the smallest step that meets a few hard constraints,
//
//   min 1/2 |d|^2   subject to   <d, psi_j> >= need_j,       d = sum_j alpha_j psi_j,  alpha >= 0,
//
// given by the inner products of the psi. Solved exactly by a dual active-set method (Goldfarb and Idnani 1983): the
// most violated constraint becomes active, by steps that keep alpha >= 0 and the active constraints tight; a constraint
// whose alpha becomes 0 leaves the active set. A constraint that contradicts the active ones is left out.
#pragma once

#include "support/types.h"

namespace partwise {

class HardMargins {
   public:
    // gram: k rows of k inner products; need: k values. Returns how many constraints were left out.
    Index solve(const std::vector<double>& gram, const std::vector<double>& need) {
        k_ = need.size();
        gram_ = &gram;
        need_ = &need;
        alpha_.assign(k_, 0.0);
        left_out_.assign(k_, 0);
        active_.clear();
        Index n_left_out = 0;
        // The dual rises in every turn, so the turns are finitely many; the limit stops cycles due to rounding.
        for (std::size_t turn = 0; turn < 20 * (k_ + 1); ++turn) {
            std::size_t worst = k_;
            double most = 0;
            for (std::size_t j = 0; j < k_; ++j) {
                if (left_out_[j] || std::find(active_.begin(), active_.end(), j) != active_.end()) continue;
                const double v = violation(j);
                if (v > slack(j) && v > most) {
                    worst = j;
                    most = v;
                }
            }
            if (worst == k_) break;
            if (!add(worst)) {
                left_out_[worst] = 1;
                ++n_left_out;
            }
        }
        return n_left_out;
    }

    const std::vector<double>& alpha() const { return alpha_; }

   private:
    // A squared distance below this share of |psi|^2 is rounding: psi then lies in the span of the active vectors.
    static constexpr double kDependent = 1e-10;
    static constexpr double kRounding = 1e-12;

    // need_j - <d, psi_j>
    double violation(std::size_t j) const {
        double sum = (*need_)[j];
        for (std::size_t l = 0; l < k_; ++l) sum -= (*gram_)[j * k_ + l] * alpha_[l];
        return sum;
    }
    // The most rounding that a violation can contain.
    double slack(std::size_t j) const {
        double sum = std::abs((*need_)[j]);
        for (std::size_t l = 0; l < k_; ++l) sum += std::abs((*gram_)[j * k_ + l]) * alpha_[l];
        return kRounding * sum;
    }
    // Makes constraint j tight. Returns false, and changes nothing, if that is impossible.
    bool add(std::size_t j) {
        const std::vector<double> alpha = alpha_;
        const std::vector<std::size_t> active = active_;
        const double own = (*gram_)[j * k_ + j];
        for (;;) {  // each turn but the last removes a constraint
            project(j);
            double distance = own;  // squared distance of psi_j from the span of the active ones
            double largest = kInfinity;
            std::size_t blocking = active_.size();
            for (std::size_t r = 0; r < active_.size(); ++r) {
                distance -= (*gram_)[active_[r] * k_ + j] * z_[r];
                if (z_[r] > 0.0 && alpha_[active_[r]] < largest * z_[r]) {
                    largest = alpha_[active_[r]] / z_[r];
                    blocking = r;
                }
            }
            const bool independent = distance > kDependent * own;
            const double full = independent ? std::max(violation(j), 0.0) / distance : kInfinity;
            if (full == kInfinity && largest == kInfinity) {
                alpha_ = alpha;
                active_ = active;
                return false;
            }
            const double step = std::min(full, largest);
            for (std::size_t r = 0; r < active_.size(); ++r) {
                alpha_[active_[r]] = std::max(alpha_[active_[r]] - step * z_[r], 0.0);
            }
            alpha_[j] += step;
            if (full <= largest) {
                active_.push_back(j);
                return true;
            }
            alpha_[active_[blocking]] = 0.0;
            active_.erase(active_.begin() + len(blocking));
        }
    }
    // z_ with G_PP z = G_Pj over the active constraints P.
    void project(std::size_t j) {
        // Cholesky, lower triangle; pivots are positive, as each active psi is independent of those before it
        const std::size_t m = active_.size();
        factor_.assign(m * m, 0.0);
        z_.assign(m, 0.0);
        for (std::size_t r = 0; r < m; ++r) {
            for (std::size_t c = 0; c <= r; ++c) {
                double sum = (*gram_)[active_[r] * k_ + active_[c]];
                for (std::size_t l = 0; l < c; ++l) sum -= factor_[r * m + l] * factor_[c * m + l];
                const double least = kDependent * kDependent * (*gram_)[active_[r] * k_ + active_[r]];
                factor_[r * m + c] = r == c ? std::sqrt(std::max(sum, least)) : sum / factor_[c * m + c];
            }
            double sum = (*gram_)[active_[r] * k_ + j];
            for (std::size_t l = 0; l < r; ++l) sum -= factor_[r * m + l] * z_[l];
            z_[r] = sum / factor_[r * m + r];
        }
        for (std::size_t r = m; r-- > 0;) {
            for (std::size_t l = r + 1; l < m; ++l) z_[r] -= factor_[l * m + r] * z_[l];
            z_[r] /= factor_[r * m + r];
        }
    }

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
