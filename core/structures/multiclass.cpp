#include "structures/multiclass.h"

#include "structures/width_dispatch.h"
#include "support/extremes.h"

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

namespace {

// The score of padding: its exp is 0.
constexpr double kNowhere = -1e300;

// p_a = exp((x_a - max) / tau) / sum; H = log sum - sum_a p_a (x_a - max) / tau: nothing large is subtracted.
// Loop by loop over all examples, so that few labels fill vector registers too. `values` and `entropies` hold the
// maximum and sum_a exp(.) (x_a - max) until the last loop but one.
template <int W>
void partition_rows(Index n, Index n_labels, Index padded, const double* __restrict scores, double temperature,
                    double* __restrict values, double* __restrict marginals, double* __restrict entropies,
                    double* __restrict sums) {
    const Index width = W > 0 ? W : padded;
    const double scale = 1.0 / temperature;
    for (Index k = 0; k < n; ++k) {
        const double* __restrict x = scores + k * width;
        double* __restrict below = marginals + k * width;
        double high = kNowhere;
        PARTWISE_SIMD_MAX(high)
        for (Index a = 0; a < width; ++a) {
            const double here = a < n_labels ? x[a] : kNowhere;
            high = here > high ? here : high;
        }
        for (Index a = 0; a < width; ++a) below[a] = a < n_labels ? x[a] - high : kNowhere;
        values[k] = high;
    }
    const Index all = n * width;
#pragma omp simd
    for (Index r = 0; r < all; ++r) marginals[r] = fast_exp(marginals[r] * scale);
    for (Index k = 0; k < n; ++k) {
        const double* __restrict x = scores + k * width;
        const double* __restrict weight = marginals + k * width;
        const double high = values[k];
        double sum = 0;
        double moment = 0;
#pragma omp simd reduction(+ : sum, moment)
        for (Index a = 0; a < width; ++a) {
            sum += weight[a];
            moment += a < n_labels ? weight[a] * (x[a] - high) : 0.0;
        }
        entropies[k] = moment;
        sums[k] = sum;
    }
#pragma omp simd
    for (Index k = 0; k < n; ++k) {
        const double log_sum = fast_log1p(sums[k] - 1.0);
        const double inverse = 1.0 / sums[k];
        const double entropy = log_sum - entropies[k] * scale * inverse;
        values[k] += temperature * log_sum;
        entropies[k] = entropy > 0.0 ? entropy : 0.0;
        sums[k] = inverse;
    }
    for (Index k = 0; k < n; ++k) {
        for (Index a = 0; a < width; ++a) marginals[k * width + a] *= sums[k];
    }
}

// Two labels need one exp: with d = |x_1 - x_0| / tau and e = exp(-d), the worse one has p = e / (1 + e), and
// H = log(1 + e) + d e / (1 + e). `ratios` is scratch (two values per example).
void partition_pairs(Index n, Index width, const double* __restrict scores, double temperature,
                     double* __restrict values, double* __restrict marginals, double* __restrict entropies,
                     double* __restrict ratios) {
    const double scale = 1.0 / temperature;
    for (Index k = 0; k < n; ++k) {
        const double zero = scores[k * width];
        const double one = scores[k * width + 1];
        values[k] = zero > one ? zero : one;
        ratios[k] = (one - zero) * scale;
    }
#pragma omp simd
    for (Index k = 0; k < n; ++k) {
        const double distance = std::abs(ratios[k]);
        const double e = fast_exp(-distance);
        const double inverse = 1.0 / (1.0 + e);
        const double log_sum = fast_log1p(e);
        const double worse = e * inverse;
        values[k] += temperature * log_sum;
        entropies[k] = log_sum + distance * worse;
        const bool second = ratios[k] >= 0.0;
        ratios[n + k] = second ? worse : inverse;
        ratios[k] = second ? inverse : worse;
    }
    for (Index k = 0; k < n; ++k) {
        double* __restrict p = marginals + k * width;
        p[0] = ratios[n + k];
        p[1] = ratios[k];
        for (Index a = 2; a < width; ++a) p[a] = 0.0;
    }
}

}  // namespace

void Multiclass::log_partition_of(Index begin, Index end, const double* scores, double temperature, double* values,
                                  double* marginals, double* entropies, Workspace& ws) const {
    if (masked() || temperature == 0.0) {
        return Structure::log_partition_of(begin, end, scores, temperature, values, marginals, entropies, ws);
    }
    const Index n = end - begin;
    Workspace::Frame frame(ws);
    double* sums = frame.take(2 * n);
    if (n_labels_ == 2) return partition_pairs(n, width_, scores, temperature, values, marginals, entropies, sums);
    with_width(width_, [&](auto width) {
        partition_rows<width()>(n, n_labels_, width_, scores, temperature, values, marginals, entropies, sums);
    });
}

void Multiclass::log_values_of(Index begin, Index end, const double* scores, double temperature, double* values,
                               Workspace& ws) const {
    Workspace::Frame frame(ws);
    double* marginals = frame.take((end - begin) * width_);
    log_partition_of(begin, end, scores, temperature, values, marginals, frame.take(end - begin), ws);
}

