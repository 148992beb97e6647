// What bounds on the rounding of sums over examples are made of (rounding.py has the bounds).
#pragma once

#include "solvers/objective.h"

namespace partwise {

// Sums over examples of omega x and of omega x^2, for three x. With r an example's reach (see FeatureMap), m the parts
// of its gold labelling and its depth delta = fixed + sqrt(m):
struct RoundingSums {
    double scores = 0;      // delta r: what multiplies |w| in the rounding of its scores
    double level = 0;       // delta (tau m + kappa m max |c|): what does not
    double transposed = 0;  // (delta + examples) r: of A' directions, summed over examples
    double scores2 = 0;
    double level2 = 0;
    double transposed2 = 0;
    double largest_reach = 0;
};

RoundingSums rounding_sums(const Objective& objective, double fixed, double examples, int n_jobs, Interrupt& interrupt);

}  // namespace partwise
