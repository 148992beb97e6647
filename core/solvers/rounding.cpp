#include "solvers/rounding.h"

#include <algorithm>
#include <cmath>

#include "support/vector_math.h"

namespace partwise {

namespace {

void add_example(const Objective& o, Index i, double fixed, double examples, RoundingSums& sums, Workspace& ws) {
    const double omega = o.weight(i);
    double parts = 0;
    for (const double count : o.gold(i).counts) parts += count;
    double largest_cost = 0;
    if (o.loss().cost_scale != 0.0) {
        const Index n = o.num_slots(i);
        Workspace::Frame frame(ws);
        double* cost = frame.take(n);
        fill(cost, n, 0.0);
        o.add_cost(i, o.loss().cost_scale, cost);
        for (Index r = 0; r < n; ++r) largest_cost = std::max(largest_cost, std::abs(cost[r]));
    }
    const double reach = o.features().reach(i);
    const double depth = fixed + std::sqrt(parts);
    const double scores = depth * reach;
    const double level = depth * parts * (o.loss().temperature + largest_cost);
    const double transposed = (depth + examples) * reach;
    sums.scores += omega * scores;
    sums.level += omega * level;
    sums.transposed += omega * transposed;
    sums.scores2 += omega * scores * scores;
    sums.level2 += omega * level * level;
    sums.transposed2 += omega * transposed * transposed;
    sums.largest_reach = std::max(sums.largest_reach, reach);
}

}  // namespace

RoundingSums rounding_sums(const Objective& objective, double fixed, double examples, int n_jobs,
                           Interrupt& interrupt) {
    const Index n = objective.num_examples();
    const Index n_blocks = std::min<Index>(n, 64);  // the same sums for any number of threads
    const int workers = objective.jobs(n_jobs);
    std::vector<RoundingSums> blocks(n_blocks);
    std::vector<Workspace> scratch(workers);
    parallel_for(n_blocks, workers, interrupt, [&](Index k, int worker) {
        for (Index i = k * n / n_blocks; i < (k + 1) * n / n_blocks; ++i) {
            if (objective.weight(i) == 0.0) continue;
            add_example(objective, i, fixed, examples, blocks[k], scratch[worker]);
        }
    });
    RoundingSums total;
    for (const RoundingSums& block : blocks) {
        total.scores += block.scores;
        total.level += block.level;
        total.transposed += block.transposed;
        total.scores2 += block.scores2;
        total.level2 += block.level2;
        total.transposed2 += block.transposed2;
        total.largest_reach = std::max(total.largest_reach, block.largest_reach);
    }
    return total;
}

}  // namespace partwise