double Multiclass::log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                                 Workspace& ws) const {
    Workspace::Frame frame(ws);
    double* p = marginals ? marginals : frame.take(width_);
    if (temperature > 0.0 && !masked()) {
        double value = 0;
        double unused = 0;
        log_partition_of(i, i + 1, scores, temperature, &value, p, entropy ? entropy : &unused, ws);
        return value;
    }
    SlotCounts best;
    const double high = maximize(i, scores, best, ws);
    if (temperature == 0.0) {
        fill(p, width_, 0.0);
        p[best.slots[0]] = 1.0;
        if (entropy) *entropy = 0.0;
        return high;
    }
    const double scale = 1.0 / temperature;
    double sum = 0;
    double moment = 0;
    for (Index a = 0; a < width_; ++a) {
        const bool there = a < n_labels_ && allows(i, a);
        p[a] = there ? fast_exp((scores[a] - high) * scale) : 0.0;
        sum += p[a];
        moment += there ? p[a] * (scores[a] - high) : 0.0;
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
        throw InputError("example ", i, ": expected exactly one label");
    }
    if (!allows(i, labelling.slots[0])) {
        throw InputError("example ", i, ": its mask forbids label ", labelling.slots[0]);
    }
}

void Multiclass::check_mask(Index i) const {
    for (Index a = 0; a < n_labels_; ++a) {
        if (allows(i, a)) return;
    }
    throw InputError("the mask of example ", i, " allows no label");
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
        out.push_back({scores[a], {{a}, {1.0}}});
    }
    return out;
}

std::vector<SlotCounts> Multiclass::sample(Index i, const double* scores, double temperature, Index n,
                                           std::mt19937_64& rng, Workspace& ws) const {
    Workspace::Frame frame(ws);
    double* p = frame.take(width_);
    log_partition(i, scores, temperature, p, nullptr, ws);
    std::discrete_distribution<Index> draw(p, p + n_labels_);
    std::vector<SlotCounts> out(n);
    for (SlotCounts& labelling : out) labelling.add(draw(rng), 1.0);
    return out;
}

void Multiclass::covariance_product(Index i, const double* scores, double temperature, const double* direction,
                                    double* out, Workspace& ws) const {
    Workspace::Frame frame(ws);
    double* p = frame.take(width_);
    log_partition(i, scores, temperature, p, nullptr, ws);
    const double one = 1.0;
    covariance_of_marginals(i, i + 1, p, direction, &one, out);
}

// Cov = diag(p) - p p'; padding has p = 0.
void Multiclass::covariance_of_marginals(Index begin, Index end, const double* marginals, const double* direction,
                                         const double* factors, double* out) const {
    with_width(width_, [&](auto constant) {
        constexpr int W = constant();
        const Index width = W > 0 ? W : width_;
        for (Index k = 0; k < end - begin; ++k) {
            const double* p = marginals + k * width;
            const double* d = direction + k * width;
            double* product = out + k * width;
            const double factor = factors[k];
            double mean = 0;
#pragma omp simd reduction(+ : mean)
            for (Index a = 0; a < width; ++a) mean += p[a] * d[a];
            for (Index a = 0; a < width; ++a) product[a] = factor * p[a] * (d[a] - mean);
        }
    });
}

double Multiclass::clique_marginals(Index i, const double* scores, double temperature, double* out,
                                    Workspace& ws) const {
    return log_partition(i, scores, temperature, out, nullptr, ws);
}

void Multiclass::slots_from_cliques(Index, const double* cliques, double* slots) const { copy(cliques, slots, width_); }

double Multiclass::clique_disagreement(Index, const double* cliques, Workspace&) const {
    double worst = 0;  // padding must have no mass
    for (Index a = n_labels_; a < width_; ++a) worst = std::max(worst, std::abs(cliques[a]));
    return worst;
}

double Multiclass::entropy_of_cliques(Index, const double* cliques, double* gradient, Workspace&) const {
    double entropy = 0;
    for (Index a = 0; a < n_labels_; ++a) entropy -= cliques[a] * safe_log(cliques[a]);
    for (Index a = 0; gradient && a < width_; ++a) gradient[a] = a < n_labels_ ? -1.0 - safe_log(cliques[a]) : 0.0;
    return entropy;
}

Along Multiclass::entropy_along(Index, const double* cliques, const double* direction, double step, Workspace&) const {
    Along out;
    add_entropy(1.0, cliques, direction, step, n_labels_, out);
    return out;
}

void Multiclass::scores_from_cliques(Index, const double* cliques, double* out) const {
    for (Index a = 0; a < width_; ++a) out[a] = a < n_labels_ ? safe_log(cliques[a]) : 0.0;
}

void Multiclass::clique_entries(Index, SlotView labelling, Index* entries, Workspace&) const {
    entries[0] = labelling.slots[0];
}

double Multiclass::maximize_in_support(Index i, const double* scores, const double* cliques, double least,
                                       SlotCounts& best, Workspace&) const {
    Index chosen = -1;
    for (Index a = 0; a < n_labels_; ++a) {
        if (cliques[a] > least && (chosen < 0 || scores[a] > scores[chosen])) chosen = a;
    }
    if (chosen < 0) no_support(i);
    best.clear();
    best.add(chosen, 1.0);
    return scores[chosen];
}

}  // namespace partwise
