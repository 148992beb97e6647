#include "solvers/objective.h"

#include <sstream>

#include "solvers/sum_examples.h"
#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

Objective::Objective(std::shared_ptr<const Structure> structure, std::shared_ptr<const FeatureMap> features,
                     GoldTable gold, LossParameters loss, std::vector<double> cost, std::vector<double> sample_weight)
    : structure_(std::move(structure)),
      features_(std::move(features)),
      gold_(std::move(gold)),
      loss_(loss),
      cost_(std::move(cost)),
      sample_weight_(std::move(sample_weight)),
      offsets_(structure_->slot_offsets()) {
    const Index n = num_examples();
    if (!structure_->linear()) throw InputError("this structure is for prediction, it cannot be trained");
    if (!(loss_.temperature >= 0.0) || !std::isfinite(loss_.temperature))
        throw InputError("temperature must be 0 or more");
    if (!std::isfinite(loss_.cost_scale)) throw InputError("cost_scale must be finite");
    if (features_->num_examples() != n) {
        throw InputError("the structure has ", n, " examples, the features have ", features_->num_examples());
    }
    for (Index i = 0; i < n; ++i) {
        if (features_->num_slots(i) != num_slots(i)) {
            throw InputError("example ", i, ": the structure has ", num_slots(i), " slots, the features have ",
                             features_->num_slots(i));
        }
    }
    if (len(gold_.indptr.size()) != n + 1)
        throw InputError("gold: indptr must have one entry more than there are examples");
    check_pointers(gold_.indptr, len(gold_.slots.size()), "gold indptr");
    if (gold_.counts.size() != gold_.slots.size()) throw InputError("gold: one count per slot is needed");
    for (Index i = 0; i < n; ++i) {
        for (const Index slot : this->gold(i).slots) {
            if (slot < 0 || slot >= num_slots(i)) {
                throw InputError("example ", i, ": gold slot ", slot, " is out of range");
            }
        }
    }
    if (!cost_.empty() && len(cost_.size()) != total_slots()) throw InputError("cost must have one value per slot");
    for (Index i = 0; i < n && !cost_.empty(); ++i) check_cost(i, cost_.data() + offset(i));
    for (std::size_t i = 0; i < sample_weight_.size(); ++i) {
        if (!(sample_weight_[i] >= 0.0) || !std::isfinite(sample_weight_[i])) {
            throw InputError("the sample weight of example ", i, " is negative or not finite");
        }
        unit_weights_ = unit_weights_ && sample_weight_[i] == 1.0;
    }
}

SlotView Objective::gold(Index i) const {
    const std::size_t begin = gold_.indptr[i];
    const std::size_t n = gold_.indptr[i + 1] - begin;
    return {std::span(gold_.slots).subspan(begin, n), std::span(gold_.counts).subspan(begin, n)};
}

void Objective::add_cost(Index i, double scale, double* scores) const {
    if (scale == 0.0) return;
    if (cost_.empty()) {
        structure_->add_cost(i, gold(i), scale, scores);
    } else {
        axpy(scale, cost_.data() + offset(i), scores, num_slots(i));
    }
}

void Objective::costs(Index i, double* out) const {
    fill(out, num_slots(i), 0.0);
    add_cost(i, loss_.cost_scale, out);
}

double Objective::augmented_scores(Index i, const double* w, double* scores) const {
    features_->scores(i, w, scores);
    const double gold_score = dot_gold(i, scores);
    add_cost(i, loss_.cost_scale, scores);
    return gold_score;
}

void Objective::augmented_scores_of(Index begin, Index end, const double* w, double* scores,
                                    double* gold_scores) const {
    const Index first = offset(begin);
    if (w) {
        features_->scores_of(begin, end, w, scores);
    } else {
        fill(scores, offset(end) - first, 0.0);
    }
    for (Index i = begin; i < end; ++i) {
        double* augmented = scores + (offset(i) - first);
        if (gold_scores) gold_scores[i - begin] = dot_gold(i, augmented);
        add_cost(i, loss_.cost_scale, augmented);
    }
}

