// A Newton step for all weights of a working set at once: coordinate descent on the quadratic model, then line search.
//
// With p_ia the probabilities at w, D the step, z_ia = sum_k v_k,ia D_k and m_i = sum_a p_ia z_ia, the model is
//   G'D + 1/2 sum_i omega_i / tau (sum_a p_ia z_ia^2 - m_i^2) + l2/2 |D|^2 + l1 (|w + D|_1 - |w|_1),
// whose derivative in D_k is G_k + l2 D_k + sum over the column of omega_i / tau p_ia v (z_ia - m_i): no exponentials.
//
// If columns are few and examples have few entries in them, the matrix H of the quadratic term is computed once,
//   H_kl = sum_i omega_i / tau sum over entries e of k, f of l in example i of p_e v_e v_f ([slot_e = slot_f] - p_f),
// and a visit adds a row of H to H D if it changes D_k, and costs nothing otherwise. On a9a (123 columns with 3,700
// entries each on average) H costs as much as three sweeps over columns, and a sweep with H less than a hundredth.
#include <numeric>
#include <random>

#include "solvers/cd_l1.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

// With H a sweep is nearly free: the model is then solved to this fraction of the usual tolerance.
constexpr double kSquareTol = 0.01;

// The smallest factor by which the model's prediction may scale a probability.
constexpr double kLeastFactor = 1e-10;

class Model {
   public:
    Model(const CdState& state, const CdOptions& options)
        : objective_(state.columns.objective()), columns_(state.columns), options_(options), state_(state) {
        const Index n = columns_.size();
        gradient_.resize(n);
        curvature_.assign(n, options_.l2 + kL1Curvature);
        for (Index k = 0; k < n; ++k) gradient_[k] = options_.l2 * state.weights[k] - columns_.gold(k);
        step_.assign(n, 0.0);
        scores_.assign(objective_.total_slots(), 0.0);
        means_.assign(objective_.num_examples(), 0.0);
        for (Index i = 0; i < objective_.num_examples(); ++i) normalise(i);
        columns_.by_row() ? make_square() : make_shares();
    }

    // The cost of a sweep, in entries of columns.
    Index sweep_cost() const { return square_.empty() ? columns_.num_entries() : columns_.size() * columns_.size(); }
    // The cost before the first sweep, in the same units.
    Index setup_cost() const { return square_.empty() ? 0 : columns_.num_pairs(); }
    double tol() const { return square_.empty() ? options_.tol : kSquareTol * options_.tol; }

    // Updates one coordinate of the step; returns the distance of 0 from the model's subdifferential.
    double visit(Index k) {
        double& d = step_[k];
        const double gradient = gradient_[k] + options_.l2 * d + slope(k);
        const double curvature = curvature_[k];
        const double w = state_.weights[k] + d;
        const double l1 = options_.l1;
        const double violation = l1_violation(w, gradient, l1);
        if (violation == 0.0) return 0.0;
        const double change = l1_newton_step(w, gradient, curvature, l1);
        // With hardly any curvature the model's step is far too long.
        const double longest = kL1Longest * objective_.loss().temperature / std::max(columns_.largest(k), kL1Curvature);
        const double bounded = std::clamp(d + change, -longest, longest) - d;
        if (bounded == 0.0) return violation;
        d = change == -w && bounded == change ? -state_.weights[k] : d + bounded;
        if (square_.empty()) {
            move_scores(k, bounded);
        } else {
            const double* row = square_.data() + k * columns_.size();
            for (Index l = 0; l < columns_.size(); ++l) slopes_[l] += bounded * row[l];
        }
        return violation;
    }

    // Line search along the step; moves the weights and returns true if the objective falls enough.
    bool search() {
        if (!square_.empty()) find_scores();
        double predicted = 0;
        for (Index k = 0; k < columns_.size(); ++k) predicted += gradient_[k] * step_[k] + options_.l1 * growth(k, 1.0);
        if (!(predicted < 0.0)) return false;
        // Limit the step, so that a slot whose probability is 0 in double precision stays negligible.
        double farthest = 0;
        for (const double z : scores_) farthest = std::max(farthest, std::abs(z));
        const double reach = farthest / objective_.loss().temperature;
        double lambda = reach > kL1Longest ? kL1Longest / reach : 1.0;
        for (int halvings = 0; halvings < kL1Halvings; ++halvings, lambda *= 0.5) {
            if (change(lambda) <= kL1Sufficient * lambda * predicted + 1e-14 * std::abs(predicted)) {
                move(lambda);
                lambda_ = lambda;
                return true;
            }
        }
        return false;
    }

