// Two small structures for the tests, which show that chart programs carry more than chains and trees: a grammar in
// Chomsky normal form and a segment chain (docs/charts.md explains both).
#include "bindings/common.h"
#include "structures/chart_structure.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

// Rule r rewrites symbol parent[r] as left[r], right[r]; rules are in the order of their parents. Words can have any
// symbol. Slots: the rules, then n rows of symbols of words. A span holds the words [s, t).
//   ways(r, s, t)  = sum over q in (s, t) of label(left[r], s, q) + label(right[r], q, t)
//   label(A, s, t) = sum over rules r of A of ways(r, s, t) with r;   of one word: the empty one with (s, A)
struct Grammar {
    Index n_symbols;
    std::vector<Index> parent, left, right;
    std::vector<Index> first_rule;  // of each symbol, and the end
};

struct GrammarProgram {
    const Grammar& g;
    Index n;

    Index n_rules() const { return len(g.parent.size()); }
    Index side() const { return n + 1; }
    Index squares() const { return g.n_symbols * side() * side(); }

    Index cells() const { return 2 * squares() + n_rules() * side() * side() + n * g.n_symbols + 1; }
    Index slots() const { return n_rules() + n * g.n_symbols; }
    Index root() const { return label(0, 0, n); }
    Index most_edges() const { return std::max(n, n_rules()); }

    Index label(Index a, Index s, Index t) const { return (a * side() + s) * side() + t; }
    Index label_by_end(Index a, Index s, Index t) const { return squares() + (a * side() + t) * side() + s; }
    Index ways(Index r, Index s, Index t) const { return 2 * squares() + (s * side() + t) * n_rules() + r; }
    Index word(Index s, Index a) const { return ways(0, n, n) + n_rules() + s * g.n_symbols + a; }
    Index start() const { return cells() - 1; }

    template <class V>
    void up(V&& v) const {
        v.unit(start(), start());
        for (Index size = 1; size <= n; ++size) visit_size(size, true, v);
    }
    template <class V>
    void down(V&& v) const {
        for (Index size = n; size >= 1; --size) visit_size(size, false, v);
    }
    template <class V>
    void visit(Index cell, V&& v) const {
        if (cell == start()) return v.unit(cell, cell);
        if (cell >= word(0, 0))
            return visit_word((cell - word(0, 0)) / g.n_symbols, (cell - word(0, 0)) % g.n_symbols, v);
        if (cell >= ways(0, 0, 0)) {
            const Index span = (cell - ways(0, 0, 0)) / n_rules();
            return visit_ways((cell - ways(0, 0, 0)) % n_rules(), span / side(), span % side(), v);
        }
        const bool by_end = cell >= squares();
        const Index at = by_end ? cell - squares() : cell;
        const Index symbol = at / (side() * side());
        const Index row = at / side() % side();
        const Index column = at % side();
        visit_label(symbol, by_end ? column : row, by_end ? row : column, v);
    }

   private:
    template <class V>
    void visit_size(Index size, bool up, V&& v) const {
        for (Index s = 0; s + size <= n; ++s) {
            for (int step = 0; step < 2; ++step) {
                const bool labels = up == (step == 1);
                for (Index a = 0; labels && a < g.n_symbols; ++a) visit_label(a, s, s + size, v);
                for (Index r = 0; !labels && size > 1 && r < n_rules(); ++r) visit_ways(r, s, s + size, v);
                for (Index a = 0; !labels && size == 1 && a < g.n_symbols; ++a) visit_word(s, a, v);
            }
        }
    }
    template <class V>
    void visit_word(Index s, Index a, V&& v) const {
        v.score(word(s, a), start(), n_rules() + s * g.n_symbols + a);
    }
    template <class V>
    void visit_ways(Index r, Index s, Index t, V&& v) const {
        const Index a = label(g.left[idx(r)], s, s + 1);
        const Index b = label_by_end(g.right[idx(r)], s + 1, t);
        v.sum(ways(r, s, t), ways(r, s, t), chart::Pairs{a, b, t - s - 1});
    }
    template <class V>
    void visit_label(Index a, Index s, Index t, V&& v) const {
        if (t == s + 1) return v.sum(label(a, s, t), label_by_end(a, s, t), chart::Tails{word(s, a), 1});
        const Index first = g.first_rule[idx(a)];
        const Index count = g.first_rule[idx(a) + 1] - first;
        v.sum(label(a, s, t), label_by_end(a, s, t), chart::ScoredTails<>{ways(first, s, t), first, count});
    }
};

