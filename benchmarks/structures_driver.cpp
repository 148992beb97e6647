// Calls a service `repeats` times for one example of length n: structures_driver STRUCTURE SERVICE N REPEATS.
// benchmarks/structures.py counts the instructions. Without arguments: prints the table of structures, a line each
// (name, power of n that the maximum and sums may take). Exit status 3: the structure does not offer the service.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "structures/chain.h"
#include "structures/history_chain.h"
#include "structures/multiclass.h"
#include "structures/projective_tree.h"
#include "structures/spanning_tree.h"
#if __has_include("structures/segment_chain.h")
#include "structures/segment_chain.h"
#endif
#if __has_include("structures/second_order_chain.h")
#include "structures/second_order_chain.h"
#endif
#if __has_include("structures/graph.h")
#include "structures/graph.h"
#endif
#if __has_include("structures/grammar.h")
#include "structures/grammar.h"
#endif

using namespace partwise;

namespace {

constexpr Index kLabels = 6;
constexpr Index kBest = 5;  // number of answers that k_best and sample return

std::vector<double> zeros(Index n) { return std::vector<double>(idx(n), 0.0); }

#if __has_include("structures/graph.h")
// A chain as a graph in which all edges have the same table.
GraphLayout chain_graph(Index n) {
    GraphLayout layout;
    layout.vertex_ptr = {0, n};
    layout.n_labels.assign(idx(n), kLabels);
    layout.clique_ptr = {0, n - 1};
    layout.member_ptr.push_back(0);
    for (Index v = 1; v < n; ++v) {
        layout.members.insert(layout.members.end(), {v - 1, v});
        layout.member_ptr.push_back(2 * v);
        layout.tables.push_back(0);
    }
    return layout;
}
#endif

#if __has_include("structures/grammar.h")
// A grammar in which every symbol derives any two symbols, and any word.
grammar::RuleTable all_rules(Index n_symbols) {
    grammar::RuleTable table{};
    table.n_symbols = n_symbols;
    for (Index a = 0; a < n_symbols; ++a) {
        for (Index b = 0; b < n_symbols; ++b) {
            for (Index c = 0; c < n_symbols; ++c) table.rules.insert(table.rules.end(), {a, b, c});
        }
        table.words.push_back(a);
        table.span.push_back(a);
    }
    table.roots = {0};
    return table;
}
#endif

struct Specimen {
    const char* name;
    double power;  // the work of the maximum and sums grows at most with n to this power
    std::function<std::unique_ptr<Structure>(Index)> make;
    double far = 1000.0;  // scale of scores whose exponentials do not fit into doubles
};

// Each structure is one line of this table.
const std::vector<Specimen> kSpecimens = {
    {"Multiclass", 1, [](Index n) { return std::make_unique<Multiclass>(1, n); }},
    {"Chain", 1, [](Index n) { return std::make_unique<Chain>(std::vector<Index>{n}, kLabels, true, false); }},
    {"HistoryChain", 1,
     [](Index n) {
         return std::make_unique<HistoryChain>(std::vector<Index>{n}, kLabels, 1, zeros((kLabels + 1) * kLabels),
                                               std::vector<Index>{}, std::vector<double>{}, 0);
     }},
#if __has_include("structures/second_order_chain.h")
    {"SecondOrderChain", 1, [](Index n) { return std::make_unique<SecondOrderChain>(std::vector<Index>{n}, kLabels); }},
#endif
#if __has_include("structures/segment_chain.h")
    {"SegmentChain", 1,
     [](Index n) {
         return std::make_unique<SegmentChain>(std::vector<Index>{n}, kLabels, 8, std::vector<Index>{},
                                               SegmentList{{0, 0}, {}, {}}, false);
     }},
#endif
#if __has_include("structures/graph.h")
    {"Graph, a chain", 1, [](Index n) { return std::make_unique<Graph>(chain_graph(n), 1e9); }},
#endif
    {"ProjectiveTree", 3, [](Index n) { return std::make_unique<ProjectiveTree>(std::vector<Index>{n}, true, n); },
     200.0},
    {"SpanningTree", 3, [](Index n) { return std::make_unique<SpanningTree>(std::vector<Index>{n}, true, n); }},
#if __has_include("structures/grammar.h")
    {"Grammar", 3,
     [](Index n) { return std::make_unique<Grammar>(std::vector<Index>{n}, all_rules(3), Grammar::Options{}); }, 200.0},
#endif
};

constexpr int kLacking = 3;

}  // namespace

int main(int argc, char** argv) {
    if (argc == 1) {
        for (const Specimen& each : kSpecimens) std::printf("%s\t%g\n", each.name, each.power);
        return 0;
    }
    if (argc != 5) return 2;
    const std::string service = argv[2];
    const Index n = std::atoll(argv[3]);
    const Index repeats = std::atoll(argv[4]);
    const Specimen* specimen = nullptr;
    for (const Specimen& each : kSpecimens) {
        if (each.name == std::string(argv[1])) specimen = &each;
    }
    if (!specimen) return 2;
    const std::unique_ptr<Structure> structure = specimen->make(n);
    const unsigned can = structure->capabilities();
    std::mt19937_64 rng(1);
    std::normal_distribution<double> normal(0.0, service == "logs" ? specimen->far : 1.0);
    std::vector<double> scores(idx(structure->num_slots(0)));
    for (double& x : scores) x = normal(rng);
    std::vector<double> marginals(scores.size());
    double entropy = 0;
    double value = 0;
    SlotCounts best;
    Workspace ws;
    std::function<void()> ask;
    if (service == "max") ask = [&] { value += structure->maximize(0, scores.data(), best, ws); };
    if (service == "sums" || service == "logs") {
        ask = [&] { value += structure->log_partition(0, scores.data(), 1.0, marginals.data(), &entropy, ws); };
    }
    if (service == "k_best") {
        if (!(can & kKBest)) return kLacking;
        ask = [&] { value += structure->k_best(0, scores.data(), kBest, ws).front().value; };
    }
    if (service == "sample") {
        if (!(can & kSample)) return kLacking;
        ask = [&] { value += structure->sample(0, scores.data(), 1.0, kBest, rng, ws).front().counts.front(); };
    }
    if (service == "covariance") {
        if (!(can & kCovariance)) return kLacking;
        ask = [&] {
            structure->covariance_product(0, scores.data(), 1.0, scores.data(), marginals.data(), ws);
            value += marginals.front();
        };
    }
    if (!ask) return 2;
    for (Index k = 0; k < repeats; ++k) ask();
    std::printf("%.17g\n", value);
}
