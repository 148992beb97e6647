#include "solvers/cd_l1.h"

#include <numeric>
#include <random>
#include <utility>

#include "support/vector_math.h"

namespace partwise {

namespace {

// Rows are kept for at most kMostSquare columns, if they have at most kMostPairs pairs of entries per entry.
constexpr Index kMostSquare = 1024;
constexpr Index kMostPairs = 16;

// A zero weight is left out of later sweeps if its distance to moving exceeds this share of the last violation.
constexpr double kShrink = 0.1;

using Entry = Columns::Entry;

class Descent {
   public:
    Descent(const CdState& state, const CdOptions& options)
        : objective_(state.columns.objective()),
          columns_(state.columns),
          options_(options),
          unscaled_(state.unscaled),
          sums_(state.sums) {}

    // Visits one weight. Returns the distance of 0 from its subdifferential; for a weight that is 0 and stays 0, minus
    // the distance of 0 to the subdifferential's nearer end.
    double visit(Index k, double& w, Index& steps) {
        const auto column = columns_.column(k);
        const double inverse_tau = 1.0 / objective_.loss().temperature;
        double gradient = options_.l2 * w - columns_.gold(k);
        double curvature = options_.l2 + kL1Curvature;
        read(column);
        for (std::size_t j = 0; j < examples_; ++j) {
            gradient += omegas_[j] * means_[j];
            curvature += omegas_[j] * inverse_tau * std::max(0.0, squares_[j] - means_[j] * means_[j]);
        }
        const double l1 = options_.l1;
        const double violation = l1_violation(w, gradient, l1);
        if (violation == 0.0) return w == 0.0 ? std::abs(gradient) - l1 : 0.0;
        const double d = l1_newton_step(w, gradient, curvature, l1);
        const double predicted = gradient * d + l1 * growth_of_abs(w, d);
        if (!(predicted < 0.0)) return violation;
        // With hardly any curvature Newton's step is far too long: `most` bounds the change that it would really make.
        const double reach = std::abs(d) * columns_.largest(k) * inverse_tau;
        const double most =
            predicted + d * d * ((curvature - options_.l2) * growth_of_slope(2.0 * reach) + 0.5 * options_.l2);
        if (most <= kL1Sufficient * predicted) {
            grow(d * inverse_tau, column.size());
            move(column);
            w = d == -w ? 0.0 : w + d;
            ++steps;
            return violation;
        }
        double lambda = reach > kL1Longest ? kL1Longest / reach : 1.0;
        for (int halvings = 0; halvings < kL1Halvings; ++halvings, lambda *= 0.5) {
            const double step = lambda * d;
            const double change = losses_change(column, step) - step * columns_.gold(k) +
                                  options_.l2 * step * (w + 0.5 * step) + l1 * growth_of_abs(w, step);
            // The change is a difference of sums, so the test allows for the rounding in it.
            if (change <= kL1Sufficient * lambda * predicted + 1e-14 * std::abs(predicted)) {
                move(column);
                w = lambda == 1.0 && d == -w ? 0.0 : w + step;
                ++steps;
                break;
            }
        }
        return violation;
    }

   private:
    // The third derivative of log-sum-exp along a line is at most the range of slopes times the second one, so that a
    // step d over a range r / d exceeds its tangent by at most H d^2 (e^r - 1 - r) / r^2. The factor is computed for r
    // <= 1 as a series whose tail is rounded up, and is infinite for larger r.
    static double growth_of_slope(double r) {
        return r <= 1.0 ? 0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r / 60.0)) : kInfinity;
    }

    double& e_at(const Entry& e) const { return unscaled_[objective_.offset(e.example) + e.slot]; }

    // Reads v and p of the column's entries and, for each of its examples, omega, sum v p and sum v^2 p. An example can
    // have several entries. The results are arrays, as loops over them compile to vector instructions.
    void read(std::span<const Entry> column) {
        const std::size_t n = column.size();
        for (auto* array : {&values_, &shares_, &growths_, &omegas_, &means_, &squares_}) array->resize(n);
        const double* omega = objective_.weights_unless_one();
        examples_ = 0;
        for (std::size_t j = 0; j < n; ++j) {
            const Entry& e = column[j];
            const double p = e_at(e) / sums_[e.example];
            const double mean = e.value * p;
            values_[j] = e.value;
            shares_[j] = p;
            if (j > 0 && e.example == column[j - 1].example) {
                means_[examples_ - 1] += mean;
                squares_[examples_ - 1] += e.value * mean;
                continue;
            }
            omegas_[examples_] = omega ? omega[e.example] : 1.0;
            means_[examples_] = mean;
            squares_[examples_++] = e.value * mean;
        }
    }

