#include "solvers/matching.h"

#include <array>

#include "support/vector_math.h"

namespace partwise {

namespace {

constexpr std::size_t kMemory = 8;   // the most pairs of steps and gradient changes that are kept
constexpr double kLongest = 20.0;    // the largest change of a score in one step
constexpr double kShortest = 1e-8;   // line searches end below this share of the first step
constexpr double kDecrease = 1e-4;   // the share of the predicted decrease that a step must reach
constexpr double kRounding = 1e-14;  // relative to F's parts: F may seem to grow by this in a good step

// (x - y) / (log x - log y) for positive numbers.
double logarithmic_mean(double x, double y) {
    const double ratio = x / y;
    if (std::abs(ratio - 1.0) < 1e-4) return 0.5 * (x + y);
    return (x - y) / std::log(ratio);
}

class Matching {
   public:
    Matching(const Structure& structure, Index i, const double* counts, const MatchOptions& options, Workspace& ws)
        : structure_(structure), i_(i), n_(structure.num_slots(i)), counts_(counts), options_(options), ws_(ws) {
        for (Index r = 0; r < n_; ++r) total_ += counts[r];
    }

    Index inferences() const { return inferences_; }
    double mismatch() const { return mismatch_; }
    bool matched() const { return mismatch_ <= options_.tolerance; }

    void run(double* scores) {
        Workspace::Frame frame(ws_);
        v_ = frame.take(n_);
        expected_ = frame.take(n_);
        next_ = frame.take(n_);
        next_expected_ = frame.take(n_);
        direction_ = frame.take(n_);
        for (std::size_t k = 0; k < kMemory; ++k) {
            steps_[k] = frame.take(n_);
            changes_[k] = frame.take(n_);
        }
        copy(scores, v_, n_);
        value_ = evaluate(v_, expected_);
        measure();
        if (!matched() && structure_.num_row_slots(i_) > 0) start_from_rows();
        while (!matched() && inferences_ < options_.max_inferences && descend()) measure();
        copy(v_, scores, n_);
    }

   private:
    double evaluate(const double* v, double* expected) {
        ++inferences_;
        const double log_partition = structure_.log_partition(i_, v, 1.0, expected, nullptr, ws_);
        const double fit = dot(counts_, v, n_);
        noise_ = kRounding * (std::abs(log_partition) + std::abs(fit));
        return log_partition - fit;
    }

    void measure() {
        mismatch_ = 0;
        for (Index r = 0; r < n_; ++r) mismatch_ += std::abs(expected_[r] - counts_[r]);
        mismatch_ /= std::max(total_, 1e-300);
    }

    // Tries two starts: log mu for row slots only, then also, for other slots, log of mu over the first start's result.
    // The second is the solution if p is a product over rows and untied pairs of rows that form a tree.
    void start_from_rows() {
        const Index rows = structure_.num_row_slots(i_);
        double* trial = direction_;
        for (Index r = 0; r < n_; ++r) trial[r] = r < rows && counts_[r] > 0.0 ? std::log(counts_[r]) : 0.0;
        try_start(trial);
        for (Index r = rows; r < n_; ++r) {
            if (counts_[r] > 0.0 && next_expected_[r] > 0.0) trial[r] = std::log(counts_[r] / next_expected_[r]);
        }
        try_start(trial);
        measure();
    }

    // Moves to `trial` if F is smaller there. next_expected_ receives the expected counts of `trial` in any case.
    void try_start(const double* trial) {
        const double value = evaluate(trial, next_expected_);
        if (!(value < value_)) return;
        value_ = value;
        copy(trial, v_, n_);
        copy(next_expected_, expected_, n_);
    }

