#include "solvers/cliques.h"

#include <algorithm>
#include <cmath>

namespace partwise {

namespace {

// How far the marginals of a clique may be from a sum of 1.
constexpr double kSumTolerance = 1e-6;

}  // namespace

std::vector<Index> clique_starts(const Structure& structure) {
    std::vector<Index> starts{0};
    for (Index i = 0; i < structure.num_examples(); ++i)
        starts.push_back(starts.back() + structure.clique_offsets(i).back());
    return starts;
}

void cliques_of_scores(const Structure& structure, const double* scores, double* cliques, int n_jobs,
                       Interrupt& interrupt) {
    const std::vector<Index> slots = structure.slot_offsets();
    const std::vector<Index> starts = clique_starts(structure);
    const int workers = structure.thread_safe() ? std::max(n_jobs, 1) : 1;
    std::vector<Workspace> scratch(static_cast<std::size_t>(workers));
    parallel_for(structure.num_examples(), workers, interrupt, [&](Index i, int worker) {
        Workspace& ws = scratch[static_cast<std::size_t>(worker)];
        structure.clique_marginals(i, scores + slots[idx(i)], 1.0, cliques + starts[idx(i)], ws);
    });
}

void read_cliques(const Structure& structure, const double* cliques, double* counts, double* entropies, int n_jobs,
                  Interrupt& interrupt) {
    const std::vector<Index> slots = structure.slot_offsets();
    const std::vector<Index> starts = clique_starts(structure);
    const int workers = structure.thread_safe() ? std::max(n_jobs, 1) : 1;
    std::vector<Workspace> scratch(static_cast<std::size_t>(workers));
    parallel_for(structure.num_examples(), workers, interrupt, [&](Index i, int worker) {
        Workspace& ws = scratch[static_cast<std::size_t>(worker)];
        const double* own = cliques + starts[idx(i)];
        structure.slots_from_cliques(i, own, counts + slots[idx(i)]);
        entropies[i] = structure.entropy_of_cliques(i, own, nullptr, ws);
    });
}

void check_clique_marginals(const Structure& structure, const double* cliques) {
    const std::vector<Index> starts = clique_starts(structure);
    for (Index i = 0; i < structure.num_examples(); ++i) {
        const double* q = cliques + starts[idx(i)];
        const std::vector<Index> own = structure.clique_offsets(i);
        for (std::size_t c = 0; c + 1 < own.size(); ++c) {
            double sum = 0;
            double least = 0;
            for (Index k = own[c]; k < own[c + 1]; ++k) {
                sum += q[k];
                least = std::min(least, q[k]);
            }
            if (least < -kSumTolerance || std::abs(sum - 1.0) > kSumTolerance) {
                throw InputError("the clique marginals of example " + std::to_string(i) +
                                 " are not those of a distribution");
            }
        }
    }
}

}  // namespace partwise
