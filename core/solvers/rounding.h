// The sums over examples from which rounding.py computes bounds on the rounding of a certificate.
#pragma once

#include "solvers/objective.h"

namespace partwise {

// Sums over examples of omega x and of omega x^2, for three quantities x. With r an example's reach (see FeatureMap), m
// the number of parts of its gold labelling, and its depth delta = fixed + sqrt(m):
struct RoundingSums {
    double scores = 0;      // x = delta r: the factor of |w| in the rounding of its scores
    double level = 0;       // x = delta (tau m + kappa m max |c|): rounding that does not depend on w
    double transposed = 0;  // x = (delta + examples) r: rounding of the sum of A' directions
    double scores2 = 0;
    double level2 = 0;
    double transposed2 = 0;
    double largest_reach = 0;
};

RoundingSums rounding_sums(const Objective& objective, double fixed, double examples, int n_jobs, Interrupt& interrupt);

}  // namespace partwise
