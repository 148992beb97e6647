#include "structures/multiclass.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/vector_math.h"

namespace partwise {

Multiclass::Multiclass(Index num_examples, Index n_labels)
    : Structure(num_examples), n_labels_(n_labels), width_(padded_width(n_labels)) {
    if (n_labels < 1) throw InputError("a multiclass structure needs at least one label");
}

double Multiclass::maximize(Index i, const double* scores, SlotCounts& best, Workspace&) const {
    Index arg = -1;
    for (Index a = 0; a < n_labels_; ++a) {
        if (allows(i, a) && (arg < 0 || scores[a] > scores[arg])) arg = a;
    }
    best.clear();
    best.add(arg, 1.0);
    return scores[arg];
}

// p_a = exp((x_a - max) / tau) / sum; H = log sum - sum_a p_a (x_a - max) / tau: nothing large is subtracted.
double Multiclass::log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                                 Workspace& ws) const {
    Workspace::Frame frame(ws);
    double* p = marginals ? marginals : frame.take(width_);
    SlotCounts best;
    double high = -kInfinity;
    if (mask(i)) {
        high = maximize(i, scores, best, ws);
    } else {
        for (Index a = 0; a < n_labels_; ++a) high = std::max(high, scores[a]);
    }
    if (temperature == 0.0) {
        maximize(i, scores, best, ws);
        fill(p, width_, 0.0);
        p[best.slots[0]] = 1.0;
        if (entropy) *entropy = 0.0;
        return high;
    }
    const double scale = 1.0 / temperature;
    for (Index a = 0; a < width_; ++a) p[a] = fast_exp((scores[a] - high) * scale);
    for (Index a = n_labels_; a < width_; ++a) p[a] = 0.0;
    if (mask(i)) {
        for (Index a = 0; a < n_labels_; ++a) p[a] = allows(i, a) ? p[a] : 0.0;
    }
    double sum = 0;
    double moment = 0;
#pragma omp simd reduction(+ : sum, moment)
    for (Index a = 0; a < width_; ++a) {
        sum += p[a];
        moment += p[a] > 0.0 ? p[a] * (scores[a] - high) : 0.0;
    }
    const double log_sum = std::log(sum);
    const double inverse = 1.0 / sum;
    for (Index a = 0; a < width_; ++a) p[a] *= inverse;
    if (entropy) *entropy = std::max(0.0, log_sum - moment * scale * inverse);
    return high + temperature * log_sum;
}

void Multiclass::add_cost(Index, SlotView gold, double scale, double* scores) const {
    for (Index a = 0; a < n_labels_; ++a) scores[a] += scale;
    for (const Index slot : gold.slots) scores[slot] -= scale;
}

void Multiclass::check_labelling(Index i, SlotView labelling, Workspace&) const {
    if (labelling.slots.size() != 1 || labelling.counts[0] != 1.0 || labelling.slots[0] < 0 ||
        labelling.slots[0] >= n_labels_) {
        throw InputError("example " + std::to_string(i) + ": not one label");
    }
    if (!allows(i, labelling.slots[0])) {
        throw InputError("example " + std::to_string(i) + ": its mask forbids label " +
                         std::to_string(labelling.slots[0]));
    }
}

void Multiclass::check_mask(Index i) const {
    for (Index a = 0; a < n_labels_; ++a) {
        if (allows(i, a)) return;
    }
    throw InputError("the mask of example " + std::to_string(i) + " allows no label");
}

std::vector<Scored> Multiclass::k_best(Index i, const double* scores, Index k, Workspace&) const {
    if (k < 1) throw InputError("k must be at least 1");
    std::vector<Index> order;
    for (Index a = 0; a < n_labels_; ++a) {
        if (allows(i, a)) order.push_back(a);
    }
    std::stable_sort(order.begin(), order.end(), [&](Index p, Index q) { return scores[p] > scores[q]; });
    std::vector<Scored> out;
    for (const Index a : order) {
        if (len(out.size()) == k) break;
        Scored scored;
        scored.value = scores[a];
        scored.labelling.add(a, 1.0);
        out.push_back(std::move(scored));
    }
    return out;
}

std::vector<SlotCounts> Multiclass::sample(Index i, const double* scores, double temperature, Index n,
                                           std::mt19937_64& rng, Workspace& ws) const {
    Workspace::Frame frame(ws);
    double* p = frame.take(width_);
    log_partition(i, scores, temperature, p, nullptr, ws);
    std::discrete_distribution<Index> draw(p, p + n_labels_);
    std::vector<SlotCounts> out(idx(n));
    for (SlotCounts& labelling : out) labelling.add(draw(rng), 1.0);
    return out;
}

void Multiclass::covariance_product(Index i, const double* scores, double temperature, const double* direction,
                                    double* out, Workspace& ws) const {
    Workspace::Frame frame(ws);
    double* p = frame.take(width_);
    log_partition(i, scores, temperature, p, nullptr, ws);
    double mean = 0;
    for (Index a = 0; a < n_labels_; ++a) mean += p[a] * direction[a];
    for (Index a = 0; a < width_; ++a) out[a] = a < n_labels_ ? p[a] * (direction[a] - mean) : 0.0;
}

void Multiclass::clique_marginals(Index i, const double* scores, double temperature, double* out, Workspace& ws) const {
    log_partition(i, scores, temperature, out, nullptr, ws);
}

void Multiclass::slots_from_cliques(Index, const double* cliques, double* slots) const { copy(cliques, slots, width_); }

double Multiclass::entropy_of_cliques(Index, const double* cliques, double* gradient, Workspace&) const {
    double entropy = 0;
    for (Index a = 0; a < n_labels_; ++a) entropy -= cliques[a] * safe_log(cliques[a]);
    for (Index a = 0; gradient && a < width_; ++a) gradient[a] = a < n_labels_ ? -1.0 - safe_log(cliques[a]) : 0.0;
    return entropy;
}

void Multiclass::scores_from_cliques(Index, const double* cliques, double* out) const {
    for (Index a = 0; a < width_; ++a) out[a] = a < n_labels_ ? safe_log(cliques[a]) : 0.0;
}

}  // namespace partwise
