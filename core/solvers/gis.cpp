
#include "solvers/scaling.h"
#include "solvers/scaling_functions.h"
#include "solvers/sum_examples.h"

namespace partwise {

std::vector<double> scaling_expectations(const Objective& objective, const double* weights, int n_jobs,
                                         Interrupt& interrupt) {
    scaling_columns(objective);
    const double tau = objective.loss().temperature;
    const double* omega = objective.weights_unless_one();
    const auto marginals = [&](Index begin, Index end, double* out, Workspace& ws) {
        const Index first = objective.offset(begin);
        Workspace::Frame frame(ws);
        double* scores = frame.take(objective.offset(end) - first);
        objective.augmented_scores_of(begin, end, weights, scores, nullptr);
        objective.structure().log_partition_of(begin, end, scores, tau, frame.take(end - begin), out,
                                               frame.take(end - begin), ws);
        for (Index i = begin; i < end && omega; ++i) {
            scale(omega[i], out + (objective.offset(i) - first), objective.num_slots(i));
        }
        return Term{};
    };
    return sum_runs(objective, objective.jobs(n_jobs), interrupt, true, marginals).u;
}

namespace {

// The steps of a run of at most kGisRun weights, in several loops over the whole run, which compile to vector
// instructions. A'(z) = l2 (w + z) - e + E exp(z F / tau) is increasing and convex, so Newton's method descends to its
// root from any point above it, such as the larger of 0 and the closed form without a penalty.
void solve_all(std::span<const Index> order, const double* weights, const GisSums& sums, const ScalingOptions& options,
               double* __restrict z, ScalingReport& report) {
    double e[kGisRun], w[kGisRun], mean[kGisRun];
    const Index n = len(order.size());
    for (Index j = 0; j < n; ++j) {
        const Index t = order[j];
        e[j] = sums.empirical[t];
        w[j] = weights[t];
        mean[j] = sums.expectations[t];
    }
    const double f = (sums.largest_sum > 0.0 ? sums.largest_sum : 1.0) / sums.temperature;
    const double reach = kMostExponent / f;
    const double l2 = options.l2;
#pragma omp simd
    for (Index j = 0; j < n; ++j) {
        const double ratio = (e[j] - l2 * w[j]) / mean[j];
        // Without a penalty: Huang et al. 2010, (25). A feature that is 0 everywhere has the mean 0.
        double at = ratio > 0.0 ? fast_log1p(ratio - 1.0) / f : -reach;
        at = l2 > 0.0 && !(at > 0.0) ? 0.0 : at;
        at = mean[j] > 0.0 ? at : (l2 > 0.0 ? (e[j] - l2 * w[j]) / l2 : 0.0);
        z[j] = at < -reach ? -reach : (at > reach ? reach : at);
    }
    for (Index k = 0; l2 > 0.0 && k < options.max_newton; ++k) {
        double off = 0;
#pragma omp simd reduction(max : off)
        for (Index j = 0; j < n; ++j) {
            const double growth = mean[j] * fast_exp(z[j] * f);
            const double slope = l2 * (w[j] + z[j]) - e[j] + growth;
            const double next = z[j] - slope / (l2 + growth * f);
            z[j] = next < -reach ? -reach : (next > reach ? reach : next);
            const double size = next == z[j] ? std::abs(slope) : 0.0;
            off = size > off ? size : off;
        }
        if (off <= options.newton_tol) break;
    }
    double gain = 0;
    Index capped = 0;
#pragma omp simd reduction(+ : gain, capped)
    for (Index j = 0; j < n; ++j) {
        const double value = l2 * (w[j] * z[j] + 0.5 * z[j] * z[j]) - z[j] * e[j] + mean[j] * fast_expm1(z[j] * f) / f;
        const bool good = value < 0.0;  // otherwise this is rounding at the optimum
        z[j] = good ? z[j] : 0.0;
        gain -= good ? value : 0.0;
        capped += std::abs(z[j]) >= reach ? 1 : 0;
    }
    report.gain += gain;
    report.capped += capped;
}

}  // namespace

ScalingReport gis_update(double* weights, std::span<const Index> order, const GisSums& sums,
                         const ScalingOptions& options, Interrupt& interrupt) {
    return step_together(
        order, weights, std::max(options.n_jobs, 1), interrupt, [](Index t) { return t; },
        [&](Index begin, Index end, double* steps, ScalingReport& report, int) {
            solve_all(order.subspan(begin, end - begin), weights, sums, options, steps, report);
        });
}

}  // namespace partwise
