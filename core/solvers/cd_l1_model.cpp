// A Newton step for all weights of a working set at once: coordinate descent on the quadratic model, then a line search.
//
// With p_ia the probabilities at w, D the step, z_ia = sum_k v_k,ia D_k and m_i = sum_a p_ia z_ia, the model is
//   G'D + 1/2 sum_i omega_i / tau (sum_a p_ia z_ia^2 - m_i^2) + l2/2 |D|^2 + l1 (|w + D|_1 - |w|_1),
// whose derivative in D_k is G_k + l2 D_k + sum over the column of omega_i / tau p_ia v (z_ia - m_i): no exponentials.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "solvers/cd_l1.h"

namespace partwise {

namespace {

constexpr double kSufficient = 0.01;  // share of the predicted decrease that a step must reach
constexpr int kMostHalvings = 40;
constexpr double kLeastCurvature = 1e-12;
// The most that a step may change the logarithm of a probability's ratio to another.
constexpr double kLongest = 20.0;

class Model {
   public:
    Model(const CdState& state, const CdOptions& options)
        : objective_(state.columns.objective()), columns_(state.columns), options_(options), state_(state) {
        const double inverse_tau = 1.0 / objective_.loss().temperature;
        const Index n = columns_.size();
        shares_.resize(idx(columns_.num_entries()));
        gradient_.resize(idx(n));
        curvature_.resize(idx(n));
        step_.assign(idx(n), 0.0);
        scores_.assign(idx(objective_.total_slots()), 0.0);
        means_.assign(idx(objective_.num_examples()), 0.0);
        for (Index i = 0; i < objective_.num_examples(); ++i) normalise(i);
        std::size_t at = 0;
        for (Index k = 0; k < n; ++k) {
            double gradient = options_.l2 * state.weights[k] - columns_.gold(k);
            double curvature = options_.l2 + kLeastCurvature;
            const auto column = columns_.column(k);
            for (std::size_t j = 0; j < column.size();) {
                const Index i = column[j].example;
                double mean = 0;
                double square = 0;
                for (; j < column.size() && column[j].example == i; ++j) {
                    const double share = column[j].value * probability(column[j]);
                    shares_[at++] = share;
                    mean += share;
                    square += column[j].value * share;
                }
                gradient += objective_.weight(i) * mean;
                curvature += objective_.weight(i) * inverse_tau * std::max(0.0, square - mean * mean);
            }
            gradient_[idx(k)] = gradient;
            curvature_[idx(k)] = curvature;
        }
    }

    // One coordinate of the step; returns how far 0 was from the model's subdifferential.
    double visit(Index k) {
        const auto column = columns_.column(k);
        const double* shares = shares_.data() + (column.data() - columns_.column(0).data());
        const double inverse_tau = 1.0 / objective_.loss().temperature;
        double& d = step_[idx(k)];
        double sum = 0;
        for (std::size_t j = 0; j < column.size(); ++j) {
            const Index i = column[j].example;
            sum += objective_.weight(i) * shares[j] * (score(column[j]) - means_[idx(i)]);
        }
        const double gradient = gradient_[idx(k)] + options_.l2 * d + inverse_tau * sum;
        const double curvature = curvature_[idx(k)];
        const double w = state_.weights[k] + d;
        const double l1 = options_.l1;
        const double violation = w > 0   ? std::abs(gradient + l1)
                                 : w < 0 ? std::abs(gradient - l1)
                                         : std::max(0.0, std::abs(gradient) - l1);
        if (violation == 0.0) return 0.0;
        double change = -w;
        if (gradient + l1 <= curvature * w) {
            change = -(gradient + l1) / curvature;
        } else if (gradient - l1 >= curvature * w) {
            change = -(gradient - l1) / curvature;
        }
        // Where there is hardly any curvature the model's step is far too long.
        const double longest =
            kLongest * objective_.loss().temperature / std::max(columns_.largest(k), kLeastCurvature);
        const double bounded = std::clamp(d + change, -longest, longest) - d;
        if (bounded == 0.0) return violation;
        d = change == -w && bounded == change ? -state_.weights[k] : d + bounded;
        change = bounded;
        for (std::size_t j = 0; j < column.size(); ++j) {
            score(column[j]) += column[j].value * change;
            means_[idx(column[j].example)] += shares[j] * change;
        }
        return violation;
    }

