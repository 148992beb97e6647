// Second-order sequences of labels.
//
// Slots of a sequence of length T with L labels in rows of `width`:
//   T rows:      slot t * width + a is label a at position t
//   L rows:      (a, b) counts how often label b follows label a
//   L * L rows:  (a * L + b, c) counts how often label c follows a and b
#pragma once

#include "structures/chart_structure.h"
#include "structures/second_order_kernels.h"
#include "structures/second_order_program.h"
#include "structures/sequences.h"

namespace partwise {

class SecondOrderChain final : public ChartStructure<SecondOrderChain, LabelSequences> {
   public:
    SecondOrderChain(std::vector<Index> lengths, Index n_labels);

    Index num_slots(Index i) const override { return (length(i) + n_labels() * (n_labels() + 1)) * width(); }
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override;
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override;
    void labelling_of(Index i, const Index* labels, SlotCounts& out) const override;

   private:
    friend ChartStructure;
    template <class F>
    auto with_program(Index i, F&& f) const {
        return f(second_order::Program{length(i), n_labels()});
    }
    const double* to_program(Index i, const second_order::Program& program, const double* values, double scale,
                             bool masked, Workspace::Frame& frame) const;
    void from_program(Index i, const second_order::Program& program, const double* own, double* slots) const;
    double gather(Index i, const double* scores, std::vector<Index>& used, SlotCounts& out) const;

    Index pair_row(Index i) const { return length(i); }
    Index triple_row(Index i) const { return length(i) + n_labels(); }
    // Pointers to the tables of nodes, pairs and triples in an array of all slots.
    second_order::View view_of(Index i, const double* slots) const;
    // scores / temperature, -infinity where masked; cut: whether a pair or triple is masked.
    second_order::View prepare(Index i, const double* scores, double temperature, Workspace::Frame& frame,
                               bool& cut) const;
    // Whether the mask and the rule of neighbouring labels allow this slot, for a column c below n_labels.
    bool allows(Index i, Index row, Index c) const;
    bool is_safe(const second_order::View& view) const;
};

extern template class ChartStructure<SecondOrderChain, LabelSequences>;

}  // namespace partwise
