// The sums over examples in the objective. The penalty, and therefore the weights of a dual point, belong to
// problem.py.
//
//   value = sum_i omega_i phi(smax_tau(theta_i + kappa c_i) - <theta_i, g_i>),   theta_i = A_i w
//   u     = sum_i omega_i A_i'(s_i g_i - s_i mu_i)
//   b     = sum_i omega_i [kappa <s_i mu_i, c_i> + tau s_i H_i - phi*(s_i)]
//
// with the link phi and its conjugate phi* of link.h.
#pragma once

#include "features/feature_map.h"
#include "solvers/link.h"
#include "structures/structure.h"
#include "support/parallel.h"

namespace partwise {

struct LossParameters {
    double temperature;
    double cost_scale;
    Link link;
};

struct GoldTable {
    std::vector<Index> indptr;
    std::vector<Index> slots;
    std::vector<double> counts;
};

// The numbers that one example adds to a plane, besides A' direction, which is added to u.
struct Term {
    double value = 0;
    double b = 0;
    double extra = 0;  // another sum over examples, which differs between solvers

    void add(double omega, const Term& other) {
        value += omega * other.value;
        b += omega * other.b;
        extra += omega * other.extra;
    }
};

// The sums over all examples.
struct Plane : Term {
    std::vector<double> u;
};

// A change that is the same for the distributions of all examples, where labellings are single slots: slot r keeps the
// share keep[r] of its probability, and the rest goes to the slots in the proportions `to`, which sum to one.
struct MovedMass {
    std::span<const double> keep;
    std::span<const double> to;
};

class Objective {
   public:
    // cost: a value per slot, all examples concatenated, at least 0 and 0 on gold slots; empty: the structure's own
    // cost. sample_weight: empty: all 1.
    Objective(std::shared_ptr<const Structure> structure, std::shared_ptr<const FeatureMap> features, GoldTable gold,
              LossParameters loss, std::vector<double> cost, std::vector<double> sample_weight);

    const Structure& structure() const { return *structure_; }
    const FeatureMap& features() const { return *features_; }
    const LossParameters& loss() const { return loss_; }
    Index num_examples() const { return structure_->num_examples(); }
    Index total_slots() const { return offsets_.back(); }
    Index offset(Index i) const { return offsets_[i]; }
    Index num_slots(Index i) const { return offsets_[i + 1] - offsets_[i]; }
    double weight(Index i) const { return sample_weight_.empty() ? 1.0 : sample_weight_[i]; }
    // Null if all sample weights are 1.
    const double* weights_unless_one() const { return unit_weights_ ? nullptr : sample_weight_.data(); }
    SlotView gold(Index i) const;
    // How many threads to use when the caller asks for n_jobs: one if the structure is written in Python.
    int jobs(int n_jobs) const { return structure_->jobs(n_jobs); }

    // scores += scale * cost of example i
    void add_cost(Index i, double scale, double* scores) const;
    // slots += scale * gold counts
    void add_gold(Index i, double scale, double* slots) const { gold(i).add_to(slots, scale); }
    double dot_gold(Index i, const double* scores) const { return gold(i).dot(scores); }
    // out = kappa c, the scaled costs of example i's slots
    void costs(Index i, double* out) const;
    // scores = theta + kappa c; returns <theta, g>. For a labelling y, kappa cost(y) - <w, psi> = <count(y), scores> -
    // <theta, g>.
    double augmented_scores(Index i, const double* w, double* scores) const;
    // `augmented_scores` of the examples [begin, end); w null: all weights are 0. gold_scores may be null.
    void augmented_scores_of(Index begin, Index end, const double* w, double* scores, double* gold_scores) const;
    // max over y of kappa cost(y) - <w, psi>, psi = A'(g - count(y)), and its labelling y: the hinges' oracle.
    double worst_margin(Index i, const double* w, SlotCounts& answer, Workspace& ws) const;
    // The k labellings with the largest kappa cost - <w, psi>, best first (fewer if there are fewer), given augmented
    // scores and <theta, g>. Calls k_best, which the structure must have unless k is 1.
    std::vector<Scored> worst_labellings(Index i, const double* scores, double gold_score, Index k,
                                         Workspace& ws) const;
    // `worst_margin` for several examples at the same weights.
    void worst_margins(std::span<const Index> examples, const double* w, double* margins, SlotCounts* answers,
                       Workspace& ws) const;

