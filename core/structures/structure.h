// The interface of structures, as solvers use it: slots, the best labelling, sums over all labellings. A structure
// knows neither features nor losses.
//
// A slot is a thing that a labelling can use and that has a score, such as "label 2 at position 5". A labelling y of
// example i uses slot r count_r(y) times. Scores are finite. A mask has a byte per slot and forbids the labellings that
// use a slot whose byte is 0. Several threads may call the const methods, each with its own Workspace, unless
// thread_safe() is false, as for structures written in Python.
#pragma once

#include <random>

#include "support/workspace.h"

namespace partwise {

class CliqueView;

// kOnePart: every labelling is one slot, used once. kSupport: cliques tell which labellings have mass.
enum Capability : unsigned { kCliques = 1, kCovariance = 2, kKBest = 4, kSample = 8, kOnePart = 16, kSupport = 32 };

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
    // The number of slots at the beginning that form rows, one row per variable: a labelling uses one slot of each row,
    // once. 0 if the structure has no such rows.
    virtual Index num_row_slots(Index) const { return 0; }

    // Returns the maximum over labellings y of <count(y), scores>; `best` becomes a labelling that attains it. Among
    // equal labellings the one with the lowest labels is taken.
    virtual double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const = 0;
    // The same for several examples: scores[k], values[k] and best[k] are those of examples[k].
    virtual void maximize_of(std::span<const Index> examples, const double* const* scores, double* values,
                             SlotCounts* best, Workspace& ws) const;
    // Whether `maximize_of` or `log_partition_of` is faster than one call per example; if so, passes call these.
    virtual bool together() const { return false; }

    // temperature * log sum over y of exp(<count(y), scores> / temperature); at temperature 0 the maximum.
    // marginals: expected counts (num_slots values) or null; entropy: of p ~ exp(./temperature), or null.
    virtual double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                                 Workspace& ws) const = 0;

    // The same for the examples [begin, end): slots are concatenated; values and entropies are per example. Not null.
    virtual void log_partition_of(Index begin, Index end, const double* scores, double temperature, double* values,
                                  double* marginals, double* entropies, Workspace& ws) const;
    // The same, but only the values.
    virtual void log_values_of(Index begin, Index end, const double* scores, double temperature, double* values,
                               Workspace& ws) const;

    // scores += scale * cost of each slot against the gold labelling (the number of wrong parts).
    virtual void add_cost(Index i, SlotView gold, double scale, double* scores) const = 0;

    // The value of this labelling: <count(y), scores> where the structure is linear. Masks are not looked at.
    virtual double value_of(Index i, const double* scores, SlotView labelling) const;

    // Throws InputError unless this is a labelling in Y_i.
    virtual void check_labelling(Index, SlotView, Workspace&) const {}
    // Throws InputError if masks or maxima show that these are not the expected counts of a distribution over Y_i.
    void check_mixture(Index i, SlotView mixture, Workspace& ws) const;

    // Capability kKBest: the k best labellings, best first (fewer if there are fewer).
    virtual std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const;
    // Capability kSample: n exact draws from p ~ exp(scores / temperature).
    virtual std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n,
                                           std::mt19937_64& rng, Workspace& ws) const;
    // Capability kCovariance: out = Cov_p(counts) direction.
    virtual void covariance_product(Index i, const double* scores, double temperature, const double* direction,
                                    double* out, Workspace& ws) const;
    // Capability kOnePart: the same for the examples [begin, end), times a factor per example. Where a labelling is one
    // slot, the marginals are the distribution p itself. The examples' slots are concatenated.
    virtual void covariance_of_marginals(Index begin, Index end, const double* marginals, const double* direction,
                                         const double* factors, double* out) const;

    // Capability kCliques: distributions as marginals of cliques.
    virtual const CliqueView& cliques() const;

    // Where each example's slots begin in an array of all examples' slots, and the end (num_examples + 1 values).
    std::vector<Index> slot_offsets() const;

    // Allow only labellings made of allowed slots (num_slots bytes); empty lifts the mask.
    void set_mask(Index i, std::vector<std::uint8_t> allowed);
    // Null where everything is allowed.
    const std::uint8_t* mask(Index i) const { return masks_.empty() || masks_[i].empty() ? nullptr : masks_[i].data(); }

   protected:
    bool masked() const { return !masks_.empty(); }
    // scores * scale, -infinity where the mask forbids a slot.
    double* masked_scores(Index i, const double* scores, double scale, Workspace::Frame& frame) const;
    // log_partition at temperature 0: the maximum, its counts and no entropy.
    double maximum_as_sums(Index i, const double* scores, double* marginals, double* entropy, Workspace& ws) const;
    // The maximum over labellings, and the counts of one that attains it (or null).
    virtual double maximum(Index i, const double* scores, double* counts, Workspace& ws) const;
    // Tries several score vectors; throws InputError if the counts exceed the maximum of one.
    void check_by_maxima(Index i, SlotView counts, const char* complaint, Workspace& ws) const;
    // The same for these scores alone; `best` (or null) gets the counts of a labelling that attains the maximum.
    void check_by_maximum(Index i, SlotView counts, const double* scores, double* best, const char* complaint,
                          Workspace& ws) const;
    // Throws InputError if the mask forbids every labelling.
    virtual void check_mask(Index) const {}
    // The same for mask and rule together, where a structure has a rule for all examples besides their masks.
    virtual void check_rule(Index) const {}
    // Throws the InputError that says that example i has no allowed labelling.
    [[noreturn]] virtual void nothing_left(Index i) const;

   private:
    Index num_examples_;
    std::vector<std::vector<std::uint8_t>> masks_;
};

// Sorts `slots` and adds each different slot to `out`, with the number of times that it occurs.
void add_counted(std::vector<Index>& slots, SlotCounts& out);

// Throws InputError unless `labelling` has the counts `right`, which belong to its labels, and the mask (or null)
// allows its slots. `example` names the example in the message.
void check_counts(const std::string& example, const SlotCounts& right, SlotView labelling, const std::uint8_t* allowed);

// Draws an index in [0, n) with probabilities proportional to these weights, whose sum is `total`.
Index draw_one(const double* weights, Index n, double total, std::mt19937_64& rng);

// The row width for this many labels: the next width that kernels are compiled for, beyond 48 a multiple of 8.
Index padded_width(Index n_labels);

}  // namespace partwise
