// The labellings that a method keeps for each example at temperature 0, with what a step on one of them needs.
//
// An atom is one labelling y of example i (or, after a merge, a mixture of labellings with expected counts in place of
// count(y)): its slots, its cost kappa <count, c>, the sparse vector psi = A'(g - count), |psi|^2, and its coefficient,
// the share x of the example's dual block. u = sum_i omega_i sum_k x_k psi_k; the block's mass s is sum_k x_k.
// A step on an atom touches psi and the weights under it, nothing else.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "solvers/objective.h"

namespace partwise {

// What the oracle costs per slot and a new atom per number (projection, copies, inner products), in numbers of vectors
// that sweeps read. Measured on text chunking and handwritten words; what is counted is the same in every run.
constexpr Index kSlot = 6;
constexpr Index kNewAtom = 4;

class Atom {
   public:
    // Sorted slots. The vector psi is made by project().
    Atom(const SlotCounts& labelling, double coefficient, Index stamp);

    double coefficient;
    Index stamp;  // when it was last asked for; what that means is the solver's business
    double cost = 0;
    double norm2 = 0;

    std::span<const std::uint32_t> slots() const { return {slots_.get(), idx(n_slots_)}; }
    std::span<const double> counts() const { return {counts_.get(), idx(n_slots_)}; }
    bool is(const SlotCounts& labelling) const;
    Index bytes() const;
    Index num_values() const { return n_values_; }

    // <count, scores>
    double score(const double* scores) const {
        double sum = 0;
        for (Index k = 0; k < n_slots_; ++k) sum += counts_[idx(k)] * scores[slots_[idx(k)]];
        return sum;
    }
    double dot(const double* w) const {
        const double* __restrict value = values_.get();
        const std::uint32_t* __restrict index = indices_.get();
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index j = 0; j < n_values_; ++j) sum += value[j] * w[index[j]];
        return sum;
    }
    void axpy(double scale, double* __restrict w) const {
        const double* __restrict value = values_.get();
        const std::uint32_t* __restrict index = indices_.get();
        for (Index j = 0; j < n_values_; ++j) w[index[j]] += scale * value[j];
    }
    // w = 0 under psi.
    void clear(double* w) const {
        for (Index j = 0; j < n_values_; ++j) w[indices_[idx(j)]] = 0.0;
    }

    bool projected() const { return n_values_ >= 0; }
    void project(const Objective& objective, Index i, Workspace& ws, SparseVector& scratch);

   private:
    Index n_slots_;
    Index n_values_ = -1;
    std::unique_ptr<double[]> counts_;
    std::unique_ptr<std::uint32_t[]> slots_;
    std::unique_ptr<double[]> values_;
    std::unique_ptr<std::uint32_t[]> indices_;
};

// All atoms as flat arrays, in order: what a checkpoint or a dual point holds.
struct AtomTable {
    std::vector<Index> example_ptr;
    std::vector<Index> labelling_ptr;
    std::vector<Index> slots;
    std::vector<double> counts;
    std::vector<double> coefficients;
    std::vector<Index> stamps;
};

class WorkingSets {
   public:
    explicit WorkingSets(Index num_examples);
    // Throws InputError if the table is not one of atoms with coefficients >= 0.
    explicit WorkingSets(const AtomTable& table);

    Index num_examples() const { return len(sets_.size()); }
    Index num_atoms() const;
    // Memory of atoms. Not of inner products, which are small beside the vectors, and are recomputed when a run is
    // resumed: what is counted here must not depend on that.
    Index bytes() const { return bytes_; }
    // A stamp later than those of all of example i's atoms. It depends on them alone, so that a resumed run has the
    // same.
    Index next_stamp(Index i) const;
    AtomTable table() const;

    std::vector<Atom>& of(Index i) { return sets_[idx(i)].atoms; }

    // Checks that the sets are of this objective's examples and makes the vectors of atoms that have none yet.
    void attach(const Objective& objective, Interrupt& interrupt);

    // The place of the labelling among example i's atoms; a new atom (coefficient 0) goes to the end.
    // Sorts the labelling.
    Index find_or_add(const Objective& objective, Index i, SlotCounts& labelling, Index stamp);

    // <psi_k, psi_l> of example i's atoms, k >= l, at k (k + 1) / 2 + l. The order of atoms must not be changed from
    // outside once this was asked for.
    const double* gram(Index i, Index num_weights);

    // Forgets the atoms for which drop(atom) holds.
    template <class F>
    void remove_if(Index i, F&& drop) {
        std::vector<Atom>& atoms = of(i);
        kept_.clear();
        for (std::size_t k = 0; k < atoms.size(); ++k) {
            if (!drop(std::as_const(atoms[k]))) kept_.push_back(k);
        }
        if (kept_.size() < atoms.size()) keep(i);
    }

    // Makes one mixture of the atoms of positive coefficient: the same u and mass, fewer ways to move. The mixture
    // goes to the front, with the newest one's stamp. Returns whether there was anything to do.
    bool merge(const Objective& objective, Index i);

   private:
    struct Set {
        std::vector<Atom> atoms;
        std::vector<double> gram;  // rows that are known so far
        std::size_t gram_rows = 0;
    };

    // Forgets all atoms but those of kept_.
    void keep(Index i);

    std::vector<Set> sets_;
    Index bytes_ = 0;
    Workspace ws_;
    SparseVector scratch_;
    std::vector<std::size_t> kept_;
    std::vector<double> dense_;  // all 0 between calls
};

}  // namespace partwise
