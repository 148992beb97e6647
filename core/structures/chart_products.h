// Sums over a chart's derivations in doubles: no exponential inside the sums. Good where the weights' range allows it,
// which the structure must see to (ProjectiveTree::plain_sums). For edges that are pairs of cells.
#pragma once

#include "structures/chart.h"

namespace partwise::chart {

// Visitor, up: the sum over the derivations of each cell of the product of their slots' weights.
struct ProductSums {
    double* chart;
    const double* weights;

    void unit(Index cell, Index twin) { chart[cell] = chart[twin] = 1.0; }
    void score(Index cell, Index tail, Index slot) { chart[cell] = chart[tail] * weights[slot]; }
    [[gnu::always_inline]] void sum(Index cell, Index twin, const Pairs& e) {
        chart[cell] = chart[twin] = dot(chart + e.a, chart + e.b, e.n);
    }
    void cut(Index, Index) {}
};

// Visitor, down: derivatives of log Z with respect to each cell's value; a cell's probability is its value times that.
// slopes and marginals start as zeros, the root's slope as 1 / Z.
struct ProductSlopes {
    const double* chart;  // of ProductSums
    const double* weights;
    double* slopes;
    double* marginals;

    void unit(Index, Index) {}
    void score(Index cell, Index tail, Index slot) {
        slopes[tail] += slopes[cell] * weights[slot];
        marginals[slot] += slopes[cell] * chart[cell];
    }
    void sum(Index cell, Index twin, const Pairs& e) {
        const double slope = slopes[cell] + (cell != twin ? slopes[twin] : 0.0);
        const double* __restrict a = chart + e.a;
        const double* __restrict b = chart + e.b;
        double* __restrict slopes_a = slopes + e.a;
        double* __restrict slopes_b = slopes + e.b;
        for (Index k = 0; k < e.n; ++k) {
            slopes_a[k] += slope * b[k];
            slopes_b[k] += slope * a[k];
        }
    }
};

}  // namespace partwise::chart
