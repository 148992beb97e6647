// Eisner's algorithm: spans of a projective tree, and the passes over them that maxima, sums and derivatives share.
//
// Words are 0..n-1 here, `arcs` is laid out as slots are. For s <= t (Eisner 1996; + is the product of two parts):
//   link(s, t)  = sum over q in [s, t)  of right(s, q) + left(q + 1, t)      s and t, neither the other's head yet
//   right(s, t) = sum over q in (s, t]  of (link(s, q) with s -> q) + right(q, t)      s and all below it up to t
//   left(s, t)  = sum over q in [s, t)  of left(s, q) + (link(q, t) with t -> q)       t and all below it from s
// and the root's part, which costs n^2:
//   single root: top = sum over t of (0 -> t) + left(0, t) + right(t, n - 1)
//   multi-root:  rooted(t) = (0 -> t) + sum over q in [0, t] of prefix(q) + left(q, t)     t is the last one under 0
//                prefix(j) = sum over t in [0, j) of rooted(t) + right(t, j - 1)           the first j words
//                top = prefix(n)
// Every tree has one derivation. Spans are stored by row, by column, or both, so that each sum reads two runs of
// memory.
#pragma once

#include "support/parallel.h"
#include "support/types.h"
#include "support/vector_math.h"

namespace partwise::eisner {

// Where each value lies in a chart.
struct Layout {
    Index n;
    bool single_root;

    Index right(Index s, Index t) const { return s * n + t; }
    Index right_by_end(Index s, Index t) const { return (n + t) * n + s; }
    Index left(Index s, Index t) const { return (2 * n + s) * n + t; }
    Index left_by_end(Index s, Index t) const { return (3 * n + t) * n + s; }
    // link with the arc s -> t, by row; with the arc t -> s, by column.
    Index linked_right(Index s, Index t) const { return (4 * n + s) * n + t; }
    Index linked_left(Index s, Index t) const { return (5 * n + t) * n + s; }
    // Single root: (0 -> t) + left(0, t).
    Index rooted(Index t) const { return 6 * n * n + t; }
    Index prefix(Index j) const { return 6 * n * n + n + j; }
    Index size() const { return 6 * n * n + 2 * n + 1; }