double Objective::worst_margin(Index i, const double* w, SlotCounts& answer, Workspace& ws) const {
    Workspace::Frame frame(ws);
    double* scores = frame.take(num_slots(i));
    const double gold_score = augmented_scores(i, w, scores);
    return structure_->maximize(i, scores, answer, ws) - gold_score;
}

std::vector<Scored> Objective::worst_labellings(Index i, const double* scores, double gold_score, Index k,
                                                Workspace& ws) const {
    std::vector<Scored> found;
    if (k > 1) {
        found = structure_->k_best(i, scores, k, ws);
    } else {
        found.emplace_back();
        found.front().value = structure_->maximize(i, scores, found.front().labelling, ws);
    }
    for (Scored& one : found) one.value -= gold_score;
    return found;
}

void Objective::worst_margins(std::span<const Index> examples, const double* w, double* margins, SlotCounts* answers,
                              Workspace& ws) const {
    Workspace::Frame frame(ws);
    std::vector<const double*> scores(examples.size());
    std::vector<double> gold_scores(examples.size());
    for (std::size_t k = 0; k < examples.size(); ++k) {
        const Index i = examples[k];
        double* augmented = frame.take(num_slots(i));
        gold_scores[k] = augmented_scores(i, w, augmented);
        scores[k] = augmented;
    }
    structure_->maximize_of(examples, scores.data(), margins, answers, ws);
    for (std::size_t k = 0; k < examples.size(); ++k) margins[k] -= gold_scores[k];
}

void Objective::check_cost(Index i, const double* cost) const {
    const auto refuse = [&](Index slot, const char* why) {
        std::ostringstream text;
        text << "example " << i << ": the cost of slot " << slot << " is " << cost[slot] << why;
        throw InputError(text.str());
    };
    for (Index r = 0; r < num_slots(i); ++r) {
        if (!(cost[r] >= 0.0) || !std::isfinite(cost[r])) refuse(r, ", it must be finite and 0 or more");
    }
    for (const Index slot : gold(i).slots) {
        if (cost[slot] != 0.0) refuse(slot, ", but the gold labelling uses it and must cost nothing");
    }
}

void Objective::check_gold() const {
    Workspace ws;
    // Structures of the core count wrong parts: a valid cost. A structure in Python may return any cost.
    const bool check_costs = cost_.empty() && loss_.cost_scale != 0.0 && !structure_->thread_safe();
    for (Index i = 0; i < num_examples(); ++i) {
        structure_->check_labelling(i, gold(i), ws);
        if (!check_costs) continue;
        std::vector<double> cost(num_slots(i), 0.0);
        structure_->add_cost(i, gold(i), 1.0, cost.data());
        check_cost(i, cost.data());
    }
}

namespace {

bool all_zero(const double* w, Index n) {
    return std::all_of(w, w + n, [](double x) { return x == 0.0; });
}

}  // namespace

template <class F>
double Objective::sum_margins(const double* w, double temperature, int n_jobs, Interrupt& interrupt, F&& f) const {
    const bool zero = all_zero(w, features_->num_weights());
    return sum_runs(*this, n_jobs, interrupt, false,
                    [&](Index begin, Index end, double*, Workspace& ws) {
                        Workspace::Frame frame(ws);
                        double* scores = frame.take(offset(end) - offset(begin));
                        double* gold_scores = frame.take(end - begin);
                        double* values = frame.take(end - begin);
                        augmented_scores_of(begin, end, zero ? nullptr : w, scores, gold_scores);
                        structure_->log_values_of(begin, end, scores, temperature, values, ws);
                        Term sum;
                        for (Index i = begin; i < end; ++i) {
                            sum.value += f(i, values[i - begin] - gold_scores[i - begin]);
                        }
                        return sum;
                    })
        .value;
}

