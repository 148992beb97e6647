// Derivations as lists of nodes: checked, and read off slots.
#pragma once

#include <functional>
#include <vector>

#include "structures/grammar_rules.h"

namespace partwise {

// A node of a derivation: a symbol over the words [begin, end).
struct GrammarNode {
    Index symbol;
    Index begin;
    Index end;
};

namespace grammar {

// Throws an error with this reason.
using Refuse = std::function<void(const std::string& what)>;

// The rules of a derivation whose 2 n - 1 nodes are in pre-order, in that order; refused unless it is one.
std::vector<Anchored> anchored_rules(const Sentence& sentence, std::span<const GrammarNode> nodes,
                                     const Refuse& refuse);

// The nodes, in pre-order, of a derivation with these slots; refused if there is none.
std::vector<GrammarNode> derivation_of(const Sentence& sentence, SlotView labelling, const Refuse& refuse);

}  // namespace grammar

}  // namespace partwise
