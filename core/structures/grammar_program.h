// Derivations of a sentence as a chart program; the hand-written sums and maxima of grammar_kernels.cpp are faster, and
// are compared with it.
//
// For a span [s, t) of at least two words (+ is the product of two parts):
//   pairs(r, s, t) = sum over q in (s, t) of label(left[r], s, q) + label(right[r], q, t) with split (A, q)
//                    and, if there are hashed tuples, with that of (r, s, q, t)
//   ways(r, s, t)  = pairs(r, s, t); with `other` if there is a gold derivation; and if this one is gold at q, the sum
//                    of (pairs before q, with other), (the pair at q, with gold) and (pairs after q, with other)
//   inner(A, s, t) = sum over rules r of A of ways(r, s, t) with r
//   label(A, s, t) = inner(A, s, t) with start (A, s), end (A, t - 1), span (A, s, t)
//   label(A, s, s + 1) = the empty one with the word's slot
//   root           = sum over the symbols of whole sentences of label(A, 0, n)
// Labels are stored twice, by begin and by end, so that a sum over q reads two contiguous runs of memory.
#pragma once

#include "structures/grammar_rules.h"
#include "support/parallel.h"

namespace partwise::grammar {

class Program {
   public:
    explicit Program(const Sentence& sentence)
        : x_(sentence), g_(sentence.g), at_(sentence.slots()), n_(sentence.n), spans_(n_spans(n_)) {
        // The first cell of each region of cells.
        const Index square = n_ * g_.n_symbols * (n_ + 1);
        by_end_ = square;
        word_ = 2 * square;
        inner_ = word_ + n_ * g_.word.count;
        ways_ = inner_ + 4 * spans_ * g_.n_symbols;
        pairs_ = ways_ + spans_ * g_.size();
        gold_ = x_.has_gold ? pairs_ + spans_ * g_.size() : pairs_;
        top_ = gold_ + (x_.has_gold ? 6 * (n_ - 1) : 0);
        root_ = top_ + len(g_.roots.size());
    }

    Index cells() const { return root_ + 2; }
    Index slots() const { return at_.count(); }
    Index root() const { return root_; }
    Index most_edges() const { return std::max({n_, g_.size(), len(g_.roots.size()), Index{3}}); }

    template <class V>
    void up(V&& v) const {
        v.unit(root_ + 1, root_ + 1);
        for (Index s = 0; s < n_; ++s) visit_word(s, true, v);
        for (Index size = 2; size <= n_; ++size) {
            Interrupt::check_current();
            for (Index s = 0; s + size <= n_; ++s) visit_span(s, s + size, true, v);
        }
        for (Index j = 0; j < len(g_.roots.size()); ++j) visit_top(j, v);
        visit_root(v);
    }
    template <class V>
    void down(V&& v) const {
        visit_root(v);
        for (Index j = len(g_.roots.size()) - 1; j >= 0; --j) visit_top(j, v);
        for (Index size = n_; size >= 2; --size) {
            Interrupt::check_current();
            for (Index s = 0; s + size <= n_; ++s) visit_span(s, s + size, false, v);
        }
        for (Index s = 0; s < n_; ++s) visit_word(s, false, v);
    }
    template <class V>
    void visit(Index cell, V&& v) const {
        if (cell > root_) return v.unit(cell, cell);
        if (cell == root_) return visit_root(v);
        if (cell >= top_) return visit_top(cell - top_, v);
        if (cell >= gold_) return visit_gold((cell - gold_) / 6, (cell - gold_) % 6, v);
        if (cell >= pairs_) {
            const auto [s, t] = span_of((cell - pairs_) / g_.size());
            return visit_pairs(cell, (cell - pairs_) % g_.size(), s, t, s + 1, t, v);
        }
        if (cell >= ways_) {
            const auto [s, t] = span_of((cell - ways_) / g_.size());
            return visit_ways((cell - ways_) % g_.size(), s, t, v);
        }
        if (cell >= inner_) {
            const Index node = (cell - inner_) / 4;
            const auto [s, t] = span_of(node / g_.n_symbols);
            return visit_inner(node % g_.n_symbols, s, t, (cell - inner_) % 4, v);
        }
        if (cell >= word_)
            return visit_symbol_of_word((cell - word_) / g_.word.count, (cell - word_) % g_.word.count, v);
        const bool by_end = cell >= by_end_;
        const Index place = by_end ? cell - by_end_ : cell;
        const Index row = place / (g_.n_symbols * (n_ + 1));
        const Index symbol = place / (n_ + 1) % g_.n_symbols;
        const Index column = place % (n_ + 1);
        if (by_end) return visit_label(symbol, column, row + 1, v);
        visit_label(symbol, row, column, v);
    }

   private:
    Index label(Index a, Index s, Index t) const { return (s * g_.n_symbols + a) * (n_ + 1) + t; }
    Index label_by_end(Index a, Index s, Index t) const {
        return by_end_ + ((t - 1) * g_.n_symbols + a) * (n_ + 1) + s;
    }
    Index word(Index s, Index c) const { return word_ + s * g_.word.count + c; }
    Index inner(Index a, Index s, Index t) const { return inner_ + 4 * (span_row(n_, s, t) * g_.n_symbols + a); }
    Index ways(Index r, Index s, Index t) const { return ways_ + span_row(n_, s, t) * g_.size() + r; }
    Index pairs(Index r, Index s, Index t) const { return pairs_ + span_row(n_, s, t) * g_.size() + r; }

