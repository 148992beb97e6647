// The functions of one variable that the methods of scaling.h minimise (see the table there), and Newton's method for
// their minima. Numbers of equations and sections are those of Huang et al. 2010.
#pragma once

#include "solvers/scaling.h"

namespace partwise {

// No step multiplies a potential by more than exp(50): probabilities that have underflowed stay negligible.
constexpr double kMostExponent = 50.0;

// The value and derivatives of a function of one variable at a point.
struct Jet {
    double value;
    double first;
    double second;
};

// B of GIS and SCGIS: expectation (exp(s F) - 1) / F, with F = steepness.
inline Jet exponential(double expectation, double steepness, double s) {
    const double growth = expectation * fast_exp(s * steepness);
    return {expectation * fast_expm1(s * steepness) / steepness, growth, growth * steepness};
}

// Its derivatives without its value, which saves one exponential.
inline Jet exponential_slopes(double expectation, double steepness, double s) {
    const double growth = expectation * fast_exp(s * steepness);
    return {0.0, growth, growth * steepness};
}

// B of (39): M log(1 - q + q exp(sF)), where q = E / (F M) is a mean of probabilities. It is 0 for a column without
// cells, and for one whose examples have weight zero.
inline Jet logarithmic(double expectation, double steepness, double mass, double s) {
    if (mass == 0.0) return {0.0, 0.0, 0.0};
    const double q = std::min(expectation / (steepness * mass), 1.0);
    const double x = s * steepness;
    // Divide by exp(x) where that would be large.
    const double up = q * (x > 0.0 ? 1.0 : fast_exp(x));
    const double sum = up + (1.0 - q) * (x > 0.0 ? fast_exp(-x) : 1.0);
    const double share = sum > 0.0 ? up / sum : q;
    const double value = x > 1.0 ? x + std::log(sum) : fast_log1p(q * fast_expm1(x));
    return {mass * value, mass * steepness * share, mass * steepness * steepness * share * (1.0 - share)};
}

// An upper bound of CD's B at s from its mean E and variance V at 0. B is a sum of log partition functions of one
// variable, whose third derivative is at most R times the second, R the feature's range. So with V = B''(0),
//   B(s) <= s E + V (exp(R|s|) - 1 - R|s|) / R^2.
inline double third_order(const Moments& at_zero, double range, double s) {
    const double x = range * std::abs(s);
    return s * at_zero.mean + at_zero.variance * (fast_expm1(x) - x) / (range * range);
}

// B of IIS: a sum of c (exp(s F) - 1) / F. With 0/1 features F is a count, and all cells with one count make one term.
struct IisTerms {
    std::vector<double> coefficients;
    std::vector<double> sums;
    std::vector<double> by_count;
    double least = kInfinity;  // the smallest F

    void collect(const ColumnView& view, const double* cell_sums, Index n, bool counts) {
        coefficients.clear();
        sums.clear();
        by_count.clear();
        const Column& c = view.column();
        for (Index k = 0; k < c.size; ++k) {
            const Index slot = c.slots ? c.slots[k] : c.slot;
            const double term = view.weight(k) * view.probability(k) * value_at(c, k);
            const double sum = cell_sums[slot * n + c.examples[k]];
            if (counts) {
                const auto count = static_cast<std::size_t>(sum);
                if (count >= by_count.size()) by_count.resize(count + 1, 0.0);
                by_count[count] += term;
            } else {
                coefficients.push_back(term);
                sums.push_back(sum);
            }
        }
        for (std::size_t count = 1; count < by_count.size(); ++count) {
            if (by_count[count] == 0.0) continue;
            coefficients.push_back(by_count[count]);
            sums.push_back(static_cast<double>(count));
        }
        least = sums.empty() ? 1.0 : *std::min_element(sums.begin(), sums.end());
    }

    Jet at(double s) const {
        double value = 0;
        double first = 0;
        double second = 0;
        const double* __restrict a = coefficients.data();
        const double* __restrict f = sums.data();
        const Index n = len(sums.size());
#pragma omp simd reduction(+ : value, first, second)
        for (Index k = 0; k < n; ++k) {
            const double growth = a[k] * fast_exp(s * f[k]);
            value += a[k] * fast_expm1(s * f[k]) / f[k];
            first += growth;
            second += growth * f[k];
        }
        return {value, first, second};
    }

