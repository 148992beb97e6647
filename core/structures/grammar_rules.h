// A grammar in Chomsky normal form over numbered symbols, and where the slots of a sentence lie.
//
// Rule r rewrites parent[r] as left[r], right[r]; words have lexical symbols, each of which is a column of the words'
// rows. A span [s, t) has the words s .. t - 1. A part is a rule anchored at (s, q, t): left[r] over [s, q), right[r]
// over [q, t). With A = parent[r], its score is the sum of these tables:
//   rule (r), start (A, s), split (A, q), end (A, t - 1), span (A, s, t), and one of gold (k) and other
// and, if there are hashed tuples, one that a hash of (r, word s, word q, word t - 1) chooses.
// All tables but the first consist of rows of columns; a symbol has one column in a table, or none (kNone). The last
// table exists if there are gold derivations: gold (k) is for the k-th anchored rule of the gold derivation in the
// order of its nodes, other for every rule that is not gold.
//
// Slots of a sentence of n words, W being the padded number of columns of a table:
//   rules | start: n rows | split: n rows | end: n rows | span: n (n - 1) / 2 rows, by s and then t | words: n rows |
//   other, gold: n | tuples
#pragma once

#include <array>

#include "structures/chart.h"
#include "structures/structure.h"

namespace partwise {

// A node of a derivation: a symbol over the words [begin, end).
struct GrammarNode {
    Index symbol;
    Index begin;
    Index end;
};

}  // namespace partwise

namespace partwise::grammar {

constexpr Index kNone = -1;

// The columns of symbols in one table.
struct Columns {
    std::vector<Index> of;  // of each symbol, or kNone; empty: the table has no columns
    Index count = 0;
    Index width = 0;

    Index operator[](Index symbol) const { return of.empty() ? kNone : of[symbol]; }
};

struct Rules {
    Index n_symbols = 0;
    std::vector<Index> parent, left, right;
    std::vector<Index> first;  // rule of each symbol, and the end
    std::vector<Index> roots;  // the symbols of whole sentences
    Columns start, split, end, span, word;
    Index n_tuples = 0;              // 0 or a power of two
    std::vector<Index> word_symbol;  // of each lexical column

    // The rules in the order of their left symbols, for loops that begin with the left symbol.
    struct ByLeft {
        std::int32_t right;
        std::int32_t parent;
        std::int32_t rule;
    };
    std::vector<Index> first_by_left;
    std::vector<ByLeft> by_left;

    Index size() const { return len(parent.size()); }
    // The number of a rule, or kNone.
    Index find(Index a, Index b, Index c) const;
};

// An anchored rule.
struct Anchored {
    Index rule;
    Index s, q, t;
};

// The data from which make_rules() makes a Rules.
struct RuleTable {
    Index n_symbols;
    std::vector<Index> rules;  // parent, left, right of each
    std::vector<Index> roots;
    std::vector<Index> words;  // the symbol of each lexical column
    std::vector<Index> start, split, end, span;
    Index n_tuples = 0;
};

// Throws InputError that names what is wrong.
Rules make_rules(RuleTable table);

// The spans of at least two words, by begin and then end.
inline Index n_spans(Index n) { return n * (n - 1) / 2; }
inline Index span_row(Index n, Index s, Index t) { return s * (n - 1) - s * (s - 1) / 2 + t - s - 2; }

struct Slots {
    const Rules& g;
    Index n;
    bool has_gold;

    Index start(Index column, Index s) const { return g.size() + s * g.start.width + column; }
    Index splits() const { return g.size() + n * g.start.width; }
    Index split(Index column, Index q) const { return splits() + q * g.split.width + column; }
    Index ends() const { return splits() + n * g.split.width; }
    Index end(Index column, Index t) const { return ends() + (t - 1) * g.end.width + column; }
    Index spans() const { return ends() + n * g.end.width; }
    Index span(Index column, Index s, Index t) const { return spans() + span_row(n, s, t) * g.span.width + column; }
    Index words() const { return spans() + n_spans(n) * g.span.width; }
    Index word(Index column, Index s) const { return words() + s * g.word.width + column; }
    Index other() const { return words() + n * g.word.width; }
    Index gold(Index k) const { return other() + 1 + k; }
    Index tuples() const { return other() + (has_gold ? n : 0); }
    Index count() const { return tuples() + g.n_tuples; }

    // The slots that symbol A uses over [s, t) whatever its rule: at most three.
    struct OfNode {
        std::array<Index, 3> slots;
        Index count = 0;
    };
    OfNode of_node(Index a, Index s, Index t) const {
        OfNode out;
        if (g.start[a] != kNone) out.slots[out.count++] = start(g.start[a], s);
        if (g.end[a] != kNone) out.slots[out.count++] = end(g.end[a], t);
        if (g.span[a] != kNone) out.slots[out.count++] = span(g.span[a], s, t);
        return out;
    }
};

// One sentence: its length, its words' columns and its gold rules, which the structure owns.
struct Sentence {
    const Rules& g;
    Index n;
    const Index* word_ptr;           // of its words into `columns`; null: words have all columns
    const Index* columns;            // ascending for each word
    std::span<const Anchored> gold;  // in the order of (s, t)
    bool has_gold;
    const Index* codes;  // of its words, for hashed tuples

    Slots slots() const { return {g, n, has_gold}; }
    Index n_columns(Index s) const { return word_ptr ? word_ptr[s + 1] - word_ptr[s] : g.word.count; }
    Index column(Index s, Index k) const { return word_ptr ? columns[word_ptr[s] + k] : k; }
    bool has_column(Index s, Index c) const;
    // The gold rule over [s, t), or kNone.
    Index gold_at(Index s, Index t) const;
    // Returns the function k -> slot of the hashed tuple (rule r, word s, word q + k, word t - 1), for rule r over
    // [s, t) with its split at q + k.
    chart::HashedSlots tuples(Index r, Index s, Index t, Index q) const;
    void add_slots(const Anchored& x, std::vector<Index>& out) const;
};

// Lists of nodes in pre-order and slots (grammar_reading.cpp).

// A function that throws an error with this reason.
using Refuse = std::function<void(const std::string& what)>;

// The rules of a derivation given by its 2 n - 1 nodes in pre-order, in that order; calls refuse() if it is invalid.
std::vector<Anchored> anchored_rules(const Sentence& sentence, std::span<const GrammarNode> nodes,
                                     const Refuse& refuse);

// The nodes, in pre-order, of a derivation with these slots; calls refuse() if there is none.
std::vector<GrammarNode> derivation_of(const Sentence& sentence, SlotView labelling, const Refuse& refuse);

// Hand-written sums and maxima (grammar_kernels.cpp), which tests compare with grammar_program.h.

// Computes log Z of scores (-infinity where masked), expected counts of slots and the entropy (either may be null) in
// doubles. Returns false if the range of doubles does not suffice or there is no derivation.
bool plain_sums(const Sentence& sentence, const double* scores, double* marginals, double* entropy, double& log_z,
                Workspace& ws);

// The slots of the best derivation, each named as often as it is used; false if there is none. Ties go to the first
// symbol of whole sentences, then in each span to the first rule, then to the first split.
bool best_derivation(const Sentence& sentence, const double* scores, std::vector<Index>& slots, Workspace& ws);

}  // namespace partwise::grammar
