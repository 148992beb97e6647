// Maxima and minima in loops that vectorise, of numbers that may be infinite.
//
// A reduction begins at its identity. GCC's identity of max is -infinity. Clang's is the lowest finite number, which
// would be wrong for rows whose entries are all -infinity, so for Clang the macros are empty.
#pragma once

#include "support/types.h"

#if defined(__GNUC__) && !defined(__clang__)
#define PARTWISE_PRAGMA(text) _Pragma(#text)
#define PARTWISE_SIMD_MAX(high) PARTWISE_PRAGMA(omp simd reduction(max : high))
#define PARTWISE_SIMD_MIN(low) PARTWISE_PRAGMA(omp simd reduction(min : low))
#define PARTWISE_SIMD_RANGE(low, high) PARTWISE_PRAGMA(omp simd reduction(min : low) reduction(max : high))
#else
#define PARTWISE_SIMD_MAX(high)
#define PARTWISE_SIMD_MIN(low)
#define PARTWISE_SIMD_RANGE(low, high)
#endif

namespace partwise {

inline double largest(const double* __restrict x, Index n) {
    double high = -kInfinity;
    PARTWISE_SIMD_MAX(high)
    for (Index k = 0; k < n; ++k) high = x[k] > high ? x[k] : high;
    return high;
}

}  // namespace partwise