    // After a step: replaces p by the probabilities p (1 + (z - m) / tau) that the model predicts, and computes their
    // entropies. Negative values become tiny positive ones: any distribution is a valid dual point.
    void expect(double* entropies) {
        const double rate = lambda_ / objective_.loss().temperature;
        for (Index i = 0; i < objective_.num_examples(); ++i) {
            if (objective_.weight(i) == 0.0) continue;
            double* row = state_.unscaled + objective_.offset(i);
            const double* z = scores_.data() + objective_.offset(i);
            const Index n = objective_.num_slots(i);
            double sum = 0;
            for (Index a = 0; a < n; ++a) {
                row[a] *= std::max(1.0 + rate * (z[a] - means_[i]), kLeastFactor);
                sum += row[a];
            }
            double entropy = 0;
            for (Index a = 0; a < n; ++a) {
                row[a] /= sum;
                entropy -= row[a] * fast_log(row[a]);
            }
            entropies[i] = entropy;
        }
    }

   private:
    void normalise(Index i) {
        scale(1.0 / state_.sums[i], state_.unscaled + objective_.offset(i), objective_.num_slots(i));
        state_.sums[i] = 1.0;
    }
    double probability(const Columns::Entry& e) const { return state_.unscaled[objective_.offset(e.example) + e.slot]; }
    double& score(const Columns::Entry& e) { return scores_[objective_.offset(e.example) + e.slot]; }

    const double* shares(Index k) const {
        return shares_.data() + (columns_.column(k).data() - columns_.column(0).data());
    }

    // The derivative of the model's quadratic term in D_k.
    double slope(Index k) {
        if (!square_.empty()) return slopes_[k];
        const auto column = columns_.column(k);
        const double* share = shares(k);
        double sum = 0;
        for (std::size_t j = 0; j < column.size(); ++j) {
            const Index i = column[j].example;
            sum += objective_.weight(i) * share[j] * (score(column[j]) - means_[i]);
        }
        return sum / objective_.loss().temperature;
    }

    // Updates z and m after a change of D_k.
    void move_scores(Index k, double change) {
        const auto column = columns_.column(k);
        const double* share = shares(k);
        for (std::size_t j = 0; j < column.size(); ++j) {
            score(column[j]) += column[j].value * change;
            means_[column[j].example] += share[j] * change;
        }
    }

