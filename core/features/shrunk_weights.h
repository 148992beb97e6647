// The weights of a dual point under an elastic net, kept beside u while u changes: w = soft(u, l1) / l2.
//
// R*(u) = |soft(u, l1)|^2 / (2 l2) has the gradient w, and from u to u + scale v it rises by
//   scale <w, v> + scale^2 / (2 l2) q,   0 <= q <= |v|^2,   q = |v|^2 where no weight is or becomes zero.
// So q stands where |v|^2 stands without l1: changes of the dual have one formula for both penalties.
#pragma once

#include <algorithm>

#include "support/types.h"

namespace partwise {

// sign(x) max(|x| - l1, 0)
[[gnu::always_inline]] inline double soft(double x, double l1) { return std::max(x - l1, 0.0) + std::min(x + l1, 0.0); }

struct ShrunkWeights {
    double l1;
    double l2;
    double* u;
    double* w;

    // Those of a segment whose first weight this is.
    ShrunkWeights from(Index first) const { return {l1, l2, u + first, w + first}; }
};

// Sums over the weights that a step changes, in units of l2: with a = soft(u, l1) before the step of d, and b after it,
//   quadratic  b^2 - a^2 - 2 a d, which is d^2 where b - a = d (said so: the difference of squares would cancel)
//   linear     a d
// Lanes: sums side by side, for loops over that many columns at once.
template <int Lanes>
struct Shrinking {
    double l1;
    double inverse;  // 1 / l2
    double quadratic[Lanes] = {};
    double linear[Lanes] = {};

    explicit Shrinking(const ShrunkWeights& to) : l1(to.l1), inverse(1.0 / to.l2) {}

    // u += d, and w follows.
    [[gnu::always_inline]] void move(int lane, double d, double& u, double& w) {
        const double a = soft(u, l1);
        const double moved = u + d;
        const double b = soft(moved, l1);
        u = moved;
        w = b * inverse;
        const double e = b - a;
        quadratic[lane] += a * b > 0.0 ? d * d : 2.0 * a * (e - d) + e * e;
        linear[lane] += a * d;
    }
};

}  // namespace partwise
