#include "support/multiply.h"

#include <algorithm>
#include <cmath>

namespace partwise {

namespace {

// One rounding where the machine can. Left to the compiler, tiles of different shapes would round differently, and a
// row's product would depend on how many rows there are.
inline double multiply_add(double x, double y, double sum) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return std::fma(x, y, sum);
#else
    return sum + x * y;
#endif
}

// R x C values of out: the sums stay in registers while the rows of b go by.
template <int R, int C>
void tile(Matrix a, Matrix b, Index inner, double* __restrict out, Index out_stride) {
    double sum[R][C];
    for (int r = 0; r < R; ++r) {
        for (int c = 0; c < C; ++c) sum[r][c] = out[r * out_stride + c];
    }
    for (Index p = 0; p < inner; ++p) {
        const double* __restrict y = b.data + p * b.stride;
        for (int r = 0; r < R; ++r) {
            const double x = a.data[r * a.stride + p];
#pragma omp simd
            for (int c = 0; c < C; ++c) sum[r][c] = multiply_add(x, y[c], sum[r][c]);
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int c = 0; c < C; ++c) out[r * out_stride + c] = sum[r][c];
    }
}

template <int C>
void some_rows(Index rows, Matrix a, Matrix b, Index inner, double* out, Index out_stride) {
    switch (rows) {
        case 1:
            return tile<1, C>(a, b, inner, out, out_stride);
        case 2:
            return tile<2, C>(a, b, inner, out, out_stride);
        case 3:
            return tile<3, C>(a, b, inner, out, out_stride);
        case 4:
            return tile<4, C>(a, b, inner, out, out_stride);
        case 5:
            return tile<5, C>(a, b, inner, out, out_stride);
        case 6:
            return tile<6, C>(a, b, inner, out, out_stride);
        case 7:
            return tile<7, C>(a, b, inner, out, out_stride);
        default:
            return tile<8, C>(a, b, inner, out, out_stride);
    }
}

template <int C>
void all_rows(Index rows, Matrix a, Matrix b, Index inner, double* out, Index out_stride) {
    for (Index r = 0; r < rows; r += 8) {
        some_rows<C>(std::min<Index>(rows - r, 8), {a.data + r * a.stride, a.stride}, b, inner, out + r * out_stride,
                     out_stride);
    }
}

}  // namespace

void multiply(Matrix a, Matrix b, Index rows, Index inner, Index columns, double* out, Index out_stride) {
    for (Index r = 0; r < rows; ++r) std::fill(out + r * out_stride, out + r * out_stride + columns, 0.0);
    constexpr Index kChunk = 256;  // rows of b that stay in the nearest cache while all rows of a pass
    for (Index p = 0; p < inner; p += kChunk) {
        const Index n = std::min(kChunk, inner - p);
        const Matrix left{a.data + p, a.stride};
        const double* y = b.data + p * b.stride;
        Index c = 0;
        for (; c + 16 <= columns; c += 16) all_rows<16>(rows, left, {y + c, b.stride}, n, out + c, out_stride);
        for (; c + 4 <= columns; c += 4) all_rows<4>(rows, left, {y + c, b.stride}, n, out + c, out_stride);
        for (; c < columns; ++c) all_rows<1>(rows, left, {y + c, b.stride}, n, out + c, out_stride);
    }
}

}  // namespace partwise
