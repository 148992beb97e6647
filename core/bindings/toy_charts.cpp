// A small structure for the tests, which shows that chart programs carry more than chains, trees and grammars: a segment
// chain (docs/charts.md explains it).
#include "bindings/common.h"
#include "structures/chart_structure.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

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
    nb::class_<ToySegments, Structure>(m, "_ToySegments")
        .def(
            "__init__",
            [](ToySegments* self, const Ints& lengths, Index n_labels, Index longest) {
                new (self) ToySegments(vector_of<Index>(lengths), n_labels, longest);
            },
            "lengths"_a, "n_labels"_a, "longest"_a);
}

}  // namespace partwise::bindings
