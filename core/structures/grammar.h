// Derivations of sentences under a grammar in Chomsky normal form (Bartlett et al. 2004, example 2: parts are anchored
// rules). grammar_rules.h says which slots there are. Every derivation of a sentence of n words has n - 1 anchored
// rules and n symbols of words; each span is at most one node. Cost: by name,
//   "constituents"  the slots of spans and words that the gold derivation does not have, spans by their columns' costs
//   "rules"         anchored rules that are not gold, and wrong symbols of words; needs gold derivations
#pragma once

#include "structures/chart_structure.h"
#include "structures/grammar_program.h"

namespace partwise {

class Grammar final : public ChartStructure<Grammar> {
   public:
    enum class Cost { kConstituents, kRules };
    struct Options {
        std::vector<Index> word_ptr;      // of all sentences' words end to end, into word_columns
        std::vector<Index> word_columns;  // the lexical columns a word may have, ascending; both empty: all of them
        std::vector<GrammarNode> gold;    // of all sentences end to end, 2 n - 1 each in pre-order; or empty
        std::vector<double> span_costs;   // of each column of spans; empty: 1
        std::vector<Index> tuple_codes;   // of all sentences' words end to end; with hashed tuples
        Cost cost = Cost::kConstituents;
        double max_bytes = 2e9;  // of memory that sums over one sentence may take
    };
    Grammar(std::vector<Index> lengths, grammar::RuleTable rules, Options options);

    const std::vector<Index>& lengths() const { return lengths_; }
    const grammar::Rules& rules() const { return rules_; }
    const std::vector<double>& span_costs() const { return options_.span_costs; }
    Cost cost() const { return options_.cost; }
    bool has_gold() const { return has_gold_; }
    grammar::Slots slots(Index i) const { return {rules_, lengths_[i], has_gold_}; }

    Index num_slots(Index i) const override { return slots(i).count(); }
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override;
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override;
    void add_cost(Index i, SlotView gold, double scale, double* scores) const override;
    void check_labelling(Index i, SlotView labelling, Workspace& ws) const override;

    // Whether the mask allows a derivation of the sentence.
    bool has_derivation(Index i) const;
    // The slots of a derivation given by its 2 n - 1 nodes in pre-order. Throws InputError, which names the sentence
    // and the first wrong node, unless the nodes are a derivation. Masks are not looked at.
    void labelling_of(Index i, const GrammarNode* nodes, SlotCounts& out) const;
    // A derivation with these slots. If there are several (their scores are equal), the one with the first rules.
    std::vector<GrammarNode> nodes_of(Index i, SlotView labelling) const;

   protected:
    void check_mask(Index i) const override;
    [[noreturn]] void nothing_left(Index i) const override { refuse(i, "has no derivation"); }

   private:
    friend ChartStructure;
    template <class F>
    auto with_program(Index i, F&& f) const;

    grammar::Sentence sentence(Index i) const;
    std::vector<grammar::Anchored> anchored(Index i, const GrammarNode* nodes) const;
    // The slots of the best derivation; false if there is none.
    bool best(Index i, const double* scores, std::vector<Index>& slots, Workspace& ws) const;
    void check_bytes(Index i, double bytes, const char* what) const;
    void set_words();
    void set_gold();
    template <class... Parts>
    [[noreturn]] static void refuse(Index i, const Parts&... what) {
        throw InputError("sentence ", i, " ", what...);
    }

    std::vector<Index> lengths_;
    std::vector<Index> first_word_;  // of each sentence, all end to end
    grammar::Rules rules_;
    Options options_;
    bool has_gold_;
    std::vector<grammar::Anchored> gold_;  // n - 1 of each sentence, by (begin, end)
};

extern template class ChartStructure<Grammar>;

}  // namespace partwise
