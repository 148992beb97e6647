// What becomes of v = A' slots when AttributeRows hands it over. row(): a whole row of `width` values; one(): a single
// weight's value. Sums over rows are kept column by column and added up at the end: a horizontal sum per row would cost
// more than the row itself.
#pragma once

#include "features/feature_map.h"
#include "support/vector_math.h"

namespace partwise {

// For attribute_rows.cpp alone, and unnamed: what is known to be used there only is always put in line, which batch
// sums gain a tenth from.
namespace {

// Sums side by side for rows of this width (0: not known to the compiler).
constexpr int lanes(int width) { return width > 0 ? width : 1; }

template <int W>
struct AddSink {
    static constexpr int kLanes = lanes(W);
    double scale;
    double* w;
    double norms[kLanes] = {};
    double products[kLanes] = {};

    void prefetch(Index at) const { __builtin_prefetch(w + at, 1); }
    void row(Index at, const double* __restrict v, Index width) {
        double* __restrict target = w + at;
        if constexpr (W > 0) {
            for (int b = 0; b < W; ++b) {
                norms[b] += v[b] * v[b];
                products[b] += v[b] * target[b];
                target[b] += scale * v[b];
            }
        } else {
            norms[0] += norm2(v, width);
            products[0] += dot(v, target, width);
            axpy(scale, v, target, width);
        }
    }
    void one(Index at, double v) {
        norms[0] += v * v;
        products[0] += v * w[at];
        w[at] += scale * v;
    }
    Added added() const {
        Added sum;
        for (int b = 0; b < kLanes; ++b) sum += {norms[b], products[b]};
        return sum;
    }
};

// The same under an elastic net.
template <int W>
struct ShrinkSink {
    double scale;
    double* u;
    double* w;
    Shrinking<lanes(W)> sums;

    void prefetch(Index at) const {
        __builtin_prefetch(u + at, 1);
        __builtin_prefetch(w + at, 1);
    }
    void row(Index at, const double* __restrict v, Index width) {
        double* __restrict target = u + at;
        double* __restrict weights = w + at;
        if constexpr (W > 0) {
            for (int b = 0; b < W; ++b) sums.move(b, scale * v[b], target[b], weights[b]);
        } else {
            for (Index b = 0; b < width; ++b) sums.move(0, scale * v[b], target[b], weights[b]);
        }
    }
    void one(Index at, double v) { sums.move(0, scale * v, u[at], w[at]); }
};

// Adds and measures nothing.
template <int W>
struct PlainSink {
    double* w;

    void prefetch(Index at) const { __builtin_prefetch(w + at, 1); }
    void row(Index at, const double* __restrict v, Index width) const {
        double* __restrict target = w + at;
        if constexpr (W > 0) {
#pragma omp simd
            for (int b = 0; b < W; ++b) target[b] += v[b];
        } else {
            axpy(1.0, v, target, width);
        }
    }
    void one(Index at, double v) const { w[at] += v; }
};

template <int W>
struct NormSink {
    static constexpr int kLanes = lanes(W);
    double norms[kLanes] = {};

    void prefetch(Index) const {}
    void row(Index, const double* __restrict v, Index width) {
        if constexpr (W > 0) {
            for (int b = 0; b < W; ++b) norms[b] += v[b] * v[b];
        } else {
            norms[0] += norm2(v, width);
        }
    }
    void one(Index, double v) { norms[0] += v * v; }
    double sum() const {
        double total = 0;
        for (int b = 0; b < kLanes; ++b) total += norms[b];
        return total;
    }
};

struct ProjectSink {
    Index first;
    SparseVector& out;

    void prefetch(Index) const {}
    void row(Index at, const double* v, Index width) const { out.append(first + at, v, width); }
    void one(Index at, double v) const { out.append(first + at, &v, 1); }
};

}  // namespace

}  // namespace partwise
