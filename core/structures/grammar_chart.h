// The inside pass over all spans of a sentence, for sums in plain doubles and for maxima: a hand-written, faster
// version of grammar_program.h. It visits only symbols that a span's words can have. It tries a rule only at splits
// between the first and last end of its left symbol from s and the first and last begin of its right symbol before t.
// Tables have rows only for symbols that are possible somewhere in the sentence.
#pragma once

#include "structures/grammar_rules.h"
#include "support/parallel.h"

namespace partwise::grammar {

// Sums of products of weights.
struct Product {
    static constexpr double kZero = 0.0;  // no derivation
    static constexpr double kOne = 1.0;   // the empty one
    static double times(double a, double b) { return a * b; }
    static double plus(double a, double b) { return a + b; }
    static double over(const double* __restrict a, const double* __restrict b, const double* __restrict c, Index n) {
        double sum = 0;
        for (Index k = 0; k < n; ++k) sum += a[k] * b[k] * c[k];
        return sum;
    }
};

// Maxima of sums of scores.
struct Maximum {
    static constexpr double kZero = -kInfinity;
    static constexpr double kOne = 0.0;
    static double times(double a, double b) { return a + b; }
    static double plus(double a, double b) { return a > b ? a : b; }
    static double over(const double* __restrict a, const double* __restrict b, const double* __restrict c, Index n) {
        double best = -kInfinity;
        for (Index k = 0; k < n; ++k) {
            const double x = a[k] + b[k] + c[k];
            best = x > best ? x : best;
        }
        return best;
    }
};

template <class Algebra>
class Chart {
   public:
    using Int = std::int32_t;

    // weights: of slots, Algebra::kZero where masked.
    Chart(const Sentence& sentence, const double* weights, Workspace::Frame& frame)
        : x(sentence), g(sentence.g), at(sentence.slots()), n(sentence.n), weights(weights) {
        const std::size_t rows = n * g.n_symbols;
        first_end_.assign(rows, static_cast<Int>(n + 1));
        last_end_.assign(rows, -1);
        first_begin_.assign(rows, static_cast<Int>(n + 1));
        last_begin_.assign(rows, -1);
        active_.resize(n);
        // Weights of rules times that of `other`; weights of splits by column, the last column for symbols without one.
        rule_ = frame.take(g.size());
        const double other = x.has_gold ? weights[at.other()] : Algebra::kOne;
        for (Index r = 0; r < g.size(); ++r) rule_[r] = Algebra::times(weights[r], other);
        find_symbols();
        by_begin_ = frame.take(size());
        by_end_ = frame.take(size());
        fill(by_begin_, size(), Algebra::kZero);
        fill(by_end_, size(), Algebra::kZero);
        split_ = frame.take((g.split.count + 1) * (n + 1));
        fill(split_, (g.split.count + 1) * (n + 1), Algebra::kOne);
        for (Index q = 1; q < n; ++q) {
            for (Index c = 0; c < g.split.count; ++c) split_[c * (n + 1) + q] = weights[at.split(c, q)];
        }
    }

    // The symbols that are possible somewhere in the sentence, ascending.
    const std::vector<Index>& symbols() const { return symbols_; }
    // Two triangles of this size: one in which the values of A that begin at s are neighbours, one in which those that
    // end at t are. Slopes have the same layout.
    Index size() const { return len(symbols_.size()) * n * (n + 1) / 2 + kBefore; }
    Index ends_at(Index s, Index a) const {  // place of the end 0; ends from s + 1 to n exist
        return kBefore + len(symbols_.size()) * (s * n - s * (s - 1) / 2) + row_[a] * (n - s) - (s + 1);
    }
    Index begins_at(Index t, Index a) const {  // place of the begin 0; begins up to t - 1 exist
        return len(symbols_.size()) * (t * (t - 1) / 2) + row_[a] * t;
    }
    double* ends(Index s, Index a) { return by_begin_ + ends_at(s, a); }
    double* begins(Index t, Index a) { return by_end_ + begins_at(t, a); }
    double value(Index a, Index s, Index t) { return row_[a] < 0 ? Algebra::kZero : ends(s, a)[t]; }
    const double* split_row(Index a) const {
        const Index c = g.split[a];
        return split_ + (c == kNone ? g.split.count : c) * (n + 1);
    }
    double rule(Index r) const { return rule_[r]; }
    // The weight of the slots that a symbol over [s, t) uses whatever its rule.
    double node(Index a, Index s, Index t) const {
        const Slots::OfNode own = at.of_node(a, s, t);
        double out = Algebra::kOne;
        for (Index k = 0; k < own.count; ++k) out = Algebra::times(out, weights[own.slots[k]]);
        return out;
    }
    // The symbols with a derivation that begins at s.
    const std::vector<Index>& active(Index s) const { return active_[s]; }
    // The splits of [s, t) at which B before and C after it may meet: [first, last].
    struct Range {
        Index first;
        Index last;
    };
    Range splits(Index b, Index c, Index s, Index t) const {
        const std::size_t from = s * g.n_symbols + b;
        const std::size_t to = (t - 1) * g.n_symbols + c;
        return {std::max<Index>({first_end_[from], first_begin_[to], s + 1}),
                std::min<Index>({last_end_[from], last_begin_[to], t - 1})};
    }

