// One sentence of n words, parsed `repeats` times: growth_driver KIND WHAT N REPEATS. What benchmarks/growth.py counts.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "structures/projective_tree.h"
#include "structures/spanning_tree.h"

using namespace partwise;

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    const std::string kind = argv[1];
    const std::string what = argv[2];
    const Index n = std::atoll(argv[3]);
    const Index repeats = std::atoll(argv[4]);
    std::unique_ptr<Structure> trees;
    if (kind == "ProjectiveTree") trees = std::make_unique<ProjectiveTree>(std::vector<Index>{n}, true, n);
    if (kind == "SpanningTree") trees = std::make_unique<SpanningTree>(std::vector<Index>{n}, true, n);
    if (!trees) return 2;
    // "logs": scores too far apart for sums in doubles, but not so far that nothing is left to sum.
    const double scale = what != "logs" ? 1.0 : kind == "ProjectiveTree" ? 200.0 : 1000.0;
    std::mt19937_64 rng(1);
    std::normal_distribution<double> normal(0.0, scale);
    std::vector<double> scores(idx(trees->num_slots(0)));
    for (double& x : scores) x = normal(rng);
    std::vector<double> marginals(scores.size());
    double entropy = 0;
    double value = 0;
    SlotCounts best;
    Workspace ws;
    for (Index k = 0; k < repeats; ++k) {
        if (what == "max") {
            value += trees->maximize(0, scores.data(), best, ws);
        } else {
            value += trees->log_partition(0, scores.data(), 1.0, marginals.data(), &entropy, ws);
        }
    }
    std::printf("%.17g\n", value);
}
