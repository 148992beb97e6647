// One pass of dual coordinate ascent over clique marginals (Le Priol et al. 2018).
//
// For the visited example, with marginals m of its cliques, theta = A_i w, and q the marginals of p_w, the dual along
// the line from m to q, d = q - m, is, up to a constant and the factor omega,
//   f(g) = tau H(m + g d) + g <theta + kappa c, slots(d)> - g^2 omega / (2 l2) |A_i' slots(d)|^2,   0 <= g <= 1,
// a concave function with f'(0) = tau (KL(m|q) + KL(q|m)) >= 0 and f'(1) = -omega / l2 |A_i' slots(d)|^2 <= 0. Newton's
// method finds its maximum, starting from the example's last step and kept between points known to lie on either side
// of the maximum. Then m += g d, w -= g omega / l2 A_i' slots(d). The block's duality gap is omega tau KL(m|q) = omega
// (tau (H(q) - H(m)) + <theta + kappa c, slots(d)>).
//
// With an elastic net w = soft(u, l1) / l2, and the last term of f bounds the conjugate's change from above (see
// feature_map.h): the maximum of f is a step that does not lower the dual, but not always the best step.
#pragma once

#include "solvers/cliques.h"
#include "solvers/objective.h"

namespace partwise {

struct SdcaLineOptions {
    double l2 = 0;
    double line_tol = 0;  // a Newton step of at most this share of the distance to either end is the last one
    double l1 = 0;
};

struct SdcaLineReport {
    Index visits = 0;
    Index trials = 0;  // number of points of all lines at which the entropy was evaluated
    double dual_gain = 0;
};

// What a pass updates in place. cliques: clique marginals of all examples concatenated. counts: the expected counts of
// their slots. entropies, gaps (each as of the last visit), steps: a value per example.
struct SdcaLineState {
    const Objective& objective;
    double* weights;
    double* cliques;
    double* counts;
    double* entropies;
    double* gaps;
    double* steps;
    double* plane;  // u, with l1 > 0 only
};

SdcaLineReport sdca_line_epoch(const SdcaLineState& state, std::span<const Index> order, const SdcaLineOptions& options,
                               Interrupt& interrupt);

}  // namespace partwise