    double steepest() const { return sums.empty() ? 1.0 : *std::max_element(sums.begin(), sums.end()); }
};

// A(z) = Q(z) + tau B(z / tau), where Q(z) = l2 (w z + z^2/2) - z e.
struct OneVariable {
    double l2;
    double weight;
    double empirical;
    double tau;

    double scale(double z) const { return z / tau; }
    double quadratic(double z) const { return l2 * (weight * z + 0.5 * z * z) - z * empirical; }
    Jet with(const Jet& b, double z) const {
        return {quadratic(z) + tau * b.value, l2 * (weight + z) - empirical + b.first, l2 + b.second / tau};
    }
};

// The root of A', which is increasing: Newton's method without line search, as in section 5.1. Three limits keep it
// from diverging: steps are at most `reach`, no root exceeds `ceiling`, and the signs of A' bracket the root.
template <class F>
double newton(F&& function, double reach, double ceiling, double tol, Index max_steps) {
    double z = 0;
    double low = -kInfinity;
    double high = kInfinity;
    for (Index k = 0; k < max_steps; ++k) {
        const Jet a = function(z);
        if (a.first == 0.0 || (k > 0 && std::abs(a.first) <= tol)) break;
        (a.first > 0.0 ? high : low) = z;
        const double step = a.second > 0.0 ? -a.first / a.second : (a.first > 0.0 ? -reach : reach);
        double next = std::min(z + std::clamp(step, -reach, reach), ceiling);
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (next == z || !std::isfinite(next)) break;
        z = next;
    }
    return z;
}

// A step z and the change of the objective (or a bound of it) that the step makes.
struct Trial {
    double z = 0;
    double value = 0;
};

// The first of z, beta z, beta^2 z, ... for which test(step, value) holds; no step if it fails for one of size <=
// `sure`. If the test holds for a step it holds for all later ones: after a few steps exponents are doubled and then
// bisected, so that a beta near 1 takes few tests.
template <class F>
Trial first_good(double z, double beta, double sure, F&& test) {
    constexpr double kOneByOne = 4.0;
    const auto at = [&](double k) { return z * std::pow(beta, k); };
    double bad = -1.0;
    double k = 0.0;
    Trial best{z};
    while (!test(best.z, best.value)) {
        if (!(std::abs(best.z) > sure)) return {};
        bad = k;
        k = k < kOneByOne ? k + 1.0 : 2.0 * k;
        best.z = at(k);
    }
    for (;;) {
        const double middle = std::floor(0.5 * (bad + k));
        if (!(bad < middle && middle < k)) return best;
        Trial trial{at(middle)};
        if (test(trial.z, trial.value)) {
            best = trial;
            k = middle;
        } else {
            bad = middle;
        }
    }
}

// The parallel update (Algorithm 2): all steps are computed before any weight changes. solve(begin, end, steps, report,
// worker) computes the steps of a run of the order; weight(k) is the weight of entry k of the order.
template <class Weight, class Solve>
ScalingReport step_together(std::span<const Index> order, double* weights, int n_jobs, Interrupt& interrupt,
                            Weight&& weight, Solve&& solve) {
    const Index n = len(order.size());
    std::vector<ScalingReport> reports((n + kGisRun - 1) / kGisRun);
    std::vector<double> steps(n, 0.0);
    parallel_for(len(reports.size()), n_jobs, interrupt, [&](Index run, int worker) {
        const Index begin = run * kGisRun;
        solve(begin, std::min(begin + kGisRun, n), steps.data() + begin, reports[run], worker);
    });
    ScalingReport total;
    for (const ScalingReport& report : reports) {
        total.cells += report.cells;
        total.gain += report.gain;
        total.capped += report.capped;
    }
    for (Index j = 0; j < n; ++j) {
        weights[weight(order[j])] += steps[j];
        total.updates += steps[j] != 0.0;
    }
    return total;
}

}  // namespace partwise
