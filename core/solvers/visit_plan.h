// Which weights to visit when not all are worth it. Each has a number of rounds to wait between two visits; it doubles
// when a visit gained little for its cost, and halves when it did not. Little: below a share of what the visits of the
// same round gained on average. No wait is longer than `kLongest` rounds: the order is essentially cyclic, and methods
// that converge in cyclic order do so in this one.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "support/types.h"

namespace partwise {

class VisitPlan {
   public:
    // A number per column: `wait` (at the start 1), rounds from one visit to the next, and `rest` (at the start 0),
    // rounds left until the next visit. Somebody else stores them.
    VisitPlan(Index* wait, Index* rest, Index size) : wait_(wait), rest_(rest), size_(size) {
        for (Index k = 0; k < size; ++k) {
            if (wait[k] < 1 || wait[k] > kLongest || rest[k] < 0 || rest[k] >= kLongest)
                throw InputError("column ", k, ": not a plan of visits");
        }
    }

    Index size() const { return size_; }

    // One round. visit(k) visits a column and returns its gain; cost(k) says what that cost.
    template <class Visit, class Cost>
    void round(Visit&& visit, Cost&& cost) {
        visited_.clear();
        double all_gains = 0;
        double all_costs = 0;
        for (Index k = 0; k < size_; ++k) {
            if (rest_[k] > 0) {
                --rest_[k];
                continue;
            }
            const double gain = visit(k);
            visited_.push_back({k, gain});
            all_gains += gain;
            all_costs += cost(k);
        }
        for (const auto& [k, gain] : visited_) {
            const bool little = gain * all_costs < kLittle * all_gains * cost(k);
            wait_[k] = little ? std::min(2 * wait_[k], kLongest) : std::max(wait_[k] / 2, Index{1});
            rest_[k] = wait_[k] - 1;
        }
    }

   private:
    static constexpr double kLittle = 0.5;
    static constexpr Index kLongest = 64;

    Index* wait_;
    Index* rest_;
    Index size_;
    std::vector<std::pair<Index, double>> visited_;
};

}  // namespace partwise
