// A matrix product for few rows: what kernels spend their time on.
#pragma once

#include "support/types.h"

namespace partwise {

struct Matrix {
    const double* data;
    Index stride;  // from one row to the next
};

// out (rows x columns, out_stride apart) = a (rows x inner) b (inner x columns). Each value is summed in the order of
// `inner`, with the same roundings whatever the shape.
void multiply(Matrix a, Matrix b, Index rows, Index inner, Index columns, double* out, Index out_stride);

}  // namespace partwise
