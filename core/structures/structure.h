// What the solvers know of a structure: slots, the best labelling, and sums over all labellings. No features, no loss.
//
// A labelling y of example i uses slot r count_r(y) times. Scores are finite; which labellings are allowed is said by
// boolean masks over slots. Every method is const and safe to call from several threads with a Workspace each,
// unless thread_safe() says otherwise (structures written in Python).
#pragma once

#include <memory>
#include <random>
#include <span>
#include <vector>

#include "support/types.h"
#include "support/workspace.h"

namespace partwise {

// kOnePart: every labelling is one slot, used once. kSupport: cliques tell which labellings have mass.
enum Capability : unsigned { kCliques = 1, kCovariance = 2, kKBest = 4, kSample = 8, kOnePart = 16, kSupport = 32 };

// A function of one variable at a point: its value and its first two derivatives.
struct Along {
    double value = 0;
    double slope = 0;
    double curvature = 0;
};

struct Scored {
    double value = 0;
    SlotCounts labelling;
};

class Structure {
   public:
    explicit Structure(Index num_examples);
    virtual ~Structure() = default;
    Structure(const Structure&) = delete;
    Structure& operator=(const Structure&) = delete;

    Index num_examples() const { return num_examples_; }
    virtual bool thread_safe() const { return true; }
    // How many threads to use when the caller asks for n_jobs.
    int jobs(int n_jobs) const { return thread_safe() ? std::max(n_jobs, 1) : 1; }
    virtual unsigned capabilities() const { return 0; }
    // Whether a labelling's value is the sum of its slots' scores. Where it is not, the structure is for prediction.
    virtual bool linear() const { return true; }

    virtual Index num_slots(Index i) const = 0;
    // So many of the first slots are rows, one per variable: a labelling uses one slot of each row, once. 0: none are.
    virtual Index num_row_slots(Index) const { return 0; }

    // max over labellings y of <count(y), scores>, and the labelling. Ties go to the lowest labels.
    virtual double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const = 0;
    // The same for several examples: scores[k], values[k] and best[k] are those of examples[k].
    virtual void maximize_of(std::span<const Index> examples, const double* const* scores, double* values,
                             SlotCounts* best, Workspace& ws) const;
    // Whether `maximize_of` or `log_partition_of` costs less than its examples one by one: passes then ask for many at a
    // time.
    virtual bool together() const { return false; }

    // temperature * log sum over y of exp(<count(y), scores> / temperature); at temperature 0 the maximum.
    // marginals: expected counts (num_slots values) or null; entropy: of p ~ exp(./temperature), or null.
    virtual double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                                 Workspace& ws) const = 0;

    // The same for the examples [begin, end), slots end to end; values, entropies: one per example. Nothing is null.
    virtual void log_partition_of(Index begin, Index end, const double* scores, double temperature, double* values,
                                  double* marginals, double* entropies, Workspace& ws) const;
    // Its values alone.
    virtual void log_values_of(Index begin, Index end, const double* scores, double temperature, double* values,
                               Workspace& ws) const;

    // scores += scale * cost of each slot against the gold labelling (the number of wrong parts).
    virtual void add_cost(Index i, SlotView gold, double scale, double* scores) const = 0;

    // The value that `maximize` compares: <count(y), scores> where the structure is linear. Masks are left aside.
    virtual double value_of(Index i, const double* scores, SlotView labelling) const;

    // Throws InputError unless this is a labelling in Y_i.
    virtual void check_labelling(Index i, SlotView labelling, Workspace& ws) const;
    // Throws InputError if these are not the expected counts of a distribution over Y_i, as far as masks and maxima tell.
    void check_mixture(Index i, SlotView mixture, Workspace& ws) const;

