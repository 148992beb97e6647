// The labellings that a solver keeps for each example at temperature 0, with the inner products that its steps need.
//
// An atom is one labelling y of example i (or, after a merge, a mixture of labellings, with expected counts in place of
// count(y)). It consists of slots, the cost kappa <count, c>, the difference from gold d = g - count, and the
// coefficient x, its share of the example's dual block. With psi = A'd, u = sum_i omega_i sum_k x_k psi_k; the block's
// mass is s = sum_k x_k. No psi is ever computed: the atoms of an example share the rows A'e_r of the slots r in which
// they differ from gold, and steps use the inner products of the example's psi.
#pragma once

#include <utility>

#include "solvers/difference_rows.h"
#include "solvers/objective.h"

namespace partwise {

// The cost of an oracle call per slot, and of a new atom per number, in units of one number of a row that a sweep reads
// (measured on text chunking and handwritten words).
constexpr Index kSlot = 2;
constexpr Index kNewAtom = 4;

class Atom {
   public:
    // Sorts the labelling's slots.
    Atom(const SlotCounts& labelling, double coefficient, Index stamp);

    double coefficient;
    Index stamp;  // time of last use, in a unit that the solver defines
    double cost = 0;

    std::span<const std::uint32_t> slots() const { return {slots_.get(), idx(n_slots_)}; }
    std::span<const double> counts() const { return {counts_.get(), idx(n_slots_)}; }
    // Whether the atom is this labelling, whose slots have this hash.
    bool is(const SlotCounts& labelling, std::uint64_t hash) const;
    Index bytes() const;

   private:
    Index n_slots_;
    std::uint64_t hash_;  // compared first: reading the slots of other atoms is slow
    std::unique_ptr<double[]> counts_;
    std::unique_ptr<std::uint32_t[]> slots_;
};

// The inner products <psi_k, psi_l> of an example's n atoms.
class Gram {
   public:
    Gram(const double* values, std::size_t n) : values_(values), n_(n) {}
    const double* row(std::size_t k) const { return values_ + k * n_; }
    double operator()(std::size_t k, std::size_t l) const { return row(k)[l]; }

   private:
    const double* values_;
    std::size_t n_;
};

// All atoms as flat arrays, in order: the form in checkpoints and dual points.
struct AtomTable {
    std::vector<Index> example_ptr{0};
    std::vector<Index> labelling_ptr{0};
    std::vector<Index> slots;
    std::vector<double> counts;
    std::vector<double> coefficients;
    std::vector<Index> stamps;

    template <class Slots, class Counts>
    void add(const Slots& own_slots, const Counts& own_counts, double coefficient, Index stamp) {
        slots.insert(slots.end(), own_slots.begin(), own_slots.end());
        counts.insert(counts.end(), own_counts.begin(), own_counts.end());
        labelling_ptr.push_back(len(slots.size()));
        coefficients.push_back(coefficient);
        stamps.push_back(stamp);
    }
    void end_example() { example_ptr.push_back(len(coefficients.size())); }
};

class WorkingSets {
   public:
    explicit WorkingSets(Index num_examples);
    // Throws InputError if the table is inconsistent or has negative coefficients.
    explicit WorkingSets(const AtomTable& table);
    WorkingSets(const WorkingSets&) = delete;
    WorkingSets& operator=(const WorkingSets&) = delete;

    Index num_examples() const { return len(sets_.size()); }
    Index num_atoms() const;
    // Memory of atoms and their inner products, without that of the rows. A merge reduces it.
    Index bytes() const { return bytes_; }
    // A stamp later than those of example i's atoms. A resumed run has the same atoms, and so the same stamp.
    Index next_stamp(Index i) const;
    AtomTable table() const;

    // Callers must not change the order of the atoms.
    std::vector<Atom>& of(Index i) { return sets_[i].atoms; }
    const DifferenceRows& rows(Index i) const { return sets_[i].rows; }
    Gram gram(Index i) const { return {sets_[i].gram.data(), sets_[i].atoms.size()}; }

    // Mass s and cost sum_k x_k cost_k of example i's block, known after attach().
    struct Totals {
        double mass = 0;
        double cost = 0;
    };
    const Totals& totals(Index i) const { return totals_[i]; }

    // Prefetches example i's memory before a visit: first the pointers, then what they point to.
    void prefetch_places(Index i) const;
    void prefetch(Index i) const;