    // One L-BFGS step; returns false if no step is possible.
    bool descend() {
        newton_like();
        double slope = 0;
        for (Index r = 0; r < n_; ++r) slope += (expected_[r] - counts_[r]) * direction_[r];
        if (!(slope < 0.0)) {  // not a descent direction: forget the kept steps
            if (kept_ == 0) return false;
            kept_ = 0;
            return true;
        }
        double longest = 0;
        for (Index r = 0; r < n_; ++r) longest = std::max(longest, std::abs(direction_[r]));
        const double first = std::min(1.0, kLongest / longest);
        double share = first;
        double value = 0;
        for (;; share *= 0.5) {
            if (share < kShortest * first || inferences_ >= options_.max_inferences) return false;
            for (Index r = 0; r < n_; ++r) next_[r] = v_[r] + share * direction_[r];
            value = evaluate(next_, next_expected_);
            if (value <= value_ + kDecrease * share * slope + noise_) break;
        }
        keep();
        value_ = value;
        std::swap(v_, next_);
        std::swap(expected_, next_expected_);
        return true;
    }

    // Keeps the step from v_ to next_ for later directions; the oldest one is overwritten if memory is full.
    void keep() {
        if (kept_ == kMemory) {
            std::rotate(steps_.begin(), steps_.begin() + 1, steps_.end());
            std::rotate(changes_.begin(), changes_.begin() + 1, changes_.end());
            --kept_;
        }
        double* step = steps_[kept_];
        double* change = changes_[kept_];
        for (Index r = 0; r < n_; ++r) {
            step[r] = next_[r] - v_[r];
            change[r] = next_expected_[r] - expected_[r];
        }
        if (dot(step, change, n_) > 1e-14 * total_) ++kept_;
    }

    // direction = -H grad F, by the two-loop recursion of L-BFGS.
    void newton_like() {
        std::array<double, kMemory> alpha{};
        for (Index r = 0; r < n_; ++r) direction_[r] = expected_[r] - counts_[r];
        for (std::size_t k = kept_; k-- > 0;) {
            alpha[k] = dot(steps_[k], direction_, n_) / dot(steps_[k], changes_[k], n_);
            axpy(-alpha[k], changes_[k], direction_, n_);
        }
        for (Index r = 0; r < n_; ++r) {
            const bool used = counts_[r] > 0.0 && expected_[r] > 0.0;
            direction_[r] = used ? direction_[r] / logarithmic_mean(expected_[r], counts_[r]) : 0.0;
        }
        for (std::size_t k = 0; k < kept_; ++k) {
            const double beta = dot(changes_[k], direction_, n_) / dot(steps_[k], changes_[k], n_);
            axpy(alpha[k] - beta, steps_[k], direction_, n_);
        }
        scale(-1.0, direction_, n_);
    }

    const Structure& structure_;
    Index i_;
    Index n_;
    const double* counts_;
    const MatchOptions& options_;
    Workspace& ws_;
    double total_ = 0;
    double value_ = 0;
    double noise_ = 0;
    double mismatch_ = 0;
    Index inferences_ = 0;
    double* v_ = nullptr;
    double* expected_ = nullptr;
    double* next_ = nullptr;
    double* next_expected_ = nullptr;
    double* direction_ = nullptr;
    std::size_t kept_ = 0;
    std::array<double*, kMemory> steps_{};
    std::array<double*, kMemory> changes_{};
};

}  // namespace

MatchReport match_counts(const Objective& objective, const double* counts, double* scores, const MatchOptions& options,
                         int n_jobs, Interrupt& interrupt) {
    const Index n = objective.num_examples();
    std::vector<MatchReport> found(n);
    parallel_with_scratch(n, objective.jobs(n_jobs), interrupt, [&](Index i, Workspace& ws) {
        if (objective.weight(i) == 0.0) return;
        Matching matching(objective.structure(), i, counts + objective.offset(i), options, ws);
        matching.run(scores + objective.offset(i));
        found[i] = {matching.inferences(), matching.matched() ? 0 : 1, matching.mismatch()};
    });
    MatchReport total;
    for (const MatchReport& each : found) {
        total.inferences += each.inferences;
        total.unmatched += each.unmatched;
        total.largest = std::max(total.largest, each.largest);
    }
    return total;
}

}  // namespace partwise