    // Moves along the step as far as the objective falls enough; whether it moved.
    bool search() {
        double predicted = 0;
        for (Index k = 0; k < columns_.size(); ++k) {
            predicted += gradient_[idx(k)] * step_[idx(k)] + options_.l1 * growth(k, 1.0);
        }
        if (!(predicted < 0.0)) return false;
        // A slot whose probability has become 0 in double precision must stay negligible.
        double farthest = 0;
        for (const double z : scores_) farthest = std::max(farthest, std::abs(z));
        const double reach = farthest / objective_.loss().temperature;
        double lambda = reach > kLongest ? kLongest / reach : 1.0;
        for (int halvings = 0; halvings < kMostHalvings; ++halvings, lambda *= 0.5) {
            if (change(lambda) <= kSufficient * lambda * predicted + 1e-14 * std::abs(predicted)) {
                move(lambda);
                return true;
            }
        }
        return false;
    }

   private:
    void normalise(Index i) {
        double* row = state_.unscaled + objective_.offset(i);
        const double scale = 1.0 / state_.sums[i];
        for (Index a = 0; a < objective_.num_slots(i); ++a) row[a] *= scale;
        state_.sums[i] = 1.0;
    }
    double probability(const Columns::Entry& e) const { return state_.unscaled[objective_.offset(e.example) + e.slot]; }
    double& score(const Columns::Entry& e) { return scores_[idx(objective_.offset(e.example) + e.slot)]; }

    // |w_k + lambda D_k| - |w_k|, without rounding where the sign stays.
    double growth(Index k, double lambda) const {
        const double w = state_.weights[k];
        const double d = lambda * step_[idx(k)];
        if (w > 0.0 && w + d >= 0.0) return d;
        if (w < 0.0 && w + d <= 0.0) return -d;
        return std::abs(w + d) - std::abs(w);
    }

    // log of the sum over slots of p exp(lambda z / tau)
    double log_sum(Index i, double rate) const {
        const Index begin = objective_.offset(i);
        const Index n = objective_.num_slots(i);
        double most = 0;
        for (Index a = 0; a < n; ++a) most = std::max(most, rate * scores_[idx(begin + a)]);
        double sum = 0;
        for (Index a = 0; a < n; ++a) {
            const double p = state_.unscaled[begin + a];
            if (p > 0.0) sum += p * std::exp(rate * scores_[idx(begin + a)] - most);
        }
        return most + std::log(sum);
    }

    // The objective's change, step lambda.
    double change(double lambda) const {
        const double tau = objective_.loss().temperature;
        double sum = 0;
        for (Index i = 0; i < objective_.num_examples(); ++i) {
            if (objective_.weight(i) != 0.0) sum += objective_.weight(i) * tau * log_sum(i, lambda / tau);
        }
        for (Index k = 0; k < columns_.size(); ++k) {
            const double d = lambda * step_[idx(k)];
            sum += options_.l2 * d * (state_.weights[k] + 0.5 * d) + options_.l1 * growth(k, lambda) -
                   d * columns_.gold(k);
        }
        return sum;
    }

    void move(double lambda) {
        for (Index k = 0; k < columns_.size(); ++k) {
            double& w = state_.weights[k];
            w = lambda == 1.0 && step_[idx(k)] == -w ? 0.0 : w + lambda * step_[idx(k)];
        }
    }

    const Objective& objective_;
    const Columns& columns_;
    const CdOptions& options_;
    const CdState& state_;
    std::vector<double> shares_;     // v p, per entry of the columns
    std::vector<double> gradient_;   // G
    std::vector<double> curvature_;  // the model's diagonal
    std::vector<double> step_;       // D
    std::vector<double> scores_;     // z
    std::vector<double> means_;      // m
};

}  // namespace

CdReport cd_l1_model(const CdState& state, const CdOptions& options, Interrupt& interrupt) {
    CdReport report;
    if (state.columns.num_entries() == 0) return report;
    Model model(state, options);
    std::vector<Index> order(idx(state.columns.size()));
    std::iota(order.begin(), order.end(), Index{0});
    std::mt19937_64 rng(options.seed);
    for (; report.sweeps < options.max_sweeps; ++report.sweeps) {
        std::shuffle(order.begin(), order.end(), rng);
        report.violation = 0;
        for (const Index k : order) {
            interrupt.check();
            report.violation = std::max(report.violation, model.visit(k));
        }
        if (report.violation <= options.tol) break;
    }
    report.steps = model.search() ? 1 : 0;
    return report;
}

}  // namespace partwise
