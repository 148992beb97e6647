// Matrix products for few rows (most of the time of kernel methods) and products of long vectors.
#pragma once

#include "support/parallel.h"

namespace partwise {

struct Matrix {
    const double* data;
    Index stride;    // from one row to the next
    Index step = 1;  // from one column to the next
};

// x * y + sum, rounded once if the machine has such an instruction. If the compiler chose, tiles of different shapes
// would round differently, and a row's product would depend on the number of rows.
inline double multiply_add(double x, double y, double sum) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return std::fma(x, y, sum);
#else
    return sum + x * y;
#endif
}

// out (rows x columns, out_stride apart) = a (rows x inner) b (inner x columns); the step of b is 1. Each value is
// summed in the order of `inner`, with the same roundings whatever the shape.
void multiply(Matrix a, Matrix b, Index rows, Index inner, Index columns, double* out, Index out_stride);
// The same, added to the values that `out` holds.
void continue_product(Matrix a, Matrix b, Index rows, Index inner, Index columns, double* out, Index out_stride);

// Products of a few long vectors, in an order of summation that does not depend on the number of threads. (That of BLAS
// does: two runs of a solver would differ.)
// out[k] = <row k, v>; rows: n x size.
void row_dots(const double* rows, Index n, const double* v, Index size, double* out, int n_jobs, Interrupt& interrupt);

// out += sum over k of coefficients[k] * row k
void add_rows(const double* coefficients, const double* rows, Index n, double* out, Index size, int n_jobs,
              Interrupt& interrupt);

}  // namespace partwise
