#include "structures/projective_tree.h"

#include <utility>

#include "structures/eisner_k_best.h"
#include "structures/eisner_plain.h"
#include "structures/eisner_sums.h"
#include "structures/eisner_ties.h"

namespace partwise {

using eisner::Layout;
using eisner::Pairs;

ProjectiveTree::ProjectiveTree(std::vector<Index> lengths, bool single_root, Index max_length)
    : Tree(std::move(lengths), single_root, max_length, [](double n) {
          // Two charts of six squares, scores, weights and marginals; 3 sums over n^3 / 6 pairs, there and back.
          return Work{15 * 8 * n * n, n * n * n};
      }) {}

bool ProjectiveTree::best_heads(Index n, const double* arcs, Index* heads, Workspace& ws) const {
    const Layout layout{n, single_root()};
    Workspace::Frame frame(ws);
    double* chart = frame.take(layout.size());
    eisner::BestSpans best{chart, arcs};
    eisner::upward(layout, best);
    if (best.value == -kInfinity) return false;
    std::vector<std::pair<Index, Index>> spans;
    eisner::Ties ties(layout, chart, frame);
    eisner::derive(layout, heads, spans, [&](const Pairs& p) { return ties.choose(p); });
    return true;
}

double ProjectiveTree::sums(Index n, const double* arcs, double* marginals, double* entropy, Workspace& ws) const {
    double log_z = 0;
    if (!plain_sums(n, arcs, marginals, entropy, log_z, ws)) log_z = log_sums(n, arcs, marginals, entropy, ws);
    return log_z;
}

// The weights of a word's heads are at most 1, so spans are at most the number of trees, below (27/4)^n, and at most
// the product of the words' sums. What is below 1e-308 counts as 0: of Z that is at most the number of spans and pairs,
// n^3, times 1e-308 times such a bound. It must be far below 1e-16 of Z; then slopes, at most the bound / Z, are in
// range too.
bool ProjectiveTree::plain_sums(Index n, const double* arcs, double* marginals, double* entropy, double& log_z,
                                Workspace& ws) const {
    const Layout layout{n, single_root()};
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
    double* chart = frame.take(layout.size());
    eisner::PlainSpans spans{chart, weights};
    eisner::upward(layout, spans);
    log_z = std::log(spans.value);
    if (!(log_bound - log_z <= room)) return false;
    if (!marginals && !entropy) return true;
    if (!marginals) marginals = frame.take(n * (n + 1));
    double* slopes = frame.take(layout.size());
    fill(slopes, layout.size(), 0.0);
    fill(marginals, n * (n + 1), 0.0);
    eisner::downward(layout, eisner::PlainSlopes{chart, weights, slopes, marginals, spans.value});
    if (entropy) {
        double energy = 0;
        for (Index r = 0; r < n * (n + 1); ++r) energy += marginals[r] > 0.0 ? marginals[r] * arcs[r] : 0.0;
        *entropy = std::max(0.0, log_z - energy);
    }
    return true;
}

double ProjectiveTree::log_sums(Index n, const double* arcs, double* marginals, double* entropy, Workspace& ws) const {
    const Layout layout{n, single_root()};
    Workspace::Frame frame(ws);
    double* chart = frame.take(layout.size());
    eisner::LogSpans<false> spans{chart, arcs};
    eisner::upward(layout, spans);
    if (!marginals && !entropy) return spans.value;
    if (!marginals) marginals = frame.take(n * (n + 1));
    double* mass = frame.take(layout.size());
    fill(mass, layout.size(), 0.0);
    fill(marginals, n * (n + 1), 0.0);
    eisner::SpanMasses<false> masses{chart, mass, marginals, frame.take(n + 1), entropy != nullptr};
    eisner::downward(layout, masses);
    if (entropy) *entropy = masses.entropy;
    return spans.value;
}

void ProjectiveTree::covariance_product(Index i, const double* scores, double temperature, const double* direction,
                                        double* out, Workspace& ws) const {
    const Index n = length(i);
    const Layout layout{n, single_root()};
    Workspace::Frame frame(ws);
    double* chart = frame.take(layout.size());
    double* chart_d = frame.take(layout.size());
    const double* arcs = arc_scores(i, scores, 1.0 / temperature, frame);
    eisner::LogSpans<true> spans{chart, arcs, chart_d, direction};
    eisner::upward(layout, spans);
    double* mass = frame.take(layout.size());
    double* mass_d = frame.take(layout.size());
    double* marginals = frame.take(num_slots(i));
    fill(mass, layout.size(), 0.0);
    fill(mass_d, layout.size(), 0.0);
    fill(out, num_slots(i), 0.0);
    eisner::SpanMasses<true> masses{chart, mass, marginals, frame.take(n + 1), false, 0.0, chart_d, mass_d, out};
    eisner::downward(layout, masses);
}

std::vector<SlotCounts> ProjectiveTree::sample(Index i, const double* scores, double temperature, Index n,
                                               std::mt19937_64& rng, Workspace& ws) const {
    const Layout layout{length(i), single_root()};
    Workspace::Frame frame(ws);
    double* chart = frame.take(layout.size());
    double* weight = frame.take(layout.n + 1);
    eisner::LogSpans<false> sums{chart, arc_scores(i, scores, 1.0 / temperature, frame)};
    eisner::upward(layout, sums);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::vector<std::pair<Index, Index>> spans;
    std::vector<Index> heads(idx(layout.n));
    std::vector<SlotCounts> out(idx(n));
    for (SlotCounts& labelling : out) {
        eisner::derive(layout, heads.data(), spans, [&](const Pairs& p) {
            const double high = eisner::best_pair(chart + p.a, chart + p.b, p.count);
            double total = 0;
            for (Index k = 0; k < p.count; ++k) {
                total += weight[k] = fast_exp(chart[p.a + k] + chart[p.b + k] - high);
            }
            double left = uniform(rng) * total;
            Index chosen = -1;
            for (Index k = 0; k < p.count && (chosen < 0 || left >= 0.0); ++k) {
                if (weight[k] == 0.0) continue;
                chosen = k;
                left -= weight[k];
            }
            return chosen;
        });
        labelling_of(i, heads.data(), labelling);
    }
    return out;
}

std::vector<Scored> ProjectiveTree::k_best(Index i, const double* scores, Index k, Workspace& ws) const {
    if (k < 1) throw InputError("k must be at least 1");
    const Layout layout{length(i), single_root()};
    Workspace::Frame frame(ws);
    double* chart = frame.take(layout.size());
    const double* arcs = arc_scores(i, scores, 1.0, frame);
    eisner::BestSpans best{chart, arcs};
    eisner::upward(layout, best);
    eisner::KBest lists(layout, chart, arcs);
    std::vector<Scored> out;
    std::vector<Index> heads(idx(layout.n));
    for (Index rank = 0; rank < k && lists.heads_of_rank(rank, heads.data()); ++rank) {
        Scored scored;
        scored.value = value_of(i, scores, heads.data());
        labelling_of(i, heads.data(), scored.labelling);
        out.push_back(std::move(scored));
    }
    // Sums in another order are rounded otherwise: near ties may have changed places.
    std::stable_sort(out.begin(), out.end(), [](const Scored& p, const Scored& q) { return p.value > q.value; });
    return out;
}

// Two arcs cross if one has exactly one end strictly inside the other.
void ProjectiveTree::check_kind(Index i, const Index* heads) const {
    const Index n = length(i);
    // Words and the root from left to right; each arc must end inside the innermost arc that is open where it begins.
    std::vector<std::vector<Index>> ends(idx(n) + 1);
    for (Index m = 1; m <= n; ++m) {
        const Index low = std::min(m, heads[m - 1]);
        ends[idx(low)].push_back(std::max(m, heads[m - 1]));
    }
    std::vector<Index> open;
    for (Index at = 0; at <= n; ++at) {
        while (!open.empty() && open.back() == at) open.pop_back();
        auto& here = ends[idx(at)];
        std::sort(here.begin(), here.end(), std::greater<>());
        for (const Index end : here) {
            if (!open.empty() && open.back() < end) {
                refuse(i, "is not projective: the arc between " + std::to_string(at) + " and " + std::to_string(end) +
                              " crosses one that ends at " + std::to_string(open.back()));
            }
            open.push_back(end);
        }
    }
}

}  // namespace partwise
