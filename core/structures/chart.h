// Charts: how dynamic programs over labellings are written here, as a *program* and a *visitor*.
//
// A chart has cells; a cell stands for a set of partial labellings, its derivations. A program says, once per
// structure, which cells there are, in which order, and of which edges each is made. A visitor says what is done with
// that: maxima, sums, probabilities, derivatives. Every visitor works for every program (chart_inference.h lists what
// comes for free), and docs/charts.md shows how a grammar, a segment chain or a second-order chain is written.
//
// A cell is one of three things, and a program tells a visitor which by one of three calls:
//   unit(cell, twin)         the cell has one derivation, the empty one
//   score(cell, tail, slot)  the derivations of `tail`, each with one more slot
//   sum(cell, twin, edges)   the union of its edges' derivations; an edge joins one or two tail cells, or a tail cell
//                            and a slot, or all of them (the kinds of edges below)
// twin: a second cell with the same value, stored so that the values that an edge reads are neighbours in memory; the
// cell itself if it has no twin. A program P has
//   Index cells() const, slots() const    numbers of cells, and of slots (which scores and marginals are indexed by)
//   Index root() const                    the cell of all labellings
//   Index most_edges() const              the largest number of edges of a cell
//   void up(visitor) const                all cells, each after its tails
//   void down(visitor) const              the same in the opposite order (units may be left out)
//   void visit(cell, visitor) const       one cell (a twin is visited as the cell it is a twin of)
// Its up() may call cut(first, count) once these cells are done. Every labelling uses exactly one of them, so a visitor
// may shift their values by a constant (without it, long chains would lose digits).
//
// Every labelling has exactly one derivation. Scores are -infinity where a mask forbids a slot.
#pragma once

#include "support/extremes.h"
#include "support/parallel.h"
#include "support/vector_math.h"

namespace partwise::chart {

constexpr Index kNone = -1;

// Edge k joins the cells a + k and b + k. The two runs of cells do not overlap.
struct Pairs {
    Index a;
    Index b;
    Index n;
    Index count() const { return n; }
};

// Edge k is the cell a + k.
struct Tails {
    Index a;
    Index n;
    Index count() const { return n; }
};

// Edge k is the cell a + k with slot + k. W: the number of edges as a compile-time constant, or 0 to read n.
template <int W = 0>
struct ScoredTails {
    Index a;
    Index slot;
    Index n;
    Index count() const { return W > 0 ? W : n; }
};

// Edge k joins the cells a + k and b + k with slot + k * step, the slot of the position where the two spans meet. Rows
// of slots, `step` apart, hold the slots of all symbols at one position.
struct ScoredPairs {
    Index a;
    Index b;
    Index slot;
    Index step;
    Index n;
    Index count() const { return n; }
};

// A slot per edge, chosen by a hash of `key` and the code of the position where the edge's parts meet: one of the
// `mask` + 1 slots (a power of two) from `first` on.
struct HashedSlots {
    Index first = kNone;
    std::uint64_t key = 0;
    const Index* codes = nullptr;
    std::uint64_t mask = 0;

    static std::uint64_t mix(std::uint64_t x) {
        x ^= x >> 32;
        x *= 0xd6e8feb86659fd93ULL;
        x ^= x >> 32;
        x *= 0xd6e8feb86659fd93ULL;
        return x ^ (x >> 32);
    }
    Index operator()(Index k) const {
        return first + static_cast<Index>(mix(key ^ static_cast<std::uint64_t>(codes[k])) & mask);
    }
};

// ScoredPairs (slot kNone: without) with one more slot per edge.
struct HashedPairs {
    Index a;
    Index b;
    Index slot;
    Index step;
    HashedSlots more;
    Index n;
    Index count() const { return n; }
};

// Returns f with f(k) = the score of edge k, the sum of its parts' scores. f holds pointers, so loops over k vectorise.
inline auto edge_scores(const Pairs& e, const double* chart, const double*) {
    return [a = chart + e.a, b = chart + e.b](Index k) { return a[k] + b[k]; };
}
inline auto edge_scores(const Tails& e, const double* chart, const double*) {
    return [a = chart + e.a](Index k) { return a[k]; };
}
template <int W>
auto edge_scores(const ScoredTails<W>& e, const double* chart, const double* scores) {
    return [a = chart + e.a, own = scores + e.slot](Index k) { return a[k] + own[k]; };
}

inline auto edge_scores(const ScoredPairs& e, const double* chart, const double* scores) {
    return [a = chart + e.a, b = chart + e.b, own = scores + e.slot, step = e.step](Index k) {
        return a[k] + b[k] + own[k * step];
    };
}

inline auto edge_scores(const HashedPairs& e, const double* chart, const double* scores) {
    return [=, a = chart + e.a, b = chart + e.b, slot = e.slot, step = e.step, more = e.more](Index k) {
        const double own = slot == kNone ? 0.0 : scores[slot + k * step];
        return a[k] + b[k] + own + scores[more(k)];
    };
}

// All kinds of edges as one type, for code that is not in an inner loop. kNone: the edges have no such part.
struct Ways {
    Index a;
    Index b;
    Index slot;
    Index count;
    Index step = 1;
    HashedSlots more{};

