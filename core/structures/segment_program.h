// The segment chain as a chart program (docs/charts.md), for the k best labellings and samples, which go from the root
// down. Its slots are numbers for (end, label, begin) and (position, label, label before); no table of slots exists.
// The scores of a cell's edges are computed from the tables of the view when the cell is visited.
//
//   end(t, b)  = sum over s in [t - D, t) of open(s, b) with the segment [s, t)
//   open(t, b) = sum over a of end(t, a) with (t, b, a);   open(0, b) is the empty one
#pragma once

#include "structures/chart.h"
#include "structures/segment_sums.h"

namespace partwise::segments {

// Edge k joins the cell a + k and slot + k: the segments [s + k, t) with label b, or the labels k before t.
struct Edges {
    Index a, slot, n, t, b;
    Index count() const { return n; }
};
struct SegmentEdges : Edges {};
struct LabelEdges : Edges {};
inline chart::Ways ways_of(const Edges& e) { return {e.a, chart::kNone, e.slot, e.n}; }

struct Program {
    Index length;    // T
    Index n_labels;  // L
    Index longest;   // D

    Index cells() const { return 2 * (length + 1) * n_labels + 1; }
    Index root() const { return cells() - 1; }
    Index most_edges() const { return std::max(longest, n_labels); }

    Index end(Index t, Index b) const { return t * n_labels + b; }
    Index open(Index t, Index b) const { return ((length + 1) * n_labels) + b * (length + 1) + t; }
    // First the slots of segments, in the order of ends, then the slots of labels.
    Index segment_slot(Index s, Index t, Index b) const { return (t * n_labels + b) * longest + s - t + longest; }
    Segment segment(Index slot) const {
        const Index t = slot / longest / n_labels;
        return {slot % longest + t - longest, t, slot / longest % n_labels};
    }
    Index first_label_slot() const { return (length + 1) * n_labels * longest; }
    Index label_slot(Index a, Index t, Index b) const { return first_label_slot() + (t * n_labels + b) * n_labels + a; }

    template <class V>
    void visit(Index cell, V&& v) const {
        if (cell == root()) return v.sum(cell, cell, chart::Tails{end(length, 0), n_labels});
        const Index other = cell - open(0, 0);
        if (other < 0) {
            const Index t = cell / n_labels;
            const Index b = cell % n_labels;
            const Index s = std::max<Index>(0, t - longest);
            return v.sum(cell, cell, SegmentEdges{{open(s, b), segment_slot(s, t, b), t - s, t, b}});
        }
        const Index t = other % (length + 1);
        const Index b = other / (length + 1);
        if (t == 0) return v.unit(cell, cell);
        v.sum(cell, cell, LabelEdges{{end(t, 0), label_slot(0, t, b), n_labels, t, b}});
    }
};

// Values of cells and scores of slots, read from the view and the prefixes.
class Chart {
   public:
    Chart(const Program& program, const View& v, const Prefixes& p)
        : program_(program), v_(v), p_(p), scores_(program.most_edges()) {}

    double operator[](Index cell) const {
        const Index other = cell - program_.open(0, 0);
        if (other < 0) return p_.end[cell / v_.n_labels * v_.width + cell % v_.n_labels];
        return p_.open[other % (v_.length + 1) * v_.width + other / (v_.length + 1)];
    }

    // The scores of the segments [s, t) without their tails, s from first_begin(t); good until the next call.
    const double* segment_scores(Index t, Index b) const {
        const Index low = v_.first_begin(t);
        double inside = 0;
        for (Index s = t - 1; s >= low; --s) {
            scores_[s - low] = inside + p_.inside[s * v_.width + b] + v_.lengths[(t - s - 1) * v_.width + b] +
                               v_.last[(t - 1) * v_.width + b];
            inside += p_.joined[s * v_.width + b];
        }
        for (Index k = v_.list_at(t); k < v_.list_at(t + 1); ++k) {
            scores_[v_.begins[k] - low] += v_.whole[k * v_.width + b];
        }
        return scores_.data();
    }
    double label_score(Index a, Index t, Index b) const {
        return v_.edge[a * v_.width + b] + v_.first[t * v_.width + b];
    }
    double slot_score(Index slot) const {
        const Index label = slot - program_.first_label_slot();
        if (label >= 0) {
            const Index cell = label / v_.n_labels;
            return label_score(label % v_.n_labels, cell / v_.n_labels, cell % v_.n_labels);
        }
        const auto [s, t, b] = program_.segment(slot);
        return segment_scores(t, b)[s - v_.first_begin(t)];
    }

   private:
    const Program& program_;
    const View& v_;
    const Prefixes& p_;
    mutable std::vector<double> scores_;
};

struct Scores {
    const Chart& chart;
    double operator[](Index slot) const { return chart.slot_score(slot); }
};

inline auto edge_scores(const SegmentEdges& e, const Chart& chart, const Scores&) {
    const double* own = chart.segment_scores(e.t, e.b);
    return [&chart, own, a = e.a](Index k) { return chart[a + k] + own[k]; };
}
inline auto edge_scores(const LabelEdges& e, const Chart& chart, const Scores&) {
    return [&chart, e](Index k) { return chart[e.a + k] + chart.label_score(k, e.t, e.b); };
}
inline auto edge_scores(const chart::Tails& e, const Chart& chart, const Scores&) {
    return [&chart, a = e.a](Index k) { return chart[a + k]; };
}

}  // namespace partwise::segments