double Objective::value(const double* w, int n_jobs, Interrupt& interrupt) const {
    return sum_margins(w, loss_.temperature, n_jobs, interrupt,
                       [&](Index i, double margin) { return weight(i) * loss_.link.value(margin); });
}

void Objective::margins(const double* w, double temperature, double* out, int n_jobs, Interrupt& interrupt) const {
    fill(out, num_examples(), 0.0);
    sum_margins(w, temperature, n_jobs, interrupt, [&](Index i, double margin) { return out[i] = margin; });
}

Plane Objective::plane(const double* w, int n_jobs, Interrupt& interrupt) const {
    return plane_at(w, loss_.temperature, nullptr, n_jobs, interrupt);
}

Plane Objective::plane_at(const double* w, double temperature, double* marginals, int n_jobs,
                          Interrupt& interrupt) const {
    const bool zero = all_zero(w, features_->num_weights());
    return sum_runs(*this, n_jobs, interrupt, true, [&](Index begin, Index end, double* directions, Workspace& ws) {
        return plane_run(begin, end, zero ? nullptr : w, temperature, marginals, directions, ws);
    });
}

Plane Objective::plane_of(std::span<const Index> examples, const double* w, Interrupt& interrupt) const {
    Plane plane;
    plane.u.assign(features_->num_weights(), 0.0);
    Workspace ws;
    for (const Index i : examples) {
        interrupt.check();
        if (weight(i) == 0.0) continue;
        Workspace::Frame frame(ws);
        double* direction = frame.take(num_slots(i));
        const Term term = plane_run(i, i + 1, w, loss_.temperature, nullptr, direction, ws);
        plane.value += term.value;
        plane.b += term.b;
        features_->add_transpose_of(i, i + 1, direction, plane.u.data());
    }
    return plane;
}

Term Objective::plane_run(Index begin, Index end, const double* w, double temperature, double* marginals,
                          double* directions, Workspace& ws) const {
    const Index first = offset(begin);
    const Index all = offset(end) - first;
    Workspace::Frame frame(ws);
    double* scores = frame.take(all);
    double* gold_scores = frame.take(end - begin);
    double* values = frame.take(end - begin);
    double* entropies = frame.take(end - begin);
    augmented_scores_of(begin, end, w, scores, gold_scores);
    structure_->log_partition_of(begin, end, scores, temperature, values, directions, entropies, ws);
    if (marginals) copy(directions, marginals + first, all);
    Term sum;
    // A shortcut: here the sums need nothing but each example's gold labelling, so the loop below is not needed.
    if (unit_weights_ && loss_.link.fixed_mass() && loss_.cost_scale == 0.0) {
        scale(-1.0, directions, all);
        for (Index k = 0; k < end - begin; ++k) {
            sum.value += values[k] - gold_scores[k];
            sum.extra += entropies[k];
        }
        sum.b = loss_.temperature * sum.extra;
        for (Index i = begin; i < end; ++i) add_gold(i, 1.0, directions + (offset(i) - first));
        return sum;
    }
    for (Index i = begin; i < end; ++i) {
        const Index n = num_slots(i);
        const double omega = weight(i);
        double* direction = directions + (offset(i) - first);
        const double margin = values[i - begin] - gold_scores[i - begin];
        const double mass = loss_.link.mass(margin);
        // kappa <mu, c> + tau H equals smax - <mu, theta>, but that difference cancels: compute the two terms instead.
        double cost_term = 0;
        if (loss_.cost_scale != 0.0) {
            double* cost = scores;  // reuse the run's scores, which are no longer needed
            costs(i, cost);
            cost_term = dot(direction, cost, n);
        }
        scale(-omega * mass, direction, n);
        add_gold(i, omega * mass, direction);
        const double entropy = entropies[i - begin];
        const double b = mass * (cost_term + loss_.temperature * entropy) - loss_.link.conjugate(mass);
        sum.add(omega, {loss_.link.value(margin), b, mass * entropy});
    }
    return sum;
}

