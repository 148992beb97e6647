#include "support/multiply.h"

#include "support/vector_math.h"

namespace partwise {

namespace {

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
            const double x = a.data[r * a.stride + p * a.step];
#pragma omp simd
            for (int c = 0; c < C; ++c) sum[r][c] = multiply_add(x, y[c], sum[r][c]);
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int c = 0; c < C; ++c) out[r * out_stride + c] = sum[r][c];
    }
}

// The number of sums that fit into registers beside the other operands of `tile`.
#if defined(__AVX512F__)
constexpr int kSums = 128;
#elif defined(__AVX__) || defined(__aarch64__)
constexpr int kSums = 48;
#else
constexpr int kSums = 24;
#endif

// One tile of R rows, or of fewer if fewer than R rows are left.
template <int R, int C>
void last_rows(Index rows, Matrix a, Matrix b, Index inner, double* out, Index out_stride) {
    if constexpr (R > 0) {
        if (rows < R) return last_rows<R - 1, C>(rows, a, b, inner, out, out_stride);
        tile<R, C>(a, b, inner, out, out_stride);
    }
}

template <int C>
void all_rows(Index rows, Matrix a, Matrix b, Index inner, double* out, Index out_stride) {
    constexpr int kRows = std::clamp(kSums / C, 1, 8);
    for (Index r = 0; r < rows; r += kRows) {
        last_rows<kRows, C>(rows - r, {a.data + r * a.stride, a.stride, a.step}, b, inner, out + r * out_stride,
                            out_stride);
    }
}

}  // namespace

void multiply(Matrix a, Matrix b, Index rows, Index inner, Index columns, double* out, Index out_stride) {
    for (Index r = 0; r < rows; ++r) std::fill(out + r * out_stride, out + r * out_stride + columns, 0.0);
    continue_product(a, b, rows, inner, columns, out, out_stride);
}

void continue_product(Matrix a, Matrix b, Index rows, Index inner, Index columns, double* out, Index out_stride) {
    constexpr Index kChunk = 256;  // so many rows of b stay in the nearest cache while all rows of `a` are multiplied
    for (Index p = 0; p < inner; p += kChunk) {
        const Index n = std::min(kChunk, inner - p);
        const Matrix left{a.data + p * a.step, a.stride, a.step};
        const double* y = b.data + p * b.stride;
        Index c = 0;
        for (; c + 16 <= columns; c += 16) all_rows<16>(rows, left, {y + c, b.stride}, n, out + c, out_stride);
        for (; c + 12 <= columns; c += 12) all_rows<12>(rows, left, {y + c, b.stride}, n, out + c, out_stride);
        for (; c + 4 <= columns; c += 4) all_rows<4>(rows, left, {y + c, b.stride}, n, out + c, out_stride);
        for (; c < columns; ++c) all_rows<1>(rows, left, {y + c, b.stride}, n, out + c, out_stride);
    }
}

namespace {

// Chunks of v or out of this size stay in the nearest cache while all rows are read.
constexpr Index kChunk = Index{1} << 11;
// The number of products that is worth one more thread.
constexpr Index kWorth = Index{1} << 19;

// f(chunk, begin, size)
template <class F>
void for_chunks(Index n, Index size, int n_jobs, Interrupt& interrupt, F&& f) {
    const Index chunks = (size + kChunk - 1) / kChunk;
    const Index worth = std::max<Index>(1, n * size / kWorth);
    const Index tasks = std::min<Index>(chunks, std::min<Index>(std::max(n_jobs, 1), worth));
    parallel_for(tasks, n_jobs, interrupt, [&](Index task, int) {
        for (Index c = task * chunks / tasks; c < (task + 1) * chunks / tasks; ++c) {
            f(c, c * kChunk, std::min(kChunk, size - c * kChunk));
        }
    });
}

}  // namespace

void row_dots(const double* rows, Index n, const double* v, Index size, double* out, int n_jobs, Interrupt& interrupt) {
    const Index chunks = (size + kChunk - 1) / kChunk;
    std::vector<double> parts(n * chunks);
    for_chunks(n, size, n_jobs, interrupt, [&](Index c, Index begin, Index count) {
        for (Index k = 0; k < n; ++k) parts[k * chunks + c] = dot(rows + k * size + begin, v + begin, count);
    });
    for (Index k = 0; k < n; ++k) {
        out[k] = 0;
        for (Index c = 0; c < chunks; ++c) out[k] += parts[k * chunks + c];
    }
}

void add_rows(const double* coefficients, const double* rows, Index n, double* out, Index size, int n_jobs,
              Interrupt& interrupt) {
    for_chunks(n, size, n_jobs, interrupt, [&](Index, Index begin, Index count) {
        for (Index k = 0; k < n; ++k) axpy(coefficients[k], rows + k * size + begin, out + begin, count);
    });
}

}  // namespace partwise
