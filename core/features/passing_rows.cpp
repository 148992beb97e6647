#include <numeric>

#include "features/segments.h"
#include "structures/width_dispatch.h"

namespace partwise {

namespace {

// How many entries ahead the place of an attribute's weights is prefetched.
constexpr Index kAhead = 32;

// One entry of an example: an attribute of a row, and the place of its weights.
struct Entry {
    std::int64_t key;  // entries of a row are sorted by it
    std::uint32_t offset;
    std::uint32_t length;
    std::uint32_t number;  // its index among the example's entries
    bool sparse() const { return key >> 31 == RowLayout::kSparse; }
};

// Sorts a row's entries by their keys; entries with equal keys keep their order.
class RowOrder {
   public:
    const std::uint32_t* sort(const Entry* entries, std::size_t n) {
        order_.resize(n);
        if (n > 32) {
            std::iota(order_.begin(), order_.end(), 0U);
            std::stable_sort(order_.begin(), order_.end(),
                             [&](std::uint32_t a, std::uint32_t b) { return entries[a].key < entries[b].key; });
        } else if (n > 24) {
            count_smaller<32>(entries, n);
        } else if (n > 16) {
            count_smaller<24>(entries, n);
        } else if (n > 8) {
            count_smaller<16>(entries, n);
        } else {
            count_smaller<8>(entries, n);
        }
        return order_.data();
    }

   private:
    // An entry's place in the sorted order is the number of smaller entries: for a few entries this is faster than
    // sorts, whose branches are unpredictable.
    template <std::size_t N>
    void count_smaller(const Entry* entries, std::size_t n) {
        std::int64_t keys[N];
        std::int64_t smaller[N] = {};
        for (std::size_t k = 0; k < N; ++k) {
            keys[k] = k < n ? entries[k].key * static_cast<std::int64_t>(N) + static_cast<std::int64_t>(k) : 0;
        }
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t k = 0; k < N; ++k) smaller[k] += keys[j] < keys[k] ? 1 : 0;
        }
        for (std::size_t k = 0; k < n; ++k) order_[smaller[k]] = static_cast<std::uint32_t>(k);
    }

    std::vector<std::uint32_t> order_;
};

struct Scratch {
    std::vector<Entry> entries;  // the entries of one example whose attributes are known
    std::vector<std::size_t> row_ptr;
    RowOrder order;
};

