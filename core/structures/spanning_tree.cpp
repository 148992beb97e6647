#include "structures/spanning_tree.h"

#include <queue>

#include "structures/state_reduction.h"

namespace partwise {

namespace {

// Sums below exp(this) times the product of all words' weights are computed with logarithms. In doubles, weights below
// 1e-308 are 0; the trees lost so have in all at most n^3 * 1e-308 times that product, which is negligible in a larger
// sum.
double least_log(Index n) { return -600.0 + 3.0 * std::log(static_cast<double>(n + 1)); }

// Probabilities of a word's heads 0..n from weights w and escape probabilities e.
template <class Num>
void head_probabilities(const Num* w, const Num* e, Index n, bool root_counts, double* p) {
    double high = -kInfinity;
    for (Index h = 0; h <= n; ++h) {
        p[h] = h == 0 && !root_counts ? kLogOfZero : w[h].log + e[h].log;
        high = std::max(high, p[h]);
    }
    double sum = 0;
    for (Index h = 0; h <= n; ++h) sum += p[h] = fast_exp(p[h] - high);
    for (Index h = 0; h <= n; ++h) p[h] /= sum;
}

}  // namespace

SpanningTree::SpanningTree(std::vector<Index> lengths, bool single_root, Index max_length)
    : Tree(std::move(lengths), single_root, max_length, [](double n) {
          // Scores, marginals, weights and their eliminations, contracted arcs; two eliminations of halves,
          // recursively, and n^2 / 2 per word.
          return Work{13 * 8 * n * n, 1.3 * n * n * n};
      }) {}

bool SpanningTree::best_heads(Index n, const double* arcs, Index* heads, Workspace&) const {
    return best_arborescence(n, arcs, single_root(), heads);
}

double SpanningTree::shift_to_best(Index n, double* arcs, Workspace& ws) const {
    std::vector<Index> heads(n);
    best_heads(n, arcs, heads.data(), ws);
    double total = 0;
    for (Index m = 0; m < n; ++m) {
        double* column = arcs + m * (n + 1);
        const double best = column[heads[m]];
        for (Index h = 0; h <= n; ++h) column[h] -= best;
        total += best;
    }
    return total;
}

double SpanningTree::sums(Index n, const double* arcs, double* marginals, double* entropy, Workspace& ws) const {
    Workspace::Frame frame(ws);
    if (entropy && !marginals) marginals = frame.take(n * (n + 1));
    const double* used = arcs;
    double shift = 0;
    double log_z = 0;
    if (!plain_sums(n, arcs, marginals, log_z, ws)) {
        double* shifted = frame.take(n * (n + 1));
        copy(arcs, shifted, n * (n + 1));
        shift = shift_to_best(n, shifted, ws);
        log_sums(n, shifted, marginals, log_z, ws);
        used = shifted;
    }
    if (entropy) *entropy = entropy_of_sums(log_z, marginals, used, n * (n + 1));
    return shift + log_z;
}

bool SpanningTree::plain_sums(Index n, const double* arcs, double* marginals, double& log_z, Workspace& ws) const {
    Workspace::Frame frame(ws);
    double* weights = frame.take(n * (n + 1));
    for (Index r = 0; r < n * (n + 1); ++r) weights[r] = fast_exp(arcs[r]);
    double bound = 0;
    for (Index m = 0; m < n; ++m) bound += std::log(sum_of(weights + m * (n + 1), n + 1));
    StateReduction<double> reduction(n, weights, single_root(), ws);
    if (!marginals) return reduction.total(log_z) && log_z - bound > least_log(n);
    const bool finite = reduction.each_word(log_z, [&](Index m, const double* e, bool root_counts) -> Index {
        const double* w = weights + (m - 1) * (n + 1);
        double* out = marginals + (m - 1) * (n + 1);
        for (Index h = 0; h <= n; ++h) out[h] = w[h] * e[h];
        if (!root_counts) out[0] = 0.0;
        const double sum = sum_of(out, n + 1);
        if (!(sum > 0.0 && sum < kInfinity)) return StateReduction<double>::kStop;
        for (Index h = 0; h <= n; ++h) out[h] /= sum;
        return StateReduction<double>::kGoOn;
    });
    return finite && log_z - bound > least_log(n);
}

void SpanningTree::log_sums(Index n, const double* arcs, double* marginals, double& log_z, Workspace& ws) const {
    std::vector<LogNumber> weights(n * (n + 1));
    for (Index r = 0; r < n * (n + 1); ++r) weights[r] = {std::max(arcs[r], kLogOfZero)};
    StateReduction<LogNumber> reduction(n, weights.data(), single_root(), ws);
    if (!marginals) {
        reduction.total(log_z);
        return;
    }
    reduction.each_word(log_z, [&](Index m, const LogNumber* e, bool root_counts) -> Index {
        const Index first = (m - 1) * (n + 1);
        head_probabilities(weights.data() + first, e, n, root_counts, marginals + first);
        return StateReduction<LogNumber>::kGoOn;
    });
}

void SpanningTree::covariance_product(Index i, const double* scores, double temperature, const double* direction,
                                      double* out, Workspace& ws) const {
    const Index n = length(i);
    Workspace::Frame frame(ws);
    double* arcs = arc_scores(i, scores, 1.0 / temperature, frame);
    shift_to_best(n, arcs, ws);
    if (plain_tangents(n, arcs, direction, out, ws)) return;
    std::vector<LogDual> weights(num_slots(i));
    for (Index r = 0; r < num_slots(i); ++r) weights[r] = {std::max(arcs[r], kLogOfZero), direction[r]};
    StateReduction<LogDual> reduction(n, weights.data(), single_root(), ws);
    double log_z = 0;
    reduction.each_word(log_z, [&](Index m, const LogDual* e, bool root_counts) -> Index {
        const LogDual* w = weights.data() + (m - 1) * (n + 1);
        double* p = out + (m - 1) * (n + 1);
        head_probabilities(w, e, n, root_counts, p);
        double mean = 0;
        for (Index h = 0; h <= n; ++h) mean += p[h] * (w[h].d + e[h].d);
        for (Index h = 0; h <= n; ++h) p[h] *= w[h].d + e[h].d - mean;
        return StateReduction<LogDual>::kGoOn;
    });
}

// P(h -> m) = x_h / sum of x with x_h = w(h, m) e(h); its tangent is (x_h' - P(h -> m) sum of x') / sum of x.
bool SpanningTree::plain_tangents(Index n, const double* arcs, const double* direction, double* out,
                                  Workspace& ws) const {
    std::vector<Dual> weights(n * (n + 1));
    double bound = 0;
    for (Index m = 0; m < n; ++m) {
        const double* column = arcs + m * (n + 1);
        const double high = largest(column, n + 1);
        double sum = 0;
        for (Index h = 0; h <= n; ++h) {
            const double w = fast_exp(column[h] - high);
            weights[m * (n + 1) + h] = {w, w * direction[m * (n + 1) + h]};
            sum += w;
        }
        bound += std::log(sum);
    }
    StateReduction<Dual> reduction(n, weights.data(), single_root(), ws);
    double log_z = 0;
    const bool finite = reduction.each_word(log_z, [&](Index m, const Dual* e, bool root_counts) -> Index {
        const Dual* w = weights.data() + (m - 1) * (n + 1);
        double* p = out + (m - 1) * (n + 1);
        const Index first = root_counts ? 0 : 1;
        const Dual sum = dot_of(w + first, e + first, n + 1 - first);
        if (!(sum.value > 0.0 && sum.value < kInfinity && std::isfinite(sum.d))) return StateReduction<Dual>::kStop;
        p[0] = 0.0;
        for (Index h = first; h <= n; ++h) p[h] = (w[h] * e[h] / sum).d;
        return StateReduction<Dual>::kGoOn;
    });
    return finite && log_z - bound > least_log(n) && all_finite(out, n * (n + 1));
}

// Word by word: a head is drawn from its distribution given the heads drawn before.
std::vector<SlotCounts> SpanningTree::sample(Index i, const double* scores, double temperature, Index n,
                                             std::mt19937_64& rng, Workspace& ws) const {
    const Index words = length(i);
    Workspace::Frame frame(ws);
    double* arcs = arc_scores(i, scores, 1.0 / temperature, frame);
    double* p = frame.take(words + 1);
    shift_to_best(words, arcs, ws);
    std::vector<LogNumber> weights(num_slots(i));
    std::vector<Index> heads(words);
    std::vector<SlotCounts> out(n);
    for (SlotCounts& labelling : out) {
        for (Index r = 0; r < num_slots(i); ++r) weights[r] = {std::max(arcs[r], kLogOfZero)};
        StateReduction<LogNumber> reduction(words, weights.data(), single_root(), ws);
        double log_z = 0;
        reduction.each_word(log_z, [&](Index m, const LogNumber* e, bool root_counts) {
            head_probabilities(weights.data() + (m - 1) * (words + 1), e, words, root_counts, p);
            return heads[m - 1] = draw_one(p, words + 1, 1.0, rng);
        });
        labelling_of(i, heads.data(), labelling);
    }
    return out;
}

// Lawler's partition: the trees that are left once the best of a set is taken are, for each word m after those already
// fixed, the ones that agree with it on the words before m and differ at m. The best of each part waits in a queue.
std::vector<Scored> SpanningTree::k_best(Index i, const double* scores, Index k, Workspace& ws) const {
    if (k < 1) throw InputError("k must be at least 1");
    const Index n = length(i);
    struct Part {
        Scored best;                   // its best tree
        std::vector<Index> heads;      // the same
        Index fixed;                   // words whose heads all of its trees share
        std::vector<Index> forbidden;  // heads that the next word may not have
        bool operator<(const Part& other) const { return best.value < other.best.value; }
    };
    Workspace::Frame frame(ws);
    const double* arcs = arc_scores(i, scores, 1.0, frame);
    double* limited = frame.take(num_slots(i));
    std::priority_queue<Part> queue;
    const auto enter = [&](Index fixed, const std::vector<Index>& like, std::vector<Index> forbidden) {
        Interrupt::check_current();
        copy(arcs, limited, num_slots(i));
        for (Index m = 0; m < fixed; ++m) {
            for (Index h = 0; h <= n; ++h) {
                if (h != like[m]) limited[m * (n + 1) + h] = -kInfinity;
            }
        }
        for (const Index h : forbidden) limited[fixed * (n + 1) + h] = -kInfinity;
        std::vector<Index> heads(n);
        if (!best_heads(n, limited, heads.data(), ws)) return;
        Scored best;
        best.value = scored_labelling(i, scores, heads.data(), best.labelling);
        queue.push({std::move(best), std::move(heads), fixed, std::move(forbidden)});
    };
    enter(0, {}, {});
    std::vector<Scored> out;
    while (!queue.empty()) {
        const Part part = queue.top();
        queue.pop();
        out.push_back(part.best);
        if (len(out.size()) == k) break;
        for (Index m = part.fixed; m < n; ++m) {
            std::vector<Index> forbidden = m == part.fixed ? part.forbidden : std::vector<Index>{};
            forbidden.push_back(part.heads[m]);
            enter(m, part.heads, std::move(forbidden));
        }
    }
    // Rounding may have put near ties in the wrong order.
    std::ranges::stable_sort(out, std::greater<>(), &Scored::value);
    return out;
}

}  // namespace partwise
