#include "support/vectors.h"

#include <algorithm>

#include "support/vector_math.h"

namespace partwise {

namespace {

// A chunk of v, or of out, stays in the nearest cache while all rows pass by.
constexpr Index kChunk = Index{1} << 11;
// Products that are worth a thread.
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
