// Arrays over all cells, slot by slot (see Cells), from rows that are computed example by example.
#pragma once

#include <algorithm>

#include "solvers/objective.h"

namespace partwise {

// row(i, values, workspace) fills the slots of example i; sink(first, count, rows, width) takes those of `count`
// examples.
template <class F, class G>
void for_blocks_of_rows(const Objective& objective, int n_jobs, Interrupt& interrupt, F&& row, G&& sink) {
    // Several cache lines of every slot.
    constexpr Index kBlock = 64;
    const Index n = objective.num_examples();
    const int workers = objective.jobs(n_jobs);
    std::vector<Workspace> scratch(workers);
    parallel_for((n + kBlock - 1) / kBlock, workers, interrupt, [&](Index b, int worker) {
        Workspace& ws = scratch[worker];
        const Index first = b * kBlock;
        const Index count = std::min(kBlock, n - first);
        const Index width = objective.num_slots(first);
        Workspace::Frame frame(ws);
        double* rows = frame.take(count * width);
        for (Index j = 0; j < count; ++j) row(first + j, rows + j * width, ws);
        sink(first, count, rows, width);
    });
}

template <class F>
void fill_cells(const Objective& objective, double* out, int n_jobs, Interrupt& interrupt, F&& row) {
    const Index n = objective.num_examples();
    for_blocks_of_rows(objective, n_jobs, interrupt, row,
                       [&](Index first, Index count, const double* rows, Index width) {
                           for (Index r = 0; r < width; ++r) {
                               double* __restrict target = out + r * n + first;
                               for (Index j = 0; j < count; ++j) target[j] = rows[j * width + r];
                           }
                       });
}

// 1 for every weight that is not padding: A_i of it is f#(x, y) = sum_t f_t(x, y).
std::vector<double> unit_weights(const Objective& objective, const ColumnAccess& columns);

}  // namespace partwise
