// Which weights to visit in a round. Each weight waits a number of rounds between visits: the number doubles if a visit
// gained little for its cost, and halves otherwise. "Little" is less than a share (kLittle) of the round's average gain
// per cost. No wait exceeds `kLongest` rounds, so every weight is visited regularly (an essentially cyclic order), and
// methods that converge for cyclic orders converge.
#pragma once

#include <utility>

#include "support/types.h"

namespace partwise {

class VisitPlan {
   public:
    // Arrays of the caller, one number per column. wait: rounds between visits, initially 1; rest: rounds left until
    // the next visit, initially 0.
    VisitPlan(Index* wait, Index* rest, Index size) : wait_(wait), rest_(rest), size_(size) {
        for (Index k = 0; k < size; ++k) {
            if (wait[k] < 1 || wait[k] > kLongest || rest[k] < 0 || rest[k] >= kLongest)
                throw InputError("column ", k, ": not a plan of visits");
        }
    }

    Index size() const { return size_; }

    // One round: visit(k) visits a column and returns its gain; cost(k) is the cost of that visit.
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
