// Loops over doubles that the compiler turns into vector instructions without -ffast-math.
#pragma once

#include <bit>

#include "support/types.h"

namespace partwise {

// x, clamped to [-708, 709], as k log(2) + r with |r| <= log(2) / 2, and what exp(r) is made of.
struct ExpParts {
    std::uint64_t exponent;  // k, added to the exponent bits of a double, multiplies it by 2^k
    double r;
    double p;  // (exp(r) - 1 - r) / r^2
};

[[gnu::always_inline]] inline ExpParts exp_parts(double x) {
    constexpr double kLog2e = 1.4426950408889634074;
    constexpr double kLn2Hi = 6.93147180369123816490e-01;  // 33 bits: k * kLn2Hi is exact
    constexpr double kLn2Lo = 1.90821492927058770002e-10;
    constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
    const double clamped = x < -708.0 ? -708.0 : (x > 709.0 ? 709.0 : x);
    const double shifted = clamped * kLog2e + kShift;  // its low bits hold k in two's complement
    const double k = shifted - kShift;
    const double r = (clamped - k * kLn2Hi) - k * kLn2Lo;
    // Taylor series to r^13: the remainder is below 2^-53 on this interval.
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    return {std::bit_cast<std::uint64_t>(shifted) << 52, r, p};
}

// exp(x) without branches, so that loops over it vectorise. Relative error below 4e-16 on [-708, 709];
// 0 below -708 (no denormals), clamped above 709. x must not be NaN: inputs are checked to be finite.
// Always inlined, because loops that contain calls do not vectorise.
[[gnu::always_inline]] inline double fast_exp(double x) {
    const auto [exponent, r, p] = exp_parts(x);
    const double scaled = std::bit_cast<double>(std::bit_cast<std::uint64_t>((p * r + 1.0) * r + 1.0) + exponent);
    return x < -708.0 ? 0.0 : scaled;
}

// exp(x) - 1, exact to a few units in the last place also where exp(x) is near 1. Clamped as fast_exp is.
inline double fast_expm1(double x) {
    const auto [exponent, r, p] = exp_parts(x);
    // 2^(k-1), as 2^1024 is out of range: exp(x) - 1 = 2 (2^(k-1) (exp(r) - 1) + (2^(k-1) - 1/2)).
    const double half = std::bit_cast<double>(std::bit_cast<std::uint64_t>(0.5) + exponent);
    return 2.0 * (half * (p * r * r + r) + (half - 0.5));
}

// u = 2^k m with m in [sqrt(1/2), sqrt(2)), for u of 1e-300 and more.
struct LogParts {
    double k;
    double m;
};

[[gnu::always_inline]] inline LogParts log_parts(double x) {
    constexpr double kShift = 4503599627370496.0;             // 2^52
    constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdu;  // bits of sqrt(1/2)
    constexpr std::uint64_t kOne = 0x3ff0000000000000u;       // bits of 1
    const double u = x > 1e-300 ? x : 1e-300;
    // The addition carries into the exponent where the mantissa is large.
    const std::uint64_t moved = std::bit_cast<std::uint64_t>(u) + (kOne - kSqrtHalf);
    return {std::bit_cast<double>((moved >> 52) | 0x4330000000000000u) - kShift - 1023.0,
            std::bit_cast<double>((moved & 0x000fffffffffffffu) + kSqrtHalf)};
}

// k log(2) + log(1 + f). The logarithm is 2 artanh(s), s = f / (2 + f); artanh(s) / s - 1 = z h(z), z = s^2 < 0.0295, h
// interpolated at Chebyshev points: off by less than 5e-18.
[[gnu::always_inline]] inline double log_of_parts(double k, double f) {
    constexpr double kLn2Hi = 6.93147180369123816490e-01;
    constexpr double kLn2Lo = 1.90821492927058770002e-10;
    const double s = f / (2.0 + f);
    const double z = s * s;
    double h = 0.07308292712444311;
    h = h * z + 0.07665855309105386;
    h = h * z + 0.09091444727837474;
    h = h * z + 0.11111105565129939;
    h = h * z + 0.14285714313001635;
    h = h * z + 0.19999999999949722;
    h = h * z + 0.3333333333333335;
    const double twice = 2.0 * s;
    return k * kLn2Hi + (twice + (twice * z * h + k * kLn2Lo));
}

// log(1 + x) for x > -1, to a few units in the last place also for small x; that of 1e-300 where 1 + x is below that.
inline double fast_log1p(double x) {
    const auto [k, m] = log_parts(1.0 + x);
    return log_of_parts(k, k == 0.0 ? x : m - 1.0);  // near 0 x itself is used, which 1 + x has rounded
}

// log(x) for x > 0 without branches, to a few units in the last place; log(1e-300) below that. Always inlined.
[[gnu::always_inline]] inline double fast_log(double x) {
    const auto [k, m] = log_parts(x);
    return log_of_parts(k, m - 1.0);
}

// Logarithm of a probability that may be 0: finite, and small enough to have no weight.
inline double safe_log(double p) { return std::log(p > 1e-300 ? p : 1e-300); }

inline double dot(const double* __restrict a, const double* __restrict b, Index n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < n; ++k) sum += a[k] * b[k];
    return sum;
}

inline double norm2(const double* __restrict a, Index n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < n; ++k) sum += a[k] * a[k];
    return sum;
}

inline void axpy(double scale, const double* __restrict x, double* __restrict y, Index n) {
    for (Index k = 0; k < n; ++k) y[k] += scale * x[k];
}

inline void scale(double factor, double* x, Index n) {
    for (Index k = 0; k < n; ++k) x[k] *= factor;
}

inline void fill(double* x, Index n, double value) {
    for (Index k = 0; k < n; ++k) x[k] = value;
}

inline void copy(const double* __restrict x, double* __restrict y, Index n) {
    for (Index k = 0; k < n; ++k) y[k] = x[k];
}

inline bool all_finite(const double* x, Index n) {
    // x * 0 is 0 for finite x and NaN otherwise; the sum keeps a NaN.
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < n; ++k) sum += x[k] * 0.0;
    return sum == 0.0;
}

}  // namespace partwise
