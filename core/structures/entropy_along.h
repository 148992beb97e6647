// Entropies along a line: what -sum x log x adds to the value and derivatives by `step` of an entropy at
// x = p + step d. The terms x of a whole distribution, whose d sum to nothing, need no constants.
#pragma once

#include "structures/structure.h"
#include "support/vector_math.h"

namespace partwise {

// sign 1: a clique's table; -1: a separator's.
[[gnu::always_inline]] inline void add_entropy(double sign, const double* __restrict p, const double* __restrict d,
                                               double step, Index n, Along& out) {
    double value = 0;
    double slope = 0;
    double curvature = 0;
#pragma omp simd reduction(+ : value, slope, curvature)
    for (Index k = 0; k < n; ++k) {
        const double x = p[k] + step * d[k];
        const double u = x > 1e-300 ? x : 1e-300;
        const double log_x = fast_log(u);
        value += x * log_x;
        slope += d[k] * log_x;
        curvature += d[k] * d[k] / u;
    }
    out.value -= sign * value;
    out.slope -= sign * slope;
    out.curvature -= sign * curvature;
}

}  // namespace partwise
