// The second-order chain as a chart program (docs/charts.md), for everything that second_order_kernels.h does not do:
// sums in log space, products with the covariance, samples, the k best labellings.
//
//   at(0, c)    = the empty prefix with node (0, c)
//   at(1, b, c) = at(0, b) with pair (b, c), with node (1, c)
//   at(t, b, c) = sum over a of at(t - 1, a, b) with triple (a, b, c), with pair (b, c), with node (t, c)
//   root        = sum over c of the sum over b of at(T - 1, b, c)
//
// Its slots are T rows of L nodes, L * L pairs by their second label, and the triples (a, b, c) with a innermost, then
// c, then b: the edges into a cell lie side by side.
#pragma once

#include "structures/chain_kernels.h"
#include "structures/chart_inference.h"

namespace partwise::second_order {

struct Program {
    Index length;    // T
    Index n_labels;  // L

    Index square() const { return n_labels * n_labels; }
    Index pair_begin() const { return length * n_labels; }
    Index triple_begin() const { return pair_begin() + square(); }

    // Three cells per state: the sum over the label before, with the pair, with the node; rows of states by c, then b.
    Index cells() const { return n_labels + 3 * length * square() + n_labels + 2; }
    Index slots() const { return triple_begin() + square() * n_labels; }
    Index root() const { return cells() - 1; }
    Index start() const { return cells() - 2; }
    Index most_edges() const { return n_labels; }

    Index head(Index c) const { return c; }
    Index cell(Index step, Index t, Index b, Index c) const {
        return n_labels + ((step * length + t) * n_labels + c) * n_labels + b;
    }
    Index at(Index t, Index b, Index c) const { return cell(2, t, b, c); }
    Index top(Index c) const { return n_labels + 3 * length * square() + c; }

    template <class V>
    void up(V&& v) const {
        v.unit(start(), start());
        for (Index c = 0; c < n_labels; ++c) visit(head(c), v);
        v.cut(head(0), n_labels);
        for (Index t = 1; t < length; ++t) {
            chain::check_now_and_then(t);
            for (Index k = 0; k < square(); ++k) {
                for (Index step = t > 1 ? 0 : 1; step < 3; ++step) visit_state(step, t, k % n_labels, k / n_labels, v);
            }
            v.cut(at(t, 0, 0), square());
        }
        for (Index c = 0; length > 1 && c < n_labels; ++c) visit(top(c), v);
        visit(root(), v);
    }
    template <class V>
    void down(V&& v) const {
        visit(root(), v);
        for (Index c = n_labels - 1; length > 1 && c >= 0; --c) visit(top(c), v);
        for (Index t = length - 1; t > 0; --t) {
            chain::check_now_and_then(t);
            for (Index k = square() - 1; k >= 0; --k) {
                for (Index step = 2; step >= (t > 1 ? 0 : 1); --step) {
                    visit_state(step, t, k % n_labels, k / n_labels, v);
                }
            }
        }
        for (Index c = n_labels - 1; c >= 0; --c) visit(head(c), v);
    }
    template <class V>
    void visit(Index own, V&& v) const {
        if (own == root()) return v.sum(own, own, chart::Tails{length > 1 ? top(0) : head(0), n_labels});
        if (own == start()) return v.unit(own, own);
        if (own < n_labels) return v.score(own, start(), own);
        if (own >= top(0)) return v.sum(own, own, chart::Tails{at(length - 1, 0, own - top(0)), n_labels});
        const Index k = own - n_labels;
        const Index row = k / square();
        visit_state(row / length, row % length, k % n_labels, k / n_labels % n_labels, v);
    }

   private:
    template <class V>
    void visit_state(Index step, Index t, Index b, Index c, V&& v) const {
        const Index own = cell(step, t, b, c);
        if (step == 2) return v.score(own, cell(1, t, b, c), t * n_labels + c);
        if (step == 1) return v.score(own, t > 1 ? cell(0, t, b, c) : head(b), pair_begin() + c * n_labels + b);
        const Index slot = triple_begin() + (b * n_labels + c) * n_labels;
        v.sum(own, own, chart::ScoredTails<>{at(t - 1, 0, b), slot, n_labels});
    }
};

}  // namespace partwise::second_order