    // Computes G, the model's diagonal and v p, column by column.
    void make_shares() {
        const double inverse_tau = 1.0 / objective_.loss().temperature;
        shares_.resize(columns_.num_entries());
        std::size_t at = 0;
        for (Index k = 0; k < columns_.size(); ++k) {
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
                gradient_[k] += objective_.weight(i) * mean;
                curvature_[k] += objective_.weight(i) * inverse_tau * std::max(0.0, square - mean * mean);
            }
        }
    }

    // Computes G and H, row by row.
    void make_square() {
        const Index n = columns_.size();
        square_.assign(n * n, 0.0);
        slopes_.assign(n, 0.0);
        for (Index i = 0; i < objective_.num_examples(); ++i) {
            const double omega = objective_.weight(i);
            const double scale = omega / objective_.loss().temperature;
            const double* p = state_.unscaled + objective_.offset(i);
            const std::span<const Columns::Cell> own = columns_.row(i);
            for (const Columns::Cell& e : own) gradient_[e.column] += omega * e.value * p[e.slot];
            const bool one_slot = std::ranges::all_of(own, [&](const auto& c) { return c.slot == own[0].slot; });
            if (one_slot) {  // then the columns of a row are different
                for (std::size_t e = 0; e < own.size(); ++e) {
                    double* row = square_.data() + own[e].column * n;
                    const double share = scale * own[e].value * p[own[e].slot] * (1.0 - p[own[e].slot]);
                    for (std::size_t f = 0; f <= e; ++f) row[own[f].column] += share * own[f].value;
                }
                continue;
            }
            for (std::size_t e = 0; e < own.size(); ++e) {
                const Columns::Cell& one = own[e];
                double* row = square_.data() + one.column * n;
                const double share = scale * p[one.slot] * one.value;
                row[one.column] += share * one.value * (1.0 - p[one.slot]);
                for (std::size_t f = 0; f < e; ++f) {
                    const Columns::Cell& two = own[f];
                    const double both = share * two.value * ((one.slot == two.slot ? 1.0 : 0.0) - p[two.slot]);
                    row[two.column] += one.column == two.column ? 2.0 * both : both;
                }
            }
        }
        for (Index k = 0; k < n; ++k) {
            curvature_[k] += std::max(0.0, square_[k * n + k]);
            for (Index l = 0; l < k; ++l) square_[l * n + k] = square_[k * n + l];
        }
    }

    // Computes z and m of the current step, row by row.
    void find_scores() {
        for (Index i = 0; i < objective_.num_examples(); ++i) {
            double* z = scores_.data() + objective_.offset(i);
            const double* p = state_.unscaled + objective_.offset(i);
            double mean = 0;
            for (const Columns::Cell& e : columns_.row(i)) {
                const double change = e.value * step_[e.column];
                z[e.slot] += change;
                mean += p[e.slot] * change;
            }
            means_[i] = mean;
        }
    }

    double growth(Index k, double lambda) const { return growth_of_abs(state_.weights[k], lambda * step_[k]); }

    // The objective's change by the step lambda D. log(sum of p exp(lambda z / tau)) is computed as log1p(sum of p
    // expm1(...)): near the minimum the change is far smaller than the last digit of 1.
    double change(double lambda) {
        const double tau = objective_.loss().temperature;
        const double rate = lambda / tau;
        const double* p = state_.unscaled;
        growths_.resize(scores_.size());
        logs_.resize(means_.size());
        for (std::size_t a = 0; a < scores_.size(); ++a) growths_[a] = p[a] * fast_expm1(rate * scores_[a]);
        for (Index i = 0; i < objective_.num_examples(); ++i) {
            const double* own = growths_.data() + objective_.offset(i);
            double more = 0;
            for (Index a = 0; a < objective_.num_slots(i); ++a) more += own[a];
            logs_[i] = more;
        }
        for (double& value : logs_) value = fast_log1p(value);
        double sum = 0;
        for (Index i = 0; i < objective_.num_examples(); ++i) sum += objective_.weight(i) * logs_[i];
        sum *= tau;
        for (Index k = 0; k < columns_.size(); ++k) {
            const double d = lambda * step_[k];
            sum += options_.l2 * d * (state_.weights[k] + 0.5 * d) + options_.l1 * growth(k, lambda) -
                   d * columns_.gold(k);
        }
        return sum;
    }

    void move(double lambda) {
        for (Index k = 0; k < columns_.size(); ++k) {
            double& w = state_.weights[k];
            w = lambda == 1.0 && step_[k] == -w ? 0.0 : w + lambda * step_[k];
        }
    }

    const Objective& objective_;
    const Columns& columns_;
    const CdOptions& options_;
    const CdState& state_;
    std::vector<double> shares_;     // v p for each entry of the columns; empty if there is H
    std::vector<double> gradient_;   // G
    std::vector<double> curvature_;  // the model's diagonal
    std::vector<double> step_;       // D
    std::vector<double> scores_;     // z, the change of each slot's score by D
    std::vector<double> means_;      // m, the mean of z under p in each example
    std::vector<double> square_;     // H, row by row; empty if sweeps read columns instead
    std::vector<double> slopes_;     // H D
    std::vector<double> growths_;    // p (exp(lambda z / tau) - 1)
    std::vector<double> logs_;       // logarithms of 1 + the sum of an example's growths
    double lambda_ = 0;              // factor on D of the step that was made
};

}  // namespace

CdReport cd_l1_model(const CdState& state, double* entropies, const CdOptions& options, Interrupt& interrupt) {
    CdReport report;
    if (state.columns.num_entries() == 0) return report;
    Model model(state, options);
    std::vector<Index> order(state.columns.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::mt19937_64 rng(options.seed);
    // The limit on sweeps is a limit on work, in units of one sweep over the columns.
    const Index sweep = state.columns.num_entries();
    Index work = model.setup_cost();
    for (bool first = true; first || work / sweep < options.max_sweeps; first = false) {
        std::shuffle(order.begin(), order.end(), rng);
        report.violation = 0;
        for (const Index k : order) {
            interrupt.check();
            report.violation = std::max(report.violation, model.visit(k));
        }
        work += model.sweep_cost();
        if (report.violation <= model.tol()) break;
    }
    report.sweeps = (work + sweep - 1) / sweep;
    report.steps = model.search() ? 1 : 0;
    if (report.steps > 0) model.expect(entropies);
    return report;
}

}  // namespace partwise