// Examples whose scores are computed once: rows stay in the caller's order, because sorting them by attribute takes
// longer than one pass over them. Scores have the same bits as those of make_attribute_rows (whose sums have another
// order if all examples are one row). Everything but scores is computed by an AttributeRows of the one example.
class PassingRows final : public AttributeSegment {
   public:
    PassingRows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table, RowUse use)
        : AttributeSegment(std::move(layout), table, std::move(use)),
          example_ptr_(table.example_ptr.begin(), table.example_ptr.end()),
          row_ptr_(table.row_ptr.begin(), table.row_ptr.end()),
          values_(table.values.begin(), table.values.end()) {
        attributes_.resize(table.attributes.size());
        std::transform(table.attributes.begin(), table.attributes.end(), attributes_.begin(),
                       [](Index attribute) { return static_cast<std::int32_t>(attribute); });
    }

    Index num_examples() const override { return len(example_ptr_.size()) - 1; }
    Index num_slots(Index i) const override { return (example_ptr_[i + 1] - example_ptr_[i]) * layout_->width(); }
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override {
        return stored(i)->add_transpose(0, slots, scale, w);
    }
    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override {
        return stored(i)->add_transpose_shrunk(0, slots, scale, to);
    }
    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override {
        stored(i)->append_projection(0, slots, first, out);
    }
    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override {
        stored(i)->slot_rows(0, slots, first, out);
    }
    double transpose_norm2(Index i, const double* slots) const override { return stored(i)->transpose_norm2(0, slots); }
    void slot_norms2(Index i, double* out) const override { stored(i)->slot_norms2(0, out); }
    double psi2_bound(Index i) const override { return stored(i)->psi2_bound(0); }

    void scores(Index i, const double* w, double* out) const override {
        ScratchPool<Scratch>::Lease lease(scratch_);
        Scratch& scratch = *lease;
        with_width(layout_->width(), [&](auto width) {
            values_.empty() ? scores_of_width<width(), false>(i, w, out, scratch)
                            : scores_of_width<width(), true>(i, w, out, scratch);
        });
    }

   private:
    std::unique_ptr<AttributeSegment> stored(Index i) const {
        const Index first = example_ptr_[i];
        const Index last = example_ptr_[i + 1];
        const Index begin = row_ptr_[first];
        const Index end = row_ptr_[last];
        const std::vector<Index> example_ptr{0, last - first};
        std::vector<Index> row_ptr;
        for (Index p = first; p <= last; ++p) row_ptr.push_back(row_ptr_[p] - begin);
        const std::vector<Index> attributes(attributes_.begin() + begin, attributes_.begin() + end);
        std::span<const double> values;
        if (!values_.empty()) values = std::span(values_).subspan(begin, end - begin);
        return make_attribute_rows(layout_, {example_ptr, row_ptr, attributes, values}, use_.of(i));
    }

    // Each score sums the same terms in the same order as AttributeRows: by kind of weight row (whole rows without
    // gaps, those with gaps, sparse rows), then by attribute, then by entry. It is not inlined, because compilers then
    // fuse other multiplications with additions, and the bits differ.
    template <int W, bool HasValues>
    [[gnu::noinline]] void scores_of_width(Index i, const double* __restrict w, double* __restrict out,
                                           Scratch& s) const {
        const Index width = W > 0 ? W : layout_->width();
        const std::int32_t* all_columns = layout_->all_columns();
        const Index first = example_ptr_[i];
        const Index last = example_ptr_[i + 1];
        const Index begin = row_ptr_[first];
        const Index end = row_ptr_[last];
        fill(out, num_slots(i), 0.0);
        if (layout_->num_attributes() == 0) return;

        // Find all places first, so that weights are already being fetched when the row is summed. Unknown attributes
        // are written too and skipped later: a branch on whether an attribute is known would be unpredictable.
        const std::int32_t* attributes = attributes_.data();
        s.entries.resize(end - begin + 1);
        s.row_ptr.clear();
        std::size_t n = 0;
        for (Index p = first; p < last; ++p) {
            s.row_ptr.push_back(n);
            for (Index k = row_ptr_[p]; k < row_ptr_[p + 1]; ++k) {
                if (k + kAhead < end) __builtin_prefetch(&layout_->row(std::max(0, attributes[k + kAhead])));
                const std::int32_t attribute = std::max(0, attributes[k]);
                const RowLayout::Row& row = layout_->row(attribute);
                s.entries[n] = {(static_cast<std::int64_t>(row.kind) << 31) | attribute,
                                static_cast<std::uint32_t>(row.offset), static_cast<std::uint32_t>(row.length),
                                static_cast<std::uint32_t>(k - begin)};
                n += attributes[k] >= 0 ? 1 : 0;
                __builtin_prefetch(w + row.offset);
                if (row.kind == RowLayout::kSparse) __builtin_prefetch(all_columns + row.offset);
            }
        }
        s.row_ptr.push_back(n);

        const double* values = HasValues ? values_.data() + begin : nullptr;
        for (std::size_t p = 0; p + 1 < s.row_ptr.size(); ++p, out += width) {
            const Entry* entries = s.entries.data() + s.row_ptr[p];
            const std::size_t size = s.row_ptr[p + 1] - s.row_ptr[p];
            const std::uint32_t* k = s.order.sort(entries, size);
            const std::uint32_t* row_end = k + size;
            for (; k < row_end && !entries[*k].sparse(); ++k) {
                const double* __restrict weights = w + entries[*k].offset;
                const double x = HasValues ? values[entries[*k].number] : 1.0;
                for (Index b = 0; b < width; ++b) out[b] += x * weights[b];
            }
            for (; k < row_end; ++k) {
                const Entry& entry = entries[*k];
                const double* __restrict weights = w + entry.offset;
                const std::int32_t* __restrict columns = all_columns + entry.offset;
                for (std::uint32_t j = 0; j < entry.length; ++j) {
                    out[columns[j]] += HasValues ? values[entry.number] * weights[j] : weights[j];
                }
            }
        }
    }

    std::vector<Index> example_ptr_;
    std::vector<Index> row_ptr_;
    std::vector<std::int32_t> attributes_;  // -1: unknown attribute, ignored
    std::vector<double> values_;            // for each attribute; empty if all are 1
    mutable ScratchPool<Scratch> scratch_;
};

}  // namespace

std::unique_ptr<AttributeSegment> make_passing_rows(std::shared_ptr<const RowLayout> layout,
                                                    const AttributeTable& table, RowUse use) {
    return std::make_unique<PassingRows>(std::move(layout), table, std::move(use));
}

}  // namespace partwise