    // growths_ = exp(v d / tau) - 1 for every entry.
    void grow(double rate, std::size_t n) {
        for (std::size_t j = 0; j < n; ++j) growths_[j] = fast_expm1(rate * values_[j]);
    }

    // The change of the losses by this step; also fills growths_ for it.
    double losses_change(std::span<const Entry> column, double step) {
        const double tau = objective_.loss().temperature;
        const std::size_t n = column.size();
        grow(step / tau, n);
        std::vector<double>& more = squares_;  // reuses the memory of squares_
        if (examples_ == n) {
            for (std::size_t j = 0; j < n; ++j) more[j] = shares_[j] * growths_[j];
        } else {
            std::size_t at = 0;
            for (std::size_t j = 0; j < n; ++j) {
                const double own = shares_[j] * growths_[j];
                if (j > 0 && column[j].example == column[j - 1].example) {
                    more[at - 1] += own;
                } else {
                    more[at++] = own;
                }
            }
        }
        for (std::size_t j = 0; j < examples_; ++j) more[j] = omegas_[j] * fast_log1p(more[j]);
        double sum = 0;
        for (std::size_t j = 0; j < examples_; ++j) sum += more[j];
        return tau * sum;
    }

    // Updates E and Z (cd_l1.h) by the growths_ of the last call of `grow`.
    void move(std::span<const Entry> column) {
        for (std::size_t j = 0; j < column.size();) {
            const Index i = column[j].example;
            const double before = sums_[i];
            for (; j < column.size() && column[j].example == i; ++j) {
                double& at = e_at(column[j]);
                const double more = at * growths_[j];
                at += more;
                sums_[i] += more;
            }
            // A sum from which most was subtracted has few correct digits: it is summed again.
            if (!(sums_[i] > 0.1 * before && sums_[i] < 1e100)) rescale(i);
        }
    }

    void rescale(Index i) {
        double* row = unscaled_ + objective_.offset(i);
        const Index n = objective_.num_slots(i);
        double sum = 0;
        for (Index a = 0; a < n; ++a) sum += row[a];
        if (!(sum > 0.0 && sum < kInfinity)) throw InputError("coordinate descent: a step beyond double precision");
        for (Index a = 0; a < n; ++a) row[a] /= sum;
        sums_[i] = 1.0;
    }

    const Objective& objective_;
    const Columns& columns_;
    CdOptions options_;
    double* unscaled_;
    double* sums_;
    std::size_t examples_ = 0;  // number of examples of the current column, which the following arrays describe
    std::vector<double> values_, shares_, growths_, omegas_, means_, squares_;
};

}  // namespace

Columns::Columns(const Objective& objective, std::span<const Index> selected, bool rows, Interrupt& interrupt)
    : objective_(objective) {
    const std::size_t n = selected.size();
    std::vector<std::int32_t> number(objective.features().num_weights(), -1);
    for (std::size_t k = 0; k < n; ++k) number[selected[k]] = static_cast<std::int32_t>(k);
    gold_.assign(n, 0.0);
    largest_.assign(n, 0.0);
    ptr_.assign(n + 1, 0);
    if (const ColumnAccess* access = objective.features().columns()) {
        copy(*access, number, interrupt);
    } else {
        find(number, interrupt);
    }
    if (rows) make_rows();
}

