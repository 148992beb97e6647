// Eisner's algorithm as a chart program: spans of a projective tree.
//
// Words are 0..n-1 here, slots are those of a tree. For s <= t (Eisner 1996; + is the product of two parts):
//   link(s, t)  = sum over q in [s, t)  of right(s, q) + left(q + 1, t)      s and t, neither the other's head yet
//   right(s, t) = sum over q in (s, t]  of (link(s, q) with s -> q) + right(q, t)      s and all below it up to t
//   left(s, t)  = sum over q in [s, t)  of left(s, q) + (link(q, t) with t -> q)       t and all below it from s
// and the root's part, which costs n^2:
//   single root: top = sum over t of (left(0, t) with 0 -> t) + right(t, n - 1)
//   multi-root:  open(t)   = sum over q in [0, t] of prefix(q) + left(q, t)
//                rooted(t) = open(t) with 0 -> t                                       t is the last one under 0
//                prefix(j) = sum over t in [0, j) of rooted(t) + right(t, j - 1)       the first j words
//                top       = prefix(n)
// Every tree has one derivation. Spans are stored by row, by column, or both (twins), so each sum reads two runs.
#pragma once

#include "structures/chart.h"

namespace partwise {

struct EisnerProgram {
    Index n;
    bool single_root;

    Index cells() const { return 6 * n * n + 3 * n + 1; }
    Index slots() const { return n * (n + 1); }
    Index root() const { return prefix(n); }
    Index most_edges() const { return n; }

    Index arc(Index head, Index modifier) const { return modifier * (n + 1) + head + 1; }
    Index root_arc(Index modifier) const { return modifier * (n + 1); }

    // The cell of each value: six squares, then the root's rows. `link` is below the diagonal of the first.
    Index right(Index s, Index t) const { return s * n + t; }
    Index link(Index s, Index t) const { return t * n + s; }
    Index right_by_end(Index s, Index t) const { return (n + t) * n + s; }
    Index left(Index s, Index t) const { return (2 * n + s) * n + t; }
    Index left_by_end(Index s, Index t) const { return (3 * n + t) * n + s; }
    // link with the arc s -> t, by row; with the arc t -> s, by column.
    Index linked_right(Index s, Index t) const { return (4 * n + s) * n + t; }
    Index linked_left(Index s, Index t) const { return (5 * n + t) * n + s; }
    Index rooted(Index t) const { return 6 * n * n + t; }
    Index open(Index t) const { return 6 * n * n + n + t; }
    Index prefix(Index j) const { return 6 * n * n + 2 * n + j; }

    template <class V>
    void up(V&& v) const {
        for (Index t = 0; t < n; ++t) {
            if (t % 16 == 15) Interrupt::check_current();
            visit_right(t, t, v);
            visit_left(t, t, v);
            for (Index s = t - 1; s >= 0; --s) {
                visit_link(s, t, v);
                visit_linked_left(s, t, v);
                visit_linked_right(s, t, v);
                visit_right(s, t, v);
                visit_left(s, t, v);
            }
        }
        if (!single_root) visit_prefix(0, v);
        for (Index t = 0; t < n; ++t) {
            if (!single_root) visit_open(t, v);
            visit_rooted(t, v);
            if (!single_root && t + 1 < n) visit_prefix(t + 1, v);
        }
        visit_prefix(n, v);
    }

    template <class V>
    void down(V&& v) const {
        visit_prefix(n, v);
        for (Index t = n - 1; t >= 0; --t) {
            if (!single_root && t + 1 < n) visit_prefix(t + 1, v);
            visit_rooted(t, v);
            if (!single_root) visit_open(t, v);
        }
        for (Index t = n - 1; t >= 0; --t) {
            if (t % 16 == 15) Interrupt::check_current();
            for (Index s = 0; s < t; ++s) {
                visit_left(s, t, v);
                visit_right(s, t, v);
                visit_linked_left(s, t, v);
                visit_linked_right(s, t, v);
                visit_link(s, t, v);
            }
        }
    }

    template <class V>
    void visit(Index cell, V&& v) const {
        if (cell >= prefix(0)) return visit_prefix(cell - prefix(0), v);
        if (cell >= open(0)) return visit_open(cell - open(0), v);
        if (cell >= rooted(0)) return visit_rooted(cell - rooted(0), v);
        const Index row = cell / n;  // of all squares
        const Index column = cell - row * n;
        if (row < n) return row > column ? visit_link(column, row, v) : visit_right(row, column, v);
        if (row < 2 * n) return visit_right(column, row - n, v);
        if (row < 3 * n) return visit_left(row - 2 * n, column, v);
        if (row < 4 * n) return visit_left(column, row - 3 * n, v);
        if (row < 5 * n) return visit_linked_right(row - 4 * n, column, v);
        return visit_linked_left(column, row - 5 * n, v);
    }

   private:
    // derive() follows the second tail of an edge first: here it is the one with the next arc.
    template <class V>
    void visit_link(Index s, Index t, V&& v) const {
        v.sum(link(s, t), link(s, t), chart::Pairs{right(s, s), left_by_end(s + 1, t), t - s});
    }
    template <class V>
    void visit_linked_right(Index s, Index t, V&& v) const {
        v.score(linked_right(s, t), link(s, t), arc(s, t));
    }
    template <class V>
    void visit_linked_left(Index s, Index t, V&& v) const {
        v.score(linked_left(s, t), link(s, t), arc(t, s));
    }
    template <class V>
    void visit_right(Index s, Index t, V&& v) const {
        if (s == t) return v.unit(right(t, t), right_by_end(t, t));
        v.sum(right(s, t), right_by_end(s, t), chart::Pairs{right_by_end(s + 1, t), linked_right(s, s + 1), t - s});
    }
    template <class V>
    void visit_left(Index s, Index t, V&& v) const {
        if (s == t) return v.unit(left(t, t), left_by_end(t, t));
        v.sum(left(s, t), left_by_end(s, t), chart::Pairs{left(s, s), linked_left(s, t), t - s});
    }
    template <class V>
    void visit_rooted(Index t, V&& v) const {
        v.score(rooted(t), single_root ? left_by_end(0, t) : open(t), root_arc(t));
    }
    template <class V>
    void visit_open(Index t, V&& v) const {
        v.sum(open(t), open(t), chart::Pairs{left_by_end(0, t), prefix(0), t + 1});
    }
    template <class V>
    void visit_prefix(Index j, V&& v) const {
        if (j == 0) return v.unit(prefix(0), prefix(0));
        v.sum(prefix(j), prefix(j), chart::Pairs{right_by_end(0, j - 1), rooted(0), j});
    }
};

}  // namespace partwise
