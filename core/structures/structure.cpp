#include "structures/structure.h"

#include <array>
#include <map>

#include "structures/clique_view.h"
#include "support/sizes.h"

namespace partwise {

namespace {

// Expected counts below this are rounding.
constexpr double kNoCount = 1e-12;

[[noreturn]] void lacks(const char* capability) {
    throw InputError("this structure does not offer the capability '", capability, "'");
}
}  // namespace

Structure::Structure(Index num_examples) : num_examples_(num_examples) {
    if (num_examples < 0) throw InputError("the number of examples is negative");
}

double Structure::value_of(Index, const double* scores, SlotView labelling) const { return labelling.dot(scores); }

void Structure::check_mixture(Index i, SlotView mixture, Workspace& ws) const {
    const auto refuse = [&](Index slot, const char* why) {
        throw InputError("example ", i, ": the expected count of slot ", slot, why);
    };
    for (std::size_t k = 0; k < mixture.slots.size(); ++k) {
        const Index slot = mixture.slots[k];
        if (slot < 0 || slot >= num_slots(i)) refuse(slot, " is given, but there is no such slot");
        if (!(mixture.counts[k] >= -kNoCount)) refuse(slot, " is negative");
        if (mask(i) && !mask(i)[slot] && mixture.counts[k] > kNoCount)
            refuse(slot, " is not 0, but its mask forbids it");
    }
    // No mixture of labellings scores more than the maximum. Frank and Wolfe's method moves x towards the mixture
    // nearest to the counts; the scores counts - x then separate counts that are not a mixture from all labellings.
    constexpr int kTrials = 12;
    const char* complaint = "the expected counts are not those of a mixture of the structure's labellings";
    const Index n = num_slots(i);
    Workspace::Frame frame(ws);
    double* scores = frame.take(n);
    double* x = frame.take(n);
    double* best = frame.take(n);
    fill(scores, n, -1.0);
    check_by_maximum(i, mixture, scores, x, complaint, ws);  // counts with too few parts fail here
    for (int trial = 0; trial < kTrials; ++trial) {
        for (Index r = 0; r < n; ++r) scores[r] = -x[r];
        mixture.add_to(scores, 1.0);
        check_by_maximum(i, mixture, scores, best, complaint, ws);
        axpy(-1.0, x, best, n);
        const double square = dot(best, best, n);
        if (!(square > 0.0)) return;
        axpy(std::clamp(dot(scores, best, n) / square, 0.0, 1.0), best, x, n);
    }
}

double Structure::maximum(Index i, const double* scores, double* counts, Workspace& ws) const {
    return maximum_as_sums(i, scores, counts, nullptr, ws);
}

void Structure::check_by_maximum(Index i, SlotView counts, const double* scores, double* best, const char* complaint,
                                 Workspace& ws) const {
    double own = 0;
    double magnitude = 1;
    for (std::size_t k = 0; k < counts.slots.size(); ++k) {
        const double term = counts.counts[k] * scores[counts.slots[k]];
        own += term;
        magnitude += std::abs(term);
    }
    const double largest = maximum(i, scores, best, ws);
    if (!(own <= largest + 1e-9 * magnitude)) {
        throw InputError("example ", i, ": ", complaint, ": for some scores it has ", own,
                         " and the structure's maximum is ", largest);
    }
}

// No labelling scores more than the maximum. Scores that are positive on used slots and negative elsewhere expose every
// 0/1 vector that is not a labelling. Where slots are used several times, random magnitudes expose counts outside of
// the labellings' convex hull, for which certificates would be wrong.
void Structure::check_by_maxima(Index i, SlotView counts, const char* complaint, Workspace& ws) const {
    constexpr int kTrials = 4;
    std::vector<double> used(num_slots(i), -1.0);
    for (const Index slot : counts.slots) used[slot] = 1.0;
    std::vector<double> scores(used);
    std::mt19937_64 rng(i);
    std::normal_distribution<double> normal;
    for (int trial = 0; trial < kTrials; ++trial) {
        check_by_maximum(i, counts, scores.data(), nullptr, complaint, ws);
        for (std::size_t r = 0; r < scores.size(); ++r) {
            const double x = normal(rng);
            scores[r] = trial + 2 < kTrials ? used[r] * std::abs(x) : x;
        }
    }
}

void Structure::nothing_left(Index i) const { throw InputError("the mask of example ", i, " allows no labelling"); }

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
        best.view().add_to(marginals, 1.0);
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
const CliqueView& Structure::cliques() const { lacks("cliques"); }

double CliqueView::clique_disagreement(Index i, const double*, Workspace&) const {
    return clique_offsets(i).size() <= 2 ? 0.0 : kInfinity;
}

Along CliqueView::entropy_along(Index i, const double* cliques, const double* direction, double step,
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

double* Structure::masked_scores(Index i, const double* scores, double scale, Workspace::Frame& frame) const {
    const Index n = num_slots(i);
    const std::uint8_t* allowed = mask(i);
    double* out = frame.take(n);
    for (Index r = 0; r < n; ++r) out[r] = allowed && !allowed[r] ? -kInfinity : scores[r] * scale;
    return out;
}

std::vector<Index> Structure::slot_offsets() const {
    std::vector<Index> offsets(num_examples_ + 1, 0);
    for (Index i = 0; i < num_examples_; ++i)
        offsets[i + 1] = checked_sum(offsets[i], num_slots(i), "the number of slots");
    return offsets;
}

void Structure::set_mask(Index i, std::vector<std::uint8_t> allowed) {
    if (i < 0 || i >= num_examples_) throw InputError("no example ", i);
    if (!allowed.empty() && len(allowed.size()) != num_slots(i)) {
        throw InputError("the mask of example ", i, " has ", allowed.size(), " values for ", num_slots(i), " slots");
    }
    if (masks_.empty()) masks_.resize(num_examples_);
    std::swap(masks_[i], allowed);
    try {
        if (!masks_[i].empty()) check_mask(i);
    } catch (...) {
        std::swap(masks_[i], allowed);
        throw;
    }
}

void add_counted(std::vector<Index>& slots, SlotCounts& out) {
    if (!std::is_sorted(slots.begin(), slots.end())) std::sort(slots.begin(), slots.end());
    for (std::size_t k = 0; k < slots.size(); ++k) {
        if (k > 0 && slots[k] == slots[k - 1]) {
            out.counts.back() += 1.0;
        } else {
            out.add(slots[k], 1.0);
        }
    }
}

void check_counts(const std::string& example, const SlotCounts& right, SlotView labelling,
                  const std::uint8_t* allowed) {
    std::map<Index, double> difference;
    for (std::size_t k = 0; k < right.slots.size(); ++k) difference[right.slots[k]] += right.counts[k];
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) difference[labelling.slots[k]] -= labelling.counts[k];
    for (const auto& [slot, count] : difference) {
        if (count != 0.0) throw InputError(example, ": slot ", slot, " does not have the count its labels give it");
    }
    for (const Index slot : right.slots) {
        if (allowed && !allowed[slot]) {
            throw InputError(example, ": the labelling uses slot ", slot, ", which its mask forbids");
        }
    }
}

Index draw_one(const double* weights, Index n, double total, std::mt19937_64& rng) {
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    double left = uniform(rng) * total;
    Index chosen = -1;
    for (Index k = 0; k < n && (chosen < 0 || left >= 0.0); ++k) {
        if (weights[k] == 0.0) continue;
        chosen = k;
        left -= weights[k];
    }
    return one_of_them(chosen);
}

Index padded_width(Index n_labels) {
    if (n_labels > kMostValues) too_large("the number of labels");
    for (const Index width : std::array<Index, 7>{4, 8, 12, 16, 24, 32, 48}) {
        if (n_labels <= width) return width;
    }
    return (n_labels + 7) / 8 * 8;
}

}  // namespace partwise
