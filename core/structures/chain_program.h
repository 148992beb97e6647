// The chain as a chart program (chart.h), for everything that chain_kernels.h does not do: sums in log space (which
// allow masks and any spread of scores), samples, the k best labellings.
//
//   in(t, b) = sum over a of at(t - 1, a) with edge_t(a, b)        all that leads to label b at t
//   at(t, b) = in(t, b) with node(t, b);   at(0, b) = the empty prefix with node(0, b)
//   top      = sum over b of at(T - 1, b)
//
// Its slots are T rows of nodes as in the view, then the edges by their second label: slot T * width + (block * L + b)
// * width + a, so that the edges into a cell lie side by side. Rows are padded: labels a >= L have edges of -infinity.
#pragma once

#include "structures/chain_kernels.h"
#include "structures/chart_inference.h"

namespace partwise::chain {

template <int W>
struct Program {
    Index length;    // T
    Index n_labels;  // L
    Index padded;    // row width
    bool tied;

    Index width() const { return W > 0 ? W : padded; }
    Index n_blocks() const { return tied ? 1 : length - 1; }
    Index edge_begin() const { return length * width(); }

    Index cells() const { return 2 * length * width() + 2; }
    Index slots() const { return edge_begin() + n_blocks() * n_labels * width(); }
    Index root() const { return 2 * length * width() + 1; }
    Index most_edges() const { return width(); }

    Index at(Index t, Index b) const { return t * width() + b; }
    Index in(Index t, Index b) const { return (length + t) * width() + b; }
    Index start() const { return 2 * length * width(); }

    template <class V>
    void up(V&& v) const {
        v.unit(start(), start());
        for (Index t = 0; t < length; ++t) {
            check_now_and_then(t);
            for (Index b = 0; b < n_labels; ++b) {
                if (t > 0) visit_in(t, b, v);
                visit_at(t, b, v);
            }
            for (Index b = n_labels; b < width(); ++b) v.unit(at(t, b), at(t, b));  // padding: any finite value will do
            v.cut(at(t, 0), n_labels);
        }
        visit_root(v);
    }

    template <class V>
    void down(V&& v) const {
        visit_root(v);
        for (Index t = length - 1; t >= 0; --t) {
            check_now_and_then(t);
            for (Index b = 0; b < n_labels; ++b) {
                visit_at(t, b, v);
                if (t > 0) visit_in(t, b, v);
            }
        }
    }

    template <class V>
    void visit(Index cell, V&& v) const {
        if (cell == root()) return visit_root(v);
        if (cell == start()) return v.unit(cell, cell);
        const Index row = cell / width();
        const Index b = cell - row * width();
        row < length ? visit_at(row, b, v) : visit_in(row - length, b, v);
    }

   private:
    template <class V>
    void visit_at(Index t, Index b, V&& v) const {
        v.score(at(t, b), t > 0 ? in(t, b) : start(), t * width() + b);
    }
    template <class V>
    void visit_in(Index t, Index b, V&& v) const {
        const Index block = tied ? 0 : t - 1;
        const Index slot = edge_begin() + (block * n_labels + b) * width();
        v.sum(in(t, b), in(t, b), chart::ScoredTails<W>{at(t - 1, 0), slot, width()});
    }
    template <class V>
    void visit_root(V&& v) const {
        v.sum(root(), root(), chart::Tails{at(length - 1, 0), n_labels});
    }
};

template <int W>
Program<W> program_of(const View& v) {
    return {v.length, v.n_labels, v.width, v.edge_step == 0};
}

// Values of nodes and edges in the order of the program's slots; padding of edges gets `rest`.
template <int W>
const double* to_program(const Program<W>& p, const double* node, const double* edge, double rest,
                         Workspace::Frame& frame) {
    const Index L = p.n_labels;
    const Index width = p.width();
    double* out = frame.take(p.slots());
    copy(node, out, p.edge_begin());
    double* to = out + p.edge_begin();
    for (Index block = 0; block < p.n_blocks(); ++block, to += L * width, edge += L * width) {
        for (Index b = 0; b < L; ++b) {
            for (Index a = 0; a < L; ++a) to[b * width + a] = edge[a * width + b];
            for (Index a = L; a < width; ++a) to[b * width + a] = rest;
        }
    }
    return out;
}

// Copies values of the program's slots to nodes and edges; padding gets 0. edge may be null.
template <int W>
void from_program(const Program<W>& p, const double* slots, double* node, double* edge) {
    const Index L = p.n_labels;
    const Index width = p.width();
    copy(slots, node, p.edge_begin());
    const double* from = slots + p.edge_begin();
    for (Index block = 0; edge && block < p.n_blocks(); ++block, from += L * width, edge += L * width) {
        for (Index a = 0; a < L; ++a) {
            for (Index b = 0; b < L; ++b) edge[a * width + b] = from[b * width + a];
            for (Index b = L; b < width; ++b) edge[a * width + b] = 0.0;
        }
    }
}

template <int W>
void log_sums(const View& v, Sums& out, Workspace& ws) {
    Workspace::Frame frame(ws);
    const Program<W> program = program_of<W>(v);
    const double* scores = to_program(program, v.node, v.edge, -kInfinity, frame);
    double* marginals = out.node ? frame.take(program.slots()) : nullptr;
    out.log_partition = chart::log_partition(program, scores, marginals, marginals ? &out.entropy : nullptr, ws);
    if (marginals) from_program(program, marginals, out.node, out.edge);
}

// Cov(counts) direction: the derivative of expected counts along a direction of scores (node_d, edge_d).
template <int W>
void log_covariance(const View& v, const double* node_d, const double* edge_d, double* node_out, double* edge_out,
                    Workspace& ws) {
    Workspace::Frame frame(ws);
    const Program<W> program = program_of<W>(v);
    const double* scores = to_program(program, v.node, v.edge, -kInfinity, frame);
    const double* direction = to_program(program, node_d, edge_d, 0.0, frame);
    double* out = frame.take(program.slots());
    chart::covariance_product(program, scores, direction, out, ws);
    from_program(program, out, node_out, edge_out);
}

}  // namespace partwise::chain
