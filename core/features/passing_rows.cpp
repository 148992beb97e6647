#include <algorithm>

#include "features/segments.h"
#include "structures/width_dispatch.h"

namespace partwise {

namespace {

// How many entries ahead an attribute's place is asked for.
constexpr Index kAhead = 32;

// One entry of an example: an attribute of a row, and where its weights lie.
struct Entry {
    std::int64_t key;  // orders the entries of a row
    std::uint32_t offset;
    std::uint32_t length;
    bool sparse() const { return key >> 31 == RowLayout::kSparse; }
};

// Sorts the entries of a row by their keys; equal ones keep their order.
class RowOrder {
   public:
    // entries[known[k]], k below n, in order.
    const std::uint32_t* sort(const Entry* entries, const std::uint32_t* known, std::size_t n) {
        sorted_.resize(n);
        const auto lanes = (n + 7) / 8;
        if (lanes == 1) {
            count_smaller<8>(entries, known, n);
        } else if (lanes == 2) {
            count_smaller<16>(entries, known, n);
        } else if (lanes == 3) {
            count_smaller<24>(entries, known, n);
        } else if (lanes == 4) {
            count_smaller<32>(entries, known, n);
        } else {
            std::copy(known, known + n, sorted_.begin());
            std::stable_sort(sorted_.begin(), sorted_.end(),
                             [&](std::uint32_t a, std::uint32_t b) { return entries[a].key < entries[b].key; });
        }
        return sorted_.data();
    }

   private:
    // An entry's place is the number of smaller ones: for a few entries faster than sorts whose branches cannot be
    // foretold.
    template <int N>
    void count_smaller(const Entry* entries, const std::uint32_t* known, std::size_t n) {
        std::int64_t keys[N];
        std::int64_t smaller[N] = {};
        for (std::size_t k = 0; k < N; ++k) {
            keys[k] = k < n ? entries[known[k]].key * N + static_cast<std::int64_t>(k) : 0;
        }
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t k = 0; k < N; ++k) smaller[k] += keys[j] < keys[k] ? 1 : 0;
        }
        for (std::size_t k = 0; k < n; ++k) sorted_[idx(smaller[k])] = known[k];
    }

    std::vector<std::uint32_t> sorted_;
};

}  // namespace

struct PassingRows::Scratch {
    std::vector<Entry> entries;
    std::vector<std::uint32_t> known;  // the entries whose attributes are known
    RowOrder order;
};

PassingRows::PassingRows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table)
    : layout_(std::move(layout)),
      example_ptr_(table.example_ptr.begin(), table.example_ptr.end()),
      row_ptr_(table.row_ptr.begin(), table.row_ptr.end()),
      values_(table.values.begin(), table.values.end()) {
    attributes_.resize(table.attributes.size());
    std::transform(table.attributes.begin(), table.attributes.end(), attributes_.begin(),
                   [](Index attribute) { return static_cast<std::int32_t>(attribute); });
}

AttributeRows PassingRows::stored(Index i) const {
    const Index first = example_ptr_[idx(i)];
    const Index last = example_ptr_[idx(i) + 1];
    const Index begin = row_ptr_[idx(first)];
    const Index end = row_ptr_[idx(last)];
    const std::vector<Index> example_ptr{0, last - first};
    std::vector<Index> row_ptr;
    for (Index p = first; p <= last; ++p) row_ptr.push_back(row_ptr_[idx(p)] - begin);
    const std::vector<Index> attributes(attributes_.begin() + begin, attributes_.begin() + end);
    std::span<const double> values;
    if (!values_.empty()) values = std::span(values_).subspan(idx(begin), idx(end - begin));
    return {layout_, {example_ptr, row_ptr, attributes, values}};
}

// Each score is the sum that AttributeRows makes, term by term in the same order: whole rows without gaps first, then
// those with gaps, then sparse ones; by attribute; by entry.
template <int W, bool HasValues>
void PassingRows::scores_of_width(Index i, const double* __restrict w, double* __restrict out, Scratch& s) const {
    const Index width = W > 0 ? W : layout_->width();
    const std::int32_t* all_columns = layout_->all_columns();
    const Index first = example_ptr_[idx(i)];
    const Index last = example_ptr_[idx(i) + 1];
    const Index begin = row_ptr_[idx(first)];
    const Index end = row_ptr_[idx(last)];
    fill(out, num_slots(i), 0.0);

    // All places first, so that weights are on their way when a row is summed.
    s.entries.resize(idx(end - begin));
    for (Index k = begin; k < end; ++k) {
        if (k + kAhead < end && attributes_[idx(k + kAhead)] >= 0) {
            __builtin_prefetch(&layout_->row(attributes_[idx(k + kAhead)]));
        }
        const std::int32_t attribute = attributes_[idx(k)];
        if (attribute < 0) continue;
        const RowLayout::Row& row = layout_->row(attribute);
        s.entries[idx(k - begin)] = {(static_cast<std::int64_t>(row.kind) << 31) | attribute,
                                     static_cast<std::uint32_t>(row.offset), static_cast<std::uint32_t>(row.length)};
        __builtin_prefetch(w + row.offset);
        if (row.kind == RowLayout::kSparse) __builtin_prefetch(all_columns + row.offset);
    }

    const double* values = HasValues ? values_.data() + begin : nullptr;
    for (Index p = first; p < last; ++p, out += width) {
        s.known.clear();
        for (Index k = row_ptr_[idx(p)]; k < row_ptr_[idx(p) + 1]; ++k) {
            if (attributes_[idx(k)] >= 0) s.known.push_back(static_cast<std::uint32_t>(k - begin));
        }
        const std::uint32_t* k = s.order.sort(s.entries.data(), s.known.data(), s.known.size());
        const std::uint32_t* row_end = k + s.known.size();
        for (; k < row_end && !s.entries[*k].sparse(); ++k) {
            const double* __restrict weights = w + s.entries[*k].offset;
            const double x = HasValues ? values[*k] : 1.0;
            for (Index b = 0; b < width; ++b) out[b] += x * weights[b];
        }
        for (; k < row_end; ++k) {
            const Entry& entry = s.entries[*k];
            const double* __restrict weights = w + entry.offset;
            const std::int32_t* __restrict columns = all_columns + entry.offset;
            for (std::uint32_t j = 0; j < entry.length; ++j) {
                out[columns[j]] += HasValues ? values[*k] * weights[j] : weights[j];
            }
        }
    }
}

void PassingRows::scores(Index i, const double* w, double* out) const {
    thread_local Scratch scratch;
    with_width(layout_->width(), [&](auto width) {
        if (values_.empty()) {
            scores_of_width<width(), false>(i, w, out, scratch);
        } else {
            scores_of_width<width(), true>(i, w, out, scratch);
        }
    });
}

Added PassingRows::add_transpose(Index i, const double* slots, double scale, double* w) const {
    return stored(i).add_transpose(0, slots, scale, w);
}

void PassingRows::project(Index i, const double* slots, Index first, SparseVector& out) const {
    stored(i).project(0, slots, first, out);
}

double PassingRows::transpose_norm2(Index i, const double* slots) const { return stored(i).transpose_norm2(0, slots); }

double PassingRows::psi2_bound(Index i) const { return stored(i).psi2_bound(0); }

}  // namespace partwise
