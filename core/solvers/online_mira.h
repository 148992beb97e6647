// Visits of MIRA (Chang and Yih 2013, section 2.1): the weights nearest to w that separate the gold labelling from the
// k best ones at w by a margin of their costs, <w, A_i'(g - count(y))> >= kappa cost(y), whatever that takes (no bound
// on alpha).
#pragma once

#include "solvers/online.h"

namespace partwise {

struct MiraReport {
    Index visits = 0;
    Index mistakes = 0;  // examples with a labelling whose margin was too small
    Index left_out = 0;  // constraints that cannot be met together with others of their example
    double mass = 0;     // visits in the sum of iterates
};

MiraReport mira_epoch(const OnlineState& state, std::span<const Index> order, Index k, Interrupt& interrupt);

// The largest number of labellings that an example of positive weight has, or k if that is less. Capability kKBest.
Index most_labellings(const Objective& objective, Index k, Interrupt& interrupt);

}  // namespace partwise
