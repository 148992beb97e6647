// What the solvers know of a structure: slots, the best labelling, and sums over all labellings. No features, no loss.
//
// A labelling y of example i uses slot r count_r(y) times. Scores are finite; which labellings are allowed is said by
// boolean masks over slots. Every method is const and safe to call from several threads with a Workspace each,
// unless thread_safe() says otherwise (structures written in Python).
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
    virtual void check_labelling(Index, SlotView, Workspace&) const {}
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

    // Capability kCliques: the distribution's marginals of cliques.
    virtual const CliqueView& cliques() const;

    // Slot offsets of all examples end to end (num_examples + 1 values).
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
    // Throws InputError if the counts have a larger value than the maximum for some scores that are tried.
    void check_by_maxima(Index i, SlotView counts, const char* complaint, Workspace& ws) const;
    // The same for these scores, with the counts of a labelling that attains the maximum.
    void check_by_maximum(Index i, SlotView counts, const double* scores, double* best, const char* complaint,
                          Workspace& ws) const;
    // Throws InputError if the mask leaves no labelling.
    virtual void check_mask(Index) const {}
    // The same of a rule that an example has beside its mask.
    virtual void check_rule(Index) const {}
    // Throws the InputError of an example without labelling.
    [[noreturn]] virtual void nothing_left(Index i) const;

   private:
    Index num_examples_;
    std::vector<std::vector<std::uint8_t>> masks_;
};

// Adds slots, in any order, each once with the number of times that it is named. Sorts them.
void add_counted(std::vector<Index>& slots, SlotCounts& out);

// Throws InputError, which begins with `example`, unless `labelling` has the counts that its labels give it, `right`, and
// the mask (null: none) allows them.
void check_counts(const std::string& example, const SlotCounts& right, SlotView labelling, const std::uint8_t* allowed);

// One of n, with probabilities in proportion to these weights, which sum up to `total`.
Index draw_one(const double* weights, Index n, double total, std::mt19937_64& rng);

// Row width for this many labels: the widths that kernels are compiled for, then multiples of 8.
Index padded_width(Index n_labels);

}  // namespace partwise