    // Checks that gold labellings are valid and have cost 0.
    void check_gold() const;
    double value(const double* w, int n_jobs, Interrupt& interrupt) const;
    // smax(theta_i + kappa c_i) - <theta_i, g_i> at this temperature for every example; 0 for examples of weight zero.
    void margins(const double* w, double temperature, double* out, int n_jobs, Interrupt& interrupt) const;
    // u and b of the dual point that the oracle gives at w: alpha = p_w, or the argmax at temperature 0.
    Plane plane(const double* w, int n_jobs, Interrupt& interrupt) const;
    // `plane` over these examples only, each counted as often as it is listed; one thread.
    Plane plane_of(std::span<const Index> examples, const double* w, Interrupt& interrupt) const;
    // The plane of the dual point p ~ exp((theta + kappa c) / temperature) for another temperature than the loss's.
    // `value` is the sum of losses at that temperature; u and b are those of p in this objective's own dual; `extra` is
    // the sum of omega s H. marginals (or null): receives p's expected counts, all slots concatenated; the counts of
    // examples of weight zero are not changed.
    Plane plane_at(const double* w, double temperature, double* marginals, int n_jobs, Interrupt& interrupt) const;
    // The plane of the Gibbs distributions with these slot scores. moved: a change of the distributions, or null.
    Plane dual_terms_gibbs(const double* scores, const MovedMass* moved, int n_jobs, Interrupt& interrupt) const;
    // The same for slot scores A_i z + cost_scale c_i, which are not stored.
    Plane dual_terms_linear(const double* z, double cost_scale, const MovedMass* moved, int n_jobs,
                            Interrupt& interrupt) const;
    // The plane of given expected counts. counts: s mu; mass: s, or null (1); entropies: s H, or null (0).
    Plane dual_terms_slots(const double* counts, const double* mass, const double* entropies, int n_jobs,
                           Interrupt& interrupt) const;
    // The same if few slots are used: example i uses slots[indptr[i]], ..., slots[indptr[i + 1] - 1], each `counts`
    // times (repeated slots add up). Memory does not grow with the number of slots.
    Plane dual_terms_sparse(const Index* indptr, const Index* slots, const double* counts, const double* mass,
                            int n_jobs, Interrupt& interrupt) const;
    void marginals_of_scores(const double* scores, double* marginals, double* entropies, int n_jobs,
                             Interrupt& interrupt) const;
    void near_gold_scores(double sharpness, double* scores) const;

    // The term of the Gibbs distribution with these slot scores. value: its log partition, extra: its entropy.
    Term gibbs_term(Index i, const double* scores, const MovedMass* moved, double* direction, Workspace& ws) const;

   private:
    void check_cost(Index i, const double* cost) const;
    // What an example with expected counts s mu adds to b; `counts` is replaced by s g - s mu.
    double dual_term(Index i, double mass, double entropy, double* counts, Workspace& ws) const;
    // The term and directions of the examples [begin, end) in `plane_at`; w null: weights that are all 0.
    Term plane_run(Index begin, Index end, const double* w, double temperature, double* marginals, double* directions,
                   Workspace& ws) const;
    // sum over examples of f(i, margin of i)
    template <class F>
    double sum_margins(const double* w, double temperature, int n_jobs, Interrupt& interrupt, F&& f) const;

    std::shared_ptr<const Structure> structure_;
    std::shared_ptr<const FeatureMap> features_;
    GoldTable gold_;
    LossParameters loss_;
    std::vector<double> cost_;
    std::vector<double> sample_weight_;
    bool unit_weights_ = true;
    std::vector<Index> offsets_;
};

// Calls visit(i) for the examples of positive weight in this order, and checks for Ctrl-C before each call.
template <class F>
void for_each_visit(const Objective& objective, std::span<const Index> order, Interrupt& interrupt, F&& visit) {
    for (const Index i : order) {
        interrupt.check();
        if (objective.weight(i) != 0.0) visit(i);
    }
}

}  // namespace partwise
