// Sums over projective trees in doubles: no exponential inside the sums. Good where the weights' range allows it, which
// the total says afterwards (ProjectiveTree::sums).
#pragma once

#include "structures/eisner.h"

namespace partwise::eisner {

// The sum of the products of arc weights over the derivations of each span.
struct PlainSpans {
    double* chart;
    const double* weights;
    double value = 0;

    double total(const Pairs& p) const { return dot(chart + p.a, chart + p.b, p.count); }
    void unit(Index out, Index out2) { chart[out] = chart[out2] = 1.0; }
    void sum(Index out, Index out2, const Pairs& p) { chart[out] = chart[out2] = total(p); }
    void link(Index out, Index arc, Index out2, Index arc2, const Pairs& p) {
        const double x = total(p);
        chart[out] = x * weights[arc];
        chart[out2] = x * weights[arc2];
    }
    void root_link(Index out, Index arc, const Pairs& p) { chart[out] = total(p) * weights[arc]; }
    void attach(Index out, Index in, Index arc) { chart[out] = chart[in] * weights[arc]; }
    void top(const Pairs& p) { value = total(p); }
};

// Derivatives of log Z with respect to each span's value, from the top down; a span's probability is its value times
// that. slopes must start as zeros.
struct PlainSlopes {
    const double* chart;
    const double* weights;
    double* slopes;
    double* marginals;
    double value;  // Z

    void spread(const Pairs& p, double slope) {
        const double* __restrict a = chart + p.a;
        const double* __restrict b = chart + p.b;
        double* __restrict slopes_a = slopes + p.a;
        double* __restrict slopes_b = slopes + p.b;
        for (Index k = 0; k < p.count; ++k) {
            slopes_a[k] += slope * b[k];
            slopes_b[k] += slope * a[k];
        }
    }
    double arrive(Index out, Index arc) {
        marginals[arc] = slopes[out] * chart[out];
        return slopes[out] * weights[arc];
    }

    void sum(Index out, Index out2, const Pairs& p) { spread(p, slopes[out] + (out != out2 ? slopes[out2] : 0.0)); }
    void link(Index out, Index arc, Index out2, Index arc2, const Pairs& p) {
        const double first = arrive(out, arc);
        spread(p, first + arrive(out2, arc2));
    }
    void root_link(Index out, Index arc, const Pairs& p) { spread(p, arrive(out, arc)); }
    void attach(Index out, Index in, Index arc) { slopes[in] += arrive(out, arc); }
    void top(const Pairs& p) { spread(p, 1.0 / value); }
};

}  // namespace partwise::eisner
