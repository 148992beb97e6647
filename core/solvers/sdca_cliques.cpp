#include "solvers/sdca_cliques.h"

#include <sstream>

#include "solvers/dual_weights.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

constexpr int kMostTrials = 60;
// The least and the largest first point of a line search.
constexpr double kShortest = 1e-3;
constexpr double kLongest = 0.9;
// A search ends if the gain that is left is at most this times line_tol times the gain made.
constexpr double kLittle = 0.1;

class Lines {
   public:
    Lines(const SdcaLineState& state, const SdcaLineOptions& options)
        : objective_(state.objective),
          options_(options),
          state_(state),
          starts_(clique_starts(objective_.structure())) {}

    SdcaLineReport report;

    void visit(Index i) {
        const double omega = objective_.weight(i);
        ++report.visits;
        const CliqueView& view = objective_.structure().cliques();
        const FeatureMap& features = objective_.features();
        const double tau = objective_.loss().temperature;
        const Index n = objective_.num_slots(i);
        const Index size = starts_[i + 1] - starts_[i];
        double* __restrict m = state_.cliques + starts_[i];
        double* __restrict counts = state_.counts + objective_.offset(i);
        Workspace::Frame frame(ws_);
        double* __restrict target = frame.take(n);  // theta + kappa c
        double* __restrict slots = frame.take(n);   // expected slot counts of q, then of d
        double* __restrict d = frame.take(size);
        features.scores(i, state_.weights, target);
        objective_.add_cost(i, objective_.loss().cost_scale, target);
        const double value = view.clique_marginals(i, target, tau, d, ws_);
        view.slots_from_cliques(i, d, slots);
        const double entropy_of_q = value - dot(target, slots, n);  // entropy of q times tau
        for (Index k = 0; k < size; ++k) d[k] -= m[k];
        for (Index r = 0; r < n; ++r) slots[r] -= counts[r];
        Line line;
        line.tau = tau;
        line.linear = dot(target, slots, n);
        line.bend = omega / options_.l2 * features.transpose_norm2(i, slots);
        if (!std::isfinite(line.linear + line.bend)) not_finite(i, line.bend);
        state_.gaps[i] = omega * std::max(0.0, entropy_of_q - tau * state_.entropies[i] + line.linear);

        const auto [step, entropy] = search(i, line, m, d, state_.steps[i]);
        if (step == 0.0) return;
        const DualWeights weights{options_.l1, options_.l2, state_.weights, state_.plane};
        const Added added = weights.move(features, i, slots, -step * omega);
        const double bend = omega / options_.l2 * added.norm2;
        report.dual_gain += omega * (tau * (entropy - state_.entropies[i]) + step * (line.linear - 0.5 * step * bend));
        state_.entropies[i] = entropy;
        state_.steps[i] = step;
        axpy(step, d, m, size);
        axpy(step, slots, counts, n);
    }

   private:
    struct Line {  // f'(g) = tau H' + linear - g bend
        double tau = 0;
        double linear = 0;
        double bend = 0;
    };
    struct Found {
        double step;
        double entropy;
    };

    // Maximises f on the line, starting from `step`. Near the ends f can bend like a logarithm, so a short Newton step
    // does not prove that the maximum is near: a step is the last only if it is short compared with the distance to
    // either end (then no marginal changes much), or if at most a little gain can be left. The entropy after the last
    // step is that of the second-order expansion.
    Found search(Index i, const Line& line, const double* m, const double* d, double step) {
        double low = 0;
        double high = 1;
        step = std::clamp(step, kShortest, kLongest);
        for (int trial = 1;; ++trial) {
            ++report.trials;
            const Along entropy = objective_.structure().cliques().entropy_along(i, m, d, step, ws_);
            const double slope = line.tau * entropy.slope + line.linear - step * line.bend;
            const double curvature = line.tau * entropy.curvature - line.bend;
            (slope > 0.0 ? low : high) = step;
            double move = curvature < 0.0 ? -slope / curvature : 0.0;
            const double gain =
                line.tau * (entropy.value - state_.entropies[i]) + step * (line.linear - 0.5 * step * line.bend);
            const double left = std::abs(slope) * (slope > 0.0 ? high - step : step - low);  // f is concave
            const bool near = std::abs(move) <= options_.line_tol * std::min(step, 1.0 - step);
            if (near || left <= kLittle * options_.line_tol * gain || trial == kMostTrials) {
                move = std::clamp(step + move, low, high) - step;
                return {step + move, entropy.value + move * (entropy.slope + 0.5 * move * entropy.curvature)};
            }
            step += move;
            if (!(step > low && step < high)) step = 0.5 * (low + high);
        }
    }

    [[noreturn]] void not_finite(Index i, double bend) const {
        std::ostringstream out;
        out << "sdca: the dual along the step of example " << i << " is not finite in double precision: its sample "
            << "weight is " << objective_.weight(i) << ", l2 " << options_.l2 << ", the squared step " << bend;
        throw NumberError(out.str());
    }

    const Objective& objective_;
    SdcaLineOptions options_;
    const SdcaLineState& state_;
    std::vector<Index> starts_;  // where each example's marginals begin in `cliques`
    Workspace ws_;
};

}  // namespace

SdcaLineReport sdca_line_epoch(const SdcaLineState& state, std::span<const Index> order, const SdcaLineOptions& options,
                               Interrupt& interrupt) {
    Lines lines(state, options);
    for_each_visit(state.objective, order, interrupt, [&](Index i) { lines.visit(i); });
    return lines.report;
}

}  // namespace partwise
