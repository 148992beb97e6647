#include "structures/projective_tree.h"

#include "structures/chart_ties.h"
#include "structures/numbers.h"

// Sums over a chart's derivations in doubles, with no exponential inside the sums, for edges that are pairs of cells.
// The caller must check that the weights' range allows it, as ProjectiveTree::plain_sums does.
namespace partwise::chart {

// Visitor, up: the sum over the derivations of each cell of the product of their slots' weights.
struct ProductSums {
    double* chart;
    const double* weights;

    void unit(Index cell, Index twin) { chart[cell] = chart[twin] = 1.0; }
    void score(Index cell, Index tail, Index slot) { chart[cell] = chart[tail] * weights[slot]; }
    [[gnu::always_inline]] void sum(Index cell, Index twin, const Pairs& e) {
        chart[cell] = chart[twin] = dot(chart + e.a, chart + e.b, e.n);
    }
    void cut(Index, Index) {}
};

// Visitor, down: derivatives of log Z with respect to each cell's value; a cell's probability is its value times that.
// slopes and marginals start as zeros, the root's slope as 1 / Z.
struct ProductSlopes {
    const double* chart;  // of ProductSums
    const double* weights;
    double* slopes;
    double* marginals;

    void unit(Index, Index) {}
    void score(Index cell, Index tail, Index slot) {
        slopes[tail] += slopes[cell] * weights[slot];
        marginals[slot] += slopes[cell] * chart[cell];
    }
    void sum(Index cell, Index twin, const Pairs& e) {
        const double slope = slopes[cell] + (cell != twin ? slopes[twin] : 0.0);
        const double* __restrict a = chart + e.a;
        const double* __restrict b = chart + e.b;
        double* __restrict slopes_a = slopes + e.a;
        double* __restrict slopes_b = slopes + e.b;
        for (Index k = 0; k < e.n; ++k) {
            slopes_a[k] += slope * b[k];
            slopes_b[k] += slope * a[k];
        }
    }
};

}  // namespace partwise::chart

namespace partwise {

ProjectiveTree::ProjectiveTree(std::vector<Index> lengths, bool single_root, Index max_length)
    : ChartStructure(std::move(lengths), single_root, max_length, [](double n) {
          // Two charts of six squares, scores, weights and marginals; 3 sums over n^3 / 6 pairs, there and back.
          return Work{15 * 8 * n * n, n * n * n};
      }) {}

bool ProjectiveTree::best_heads(Index n, const double* arcs, Index* heads, Workspace& ws) const {
    const EisnerProgram program{n, single_root()};
    Workspace::Frame frame(ws);
    double* chart = frame.take(program.cells());
    program.up(chart::Best{chart, arcs});
    if (chart[program.root()] == -kInfinity) return false;
    const auto head = [n](Index arc) { return static_cast<double>(arc % (n + 1)); };
    chart::Ties ties(program, chart, arcs, head, frame);
    std::vector<Index> stack;
    chart::derive(
        program, stack, [&](const auto& edges) { return ties.choose(edges); },
        [&](Index arc) { heads[arc / (n + 1)] = arc % (n + 1); });
    return true;
}

double ProjectiveTree::sums(Index n, const double* arcs, double* marginals, double* entropy, Workspace& ws) const {
    double log_z = 0;
    if (plain_sums(n, arcs, marginals, entropy, log_z, ws)) return log_z;
    return chart::log_partition(EisnerProgram{n, single_root()}, arcs, marginals, entropy, ws);
}

// The weights of a word's heads are at most 1, so spans are at most the number of trees, below (27/4)^n, and at most
// the product of the words' sums. What is below 1e-308 counts as 0: of Z that is at most the number of spans and pairs,
// n^3, times 1e-308 times such a bound. It must be far below 1e-16 of Z; then slopes, at most the bound / Z, are in
// range too.
bool ProjectiveTree::plain_sums(Index n, const double* arcs, double* marginals, double* entropy, double& log_z,
                                Workspace& ws) const {
    const EisnerProgram program{n, single_root()};
    Workspace::Frame frame(ws);
    double* weights = frame.take(n * (n + 1));
    for (Index r = 0; r < n * (n + 1); ++r) weights[r] = fast_exp(arcs[r]);
    double log_bound = 0;
    for (Index m = 0; m < n; ++m) {
        double sum = 0;
        for (Index h = 0; h <= n; ++h) sum += weights[m * (n + 1) + h];
        log_bound += std::log(sum);
    }
    log_bound = std::min(log_bound, static_cast<double>(n) * std::log(27.0 / 4.0));
    const double room = 640.0 - 3.0 * std::log(static_cast<double>(n + 1));
    if (log_bound > room) return false;
    double* chart = frame.take(program.cells());
    program.up(chart::ProductSums{chart, weights});
    const double z = chart[program.root()];
    log_z = std::log(z);
    if (!(log_bound - log_z <= room)) return false;
    if (!marginals && !entropy) return true;
    if (!marginals) marginals = frame.take(n * (n + 1));
    double* slopes = frame.zeros(program.cells());
    fill(marginals, n * (n + 1), 0.0);
    slopes[program.root()] = 1.0 / z;
    program.down(chart::ProductSlopes{chart, weights, slopes, marginals});
    if (entropy) *entropy = entropy_of_sums(log_z, marginals, arcs, n * (n + 1));
    return true;
}

// The chart adds scores in another order than value_of: rounding may swap near ties, so the result is sorted again.
std::vector<Scored> ProjectiveTree::k_best(Index i, const double* scores, Index k, Workspace& ws) const {
    std::vector<Scored> out = ChartStructure::k_best(i, scores, k, ws);
    std::ranges::stable_sort(out, std::greater<>(), &Scored::value);
    return out;
}

// Two arcs cross if one has exactly one end strictly inside the other.
void ProjectiveTree::check_kind(Index i, const Index* heads) const {
    const Index n = length(i);
    // Words and the root from left to right; each arc must end inside the innermost arc that is open where it begins.
    std::vector<std::vector<Index>> ends(n + 1);
    for (Index m = 1; m <= n; ++m) {
        const Index low = std::min(m, heads[m - 1]);
        ends[low].push_back(std::max(m, heads[m - 1]));
    }
    std::vector<Index> open;
    for (Index at = 0; at <= n; ++at) {
        while (!open.empty() && open.back() == at) open.pop_back();
        auto& here = ends[at];
        std::sort(here.begin(), here.end(), std::greater<>());
        for (const Index end : here) {
            if (!open.empty() && open.back() < end) {
                refuse(i, "is not projective: the arc between ", at, " and ", end, " crosses one that ends at ",
                       open.back());
            }
            open.push_back(end);
        }
    }
}

template class ChartStructure<ProjectiveTree, Tree>;

}  // namespace partwise
