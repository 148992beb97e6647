// Sums over examples in an order that is the same for any number of threads, so that the bits are the same too.
#pragma once

#include "solvers/objective.h"
#include "support/vector_math.h"

namespace partwise {

// The number of blocks: enough to keep threads busy, and few enough that their copies of u cost little.
inline Index num_blocks(const Objective& o, bool with_u) {
    const Index n = std::max<Index>(o.num_examples(), 1);
    if (!with_u) return std::min<Index>(n, 64);
    const Index d = std::max<Index>(o.features().num_weights(), 1);
    const Index most = std::min((Index{1} << 22) / d, o.total_slots() / (4 * d));
    return std::min(n, std::clamp<Index>(most, 2, 16));
}

// The most slots of examples that are processed together, so that scores and directions stay in the L1 and L2 caches.
constexpr Index kRunSlots = Index{1} << 11;
// The same for structures that answer many examples together faster than one by one.
constexpr Index kManySlots = Index{1} << 18;

// Calls run(begin, end, directions, workspace) -> Term for runs of examples of positive weight, adds up the Terms, and
// adds A_i' directions_i to u (directions is null, and u empty, unless with_u). `run` applies sample weights itself.
// every > 1: only every `every`-th run, always the same runs. squares: uses the squares of A_i's entries.
template <class F>
Plane sum_runs(const Objective& o, int n_jobs, Interrupt& interrupt, bool with_u, F&& run, Index every = 1,
               bool squares = false) {
    const Index n = o.num_examples();
    const bool together = every == 1 && o.structure().together();
    const Index most_slots = together ? kManySlots : kRunSlots;
    // Blocks must not depend on what is summed. Structures that answer many examples together get a single block.
    const Index n_blocks = together ? 1 : num_blocks(o, with_u || every > 1);
    const Index d = o.features().num_weights();
    const int workers = o.jobs(n_jobs);
    std::vector<Plane> blocks(n_blocks);
    // Check for Ctrl-C inside blocks too, as they can be long.
    parallel_with_scratch(n_blocks, workers, interrupt, [&](Index k, Workspace& ws) {
        Plane& block = blocks[k];
        if (with_u) block.u.assign(d, 0.0);
        const Index last = (k + 1) * n / n_blocks;
        Index turn = k;
        for (Index i = k * n / n_blocks; i < last;) {
            interrupt.check();
            if (o.weight(i) == 0.0) {
                ++i;
                continue;
            }
            const Index begin = i++;
            while (i < last && o.weight(i) != 0.0 && o.offset(i + 1) - o.offset(begin) <= most_slots) ++i;
            if (turn++ % every != 0) continue;
            Workspace::Frame frame(ws);
            double* directions = with_u ? frame.take(o.offset(i) - o.offset(begin)) : nullptr;
            block.add(1.0, run(begin, i, directions, ws));
            if (with_u && squares) {
                o.features().add_squares_of(begin, i, directions, block.u.data());
            } else if (with_u) {
                o.features().add_transpose_of(begin, i, directions, block.u.data());
            }
        }
    });
    Plane total = std::move(blocks.front());
    for (Index k = 1; k < n_blocks; ++k) total.add(1.0, blocks[k]);
    if (with_u && n_blocks > 1) {
        constexpr Index kChunk = Index{1} << 14;
        const Index n_chunks = (d + kChunk - 1) / kChunk;
        parallel_for(n_chunks, workers, interrupt, [&](Index c, int) {
            const Index begin = c * kChunk;
            const Index size = std::min(kChunk, d - begin);
            for (Index k = 1; k < n_blocks; ++k) axpy(1.0, blocks[k].u.data() + begin, total.u.data() + begin, size);
        });
    }
    return total;
}

// Calls term(i, direction, workspace) -> Term for every example of positive weight omega_i and adds up omega_i times
// the Term and u += omega_i A_i' direction (direction is null, and u empty, unless with_u).
template <class F>
Plane sum_examples(const Objective& o, int n_jobs, Interrupt& interrupt, bool with_u, F&& term) {
    return sum_runs(o, n_jobs, interrupt, with_u, [&](Index begin, Index end, double* directions, Workspace& ws) {
        Term sum;
        for (Index i = begin; i < end; ++i) {
            double* direction = with_u ? directions + (o.offset(i) - o.offset(begin)) : nullptr;
            sum.add(o.weight(i), term(i, direction, ws));
            if (with_u && o.weight(i) != 1.0) scale(o.weight(i), direction, o.num_slots(i));
        }
        return sum;
    });
}

}  // namespace partwise
