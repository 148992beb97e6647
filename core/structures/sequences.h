// The common base of structures with one label per position: lengths, slots of labels, gold labellings, Hamming cost.
//
// The first slots of a sequence of length T with L labels are T rows of `width` slots (L, padded). Slot t * width + a
// is label a at position t. A labelling uses one slot of each row, once. Subclasses add slots after these rows, such as
// those of transitions. The cost is the number of positions with a wrong label.
#pragma once

#include "structures/structure.h"

namespace partwise {

// Which labels may follow which (n_labels x n_labels; rows: the earlier label), which may come first and which last.
// A byte of 0 forbids; an empty vector allows everything.
struct Follow {
    std::vector<std::uint8_t> pairs;
    std::vector<std::uint8_t> first;
    std::vector<std::uint8_t> last;

    bool empty() const { return pairs.empty() && first.empty() && last.empty(); }
};

class Sequences : public Structure {
   public:
    Index n_labels() const { return n_labels_; }
    Index width() const { return width_; }
    const std::vector<Index>& lengths() const { return lengths_; }

    // The T labels of a labelling; throws InputError if it has none or two for a position.
    void labels_of(Index i, SlotView labelling, Index* labels) const;

   protected:
    Sequences(std::vector<Index> lengths, Index n_labels);

    Index length(Index i) const { return lengths_[i]; }
    static std::string name(Index i) { return "sequence " + std::to_string(i); }
    void check_mask(Index i) const override;
    [[noreturn]] void nothing_left(Index i) const override;

   private:
    std::vector<Index> lengths_;
    Index n_labels_;
    Index width_;
};

// Sequences whose labelling is its labels.
class LabelSequences : public Sequences {
   public:
    // Sets a rule for all sequences, in addition to their masks. Masks set later are checked together with the rule.
    // A sequence without an allowed labelling is refused when it is used.
    void set_follow(Follow rule);
    const Follow& follow() const { return follow_; }

    Index num_row_slots(Index i) const override { return length(i) * width(); }
    void add_cost(Index i, SlotView gold, double scale, double* scores) const override;
    void check_labelling(Index i, SlotView labelling, Workspace& ws) const override;
    // The labelling with these T labels. Here: the slots of labels at positions; subclasses add slots of label pairs.
    virtual void labelling_of(Index i, const Index* labels, SlotCounts& out) const;

   protected:
    using Sequences::Sequences;

    // Whether the rule lets label a stand at position t of example i.
    bool may_stand(Index i, Index t, Index a) const {
        return (t > 0 || follow_.first.empty() || follow_.first[a]) &&
               (t < length(i) - 1 || follow_.last.empty() || follow_.last[a]);
    }
    bool may_follow(Index a, Index b) const { return follow_.pairs.empty() || follow_.pairs[a * n_labels() + b]; }
    // The first position where the rule forbids the labels of example i, or -1.
    Index first_forbidden(Index i, const Index* labels) const;
    void check_rule(Index i) const override;
    // Called after a new rule is set, for subclasses that derive data from it.
    virtual void follow_changed() {}

   private:
    Follow follow_;
};

}  // namespace partwise
