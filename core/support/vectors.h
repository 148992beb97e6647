// Products of a few long vectors, in an order of summation that does not depend on the number of threads. (That of BLAS
// does: two runs of a solver would differ.)
#pragma once

#include "support/parallel.h"

namespace partwise {

// out[k] = <row k, v>; rows: n x size.
void row_dots(const double* rows, Index n, const double* v, Index size, double* out, int n_jobs, Interrupt& interrupt);

// out += sum over k of coefficients[k] * row k
void add_rows(const double* coefficients, const double* rows, Index n, double* out, Index size, int n_jobs,
              Interrupt& interrupt);

}  // namespace partwise
