// What the two kinds of dependency trees share: slots, cost, masks, heads in and out, checks of gold trees.
//
// A sentence of n words has the tokens 1..n and the root 0. Its n * (n + 1) slots are arcs from a head to a modifier:
// slot (m - 1) * (n + 1) + h is the arc h -> m. Slots with h == m belong to no tree. Every word has one head, so a tree
// uses n slots, once each. Cost: the number of words with a wrong head. Under the single-root rule exactly one word has
// the head 0. Of trees with equal scores `maximize` takes one with the smallest sum of heads.
#pragma once

#include "structures/structure.h"

namespace partwise {

class Tree : public Structure {
   public:
    bool single_root() const { return single_root_; }
    Index max_length() const { return max_length_; }
    const std::vector<Index>& lengths() const { return lengths_; }

    unsigned capabilities() const override { return kCovariance | kKBest | kSample; }
    Index num_slots(Index i) const override { return length(i) * (length(i) + 1); }
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override;
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override;
    void add_cost(Index i, SlotView gold, double scale, double* scores) const override;
    void check_labelling(Index i, SlotView labelling, Workspace& ws) const override;

    // The slots of a tree given by its n heads.
    void labelling_of(Index i, const Index* heads, SlotCounts& out) const;
    // The heads of a tree given by its slots; throws InputError if a word has none or two.
    void heads_of(Index i, SlotView labelling, Index* heads) const;
    // Throws InputError, which names the sentence, unless these n heads are a tree of this kind (masks aside).
    void check_heads(Index i, const Index* heads) const;

   protected:
    // work: bytes and elementary operations that a sentence of n words costs, for the message about those too long.
    struct Work {
        double bytes;
        double operations;
    };
    Tree(std::vector<Index> lengths, bool single_root, Index max_length, Work (*work)(double n));

    Index length(Index i) const { return lengths_[i]; }
    // Scores times `scale`; -infinity for masked arcs and for slots that are not arcs (h == m).
    double* arc_scores(Index i, const double* scores, double scale, Workspace::Frame& frame) const;
    // The labelling of these heads, and its value.
    double scored_labelling(Index i, const double* scores, const Index* heads, SlotCounts& out) const;
    template <class... Parts>
    [[noreturn]] static void refuse(Index i, const Parts&... what) {
        throw InputError("sentence ", i, " ", what...);
    }

    // Heads of the best tree for these arc scores; false if there is none.
    virtual bool best_heads(Index n, const double* arcs, Index* heads, Workspace& ws) const = 0;
    // log sum over trees of exp(arc scores), with their marginals and entropy (either may be null).
    virtual double sums(Index n, const double* arcs, double* marginals, double* entropy, Workspace& ws) const = 0;
    // Throws InputError unless this tree also meets what the subclass demands.
    virtual void check_kind(Index, const Index*) const {}
    void check_mask(Index i) const override;
    [[noreturn]] void nothing_left(Index i) const override;

   private:
    std::vector<Index> lengths_;
    bool single_root_;
    Index max_length_;
};

}  // namespace partwise
