// Fuzz driver of row features: arbitrary layouts of weights, and sparse attributes with arbitrary pointers.
#include <algorithm>
#include <memory>

#include "bytes.h"
#include "features/segments.h"

using namespace partwise;
using namespace partwise::fuzz;

namespace {

// Row pointers that mostly rise by at most `most` each, and sometimes are arbitrary.
std::vector<Index> pointers(Bytes& in, Index n, Index most) {
    std::vector<Index> out{0};
    for (Index k = 0; k < n; ++k) out.push_back(in.byte() < 252 ? in.after(out.back(), most) : in.near(0, 20));
    return out;
}

RowLayout layout_of(Bytes& in, Index n_attributes, Index n_columns, Index width) {
    if (in.flag()) return RowLayout::dense(n_attributes, n_columns, width);
    const std::vector<Index> indptr = pointers(in, std::clamp<Index>(n_attributes, 0, 9), n_columns);
    std::vector<Index> columns = in.indices(std::clamp<Index>(indptr.back(), 0, 60), 0, n_columns - 1);
    for (std::size_t a = 0; in.flag() && a + 1 < indptr.size(); ++a) {
        // Usually columns ascend, as they should.
        for (Index k = indptr[a]; k < indptr[a + 1] && k < len(columns.size()) && k >= 0; ++k)
            columns[k] = k - indptr[a];
    }
    return RowLayout::from_pairs(n_attributes, n_columns, width, std::span<const Index>(indptr),
                                 std::span<const Index>(columns));
}

// moderate: the values are such that sums do not cancel, so that results can be compared.
void check_map(Bytes& in, const LinearMap& map, bool moderate) {
    const std::vector<double> w = in.numbers(map.num_weights(), false);
    Interrupt interrupt;
    for (Index i = 0; i < map.num_examples(); ++i) {
        std::vector<double> scores(map.num_slots(i));
        map.scores(i, w.data(), scores.data());
        const std::vector<double> slots = in.numbers(map.num_slots(i), false);
        std::vector<double> back(w.size(), 0.0);
        map.add_transpose(i, slots.data(), 1.0, back.data());
        SparseVector sparse;
        map.project(i, slots.data(), sparse);
        require(map.psi2_bound(i) >= 0.0, "a bound of a norm is not negative");
        double norm2 = 0;
        bool finite = true;
        for (const double one : back) norm2 += one * one;
        for (const double one : scores) finite = finite && std::isfinite(one);
        if (!std::isfinite(norm2) || !finite) continue;
        double left = 0;
        double right = 0;
        double size = 1;
        for (std::size_t k = 0; k < slots.size(); ++k) {
            left += slots[k] * scores[k];
            size += std::abs(slots[k] * scores[k]);
        }
        for (std::size_t k = 0; k < back.size(); ++k) {
            right += back[k] * w[k];
            size += std::abs(back[k] * w[k]);
        }
        if (moderate) require(std::abs(left - right) <= 1e-6 * size, "<slots, A w> = <A' slots, w>");
        require(!moderate || std::abs(sparse.norm2() - norm2) <= 1e-6 * (1.0 + norm2),
                "A' slots is the same as a sparse vector");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    accepted([&] {
        const Index n_attributes = in.near(0, 8);
        const Index n_columns = in.below(1, 9);
        const Index width = in.byte() < 250 ? (n_columns + 3) / 4 * 4 : in.near(0, 12);
        const auto layout = std::make_shared<const RowLayout>(layout_of(in, n_attributes, n_columns, width));
        if (layout->num_weights() > 100'000) return;
        const Index n_examples = in.below(0, 3);
        const std::vector<Index> example_ptr = in.flag() ? pointers(in, n_examples, 3) : [&] {
            std::vector<Index> out;  // one per row
            for (Index i = 0; i <= n_examples; ++i) out.push_back(i);
            return out;
        }();
        const std::vector<Index> row_ptr = pointers(in, std::clamp<Index>(example_ptr.back(), 0, 12), 4);
        const std::vector<Index> attributes =
            in.indices(std::clamp<Index>(row_ptr.back(), 0, 50), -1, std::clamp<Index>(n_attributes, 1, 9) - 1);
        std::vector<double> values;
        const bool wide = in.flag();
        if (in.flag()) values = in.numbers(std::max<Index>(0, len(attributes.size()) - (in.byte() > 250)), wide);
        const bool once = in.flag();
        RowUse use{in.near(1, 2), {}};
        if (in.flag()) use.parts = in.indices(n_examples, 0, 4);
        const AttributeTable table{example_ptr, row_ptr, attributes, values};
        check_map(in, LinearMap({AttributeSegment::make(layout, table, once, use)}), !wide);
    });
    return 0;
}
