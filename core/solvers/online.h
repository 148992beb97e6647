// Visits of online methods on the primal: the perceptron, stochastic (sub)gradient descent, and MIRA.
//
// The loss's link is the identity. With direction = g - mu, where mu are the counts of the oracle's answer at w:
//
//   perceptron   mu = count(argmax A_i w);                 w += omega_i A_i'direction
//   sgd          mu = expected counts at the temperature   w = (1 - eta l2 / n) w + eta omega_i A_i'direction
//                of A_i w + kappa c_i
//
// The sums of omega_i A_i'direction (u) and of omega_i kappa <mu, c> (b) over one visit of every example form a plane
// that bounds the losses at temperature 0 from below (problem.py), whatever w was at each visit.
#pragma once

#include "solvers/objective.h"

namespace partwise {

// The arrays that a pass updates. sum: the weighted sum of iterates, or null; plane: u of the plane, or null.
struct OnlineState {
    const Objective& objective;
    double* weights;
    double* sum = nullptr;
    double* plane = nullptr;
};

// k earlier visits: eta0 / (1 + k / n), eta0 / (1 + eta0 k l2)^0.75, eta0 / (1 + eta0 k l2 / n)^0.75.
enum class StepRule { kReciprocal, kPower, kBottou };

struct SgdOptions {
    double l2 = 0;
    double step_size = 0;  // eta0
    StepRule rule = StepRule::kReciprocal;
    double n = 1;      // the number of examples in the penalty's share l2 / n and in the rule
    double first = 0;  // number of visits before this pass
};

struct OnlineReport {
    Index visits = 0;
    Index mistakes = 0;  // perceptron: number of answers that were not the gold labelling
    double loss = 0;     // sgd: sum of omega times the losses at the visits
    double bound = 0;    // b of the plane
    double mass = 0;     // sum of the iterates' weights in their weighted sum
};

struct MiraReport {
    Index visits = 0;
    Index mistakes = 0;  // number of examples with a labelling whose margin was too small
    Index left_out = 0;  // number of constraints that contradict others of their example
    double mass = 0;     // number of visits in the sum of iterates
};

// Every visit has the weight 1 in the sum of iterates (for averaging).
OnlineReport perceptron_epoch(const OnlineState& state, std::span<const Index> order, Interrupt& interrupt);

// Visit k (from 1) has the weight k in the sum of iterates (for averaging).
OnlineReport sgd_epoch(const OnlineState& state, std::span<const Index> order, const SgdOptions& options,
                       Interrupt& interrupt);

// MIRA (Chang and Yih 2013, section 2.1): moves w to the nearest weights that separate the gold labelling from the k
// best labellings at w by a margin of their costs, <w, A_i'(g - count(y))> >= kappa cost(y), with no bound on alpha.
MiraReport mira_epoch(const OnlineState& state, std::span<const Index> order, Index k, Interrupt& interrupt);

// The largest number of labellings of an example of positive weight, at most k. Needs the capability kKBest.
Index most_labellings(const Objective& objective, Index k, Interrupt& interrupt);

// Sum over the examples of omega times the number of parts of their best labelling at w that are not gold.
double wrong_parts(const Objective& objective, const double* weights, std::span<const Index> examples,
                   Interrupt& interrupt);

// Sum over the examples of omega times their losses (identity link).
double sum_of_losses(const Objective& objective, const double* weights, std::span<const Index> examples,
                     Interrupt& interrupt);

}  // namespace partwise
