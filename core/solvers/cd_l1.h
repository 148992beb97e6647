// Coordinate descent for smooth losses under l1 |w|_1 + l2/2 |w|^2, on the columns of a working set of weights, for
// structures whose labellings are single slots.
//
// With E_ia = exp((theta_ia + kappa c_ia) / tau) up to a factor per example, Z_i = sum_a E_ia, and a weight whose
// column has the value v at slot a of example i, a step d of that weight changes the losses by
//   sum_i omega_i tau log(1 + sum_a E_ia (exp(v d / tau) - 1) / Z_i) - d sum_ia omega_i v g_ia.
// The step is Newton's step on this change plus the penalty, halved until the objective falls enough.
#pragma once

#include "solvers/objective.h"

namespace partwise {

// Line searches: the share of the predicted decrease that a step must reach, and the most halvings of a step.
constexpr double kL1Sufficient = 0.01;
constexpr int kL1Halvings = 40;
// Added to a coordinate's curvature, so that its step is finite even if it has no curvature.
constexpr double kL1Curvature = 1e-12;
// The most that a step may change the logarithm of the ratio of two probabilities.
constexpr double kL1Longest = 20.0;

// |w + d| - |w|, without rounding if the sign stays: near the optimum it is far smaller than the last digit of |w|.
inline double growth_of_abs(double w, double d) {
    if (w > 0.0 && w + d >= 0.0) return d;
    if (w < 0.0 && w + d <= 0.0) return -d;
    return std::abs(w + d) - std::abs(w);
}

// The distance of 0 from the subdifferential of f + l1 |.| at w, where f has this gradient.
inline double l1_violation(double w, double gradient, double l1) {
    if (w > 0) return std::abs(gradient + l1);
    if (w < 0) return std::abs(gradient - l1);
    return std::max(0.0, std::abs(gradient) - l1);
}

// The step from w to the minimum of gradient d + curvature d^2 / 2 + l1 |w + d|.
inline double l1_newton_step(double w, double gradient, double curvature, double l1) {
    if (gradient + l1 <= curvature * w) return -(gradient + l1) / curvature;
    if (gradient - l1 >= curvature * w) return -(gradient - l1) / curvature;
    return -w;
}

// The columns of selected weights: the slots where each weight's feature is not 0, sorted by example.
class Columns {
   public:
    struct Entry {
        std::int32_t example;
        std::int32_t slot;  // within the example
        double value;
    };
    // A column's entry, stored in the row of its example.
    struct Cell {
        std::int32_t column;
        std::int32_t slot;
        double value;
    };

    // selected: ascending, without repetition. rows: store the entries by example too, if cd_l1_model gains by that.
    // The objective must outlive the columns.
    Columns(const Objective& objective, std::span<const Index> selected, bool rows, Interrupt& interrupt);

    const Objective& objective() const { return objective_; }
    Index size() const { return len(ptr_.size()) - 1; }
    Index num_entries() const { return len(entries_.size()); }
    std::span<const Entry> column(Index k) const { return std::span(entries_).subspan(ptr_[k], ptr_[k + 1] - ptr_[k]); }
    // sum over the column of omega v g: the negative gradient's part that comes from the gold labellings.
    double gold(Index k) const { return gold_[k]; }
    double largest(Index k) const { return largest_[k]; }

    // Whether entries are stored by example too: if columns are few, and so are the pairs of entries in one example.
    bool by_row() const { return !row_ptr_.empty(); }
    std::span<const Cell> row(Index i) const {
        return std::span(cells_).subspan(row_ptr_[i], row_ptr_[i + 1] - row_ptr_[i]);
    }
    // The number of pairs of entries in the same example, pairs of an entry with itself included.
    Index num_pairs() const { return num_pairs_; }

   private:
    // number[weight]: the weight's index among the selected ones, -1 for other weights.
    void copy(const ColumnAccess& access, const std::vector<std::int32_t>& number, Interrupt& interrupt);
    void find(const std::vector<std::int32_t>& number, Interrupt& interrupt);
    void make_rows();

    const Objective& objective_;
    std::vector<Index> ptr_;
    std::vector<Entry> entries_;
    std::vector<double> gold_;
    std::vector<double> largest_;
    std::vector<Index> row_ptr_;  // empty if entries are not stored by example
    std::vector<Cell> cells_;
    Index num_pairs_ = 0;
};

struct CdReport {
    Index sweeps = 0;
    Index steps = 0;       // coordinates that changed
    double violation = 0;  // the largest distance of 0 from a coordinate's subdifferential in the last sweep
};

struct CdOptions {
    double l1 = 0;
    double l2 = 0;
    Index max_sweeps = 0;
    double tol = 0;          // stop when the violation is below this
    std::uint64_t seed = 0;  // seed of the random order of visits
};

// The arrays that the sweeps update in place. The columns are only read.
struct CdState {
    const Columns& columns;
    double* weights;   // a value per column
    double* unscaled;  // E, slots of all examples concatenated
    double* sums;      // Z, a value per example
};

CdReport cd_l1(const CdState& state, const CdOptions& options, Interrupt& interrupt);

// One Newton step for the weights of all columns together, found by sweeps on the quadratic model at w. Reports one
// step, or 0 if the objective does not fall. Weights are updated, Z becomes 1, and E becomes probabilities: those at w
// if no step was made, else those that the model predicts after the step; `entropies` is set in the latter case only.
CdReport cd_l1_model(const CdState& state, double* entropies, const CdOptions& options, Interrupt& interrupt);

}  // namespace partwise
