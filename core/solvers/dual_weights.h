// The weights of a dual point, kept while its examples move one by one: w = u / l2, or soft(u, l1) / l2.
#pragma once

#include "features/feature_map.h"

namespace partwise {

struct DualWeights {
    double l1;
    double l2;
    double* w;
    double* u;  // null without l1, where w says it all

    // u += omega A_i'd. The rise of the penalty's conjugate is omega added.dot + omega^2 / (2 l2) added.norm2.
    Added move(const FeatureMap& features, Index i, const double* d, double omega) const {
        if (l1 > 0.0) return features.add_transpose_shrunk(i, d, omega, {l1, l2, u, w});
        return features.add_transpose(i, d, omega / l2, w);
    }
};

}  // namespace partwise
