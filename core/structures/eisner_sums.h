// Sums over projective trees in log space: no spread of scores is too large and masks (-infinity) are allowed.
// With tangents, each value's derivative in a direction goes along.
#pragma once

#include "structures/eisner.h"

namespace partwise::eisner {

// Log of the sum of exp(values) over the derivations of each span; -infinity where there is none.
template <bool kTangent>
struct LogSpans {
    double* chart;
    const double* arcs;
    double* chart_d = nullptr;       // tangents of chart
    const double* arcs_d = nullptr;  // the direction
    double value = -kInfinity;

    struct Sum {
        double value;
        double d;
    };

    Sum log_sum(const Pairs& p) const {
        const double* __restrict a = chart + p.a;
        const double* __restrict b = chart + p.b;
        const double high = best_pair(a, b, p.count);
        if (high == -kInfinity) return {-kInfinity, 0.0};
        double sum = 0;
        double moment = 0;
        if constexpr (kTangent) {
            const double* __restrict a_d = chart_d + p.a;
            const double* __restrict b_d = chart_d + p.b;
#pragma omp simd reduction(+ : sum, moment)
            for (Index k = 0; k < p.count; ++k) {
                const double e = fast_exp(a[k] + b[k] - high);
                sum += e;
                moment += e * (a_d[k] + b_d[k]);
            }
        } else {
            if (p.count == 1) return {high, 0.0};
#pragma omp simd reduction(+ : sum)
            for (Index k = 0; k < p.count; ++k) sum += fast_exp(a[k] + b[k] - high);
        }
        return {high + std::log(sum), moment / sum};
    }

    void set(Index out, double x, double x_d) {
        chart[out] = x;
        if constexpr (kTangent) chart_d[out] = x_d;
    }
    double arc_d(Index arc) const { return kTangent ? arcs_d[arc] : 0.0; }

    void unit(Index out, Index out2) {
        set(out, 0.0, 0.0);
        set(out2, 0.0, 0.0);
    }
    void sum(Index out, Index out2, const Pairs& p) {
        const Sum x = log_sum(p);
        set(out, x.value, x.d);
        set(out2, x.value, x.d);
    }
    void link(Index out, Index arc, Index out2, Index arc2, const Pairs& p) {
        const Sum x = log_sum(p);
        set(out, x.value + arcs[arc], x.d + arc_d(arc));
        set(out2, x.value + arcs[arc2], x.d + arc_d(arc2));
    }
    void root_link(Index out, Index arc, const Pairs& p) {
        const Sum x = log_sum(p);
        set(out, x.value + arcs[arc], x.d + arc_d(arc));
    }
    void attach(Index out, Index in, Index arc) {
        set(out, chart[in] + arcs[arc], kTangent ? chart_d[in] + arc_d(arc) : 0.0);
    }
    void top(const Pairs& p) { value = log_sum(p).value; }
};

// The probability of each span, from the top down: a span hands its own to the pairs that it is made of in proportion
// to their weights. Weights are normalised span by span, so that rounding in large sums leaks no probability.
//   H = sum over spans of P(span) * entropy of its choice: every term is positive, nothing cancels.
// mass holds probabilities in the chart's layout and must start as zeros; marginals likewise.
template <bool kTangent>
struct SpanMasses {
    const double* chart;
    double* mass;
    double* marginals;
    double* scratch;  // n + 1 values
    bool want_entropy = false;
    double entropy = 0;
    const double* chart_d = nullptr;
    double* mass_d = nullptr;
    double* marginals_d = nullptr;

    void spread(const Pairs& p, double total, double total_d) {
        if (total == 0.0) return;
        const double* __restrict a = chart + p.a;
        const double* __restrict b = chart + p.b;
        double* __restrict mass_a = mass + p.a;
        double* __restrict mass_b = mass + p.b;
        double* __restrict e = scratch;
        if (!kTangent && p.count == 1) {
            mass_a[0] += total;
            mass_b[0] += total;
            return;
        }
        const double high = best_pair(a, b, p.count);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index k = 0; k < p.count; ++k) {
            e[k] = fast_exp(a[k] + b[k] - high);
            sum += e[k];
        }
        const double scale = total / sum;
        if constexpr (kTangent) {
            // p_k = total e_k / sum; its tangent is p_k (total' / total + x_k' - mean of x').
            const double* __restrict a_d = chart_d + p.a;
            const double* __restrict b_d = chart_d + p.b;
            double* __restrict mass_a_d = mass_d + p.a;
            double* __restrict mass_b_d = mass_d + p.b;
            double mean = 0;
#pragma omp simd reduction(+ : mean)
            for (Index k = 0; k < p.count; ++k) mean += e[k] * (a_d[k] + b_d[k]);
            mean /= sum;
            for (Index k = 0; k < p.count; ++k) {
                const double x_d = e[k] / sum * (total_d + total * (a_d[k] + b_d[k] - mean));
                mass_a_d[k] += x_d;
                mass_b_d[k] += x_d;
            }
        }
        for (Index k = 0; k < p.count; ++k) mass_a[k] += scale * e[k];
        for (Index k = 0; k < p.count; ++k) mass_b[k] += scale * e[k];
        if (want_entropy) {
            double moment = 0;
#pragma omp simd reduction(+ : moment)
            for (Index k = 0; k < p.count; ++k) moment += e[k] > 0.0 ? e[k] * (a[k] + b[k] - high) : 0.0;
            entropy += total * std::log(sum) - scale * moment;
        }
    }
    double d(Index at) const { return kTangent ? mass_d[at] : 0.0; }
    void arrive(Index arc, double x, double x_d) {
        marginals[arc] = x;
        if constexpr (kTangent) marginals_d[arc] = x_d;
    }

    void sum(Index out, Index out2, const Pairs& p) {
        const bool twice = out != out2;
        spread(p, mass[out] + (twice ? mass[out2] : 0.0), d(out) + (twice ? d(out2) : 0.0));
    }
    void link(Index out, Index arc, Index out2, Index arc2, const Pairs& p) {
        arrive(arc, mass[out], d(out));
        arrive(arc2, mass[out2], d(out2));
        spread(p, mass[out] + mass[out2], d(out) + d(out2));
    }
    void root_link(Index out, Index arc, const Pairs& p) {
        arrive(arc, mass[out], d(out));
        spread(p, mass[out], d(out));
    }
    void attach(Index out, Index in, Index arc) {
        arrive(arc, mass[out], d(out));
        mass[in] += mass[out];
        if constexpr (kTangent) mass_d[in] += mass_d[out];
    }
    void top(const Pairs& p) { spread(p, 1.0, 0.0); }
};

}  // namespace partwise::eisner
