// What structures of one label per position share: lengths, rows of labels, gold labellings, Hamming cost.
//
// The first slots of a sequence of length T with L labels are T rows of `width`: slot t * width + a is label a at
// position t. A labelling uses one slot of each row once. Cost: the number of positions with a wrong label.
#pragma once

#include "structures/structure.h"

namespace partwise {

class Sequences : public Structure {
   public:
    Index n_labels() const { return n_labels_; }
    Index width() const { return width_; }
    const std::vector<Index>& lengths() const { return lengths_; }

    void add_cost(Index i, SlotView gold, double scale, double* scores) const override;
    // The T labels of a labelling; throws InputError if it has none or two for a position.
    void labels_of(Index i, SlotView labelling, Index* labels) const;

   protected:
    Sequences(std::vector<Index> lengths, Index n_labels);

    Index length(Index i) const { return lengths_[idx(i)]; }

   private:
    std::vector<Index> lengths_;
    Index n_labels_;
    Index width_;
};

// Throws InputError unless `labelling` has the counts that its labels give it, `right`, and the mask allows them.
void check_counts(Index i, const SlotCounts& right, SlotView labelling, const std::uint8_t* allowed);

}  // namespace partwise