void Columns::copy(const ColumnAccess& access, const std::vector<std::int32_t>& number, Interrupt& interrupt) {
    std::vector<Column> found(gold_.size(), Column{});  // size 0 for weights that are padding and have no column
    for (Index k = 0; k < access.num_columns(); ++k) {
        const Column c = access.column(k);
        if (number[c.weight] >= 0) found[number[c.weight]] = c;
    }
    // Counts of the gold labellings, to look up whether a column's cells are gold.
    std::vector<double> gold(objective_.total_slots(), 0.0);
    for (Index i = 0; i < objective_.num_examples(); ++i) {
        objective_.add_gold(i, 1.0, gold.data() + objective_.offset(i));
    }
    Index total = 0;
    for (const Column& c : found) total += c.size;
    entries_.reserve(total);
    for (std::size_t k = 0; k < found.size(); ++k) {
        interrupt.check();
        const Column& c = found[k];
        for (Index j = 0; j < c.size; ++j) {
            const Index i = c.examples[j];
            const double weight = objective_.weight(i);
            if (weight == 0.0) continue;
            const Index slot = c.slots ? Index{c.slots[j]} : c.slot;
            const double value = value_at(c, j);
            entries_.push_back({c.examples[j], static_cast<std::int32_t>(slot), value});
            gold_[k] += weight * value * gold[objective_.offset(i) + slot];
            largest_[k] = std::max(largest_[k], std::abs(value));
        }
        ptr_[k + 1] = len(entries_.size());
    }
}

void Columns::find(const std::vector<std::int32_t>& number, Interrupt& interrupt) {
    std::vector<std::pair<std::int32_t, Entry>> found;
    std::vector<double> gold;
    std::vector<Index> slots;
    PackedRows rows;
    for (Index i = 0; i < objective_.num_examples(); ++i) {
        interrupt.check();
        if (objective_.weight(i) == 0.0) continue;
        gold.assign(objective_.num_slots(i), 0.0);
        objective_.add_gold(i, 1.0, gold.data());
        slots.resize(gold.size());
        std::iota(slots.begin(), slots.end(), Index{0});
        rows.clear();
        objective_.features().slot_rows(i, slots, 0, rows);
        for (std::size_t a = 0; a < rows.size(); ++a) {
            for (std::size_t j = rows.begin(a); j < rows.ends[a]; ++j) {
                const std::int32_t k = number[rows.indices[j]];
                if (k < 0) continue;
                const double value = rows.values[j];
                found.push_back({k, {static_cast<std::int32_t>(i), static_cast<std::int32_t>(a), value}});
                gold_[k] += objective_.weight(i) * value * gold[a];
                largest_[k] = std::max(largest_[k], std::abs(value));
                ++ptr_[k + 1];
            }
        }
    }
    std::partial_sum(ptr_.begin(), ptr_.end(), ptr_.begin());
    entries_.resize(found.size());
    std::vector<Index> next(ptr_.begin(), ptr_.end() - 1);
    for (const auto& [k, entry] : found) entries_[next[k]++] = entry;
}

void Columns::make_rows() {
    if (size() > kMostSquare) return;
    std::vector<Index> ptr(objective_.num_examples() + 1, 0);
    for (const Entry& e : entries_) ++ptr[e.example + 1];
    for (const Index count : ptr) num_pairs_ += count * (count + 1) / 2;
    if (num_pairs_ > kMostPairs * num_entries()) return;
    std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
    cells_.resize(entries_.size());
    std::vector<Index> next(ptr.begin(), ptr.end() - 1);
    for (Index k = 0; k < size(); ++k) {
        for (const Entry& e : column(k)) cells_[next[e.example]++] = {static_cast<std::int32_t>(k), e.slot, e.value};
    }
    row_ptr_ = std::move(ptr);
}

CdReport cd_l1(const CdState& state, const CdOptions& options, Interrupt& interrupt) {
    Descent descent(state, options);
    std::vector<Index> order(state.columns.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::mt19937_64 rng(options.seed);
    CdReport report;
    double before = kInfinity;
    while (report.sweeps < options.max_sweeps) {
        ++report.sweeps;
        std::shuffle(order.begin(), order.end(), rng);
        report.violation = 0;
        std::size_t kept = 0;
        for (const Index k : order) {
            interrupt.check();
            const double violation = descent.visit(k, state.weights[k], report.steps);
            report.violation = std::max(report.violation, violation);
            // A zero weight farther from moving than `before` is dropped from the sweeps. The caller, which chooses the
            // columns, checks all weights again.
            if (violation >= -before) order[kept++] = k;
        }
        order.resize(kept);
        before = kShrink * report.violation;
        if (report.violation <= options.tol) break;
    }
    return report;
}

}  // namespace partwise