class ToyGrammar final : public ChartStructure<GrammarProgram> {
   public:
    ToyGrammar(std::vector<Index> lengths, Index n_symbols, const std::vector<Index>& rules)
        : ChartStructure(len(lengths.size())), lengths_(std::move(lengths)) {
        grammar_.n_symbols = n_symbols;
        for (std::size_t r = 0; r + 2 < rules.size(); r += 3) {
            grammar_.parent.push_back(rules[r]);
            grammar_.left.push_back(rules[r + 1]);
            grammar_.right.push_back(rules[r + 2]);
        }
        const auto& parent = grammar_.parent;
        for (Index a = 0; a <= n_symbols; ++a) {
            grammar_.first_rule.push_back(std::lower_bound(parent.begin(), parent.end(), a) - parent.begin());
        }
    }
    void add_cost(Index, SlotView, double, double*) const override {}

   protected:
    GrammarProgram program(Index i) const override { return {grammar_, lengths_[idx(i)]}; }

   private:
    std::vector<Index> lengths_;
    Grammar grammar_;
};

// Segments of at most `longest` positions, each with a label. Slots: (end, label, begin) of segments, a row of
// `longest` per end and label; then (label, label before it).
//   end(t, b)   = sum over s in [t - longest, t) of begin(s, b) with the segment [s, t)
//   begin(t, b) = sum over a of end(t, a) with (b, a);   begin(0, b) is the empty one
struct SegmentProgram {
    Index length;
    Index n_labels;
    Index longest;

    Index cells() const { return 2 * (length + 1) * n_labels + 1; }
    Index slots() const { return (length * longest + n_labels) * n_labels; }
    Index root() const { return cells() - 1; }
    Index most_edges() const { return std::max(longest, n_labels); }

    Index end(Index t, Index b) const { return t * n_labels + b; }
    Index begin(Index t, Index b) const { return ((length + 1) * n_labels) + b * (length + 1) + t; }

    template <class V>
    void up(V&& v) const {
        for (Index t = 0; t <= length; ++t) {
            for (Index b = 0; t > 0 && b < n_labels; ++b) visit_end(t, b, v);
            for (Index b = 0; t < length && b < n_labels; ++b) visit_begin(t, b, v);
        }
        visit(root(), v);
    }
    template <class V>
    void down(V&& v) const {
        visit(root(), v);
        for (Index t = length; t >= 0; --t) {
            for (Index b = 0; t < length && b < n_labels; ++b) visit_begin(t, b, v);
            for (Index b = 0; t > 0 && b < n_labels; ++b) visit_end(t, b, v);
        }
    }
    template <class V>
    void visit(Index cell, V&& v) const {
        if (cell == root()) return v.sum(cell, cell, chart::Tails{end(length, 0), n_labels});
        const Index other = cell - begin(0, 0);
        if (other < 0) return visit_end(cell / n_labels, cell % n_labels, v);
        visit_begin(other % (length + 1), other / (length + 1), v);
    }

   private:
    template <class V>
    void visit_end(Index t, Index b, V&& v) const {
        const Index s = std::max<Index>(0, t - longest);
        const Index slot = ((t - 1) * n_labels + b) * longest + s - (t - longest);
        v.sum(end(t, b), end(t, b), chart::ScoredTails<>{begin(s, b), slot, t - s});
    }
    template <class V>
    void visit_begin(Index t, Index b, V&& v) const {
        if (t == 0) return v.unit(begin(0, b), begin(0, b));
        const Index slot = (length * longest + b) * n_labels;
        v.sum(begin(t, b), begin(t, b), chart::ScoredTails<>{end(t, 0), slot, n_labels});
    }
};

class ToySegments final : public ChartStructure<SegmentProgram> {
   public:
    ToySegments(std::vector<Index> lengths, Index n_labels, Index longest)
        : ChartStructure(len(lengths.size())), lengths_(std::move(lengths)), n_labels_(n_labels), longest_(longest) {}
    void add_cost(Index, SlotView, double, double*) const override {}

   protected:
    SegmentProgram program(Index i) const override { return {lengths_[idx(i)], n_labels_, longest_}; }

   private:
    std::vector<Index> lengths_;
    Index n_labels_;
    Index longest_;
};

}  // namespace

void bind_toy_charts(nb::module_& m) {
    nb::class_<ToyGrammar, Structure>(m, "_ToyGrammar")
        .def(
            "__init__",
            [](ToyGrammar* self, const Ints& lengths, Index n_symbols, const Ints& rules) {
                new (self) ToyGrammar(vector_of<Index>(lengths), n_symbols, vector_of<Index>(rules));
            },
            "lengths"_a, "n_symbols"_a, "rules"_a);
    nb::class_<ToySegments, Structure>(m, "_ToySegments")
        .def(
            "__init__",
            [](ToySegments* self, const Ints& lengths, Index n_labels, Index longest) {
                new (self) ToySegments(vector_of<Index>(lengths), n_labels, longest);
            },
            "lengths"_a, "n_labels"_a, "longest"_a);
}

}  // namespace partwise::bindings