    // Capability kKBest: the k best labellings, best first (fewer if there are fewer).
    virtual std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const;
    // Capability kSample: n exact draws from p ~ exp(scores / temperature).
    virtual std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n,
                                           std::mt19937_64& rng, Workspace& ws) const;
    // Capability kCovariance: out = Cov_p(counts) direction.
    virtual void covariance_product(Index i, const double* scores, double temperature, const double* direction,
                                    double* out, Workspace& ws) const;
    // Capability kOnePart: the same from p's expected counts, which say all of p, for the examples [begin, end), slots
    // end to end, times a factor per example.
    virtual void covariance_of_marginals(Index begin, Index end, const double* marginals, const double* direction,
                                         const double* factors, double* out) const;

    // Capability kCliques: the distribution seen as marginals of a junction tree's cliques, end to end.
    virtual std::vector<Index> clique_offsets(Index i) const;
    // Gives the log partition, as `log_partition` does.
    virtual double clique_marginals(Index i, const double* scores, double temperature, double* out,
                                    Workspace& ws) const;
    // Linear: of a difference of marginals, too.
    virtual void slots_from_cliques(Index i, const double* cliques, double* slots) const;
    // The largest difference between what two neighbouring cliques say of the variables that they share; infinite where
    // the structure cannot tell.
    virtual double clique_disagreement(Index i, const double* cliques, Workspace& ws) const;
    // Entropy of the distribution with these clique marginals; gradient (may be null) with respect to them.
    virtual double entropy_of_cliques(Index i, const double* cliques, double* gradient, Workspace& ws) const;
    // The entropy at cliques + step * direction as a function of step, 0 <= step <= 1, where direction leads to other
    // clique marginals at step 1. By default the curvature is a difference of slopes.
    virtual Along entropy_along(Index i, const double* cliques, const double* direction, double step,
                                Workspace& ws) const;
    // Log potentials of the cliques whose Gibbs distribution has these marginals.
    virtual void scores_from_cliques(Index i, const double* cliques, double* out) const;
    // The same as scores of slots, where every clique's entries are slots of their own; false where they are not (tied
    // slots, cliques of several parts).
    virtual bool slot_scores_from_cliques(Index, const double*, double*) const { return false; }
    // Capability kSupport, beside kCliques: the entry of each clique that a labelling uses, one per clique, in their
    // order.
    virtual void clique_entries(Index i, SlotView labelling, Index* entries, Workspace& ws) const;
    // max of <count(y), scores> over the labellings whose entries all are above `least` in `cliques`, and the labelling.
    // Throws InputError if there is none.
    virtual double maximize_in_support(Index i, const double* scores, const double* cliques, double least,
                                       SlotCounts& best, Workspace& ws) const;

    // Slot offsets of all examples end to end (num_examples + 1 values).
    std::vector<Index> slot_offsets() const;

    // Allow only labellings made of allowed slots (num_slots bytes); empty lifts the mask.
    void set_mask(Index i, std::vector<std::uint8_t> allowed);
    // Null where everything is allowed.
    const std::uint8_t* mask(Index i) const { return masks_.empty() || masks_[i].empty() ? nullptr : masks_[i].data(); }

   protected:
    bool masked() const { return !masks_.empty(); }
    // log_partition at temperature 0: the maximum, its counts and no entropy.
    double maximum_as_sums(Index i, const double* scores, double* marginals, double* entropy, Workspace& ws) const;
    [[noreturn]] static void no_support(Index i);
    // The maximum over labellings, and the counts of one that attains it (or null).
    virtual double maximum(Index i, const double* scores, double* counts, Workspace& ws) const;
    // Throws InputError if the counts have a larger value than the maximum for some scores that are tried.
    void check_by_maxima(Index i, SlotView counts, const char* complaint, Workspace& ws) const;
    // The same for these scores, with the counts of a labelling that attains the maximum.
    void check_by_maximum(Index i, SlotView counts, const double* scores, double* best, const char* complaint,
                          Workspace& ws) const;
    // Throws InputError if the mask leaves no labelling.
    virtual void check_mask(Index i) const;

   private:
    Index num_examples_;
    std::vector<std::vector<std::uint8_t>> masks_;
};

// Row width for this many labels: the widths that kernels are compiled for, then multiples of 8.
Index padded_width(Index n_labels);

}  // namespace partwise
