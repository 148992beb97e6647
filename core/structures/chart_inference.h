// Inference that works for every chart program (chart.h). `scores`: one per slot of the program, already divided by the
// temperature; -infinity for masked slots.
#pragma once

#include "structures/chart_k_best.h"
#include "structures/chart_sums.h"
#include "structures/structure.h"

namespace partwise::chart {

// Returns log Z; writes expected counts of slots and the entropy if these are not null. Without a labelling it returns
// -infinity and writes nothing.
template <class Program>
double log_partition(const Program& program, const double* scores, double* marginals, double* entropy, Workspace& ws) {
    Workspace::Frame frame(ws);
    double* chart = frame.take(program.cells());
    LogSums<false> sums{chart, scores};
    program.up(sums);
    const double log_z = chart[program.root()] + sums.shift;
    if (!marginals && !entropy) return log_z;
    if (!marginals) marginals = frame.take(program.slots());
    double* mass = frame.zeros(program.cells());
    fill(marginals, program.slots(), 0.0);
    mass[program.root()] = 1.0;
    Masses<false> masses{chart, scores, mass, marginals, frame.take(program.most_edges()), entropy != nullptr};
    program.down(masses);
    if (entropy) *entropy = masses.entropy;
    return log_z;
}

// out = Cov(counts of slots) direction
template <class Program>
void covariance_product(const Program& program, const double* scores, const double* direction, double* out,
                        Workspace& ws) {
    Workspace::Frame frame(ws);
    const Index cells = program.cells();
    double* chart = frame.take(cells);
    double* chart_d = frame.take(cells);
    LogSums<true> sums{chart, scores, chart_d, direction};
    program.up(sums);
    double* mass = frame.zeros(cells);
    double* mass_d = frame.zeros(cells);
    double* marginals = frame.zeros(program.slots());
    fill(out, program.slots(), 0.0);
    mass[program.root()] = 1.0;
    Masses<true> masses{chart,   scores,    mass,   marginals, frame.take(program.most_edges()), false, 0.0,
                        chart_d, direction, mass_d, out};
    program.down(masses);
}

// Calls use(slot) for each slot of the best labelling; returns false without one. Ties go to a cell's first edge.
template <class Program, class Use>
bool best(const Program& program, const double* scores, Workspace& ws, Use&& use) {
    Workspace::Frame frame(ws);
    double* chart = frame.take(program.cells());
    program.up(Best{chart, scores});
    if (chart[program.root()] == -kInfinity) return false;
    std::vector<Index> stack;
    const auto choose = [&](const auto& e) { return first_best(e.count(), edge_scores(e, chart, scores)); };
    derive(program, stack, choose, use);
    return true;
}

// Draws one of n edges with probabilities proportional to exp(x(k)). high: the largest x(k); weight: scratch.
template <class X>
Index draw_edge(Index n, const X& x, double high, double* weight, std::mt19937_64& rng) {
    double total = 0;
    for (Index k = 0; k < n; ++k) total += weight[k] = fast_exp(x(k) - high);
    return draw_one(weight, n, total, rng);
}

// Draws n labellings. Calls use(slot) for each slot of a labelling, then done().
template <class Program, class Use, class Done>
void sample(const Program& program, const double* scores, Index n, std::mt19937_64& rng, Workspace& ws, Use&& use,
            Done&& done) {
    Workspace::Frame frame(ws);
    double* chart = frame.take(program.cells());
    double* weight = frame.take(program.most_edges());
    program.up(LogSums<false>{chart, scores});
    const auto draw = [&](const auto& e) {
        return draw_edge(e.count(), edge_scores(e, chart, scores), best_edge(e, chart, scores), weight, rng);
    };
    std::vector<Index> stack;
    for (Index j = 0; j < n; ++j) {
        derive(program, stack, draw, use);
        done();
    }
}

// The k best labellings, best first; fewer if fewer exist. Calls use(slot) for each slot of a labelling, then done().
template <class Program, class Use, class Done>
void k_best(const Program& program, const double* scores, Index k, Workspace& ws, Use&& use, Done&& done) {
    if (k < 1) throw InputError("k must be at least 1");
    Workspace::Frame frame(ws);
    double* chart = frame.take(program.cells());
    program.up(Best{chart, scores});
    KBest<Program> lists(program, chart, scores);
    for (Index rank = 0; rank < k && lists.derivation(rank, use); ++rank) done();
}

}  // namespace partwise::chart
