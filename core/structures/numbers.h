// Number types for algorithms that are written once as templates: non-negative doubles, their logarithms, and both with
// derivatives. They have sums, products and quotients, and operations on arrays.
#pragma once

#include "support/extremes.h"
#include "support/vector_math.h"

namespace partwise {

// The logarithm that stands for zero: finite, so that loops over logs need no branch.
constexpr double kLogOfZero = -1e30;
constexpr double kLogsOfZero = -1e25;  // smaller logarithms are products with zero

struct LogNumber {
    double log;
};

// A number with its derivative in a direction; a logarithm with its own derivative.
struct Dual {
    double value;
    double d;
};
struct LogDual {
    double log;
    double d;
};

inline void set_zero(double& x) { x = 0.0; }
inline void set_zero(LogNumber& x) { x = {kLogOfZero}; }
inline void set_zero(Dual& x) { x = {0.0, 0.0}; }
inline void set_zero(LogDual& x) { x = {kLogOfZero, 0.0}; }
inline void set_one(double& x) { x = 1.0; }
inline void set_one(LogNumber& x) { x = {0.0}; }
inline void set_one(Dual& x) { x = {1.0, 0.0}; }
inline void set_one(LogDual& x) { x = {0.0, 0.0}; }
inline bool is_zero(double x) { return x == 0.0; }
inline bool is_zero(LogNumber x) { return x.log < kLogsOfZero; }
inline bool is_zero(Dual x) { return x.value == 0.0; }
inline bool is_zero(LogDual x) { return x.log < kLogsOfZero; }
inline double log_of(double x) { return std::log(x); }
inline double log_of(LogNumber x) { return x.log; }
inline double log_of(Dual x) { return std::log(x.value); }
inline double log_of(LogDual x) { return x.log; }

inline Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.d + b.d}; }
inline Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.d * b.value + a.value * b.d}; }
inline Dual operator/(Dual a, Dual b) {
    const double q = a.value / b.value;
    return {q, (a.d - q * b.d) / b.value};
}
inline LogNumber operator*(LogNumber a, LogNumber b) { return {a.log + b.log}; }
inline LogNumber operator/(LogNumber a, LogNumber b) { return {a.log - b.log}; }
inline LogNumber operator+(LogNumber a, LogNumber b) {
    const double high = a.log > b.log ? a.log : b.log;
    return {high + fast_log1p(fast_exp(-std::abs(a.log - b.log)))};
}
inline LogDual operator*(LogDual a, LogDual b) { return {a.log + b.log, a.d + b.d}; }
inline LogDual operator/(LogDual a, LogDual b) { return {a.log - b.log, a.d - b.d}; }
// The derivative of the log of a sum is the mean of the derivatives, weighted by the terms.
inline LogDual operator+(LogDual a, LogDual b) {
    const bool swapped = a.log < b.log;
    const LogDual& large = swapped ? b : a;
    const LogDual& small = swapped ? a : b;
    const double ratio = fast_exp(small.log - large.log);
    return {large.log + fast_log1p(ratio), large.d + ratio / (1.0 + ratio) * (small.d - large.d)};
}

// log Z - <marginals, scores>, of scores that may be -infinity where the marginals are 0.
inline double entropy_of_sums(double log_z, const double* marginals, const double* scores, Index n) {
    double energy = 0;
    for (Index r = 0; r < n; ++r) energy += marginals[r] > 0.0 ? marginals[r] * scores[r] : 0.0;
    return log_z > energy ? log_z - energy : 0.0;
}

// y += c x
template <class Num>
void add_scaled(Num c, const Num* __restrict x, Num* __restrict y, Index n) {
#pragma omp simd
    for (Index k = 0; k < n; ++k) y[k] = y[k] + c * x[k];
}

// sum of x y
inline double dot_of(const double* x, const double* y, Index n) { return dot(x, y, n); }
inline LogNumber dot_of(const LogNumber* __restrict x, const LogNumber* __restrict y, Index n) {
    double high = kLogOfZero;
    PARTWISE_SIMD_MAX(high)
    for (Index k = 0; k < n; ++k) {
        const double z = x[k].log + y[k].log;
        high = z > high ? z : high;
    }
    if (high < kLogsOfZero) return {kLogOfZero};
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < n; ++k) sum += fast_exp(x[k].log + y[k].log - high);
    return {high + std::log(sum)};
}
template <class Num>
Num dot_of(const Num* x, const Num* y, Index n) {
    Num sum;
    set_zero(sum);
    for (Index k = 0; k < n; ++k) sum = sum + x[k] * y[k];
    return sum;
}

template <class Num>
Num sum_of(const Num* x, Index n) {
    Num sum;
    set_zero(sum);
    for (Index k = 0; k < n; ++k) sum = sum + x[k];
    return sum;
}
template <>
inline double sum_of(const double* x, Index n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < n; ++k) sum += x[k];
    return sum;
}

}  // namespace partwise
