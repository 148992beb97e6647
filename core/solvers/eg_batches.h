// Several batches as one pass of online exponentiated gradient sees them: examples with numbers of their own.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "solvers/eg.h"

namespace partwise {

// The states of all batches, by the numbers of their examples.
class EgBatches {
   public:
    explicit EgBatches(std::span<const EgState> states) : states_(states) {
        for (const EgState& state : states) {
            first_.push_back(num_examples_);
            num_examples_ += state.objective.num_examples();
            total_slots_ += state.objective.total_slots();
        }
    }

    struct Place {
        const EgState& state;
        Index i;  // within the batch
    };
    Place find(Index example) const {
        if (states_.size() == 1) return {states_[0], example};
        const auto after = std::upper_bound(first_.begin(), first_.end(), example);
        const auto k = static_cast<std::size_t>(after - first_.begin()) - 1;
        return {states_[k], example - first_[k]};
    }

    Index num_examples() const { return num_examples_; }
    Index total_slots() const { return total_slots_; }
    const FeatureMap& features() const { return states_[0].objective.features(); }
    // Those of all batches.
    double* weights() const { return states_[0].weights; }
    double* plane() const { return states_[0].plane; }
    int jobs(int n_jobs) const {
        for (const EgState& state : states_) n_jobs = state.objective.jobs(n_jobs);
        return n_jobs;
    }

   private:
    std::span<const EgState> states_;
    std::vector<Index> first_;  // example of each batch
    Index num_examples_ = 0;
    Index total_slots_ = 0;
};

}  // namespace partwise
