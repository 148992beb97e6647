// The weights of a dual point, updated while its examples move one by one: w = u / l2, or soft(u, l1) / l2.
#pragma once

#include "features/feature_map.h"
#include "support/vector_math.h"

namespace partwise {

// The weights start, ..., stop - 1 have no penalty but are pulled to a centre z: w = z + u / strength.
struct PulledWeights {
    Index start = 0;
    Index stop = 0;
    double strength = 1;
    double* spare = nullptr;  // memory for two numbers per pulled weight

    Index size() const { return stop - start; }
};

struct DualWeights {
    double l1;
    double l2;
    double* w;
    double* u;  // null without l1, where u = l2 w
    PulledWeights pulled = {};

    // u += omega A_i'd. The penalty's conjugate rises by omega added.dot + omega^2 / (2 l2) added.norm2.
    Added move(const FeatureMap& features, Index i, const double* d, double omega) const {
        if (pulled.size() > 0) return move_pulled(features, i, d, omega);
        return move_all(features, i, d, omega);
    }

   private:
    Added move_all(const FeatureMap& features, Index i, const double* d, double omega) const {
        if (l1 > 0.0) return features.add_transpose_shrunk(i, d, omega, {l1, l2, u, w});
        return features.add_transpose(i, d, omega / l2, w);
    }

    // Feature maps assume one strength for all weights. The pulled weights are therefore set to 0 first, so that their
    // change is exact, and computed from it afterwards. `added.dot` does not include the pulled weights.
    Added move_pulled(const FeatureMap& features, Index i, const double* d, double omega) const {
        const Index n = pulled.size();
        double* loose = w + pulled.start;
        double* shrunk = l1 > 0.0 ? u + pulled.start : nullptr;
        copy(loose, pulled.spare, n);
        std::fill_n(loose, n, 0.0);
        if (shrunk != nullptr) {
            copy(shrunk, pulled.spare + n, n);
            std::fill_n(shrunk, n, 0.0);
        }
        Added added = move_all(features, i, d, omega);
        double counted = 0;  // squares of the pulled entries of omega A_i'd, as the feature map counted them
        double square = 0;
        for (Index k = 0; k < n; ++k) {
            const double as_counted = l2 * loose[k];
            const double change = shrunk != nullptr ? shrunk[k] : as_counted;
            counted += as_counted * as_counted;
            square += change * change;
            loose[k] = pulled.spare[k] + change / pulled.strength;
            if (shrunk != nullptr) shrunk[k] += pulled.spare[n + k];
        }
        added.norm2 += (l2 / pulled.strength * square - counted) / (omega * omega);
        return added;
    }
};

}  // namespace partwise
