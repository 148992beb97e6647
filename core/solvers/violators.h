// The search of n-slack cutting planes: at fixed weights, which labelling of each example violates its slack most.
//
// With a working set W_i the slack of example i is xi_i = max over W_i of cost_y - <w, psi_y>; the oracle's labelling
// joins W_i if it violates that by more than epsilon.
#pragma once

#include <limits>

#include "solvers/working_sets.h"

namespace partwise {

struct ViolatorOptions {
    double epsilon = 0;
    Index now = 0;  // the stamp of what joins
    // merge an example's atoms while all atoms together take more
    Index max_bytes = std::numeric_limits<Index>::max();
};

struct ViolatorReport {
    Index visits = 0;  // oracle calls
    Index added = 0;
    Index merged = 0;
    double losses = 0;   // sum of omega times the oracle's margin: the losses at w
    double largest = 0;  // violation
    double total = 0;    // sum of omega times the violation
};

ViolatorReport find_violators(const Objective& objective, const double* weights, WorkingSets& sets,
                              std::span<const Index> order, const ViolatorOptions& options, Interrupt& interrupt);

}  // namespace partwise