    // Throws InputError unless atoms of examples with weight are labellings or (fractional counts) mixtures.
    void check(const Objective& objective, int n_jobs, Interrupt& interrupt) const;

    // Checks that the sets belong to this objective's examples, and completes atoms that came from a table.
    void attach(const Objective& objective, Interrupt& interrupt);

    // Sorts the labelling and looks for it among example i's atoms. If it is new, appends it with the coefficient 0 and
    // returns true.
    bool find_or_add(const Objective& objective, Index i, SlotCounts& labelling, Index stamp);

    // v_k = cost_k - <w, psi_k> of example i's atoms, given theta + kappa c for the slots that have rows.
    void values(Index i, const double* scores, double* v) const;
    // Gives example i's atoms the coefficients x and adds the change scale * sum_k (x_k - old x_k) psi_k to w.
    void move(Index i, const double* x, double scale, double* w);

    // Removes the atoms for which drop(atom) is true.
    template <class F>
    void remove_if(Index i, F&& drop) {
        std::vector<Atom>& atoms = of(i);
        kept_.clear();
        for (std::size_t k = 0; k < atoms.size(); ++k) {
            if (!drop(std::as_const(atoms[k]))) kept_.push_back(k);
        }
        if (kept_.size() < atoms.size()) keep(i);
    }

    // Replaces the atoms of positive coefficient by one mixture, at the front: u and mass stay the same, but later
    // steps have fewer directions. Returns whether there was anything to merge.
    bool merge(const Objective& objective, Index i);

   private:
    struct Set {
        std::vector<Atom> atoms;
        PackedRows differences;  // d of each atom, sorted by slot
        DifferenceRows rows;
        std::vector<double> gram;  // a square matrix
        bool attached = false;
        Index bytes = 0;

        // <d_k, scores>, which gives the atom's value and cost.
        double difference(std::size_t k, const double* scores) const;
        // slots += scale * d_k
        void add_difference(std::size_t k, double scale, double* slots) const;
    };

    void count_bytes(Set& set);
    void add_up(Index i);
    void keep(Index i);
    // Computes differences, rows and inner products of the atoms from `first` on.
    void complete(const Objective& objective, Index i, std::size_t first);
    // Computes the difference of the next atom that has none; its slots are added to needed_.
    void compare(const Objective& objective, Index i);
    void fill_gram_row(Set& set, std::size_t k);
    // Memory for one value per slot; all 0 between calls.
    double* slot_scratch(Index num_slots);

    std::vector<Set> sets_;
    std::vector<Totals> totals_;
    bool attached_ = false;  // whether all sets are
    Index bytes_ = 0;
    std::vector<std::size_t> kept_;
    std::vector<Index> needed_;
    std::vector<Index> fresh_;  // slots of needed_ that have no row yet
    PackedRows fresh_rows_;
    SlotCounts difference_;
    std::vector<double> slots_;  // all 0 between calls
    std::vector<double> products_;
    std::vector<double> dense_;  // all 0 between calls
};

// Turns Gibbs distributions p ~ exp(<count(y), s>) into atoms of mass 1 per example: the `most` most probable
// labellings with their shares of p, except those with less than kUnlikely of the best one's probability. scores: s,
// slots of all examples concatenated. The structure must have k_best.
constexpr double kUnlikely = 1e-3;
AtomTable likely_labellings(const Objective& objective, const double* scores, Index most, Interrupt& interrupt);

// The search of n-slack cutting planes: at fixed weights, which labelling of each example violates its slack most. The
// slack of example i is the largest cost_y - <w, psi_y> over its working set. The oracle's labelling joins the set if
// its value exceeds the slack by more than epsilon.
struct ViolatorOptions {
    double epsilon = 0;
    Index now = 0;  // the stamp of atoms that join
    // merge an example's atoms as long as all atoms together take more bytes than this
    Index max_bytes = std::numeric_limits<Index>::max();
};

struct ViolatorReport {
    Index visits = 0;  // oracle calls
    Index added = 0;
    Index merged = 0;
    double losses = 0;   // sum of omega times the oracle's margin: the losses at w
    double largest = 0;  // largest violation
    double total = 0;    // sum of omega times the violation
};

ViolatorReport find_violators(const Objective& objective, const double* weights, WorkingSets& sets,
                              std::span<const Index> order, const ViolatorOptions& options, Interrupt& interrupt);

}  // namespace partwise