    Index arc(Index head, Index modifier) const { return modifier * (n + 1) + head + 1; }
    Index root_arc(Index modifier) const { return modifier * (n + 1); }
};

// A sum of `count` pairs of values that start at a and b.
struct Pairs {
    Index a;
    Index b;
    Index count;
};

inline Pairs link_pairs(const Layout& c, Index s, Index t) { return {c.right(s, s), c.left_by_end(s + 1, t), t - s}; }
inline Pairs right_pairs(const Layout& c, Index s, Index t) {
    return {c.linked_right(s, s + 1), c.right_by_end(s + 1, t), t - s};
}
inline Pairs left_pairs(const Layout& c, Index s, Index t) { return {c.left(s, s), c.linked_left(s, t), t - s}; }
inline Pairs rooted_pairs(const Layout& c, Index t) { return {c.prefix(0), c.left_by_end(0, t), t + 1}; }
inline Pairs prefix_pairs(const Layout& c, Index j) { return {c.rooted(0), c.right_by_end(0, j - 1), j}; }

// Words between two looks for Ctrl-C: ordinary sentences are done in no time, one of thousands of words is not.
constexpr Index kLookEvery = 16;

// Values from small spans to large ones. Op has unit(out, out2), sum(out, out2, pairs), link(out, arc, out2, arc2,
// pairs) (the sum once with each arc), attach(out, in, arc): out = in with an arc, and top(pairs).
template <class Op>
void upward(const Layout& c, Op&& op) {
    for (Index t = 0; t < c.n; ++t) {
        if (t % kLookEvery == kLookEvery - 1) Interrupt::check_current();
        op.unit(c.right(t, t), c.right_by_end(t, t));
        op.unit(c.left(t, t), c.left_by_end(t, t));
        for (Index s = t - 1; s >= 0; --s) {
            op.link(c.linked_right(s, t), c.arc(s, t), c.linked_left(s, t), c.arc(t, s), link_pairs(c, s, t));
            op.sum(c.right(s, t), c.right_by_end(s, t), right_pairs(c, s, t));
            op.sum(c.left(s, t), c.left_by_end(s, t), left_pairs(c, s, t));
        }
    }
    if (c.single_root) {
        for (Index t = 0; t < c.n; ++t) op.attach(c.rooted(t), c.left_by_end(0, t), c.root_arc(t));
        op.top(prefix_pairs(c, c.n));
        return;
    }
    op.unit(c.prefix(0), c.prefix(0));
    for (Index t = 0; t < c.n; ++t) {
        op.root_link(c.rooted(t), c.root_arc(t), rooted_pairs(c, t));
        if (t + 1 < c.n) op.sum(c.prefix(t + 1), c.prefix(t + 1), prefix_pairs(c, t + 1));
    }
    op.top(prefix_pairs(c, c.n));
}

// The same in the opposite order, for derivatives.
template <class Op>
void downward(const Layout& c, Op&& op) {
    op.top(prefix_pairs(c, c.n));
    if (c.single_root) {
        for (Index t = 0; t < c.n; ++t) op.attach(c.rooted(t), c.left_by_end(0, t), c.root_arc(t));
    } else {
        for (Index t = c.n - 1; t >= 0; --t) {
            if (t + 1 < c.n) op.sum(c.prefix(t + 1), c.prefix(t + 1), prefix_pairs(c, t + 1));
            op.root_link(c.rooted(t), c.root_arc(t), rooted_pairs(c, t));
        }
    }
    for (Index t = c.n - 1; t >= 0; --t) {
        if (t % kLookEvery == kLookEvery - 1) Interrupt::check_current();
        for (Index s = 0; s < t; ++s) {
            op.sum(c.left(s, t), c.left_by_end(s, t), left_pairs(c, s, t));
            op.sum(c.right(s, t), c.right_by_end(s, t), right_pairs(c, s, t));
            op.link(c.linked_right(s, t), c.arc(s, t), c.linked_left(s, t), c.arc(t, s), link_pairs(c, s, t));
        }
    }
}

// The heads of one derivation, from the top. choose(pairs) says which of the pairs it uses.
template <class Choose>
void derive(const Layout& c, Index* heads, std::vector<std::pair<Index, Index>>& spans, Choose&& choose) {
    // A span (s, t) with s < t is right(s, t), one with s > t is left(t, s).
    spans.clear();
    const auto push = [&](Index from, Index to) {
        if (from != to) spans.emplace_back(from, to);
    };
    if (c.single_root) {
        const Index t = choose(prefix_pairs(c, c.n));
        heads[t] = 0;
        push(t, c.n - 1);
        push(t, 0);
    } else {
        for (Index j = c.n; j > 0;) {
            const Index t = choose(prefix_pairs(c, j));
            heads[t] = 0;
            push(t, j - 1);
            j = choose(rooted_pairs(c, t));
            push(t, j);
        }
    }
    while (!spans.empty()) {
        const auto [s, t] = spans.back();
        spans.pop_back();
        const bool to_right = s < t;
        const Index q = to_right ? s + 1 + choose(right_pairs(c, s, t)) : t + choose(left_pairs(c, t, s));
        heads[q] = s + 1;
        push(q, t);
        const Index low = std::min(s, q);
        const Index middle = low + choose(link_pairs(c, low, std::max(s, q)));
        push(low, middle);
        push(std::max(s, q), middle + 1);
    }
}

// max over pairs of a + b.
inline double best_pair(const double* __restrict a, const double* __restrict b, Index count) {
    double best = -kInfinity;
#pragma omp simd reduction(max : best)
    for (Index k = 0; k < count; ++k) {
        const double x = a[k] + b[k];
        best = x > best ? x : best;
    }
    return best;
}

// Best values of all spans.
struct BestSpans {
    double* chart;
    const double* arcs;
    double value = -kInfinity;

    double best(const Pairs& p) const { return best_pair(chart + p.a, chart + p.b, p.count); }
    void unit(Index out, Index out2) { chart[out] = chart[out2] = 0.0; }
    void sum(Index out, Index out2, const Pairs& p) { chart[out] = chart[out2] = best(p); }
    void link(Index out, Index arc, Index out2, Index arc2, const Pairs& p) {
        const double x = best(p);
        chart[out] = x + arcs[arc];
        chart[out2] = x + arcs[arc2];
    }
    void root_link(Index out, Index arc, const Pairs& p) { chart[out] = best(p) + arcs[arc]; }
    void attach(Index out, Index in, Index arc) { chart[out] = chart[in] + arcs[arc]; }
    void top(const Pairs& p) { value = best(p); }
};

}  // namespace partwise::eisner
