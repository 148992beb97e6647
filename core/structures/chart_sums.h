// Sums over a chart's derivations in log space: no spread of scores is too large and masks (-infinity) are allowed.
// With tangents, each value carries its derivative in a direction.
#pragma once

#include <type_traits>

#include "structures/chart.h"

namespace partwise::chart {

// Visitor, up: the log of the sum of exp(score) over the derivations of each cell; -infinity where there is none.
template <bool kTangent>
struct LogSums {
    double* chart;
    const double* scores;
    double* chart_d = nullptr;         // tangents of chart
    const double* scores_d = nullptr;  // the direction
    double shift = 0;                  // subtracted from the scores of all derivations: log Z = chart[root] + shift

    struct Sum {
        double value;
        double d;
    };

    template <class Edges>
    Sum log_sum(const Edges& e) const {
        const Index n = e.count();
        const auto x = edge_scores(e, chart, scores);
        const double high = best_edge(e, chart, scores);
        if (high == -kInfinity) return {-kInfinity, 0.0};
        double sum = 0;
        double moment = 0;
        if constexpr (kTangent) {
            const auto x_d = edge_scores(e, chart_d, scores_d);
#pragma omp simd reduction(+ : sum, moment)
            for (Index k = 0; k < n; ++k) {
                const double weight = fast_exp(x(k) - high);
                sum += weight;
                moment += weight * x_d(k);
            }
        } else {
            if (n == 1) return {high, 0.0};
#pragma omp simd reduction(+ : sum)
            for (Index k = 0; k < n; ++k) sum += fast_exp(x(k) - high);
        }
        return {high + std::log(sum), moment / sum};
    }

    void set(Index cell, double x, double x_d) {
        chart[cell] = x;
        if constexpr (kTangent) chart_d[cell] = x_d;
    }

    void unit(Index cell, Index twin) {
        set(cell, 0.0, 0.0);
        set(twin, 0.0, 0.0);
    }
    void score(Index cell, Index tail, Index slot) {
        set(cell, chart[tail] + scores[slot], kTangent ? chart_d[tail] + scores_d[slot] : 0.0);
    }
    template <class Edges>
    void sum(Index cell, Index twin, const Edges& e) {
        const Sum x = log_sum(e);
        set(cell, x.value, x.d);
        set(twin, x.value, x.d);
    }
    // Shifts the cells so that the best one has value 0 and tangent 0. A common shift changes no probability.
    void cut(Index first, Index count) {
        Index best = first;
        for (Index cell = first + 1; cell < first + count; ++cell) best = chart[cell] > chart[best] ? cell : best;
        const double high = chart[best];
        if (high == -kInfinity) return;
        shift += high;
        for (Index cell = first; cell < first + count; ++cell) chart[cell] -= high;
        if constexpr (kTangent) {
            const double high_d = chart_d[best];
            for (Index cell = first; cell < first + count; ++cell) chart_d[cell] -= high_d;
        }
    }
};

// Visitor, down: the probability of each cell. A cell divides its probability among its edges in proportion to their
// weights. These are normalised cell by cell, so rounding errors in large sums lose no probability.
//   H = sum over cells of P(cell) * entropy of its choice of an edge: every term is positive, nothing cancels.
// mass: probabilities of cells. They and the marginals of slots start as zeros, the root's as 1.
template <bool kTangent>
struct Masses {
    const double* chart;  // of LogSums
    const double* scores;
    double* mass;
    double* marginals;
    double* scratch;  // most_edges values
    bool want_entropy = false;
    double entropy = 0;
    const double* chart_d = nullptr;
    const double* scores_d = nullptr;
    double* mass_d = nullptr;
    double* marginals_d = nullptr;

    // Calls add(to, place) for each part of the edges: to[place(k)] belongs to edge k. Neighbouring parts get their own
    // instantiation, which vectorises.
    template <class Edges, class Add>
    static void spread(const Edges& e, double* cells, double* slots, Add&& add) {
        const auto neighbour = [](Index k) { return k; };
        const Ways ways = ways_of(e);
        add(cells + ways.a, neighbour);
        if constexpr (requires { e.b; }) add(cells + ways.b, neighbour);
        if constexpr (requires { e.step; }) {
            if (ways.slot != kNone) add(slots + ways.slot, [step = e.step](Index k) { return k * step; });
        } else if constexpr (requires { e.slot; }) {
            add(slots + ways.slot, neighbour);
        }
        if constexpr (requires { e.more; }) add(slots, e.more);
    }

    template <class Edges>
    void hand_on(const Edges& e, double total, double total_d) {
        if (total == 0.0) return;
        const Index n = e.count();
        double* __restrict weight = scratch;
        const auto x = edge_scores(e, chart, scores);
        if (!kTangent && n == 1) {
            spread(e, mass, marginals, [&](double* to, auto place) { to[place(0)] += total; });
            return;
        }
        const double high = best_edge(e, chart, scores);
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index k = 0; k < n; ++k) {
            weight[k] = fast_exp(x(k) - high);
            sum += weight[k];
        }
        const double scale = total / sum;
        if constexpr (kTangent) {
            // p_k = total w_k / sum; its tangent is p_k (total' / total + x_k' - mean of x').
            const auto x_d = edge_scores(e, chart_d, scores_d);
            double mean = 0;
#pragma omp simd reduction(+ : mean)
            for (Index k = 0; k < n; ++k) mean += weight[k] * x_d(k);
            mean /= sum;
            const auto add = [&](double* __restrict to, auto place) {
                for (Index k = 0; k < n; ++k) to[place(k)] += weight[k] / sum * (total_d + total * (x_d(k) - mean));
            };
            spread(e, mass_d, marginals_d, add);
        }
        const auto add = [&](double* __restrict to, auto place) {
            for (Index k = 0; k < n; ++k) to[place(k)] += scale * weight[k];
        };
        spread(e, mass, marginals, add);
        if (want_entropy) {
            double moment = 0;
#pragma omp simd reduction(+ : moment)
            for (Index k = 0; k < n; ++k) moment += weight[k] > 0.0 ? weight[k] * (x(k) - high) : 0.0;
            entropy += total * std::log(sum) - scale * moment;
        }
    }

    void unit(Index, Index) {}
    void score(Index cell, Index tail, Index slot) {
        mass[tail] += mass[cell];
        marginals[slot] += mass[cell];
        if constexpr (kTangent) {
            mass_d[tail] += mass_d[cell];
            marginals_d[slot] += mass_d[cell];
        }
    }
    template <class Edges>
    void sum(Index cell, Index twin, const Edges& e) {
        const auto both = [&](const double* x) { return x[cell] + (cell != twin ? x[twin] : 0.0); };
        hand_on(e, both(mass), kTangent ? both(mass_d) : 0.0);
    }
};

}  // namespace partwise::chart
