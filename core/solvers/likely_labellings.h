// From Gibbs distributions to working sets: the few most probable labellings of each example with their probabilities.
//
// p ~ exp(<count(y), s>) becomes sum_k p(y_k) e_k / sum_k p(y_k) over its `most` best labellings y_1, y_2, ..., without
// those that have less than kUnlikely of the best one's probability: a sparse point near p, of mass 1.
#pragma once

#include "solvers/working_sets.h"

namespace partwise {

constexpr double kUnlikely = 1e-3;

// scores: slots end to end. For structures that have k_best.
AtomTable likely_labellings(const Objective& objective, const double* scores, Index most, Interrupt& interrupt);

}  // namespace partwise
