#include "solvers/rounding.h"

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
        o.costs(i, cost);
        for (Index r = 0; r < n; ++r) largest_cost = std::max(largest_cost, std::abs(cost[r]));
    }
    const double reach = o.features().reach(i);
    const double depth = fixed + std::sqrt(parts);
    const auto add = [omega](double x, double& sum, double& sum2) {
        sum += omega * x;
        sum2 += omega * x * x;
    };
    add(depth * reach, sums.scores, sums.scores2);
    add(depth * parts * (o.loss().temperature + largest_cost), sums.level, sums.level2);
    add((depth + examples) * reach, sums.transposed, sums.transposed2);
    sums.largest_reach = std::max(sums.largest_reach, reach);
}

}  // namespace

RoundingSums rounding_sums(const Objective& objective, double fixed, double examples, int n_jobs,
                           Interrupt& interrupt) {
    const Index n = objective.num_examples();
    const Index n_blocks = std::min<Index>(n, 64);  // fixed, so that sums have the same bits for any number of threads
    std::vector<RoundingSums> blocks(n_blocks);
    parallel_with_scratch(n_blocks, objective.jobs(n_jobs), interrupt, [&](Index k, Workspace& ws) {
        for (Index i = k * n / n_blocks; i < (k + 1) * n / n_blocks; ++i) {
            if (objective.weight(i) == 0.0) continue;
            add_example(objective, i, fixed, examples, blocks[k], ws);
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