namespace {

// Moves mass within the distribution p, and returns its entropy.
double move_mass(const MovedMass& moved, double* p) {
    double freed = 0;
    for (std::size_t r = 0; r < moved.keep.size(); ++r) freed += (1.0 - moved.keep[r]) * p[r];
    double entropy = 0;
    for (std::size_t r = 0; r < moved.keep.size(); ++r) {
        p[r] = moved.keep[r] * p[r] + moved.to[r] * freed;
        if (p[r] > 0.0) entropy -= p[r] * std::log(p[r]);
    }
    return entropy;
}

}  // namespace

Term Objective::gibbs_term(Index i, const double* scores, const MovedMass* moved, double* direction,
                           Workspace& ws) const {
    double entropy = 0;
    const double log_partition = structure_->log_partition(i, scores, 1.0, direction, &entropy, ws);
    if (moved != nullptr) entropy = move_mass(*moved, direction);
    return {log_partition, dual_term(i, 1.0, entropy, direction, ws), entropy};
}

Plane Objective::dual_terms_gibbs(const double* scores, const MovedMass* moved, int n_jobs,
                                  Interrupt& interrupt) const {
    return sum_examples(*this, n_jobs, interrupt, true, [&](Index i, double* direction, Workspace& ws) {
        return gibbs_term(i, scores + offset(i), moved, direction, ws);
    });
}

Plane Objective::dual_terms_linear(const double* z, double cost_scale, const MovedMass* moved, int n_jobs,
                                   Interrupt& interrupt) const {
    return sum_examples(*this, n_jobs, interrupt, true, [&](Index i, double* direction, Workspace& ws) {
        Workspace::Frame frame(ws);
        double* scores = frame.take(num_slots(i));
        features_->scores(i, z, scores);
        add_cost(i, cost_scale, scores);
        return gibbs_term(i, scores, moved, direction, ws);
    });
}

Plane Objective::dual_terms_slots(const double* counts, const double* mass, const double* entropies, int n_jobs,
                                  Interrupt& interrupt) const {
    return sum_examples(*this, n_jobs, interrupt, true, [&](Index i, double* direction, Workspace& ws) {
        std::copy_n(counts + offset(i), num_slots(i), direction);
        return Term{0.0, dual_term(i, mass ? mass[i] : 1.0, entropies ? entropies[i] : 0.0, direction, ws)};
    });
}

Plane Objective::dual_terms_sparse(const Index* indptr, const Index* slots, const double* counts, const double* mass,
                                   int n_jobs, Interrupt& interrupt) const {
    return sum_examples(*this, n_jobs, interrupt, true, [&](Index i, double* direction, Workspace& ws) {
        fill(direction, num_slots(i), 0.0);
        for (Index k = indptr[i]; k < indptr[i + 1]; ++k) direction[slots[k]] += counts[k];
        return Term{0.0, dual_term(i, mass[i], 0.0, direction, ws)};
    });
}

double Objective::dual_term(Index i, double mass, double entropy, double* counts, Workspace& ws) const {
    const Index n = num_slots(i);
    Workspace::Frame frame(ws);
    double* cost = frame.take(n);
    costs(i, cost);
    const double b = dot(counts, cost, n) + loss_.temperature * entropy - loss_.link.conjugate(mass);
    for (Index r = 0; r < n; ++r) counts[r] = -counts[r];
    add_gold(i, mass, counts);
    return b;
}

void Objective::marginals_of_scores(const double* scores, double* marginals, double* entropies, int n_jobs,
                                    Interrupt& interrupt) const {
    parallel_with_scratch(num_examples(), jobs(n_jobs), interrupt, [&](Index i, Workspace& ws) {
        structure_->log_partition(i, scores + offset(i), 1.0, marginals + offset(i), entropies + i, ws);
    });
}

void Objective::near_gold_scores(double sharpness, double* scores) const {
    fill(scores, total_slots(), 0.0);
    for (Index i = 0; i < num_examples(); ++i) add_cost(i, -sharpness, scores + offset(i));
}

}  // namespace partwise
