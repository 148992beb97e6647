// Checks of arguments that the bindings of objective, solvers and prediction share.
#pragma once

#include "bindings/common.h"
#include "solvers/objective.h"

namespace partwise::bindings {

inline void check_weights(const FeatureMap& features, const Floats& weights) {
    check_size(weights, features.num_weights(), "weights");
    check_finite(weights, "weights");
}

inline void check_temperature(double temperature) {
    if (!(temperature >= 0.0) || temperature == kInfinity) throw InputError("temperature must be 0 or more and finite");
}

inline void check_l2(double l2) {
    if (!(l2 > 0.0) || l2 == kInfinity) throw InputError("l2 must be above 0 and finite");
}

inline void check_l1(double l1) {
    if (!(l1 >= 0.0) || l1 == kInfinity) throw InputError("l1 must be a number >= 0");
}

inline void check_plane(double l1, const double* plane) {
    if (l1 > 0.0 && !plane) throw InputError("with l1 > 0 the state needs a plane");
}

inline void check_order(const Objective& objective, const Ints& order) {
    for (const Index i : span_of(order)) check_index(i, objective.num_examples());
}

}  // namespace partwise::bindings