    std::pair<Index, Index> span_of(Index row) const {
        Index s = 0;
        while (row >= n_ - 1 - s) row -= n_ - 1 - s++;
        return {s, s + 2 + row};
    }

    // Visits the cells of a span, step by step; if not `up`, in the opposite order.
    template <class V>
    void visit_span(Index s, Index t, bool up, V&& v) const {
        const Index gold = x_.gold_at(s, t);
        constexpr int kSteps = 5;
        for (int k = 0; k < kSteps; ++k) {
            const int step = up ? k : kSteps - 1 - k;
            if (step == 0 && x_.has_gold) {
                for (Index r = 0; r < g_.size(); ++r) visit_pairs(pairs(r, s, t), r, s, t, s + 1, t, v);
            }
            if (step == 1 && gold != kNone) {
                for (Index j = 0; j < 6; ++j) visit_gold(gold, up ? j : 5 - j, v);
            }
            if (step == 2) {
                for (Index r = 0; r < g_.size(); ++r) visit_ways(r, s, t, v);
            }
            if (step == 3) {
                for (Index a = 0; a < g_.n_symbols; ++a) {
                    const Index last = at_.of_node(a, s, t).count;
                    for (Index j = 0; j <= last; ++j) visit_inner(a, s, t, up ? j : last - j, v);
                }
            }
            for (Index a = 0; step == 4 && a < g_.n_symbols; ++a) visit_label(a, s, t, v);
        }
    }
    template <class V>
    void visit_word(Index s, bool up, V&& v) const {
        for (int k = 0; k < 2; ++k) {
            const bool labels = up == (k == 1);
            for (Index j = 0; !labels && j < x_.n_columns(s); ++j) visit_symbol_of_word(s, x_.column(s, j), v);
            for (Index a = 0; labels && a < g_.n_symbols; ++a) visit_label(a, s, s + 1, v);
        }
    }
    template <class V>
    void visit_symbol_of_word(Index s, Index c, V&& v) const {
        v.score(word(s, c), root_ + 1, at_.word(c, s));
    }
    // The pairs of rule r over [s, t) at the splits in [first, end).
    template <class V>
    void visit_pairs(Index cell, Index r, Index s, Index t, Index first, Index end, V&& v) const {
        const Index a = label(g_.left[r], s, first);
        const Index b = label_by_end(g_.right[r], first, t);
        const Index column = g_.split[g_.parent[r]];
        if (g_.n_tuples > 0) {
            const Index slot = column == kNone ? kNone : at_.split(column, first);
            return v.sum(cell, cell,
                         chart::HashedPairs{a, b, slot, g_.split.width, x_.tuples(r, s, t, first), end - first});
        }
        if (column == kNone) return v.sum(cell, cell, chart::Pairs{a, b, end - first});
        v.sum(cell, cell, chart::ScoredPairs{a, b, at_.split(column, first), g_.split.width, end - first});
    }
    template <class V>
    void visit_ways(Index r, Index s, Index t, V&& v) const {
        const Index cell = ways(r, s, t);
        if (!x_.has_gold) return visit_pairs(cell, r, s, t, s + 1, t, v);
        const Index k = x_.gold_at(s, t);
        if (k != kNone && x_.gold[k].rule == r) return v.sum(cell, cell, chart::Tails{gold_ + 6 * k + 3, 3});
        v.score(cell, pairs(r, s, t), at_.other());
    }
    // Of the gold rule k: pairs before its split, at it and after it; then these with their slots.
    template <class V>
    void visit_gold(Index k, Index part, V&& v) const {
        const Anchored& x = x_.gold[k];
        const Index cell = gold_ + 6 * k + part;
        if (part >= 3) return v.score(cell, cell - 3, part == 4 ? at_.gold(k) : at_.other());
        const Index first[3] = {x.s + 1, x.q, x.q + 1};
        const Index end[3] = {x.q, x.q + 1, x.t};
        visit_pairs(cell, x.rule, x.s, x.t, first[part], end[part], v);
    }
    // step 0: all rules of the symbol; then one more slot each.
    template <class V>
    void visit_inner(Index a, Index s, Index t, Index step, V&& v) const {
        const Index cell = inner(a, s, t) + step;
        if (step > 0) return v.score(cell, cell - 1, at_.of_node(a, s, t).slots[step - 1]);
        const Index first = g_.first[a];
        v.sum(cell, cell, chart::ScoredTails<>{ways(first, s, t), first, g_.first[a + 1] - first});
    }
    template <class V>
    void visit_label(Index a, Index s, Index t, V&& v) const {
        const Index cell = label(a, s, t);
        const Index twin = label_by_end(a, s, t);
        if (t > s + 1) return v.sum(cell, twin, chart::Tails{inner(a, s, t) + at_.of_node(a, s, t).count, 1});
        const Index c = g_.word[a];
        const bool has = c != kNone && x_.has_column(s, c);
        v.sum(cell, twin, chart::Tails{has ? word(s, c) : root_ + 1, has ? 1 : 0});
    }
    template <class V>
    void visit_top(Index j, V&& v) const {
        v.sum(top_ + j, top_ + j, chart::Tails{label(g_.roots[j], 0, n_), 1});
    }
    template <class V>
    void visit_root(V&& v) const {
        v.sum(root_, root_, chart::Tails{top_, len(g_.roots.size())});
    }

    Sentence x_;
    const Rules& g_;
    Slots at_;
    Index n_;
    Index spans_;
    Index by_end_, word_, inner_, ways_, pairs_, gold_, top_, root_;
};

}  // namespace partwise::grammar