    // Calls seen(value before node weights, value after) for each symbol of a span, and lost(left, right, split, n)
    // where the sum over a rule's n splits is zero.
    template <class Seen, class Lost>
    void inside(Seen&& seen, Lost&& lost) {
        std::vector<double> sum(g.n_symbols, Algebra::kZero);
        std::vector<Index> touched;
        for (Index t = 1; t <= n; ++t) {
            if (t % 4 == 0) Interrupt::check_current();
            for (Index k = 0; k < x.n_columns(t - 1); ++k) {
                const Index c = x.column(t - 1, k);
                const double w = weights[at.word(c, t - 1)];
                if (w != Algebra::kZero) set(g.word_symbol[c], t - 1, t, w);
            }
            for (Index s = t - 2; s >= 0; --s) {
                const Index gold = x.gold_at(s, t);
                const Index apart = gold == kNone ? kNone : x.gold[gold].rule;
                const auto add = [&](Index a, double w) {
                    double& to = sum[a];
                    if (to == Algebra::kZero) touched.push_back(a);
                    to = Algebra::plus(to, w);
                };
                const Int* first_begin = first_begin_.data() + (t - 1) * g.n_symbols;
                const Int* last_begin = last_begin_.data() + (t - 1) * g.n_symbols;
                for (const Index b : active_[s]) {
                    const Index first_end = first_end_[s * g.n_symbols + b];
                    const Index last_end = last_end_[s * g.n_symbols + b];
                    const double* left = ends(s, b);
                    const Rules::ByLeft* end = g.by_left.data() + g.first_by_left[b + 1];
                    for (const Rules::ByLeft* r = g.by_left.data() + g.first_by_left[b]; r < end; ++r) {
                        const Index first = std::max<Index>(first_end, first_begin[r->right]);
                        const Index last = std::min<Index>(last_end, last_begin[r->right]);
                        if (first > last || r->rule == apart || rule_[r->rule] == Algebra::kZero) continue;
                        const double* right = begins(t, r->right);
                        const double* split = split_row(r->parent);
                        const double w = Algebra::times(rule_[r->rule], Algebra::over(left + first, right + first,
                                                                                      split + first, last - first + 1));
                        if (w == Algebra::kZero) {
                            lost(left + first, right + first, split + first, last - first + 1);
                        } else {
                            add(r->parent, w);
                        }
                    }
                }
                if (gold != kNone) {
                    const double w = gold_rule(gold);
                    if (w != Algebra::kZero) add(g.parent[apart], w);
                }
                for (const Index a : touched) {
                    const double w = node(a, s, t);
                    if (w != Algebra::kZero) {
                        const double x_a = Algebra::times(sum[a], w);
                        seen(sum[a], x_a);
                        set(a, s, t, x_a);
                    }
                    sum[a] = Algebra::kZero;
                }
                touched.clear();
            }
        }
    }

    // The gold rule k with all its splits: `gold` at its own, `other` elsewhere.
    double gold_rule(Index k) {
        const Anchored& y = x.gold[k];
        const Range at_most = splits(g.left[y.rule], g.right[y.rule], y.s, y.t);
        double out = Algebra::kZero;
        for (Index q = at_most.first; q <= at_most.last; ++q) {
            const double own = q == y.q ? Algebra::times(weights[y.rule], weights[at.gold(k)]) : rule_[y.rule];
            out = Algebra::plus(out, Algebra::times(own, pair(y, q)));
        }
        return out;
    }
    double pair(const Anchored& y, Index q) {
        return Algebra::times(Algebra::times(ends(y.s, g.left[y.rule])[q], begins(y.t, g.right[y.rule])[q]),
                              split_row(g.parent[y.rule])[q]);
    }

    const Sentence x;
    const Rules& g;
    const Slots at;
    const Index n;
    const double* const weights;

   private:
    static constexpr Index kBefore = 8;  // so that no address is before the table

    // Symbols of words, then parents of rules between such symbols.
    void find_symbols() {
        std::vector<std::uint8_t> known(g.n_symbols, 0);
        for (Index s = 0; s < n; ++s) {
            for (Index k = 0; k < x.n_columns(s); ++k) {
                const Index c = x.column(s, k);
                if (weights[at.word(c, s)] != Algebra::kZero) known[g.word_symbol[c]] = 1;
            }
        }
        for (bool more = true; more;) {
            more = false;
            for (Index r = 0; r < g.size(); ++r) {
                const std::size_t k = r;
                // A gold rule may be allowed where `other` is not.
                if (known[g.parent[k]] || !known[g.left[k]] || !known[g.right[k]]) continue;
                if (weights[r] == Algebra::kZero) continue;
                known[g.parent[k]] = 1;
                more = true;
            }
        }
        row_.assign(g.n_symbols, -1);
        for (Index a = 0; a < g.n_symbols; ++a) {
            if (!known[a]) continue;
            row_[a] = static_cast<Int>(symbols_.size());
            symbols_.push_back(a);
        }
    }

    void set(Index a, Index s, Index t, double value) {
        ends(s, a)[t] = begins(t, a)[s] = value;
        const std::size_t from = s * g.n_symbols + a;
        const std::size_t to = (t - 1) * g.n_symbols + a;
        if (last_end_[from] < 0) active_[s].push_back(a);
        first_end_[from] = std::min(first_end_[from], static_cast<Int>(t));
        last_end_[from] = static_cast<Int>(t);
        last_begin_[to] = std::max(last_begin_[to], static_cast<Int>(s));
        first_begin_[to] = static_cast<Int>(s);
    }

    double* by_begin_;
    double* by_end_;
    double* rule_;
    double* split_;
    std::vector<Int> first_end_, last_end_, first_begin_, last_begin_;
    std::vector<Index> symbols_;
    std::vector<Int> row_;  // of each symbol in the tables, or -1
    std::vector<std::vector<Index>> active_;
};

}  // namespace partwise::grammar
