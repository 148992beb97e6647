#include "structures/structure.h"

#include <array>

#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

namespace {
[[noreturn]] void lacks(const char* capability) {
    throw InputError(std::string("this structure does not offer the capability '") + capability + "'");
}
}  // namespace

Structure::Structure(Index num_examples) : num_examples_(num_examples) {
    if (num_examples < 0) throw InputError("the number of examples is negative");
}

double Structure::value_of(Index, const double* scores, SlotView labelling) const {
    double value = 0;
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) value += labelling.counts[k] * scores[labelling.slots[k]];
    return value;
}

void Structure::check_labelling(Index, SlotView, Workspace&) const {}
void Structure::check_mask(Index) const {}

void Structure::maximize_of(std::span<const Index> examples, const double* const* scores, double* values,
                            SlotCounts* best, Workspace& ws) const {
    for (std::size_t k = 0; k < examples.size(); ++k) values[k] = maximize(examples[k], scores[k], best[k], ws);
}

double Structure::maximum_as_sums(Index i, const double* scores, double* marginals, double* entropy,
                                  Workspace& ws) const {
    SlotCounts best;
    const double value = maximize(i, scores, best, ws);
    if (marginals) {
        fill(marginals, num_slots(i), 0.0);
        for (std::size_t k = 0; k < best.slots.size(); ++k) marginals[best.slots[k]] += best.counts[k];
    }
    if (entropy) *entropy = 0.0;
    return value;
}

void Structure::log_partition_of(Index begin, Index end, const double* scores, double temperature, double* values,
                                 double* marginals, double* entropies, Workspace& ws) const {
    Index slot = 0;
    for (Index i = begin; i < end; slot += num_slots(i), ++i) {
        values[i - begin] = log_partition(i, scores + slot, temperature, marginals + slot, entropies + (i - begin), ws);
    }
}

void Structure::log_values_of(Index begin, Index end, const double* scores, double temperature, double* values,
                              Workspace& ws) const {
    for (Index i = begin; i < end; scores += num_slots(i), ++i) {
        values[i - begin] = log_partition(i, scores, temperature, nullptr, nullptr, ws);
    }
}

std::vector<Scored> Structure::k_best(Index, const double*, Index, Workspace&) const { lacks("k_best"); }
std::vector<SlotCounts> Structure::sample(Index, const double*, double, Index, std::mt19937_64&, Workspace&) const {
    lacks("sample");
}
void Structure::covariance_product(Index, const double*, double, const double*, double*, Workspace&) const {
    lacks("covariance");
}
void Structure::covariance_of_marginals(Index, Index, const double*, const double*, const double*, double*) const {
    lacks("one part");
}
std::vector<Index> Structure::clique_offsets(Index) const { lacks("cliques"); }
double Structure::clique_marginals(Index, const double*, double, double*, Workspace&) const { lacks("cliques"); }
void Structure::slots_from_cliques(Index, const double*, double*) const { lacks("cliques"); }
double Structure::entropy_of_cliques(Index, const double*, double*, Workspace&) const { lacks("cliques"); }

Along Structure::entropy_along(Index i, const double* cliques, const double* direction, double step,
                               Workspace& ws) const {
    constexpr double kApart = 1e-4;
    const Index n = clique_offsets(i).back();
    Workspace::Frame frame(ws);
    double* point = frame.take(n);
    double* gradient = frame.take(n);
    const auto slope_at = [&](double at, double& value) {
        for (Index k = 0; k < n; ++k) point[k] = cliques[k] + at * direction[k];
        value = entropy_of_cliques(i, point, gradient, ws);
        return dot(gradient, direction, n);
    };
    Along out;
    double unused = 0;
    const double before = std::max(step - kApart * step, 0.0);
    const double after = std::min(step + kApart * (1.0 - step), 1.0);
    out.slope = slope_at(step, out.value);
    out.curvature = (slope_at(after, unused) - slope_at(before, unused)) / (after - before);
    return out;
}
void Structure::scores_from_cliques(Index, const double*, double*) const { lacks("cliques"); }
void Structure::clique_entries(Index, SlotView, Index*, Workspace&) const { lacks("clique support"); }
double Structure::maximize_in_support(Index, const double*, const double*, double, SlotCounts&, Workspace&) const {
    lacks("clique support");
}
void Structure::no_support(Index i) {
    throw InputError("the clique marginals of example " + std::to_string(i) + " give no labelling a chance");
}

std::vector<Index> Structure::slot_offsets() const {
    std::vector<Index> offsets(idx(num_examples_) + 1, 0);
    for (Index i = 0; i < num_examples_; ++i)
        offsets[idx(i) + 1] = checked_sum(offsets[idx(i)], num_slots(i), "the number of slots");
    return offsets;
}

void Structure::set_mask(Index i, std::vector<std::uint8_t> allowed) {
    if (i < 0 || i >= num_examples_) throw InputError("no example " + std::to_string(i));
    if (!allowed.empty() && len(allowed.size()) != num_slots(i)) {
        throw InputError("the mask of example " + std::to_string(i) + " has " + std::to_string(allowed.size()) +
                         " values for " + std::to_string(num_slots(i)) + " slots");
    }
    if (masks_.empty()) masks_.resize(idx(num_examples_));
    std::swap(masks_[idx(i)], allowed);
    try {
        if (!masks_[idx(i)].empty()) check_mask(i);
    } catch (...) {
        std::swap(masks_[idx(i)], allowed);
        throw;
    }
}

Index padded_width(Index n_labels) {
    if (n_labels > kMostValues) too_large("the number of labels");
    for (const Index width : std::array<Index, 7>{4, 8, 12, 16, 24, 32, 48}) {
        if (n_labels <= width) return width;
    }
    return (n_labels + 7) / 8 * 8;
}

}  // namespace partwise