    // use(slot) for each slot of edge k
    template <class Use>
    [[gnu::always_inline]] void each_slot(Index k, Use&& use) const {
        if (slot != kNone) use(slot + k * step);
        if (more.first != kNone) use(more(k));
    }
};
inline Ways ways_of(const Pairs& e) { return {e.a, e.b, kNone, e.n}; }
inline Ways ways_of(const Tails& e) { return {e.a, kNone, kNone, e.n}; }
template <int W>
Ways ways_of(const ScoredTails<W>& e) {
    return {e.a, kNone, e.slot, e.count()};
}
inline Ways ways_of(const ScoredPairs& e) { return {e.a, e.b, e.slot, e.n, e.step}; }
inline Ways ways_of(const HashedPairs& e) { return {e.a, e.b, e.slot, e.n, e.step, e.more}; }

template <class Edges>
[[gnu::always_inline]] inline double best_edge(const Edges& e, const double* chart, const double* scores) {
    const auto score = edge_scores(e, chart, scores);
    const Index n = e.count();
    double best = -kInfinity;
    PARTWISE_SIMD_MAX(best)
    for (Index k = 0; k < n; ++k) {
        const double x = score(k);
        best = x > best ? x : best;
    }
    return best;
}

// The first k in [0, n) with the largest x(k).
template <class X>
Index first_best(Index n, const X& x) {
    Index best = 0;
    double high = x(0);
    for (Index k = 1; k < n; ++k) {
        const double value = x(k);
        best = value > high ? k : best;
        high = value > high ? value : high;
    }
    return best;
}

// Visitor, up: the best score of a derivation of each cell; -infinity where there is none.
struct Best {
    double* chart;
    const double* scores;

    void unit(Index cell, Index twin) { chart[cell] = chart[twin] = 0.0; }
    void score(Index cell, Index tail, Index slot) { chart[cell] = chart[tail] + scores[slot]; }
    template <class Edges>
    void sum(Index cell, Index twin, const Edges& e) {
        chart[cell] = chart[twin] = best_edge(e, chart, scores);
    }
    void cut(Index, Index) {}
};

// Visitor of one cell: chooses one of its edges, reports the edge's slots and puts its tails onto the stack.
template <class Choose, class Use>
struct Derive {
    std::vector<Index>& stack;
    Choose& choose;
    Use& use;

    void unit(Index, Index) {}
    void score(Index, Index tail, Index slot) {
        use(slot);
        stack.push_back(tail);
    }
    template <class Edges>
    void sum(Index, Index, const Edges& e) {
        const Index k = choose(e);
        const Ways ways = ways_of(e);
        stack.push_back(ways.a + k);
        if (ways.b != kNone) stack.push_back(ways.b + k);
        ways.each_slot(k, use);
    }
};

// Walks through one derivation from the root down. choose(edges) returns the edge to take at a cell, use(slot) is
// called for each slot. `stack` is scratch. The tail `b` of an edge is followed before `a`.
template <class Program, class Choose, class Use>
void derive(const Program& program, std::vector<Index>& stack, Choose&& choose, Use&& use) {
    Derive<Choose, Use> visitor{stack, choose, use};
    stack.assign(1, program.root());
    while (!stack.empty()) {
        const Index cell = stack.back();
        stack.pop_back();
        program.visit(cell, visitor);
    }
}

}  // namespace partwise::chart
