#include <bit>
#include <numeric>
#include <type_traits>
#include <utility>

#include "features/segments.h"
#include "structures/width_dispatch.h"
#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

void check(const RowLayout& layout, const AttributeTable& table) {
    check_pointers(table.row_ptr, len(table.attributes.size()), "row_ptr");
    check_pointers(table.example_ptr, len(table.row_ptr.size()) - 1, "example_ptr");
    check_values(table.values, [&](Index k) { return "attribute " + std::to_string(table.attributes[k]); });
    // Find the extremes before checking any value: this loop compiles to vector instructions.
    Index low = -1;
    Index high = -1;
    for (const Index attribute : table.attributes) {
        low = std::min(low, attribute);
        high = std::max(high, attribute);
    }
    if (low < -1 || high >= layout.num_attributes()) {
        throw InputError("attribute ", low < -1 ? low : high, " is out of range");
    }
    if (layout.num_weights() > Index{0xFFFFFFFF}) throw InputError("more than 2^32 weights in one segment");
}

bool has_single_rows(const AttributeTable& table) {
    const auto ptr = table.example_ptr;
    return std::adjacent_find(ptr.begin(), ptr.end(), [](Index p, Index q) { return q - p != 1; }) == ptr.end();
}

}  // namespace

Index longest_row(std::span<const Index> row_ptr) {
    Index longest = 0;
    for (std::size_t p = 1; p < row_ptr.size(); ++p) longest = std::max(longest, row_ptr[p] - row_ptr[p - 1]);
    return longest;
}

AttributeSegment::AttributeSegment(std::shared_ptr<const RowLayout> layout, const AttributeTable& table, RowUse use)
    : layout_(std::move(layout)), row_length_(longest_row(table.row_ptr)), use_(std::move(use)) {}

std::unique_ptr<AttributeSegment> AttributeSegment::make(std::shared_ptr<const RowLayout> layout,
                                                         const AttributeTable& table, bool once, RowUse use) {
    check(*layout, table);
    if (use.uses < 1) throw InputError("uses must be at least 1");
    if (!use.parts.empty() && use.parts.size() + 1 != table.example_ptr.size()) {
        throw InputError("parts must have one value per example");
    }
    for (const Index n : use.parts) {
        if (n < 0) throw InputError("parts must not be negative");
    }
    if (once) {  // whatever the other examples are like: the bits of one example's scores must not depend on them
        return make_passing_rows(std::move(layout), table, std::move(use));
    }
    if (has_single_rows(table) && layout->all_full()) {
        return make_single_rows(std::move(layout), table, std::move(use));
    }
    return make_attribute_rows(std::move(layout), table, std::move(use));
}

namespace {

// How many groups ahead weights are prefetched: waiting for rare attributes' weights took half of the time of a pass.
constexpr std::ptrdiff_t kAhead = 8;

// Keeps the compiler from vectorising a loop over j: for short sparse rows the set-up costs more than it gains.
inline void one_by_one(std::uint32_t& j) { asm("" : "+r"(j)); }

// An entry of an example packed into one integer. Integers sort by kind of row (so that the kernels' branches are
// predictable), then by attribute, then by row.
constexpr int kRowBits = 31;
constexpr int kAttributeBits = 31;
constexpr std::uint64_t kMask = (std::uint64_t{1} << 31) - 1;

std::uint64_t entry_key(std::int32_t kind, Index attribute, Index row) {
    return (static_cast<std::uint64_t>(kind) << (kAttributeBits + kRowBits)) |
           (static_cast<std::uint64_t>(attribute) << kRowBits) | static_cast<std::uint64_t>(row);
}
std::int32_t kind_of(std::uint64_t key) { return static_cast<std::int32_t>(key >> (kAttributeBits + kRowBits)); }
Index attribute_of(std::uint64_t key) { return static_cast<Index>((key >> kRowBits) & kMask); }
std::int32_t row_of(std::uint64_t key) { return static_cast<std::int32_t>(key & kMask); }

struct KeyAndValue {
    std::uint64_t key;
    double value;
};
std::uint64_t key_of(std::uint64_t key) { return key; }
std::uint64_t key_of(const KeyAndValue& entry) { return entry.key; }

// Sorts entries, which arrive with rising rows, by kind and attribute. It is a radix sort: the unpredictable
// comparisons of std::sort took most of the time to make a map.
template <class Entry>
void sort_entries(std::vector<Entry>& entries, std::vector<Entry>& buffer, int attribute_bits) {
    constexpr std::size_t kFew = 48;
    constexpr int kDigit = 8;
    const auto before = [](const Entry& p, const Entry& q) { return key_of(p) < key_of(q); };
    if (std::is_sorted(entries.begin(), entries.end(), before)) return;
    if (entries.size() < kFew) {
        // The sort is stable, as the radix sort is: an attribute's values in one row keep their order.
        std::stable_sort(entries.begin(), entries.end(), before);
        return;
    }
    buffer.resize(entries.size());
    const auto pass = [&](int shift) {
        std::uint32_t next[1 << kDigit] = {};
        const auto digit = [&](const Entry& entry) { return (key_of(entry) >> shift) & ((1U << kDigit) - 1); };
        for (const Entry& entry : entries) ++next[digit(entry)];
        std::uint32_t sum = 0;
        for (std::uint32_t& count : next) sum += std::exchange(count, sum);
        for (const Entry& entry : entries) buffer[next[digit(entry)]++] = entry;
        entries.swap(buffer);
    };
    for (int bit = 0; bit < attribute_bits; bit += kDigit) pass(kRowBits + bit);
    pass(kRowBits + kAttributeBits);
}

// Sinks: what is done with v = A' slots when AttributeRows produces it, as whole rows of `width` values (row) or as
// single values (one). Sums are kept per column: a horizontal sum per row would cost more than the row itself.

// The number of parallel sums for rows of this width (width 0: the width is known only at run time).
constexpr int lanes(int width) { return width > 0 ? width : 1; }

template <int W>
struct AddSink {
    static constexpr int kLanes = lanes(W);
    double scale;
    double* w;
    double norms[kLanes] = {};
    double products[kLanes] = {};

    void prefetch(Index at) const { __builtin_prefetch(w + at, 1); }
    void row(Index at, const double* __restrict v, Index width) {
        double* __restrict target = w + at;
        if constexpr (W > 0) {
            for (int b = 0; b < W; ++b) {
                norms[b] += v[b] * v[b];
                products[b] += v[b] * target[b];
                target[b] += scale * v[b];
            }
        } else {
            norms[0] += norm2(v, width);
            products[0] += dot(v, target, width);
            axpy(scale, v, target, width);
        }
    }
    void one(Index at, double v) {
        norms[0] += v * v;
        products[0] += v * w[at];
        w[at] += scale * v;
    }
    Added added() const {
        Added sum;
        for (int b = 0; b < kLanes; ++b) sum += {norms[b], products[b]};
        return sum;
    }
};

// The sink for an elastic net, which updates u and w (`ShrunkWeights`).
template <int W>
struct ShrinkSink {
    double scale;
    double* u;
    double* w;
    Shrinking<lanes(W)> sums;

    void prefetch(Index at) const {
        __builtin_prefetch(u + at, 1);
        __builtin_prefetch(w + at, 1);
    }
    void row(Index at, const double* __restrict v, Index width) {
        double* __restrict target = u + at;
        double* __restrict weights = w + at;
        if constexpr (W > 0) {
            for (int b = 0; b < W; ++b) sums.move(b, scale * v[b], target[b], weights[b]);
        } else {
            for (Index b = 0; b < width; ++b) sums.move(0, scale * v[b], target[b], weights[b]);
        }
    }
    void one(Index at, double v) { sums.move(0, scale * v, u[at], w[at]); }
};

// A sink that adds v to the weights and measures nothing.
template <int W>
struct PlainSink {
    double* w;

    void prefetch(Index at) const { __builtin_prefetch(w + at, 1); }
    void row(Index at, const double* __restrict v, Index width) const {
        double* __restrict target = w + at;
        if constexpr (W > 0) {
#pragma omp simd
            for (int b = 0; b < W; ++b) target[b] += v[b];
        } else {
            axpy(1.0, v, target, width);
        }
    }
    void one(Index at, double v) const { w[at] += v; }
};

template <int W>
struct NormSink {
    static constexpr int kLanes = lanes(W);
    double norms[kLanes] = {};

    void prefetch(Index) const {}
    void row(Index, const double* __restrict v, Index width) {
        if constexpr (W > 0) {
            for (int b = 0; b < W; ++b) norms[b] += v[b] * v[b];
        } else {
            norms[0] += norm2(v, width);
        }
    }
    void one(Index, double v) { norms[0] += v * v; }
    double sum() const {
        double total = 0;
        for (int b = 0; b < kLanes; ++b) total += norms[b];
        return total;
    }
};

struct ProjectSink {
    Index first;
    SparseVector& out;

    void prefetch(Index) const {}
    void row(Index at, const double* v, Index width) const { out.append(first + at, v, width); }
    void one(Index at, double v) const { out.append(first + at, &v, 1); }
};

// Examples of several rows, or rows with columns left out. Entries are sorted by attribute within an example, so that a
// weight row is read once even if its attribute is repeated, and A'd has one entry per weight.
class AttributeRows final : public AttributeSegment {
   public:
    AttributeRows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table, RowUse use)
        : AttributeSegment(std::move(layout), table, std::move(use)) {
        const auto& [example_ptr, row_ptr, attributes, values] = table;
        const Index n = len(example_ptr.size()) - 1;
        n_rows_.reserve(n);
        group_ptr_.assign(1, 0);
        entry_ptr_.assign(1, 0);
        rows_.reserve(attributes.size());
        if (values.empty()) {
            add_examples<std::uint64_t>(table);
        } else {
            values_.reserve(attributes.size());
            add_examples<KeyAndValue>(table);
        }
    }

    Index num_examples() const override { return len(n_rows_.size()); }
    Index num_slots(Index i) const override { return n_rows_[i] * layout_->width(); }

    void scores(Index i, const double* w, double* out) const override {
        dispatch([&](auto width, auto has_values) { scores_of_width<width(), has_values()>(i, w, out); });
    }

    Added add_transpose(Index i, const double* slots, double scale, double* w) const override {
        Added added;
        dispatch([&](auto width, auto has_values) {
            AddSink<width()> sink{scale, w};
            visit<width(), has_values()>(i, slots, sink);
            added = sink.added();
        });
        return added;
    }

    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override {
        Added added;
        dispatch([&](auto width, auto has_values) {
            ShrinkSink<width()> sink{scale, to.u, to.w, Shrinking<lanes(width())>(to)};
            visit<width(), has_values()>(i, slots, sink);
            added = Added::of(sink.sums, scale);
        });
        return added;
    }

    void scores_of(Index begin, Index end, const double* w, double* out) const override {
        dispatch([&](auto width, auto has_values) {
            for (Index i = begin; i < end; ++i) {
                scores_of_width<width(), has_values()>(i, w, out);
                out += num_slots(i);
            }
        });
    }

    void add_transpose_of(Index begin, Index end, const double* slots, double* w) const override {
        dispatch([&](auto width, auto has_values) {
            PlainSink<width()> sink{w};
            for (Index i = begin; i < end; ++i) {
                visit<width(), has_values()>(i, slots, sink);
                slots += num_slots(i);
            }
        });
    }

    // Entries that are 0 or 1 equal their squares.
    void add_squares_of(Index begin, Index end, const double* slots, double* w) const override {
        if (values_.empty()) return add_transpose_of(begin, end, slots, w);
        Segment::add_squares_of(begin, end, slots, w);
    }

    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override {
        ProjectSink sink{first, out};
        dispatch([&](auto width, auto has_values) { visit<width(), has_values()>(i, slots, sink); });
    }

    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override {
        const Index width = layout_->width();
        const std::int32_t* all_columns = layout_->all_columns();
        // Slots of the same row are neighbours: row t has the slots [place[t], place[t] + size[t]).
        std::vector<std::uint32_t> place(n_rows_[i], 0);
        std::vector<std::uint32_t> size(place.size(), 0);
        std::vector<std::int32_t> column(slots.size());
        for (std::uint32_t q = 0; q < slots.size(); ++q) {
            const std::size_t t = slots[q] / width;
            column[q] = static_cast<std::int32_t>(slots[q] % width);
            if (size[t]++ == 0) place[t] = q;
        }
        RowCollector rows(slots.size());
        auto [full, masked, sparse, end, row, value] = groups_of(i);
        for (const Group* g = full; g < end; ++g) {
            for (std::uint32_t e = 0; e < g->n_entries; ++e, ++row) {
                const double x = value ? *value++ : 1.0;
                const std::uint32_t begin = place[*row];
                for (std::uint32_t q = begin; q < begin + size[*row]; ++q) {
                    const std::int32_t b = column[q];
                    if (g < masked || (g < sparse && layout_->all_present()[Index{g->offset} + b])) {
                        rows.add(q, first + g->offset + b, x);
                    } else if (g >= sparse) {
                        const std::int32_t* columns = all_columns + g->offset;
                        const Index j = std::find(columns, columns + g->length, b) - columns;
                        if (j < g->length) rows.add(q, first + g->offset + j, x);
                    }
                }
            }
        }
        rows.finish(out);
    }

    double transpose_norm2(Index i, const double* slots) const override {
        double sum = 0;
        dispatch([&](auto width, auto has_values) {
            NormSink<width()> sink;
            visit<width(), has_values()>(i, slots, sink);
            sum = sink.sum();
        });
        return sum;
    }

    void slot_norms2(Index i, double* out) const override {
        std::vector<Index> all(num_slots(i));
        std::iota(all.begin(), all.end(), Index{0});
        PackedRows rows;
        slot_rows(i, all, 0, rows);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            out[r] = 0.0;
            for (std::size_t j = rows.begin(r); j < rows.ends[r]; ++j) out[r] += rows.values[j] * rows.values[j];
        }
    }

    // |sum_t x_t (x) d_t|^2 <= 2 sum over attributes of (sum_t |x_t|)^2: rows d_t = y_t - z_t of a difference of two
    // labellings have <d_t, d_s> <= <y_t, y_s> + <z_t, z_s> <= |y_t| |y_s| + |z_t| |z_s|, |.| being numbers of uses.
    double psi2_bound(Index i) const override {
        double sum = 0;
        const Groups groups = groups_of(i);
        const double* value = groups.values;
        const std::int32_t* row = groups.rows;
        for (const Group* g = groups.full; g < groups.end; ++g) {
            double total = 0;
            double largest = 0;  // value in one row, to which repeated entries of the attribute add up
            double own = 0;
            for (std::uint32_t e = 0; e < g->n_entries; ++e, ++row) {
                const double x = value ? std::abs(*value++) : 1.0;
                total += x;
                own = e > 0 && row[0] == row[-1] ? own + x : x;
                largest = std::max(largest, own);
            }
            const double most = use_.most(i, total, largest);
            sum += most * most;
        }
        return 2.0 * sum;
    }

   private:
    // One attribute of one example, with a copy of its place in the layout, so that kernels read a single array.
    struct Group {
        std::uint32_t offset;
        std::uint32_t length;
        std::uint32_t n_entries;
    };
    // An example's groups in three runs: attributes with full, masked and sparse weight rows.
    struct Groups {
        const Group* full;
        const Group* masked;
        const Group* sparse;
        const Group* end;
        const std::int32_t* rows;
        const double* values;  // null if all 1
    };

    template <class Entry>
    void add_examples(const AttributeTable& table) {
        const auto& [example_ptr, row_ptr, attributes, values] = table;
        const bool single = has_single_rows(table);
        if (single) groups_.reserve(attributes.size());  // if each entry of an example has another attribute
        std::vector<Entry> entries;
        std::vector<Entry> buffer;
        const auto attribute_bits =
            static_cast<int>(std::bit_width(static_cast<std::uint64_t>(layout_->num_attributes())));
        for (std::size_t i = 0; i + 1 < example_ptr.size(); ++i) {
            const Index first = example_ptr[i];
            const Index last = example_ptr[i + 1];
            entries.clear();
            const Index end = row_ptr[last];
            for (Index p = first; p < last; ++p) {
                for (Index k = row_ptr[p]; k < row_ptr[p + 1]; ++k) {
                    if (k + kAhead < end && attributes[k + kAhead] >= 0) {
                        __builtin_prefetch(&layout_->row(attributes[k + kAhead]));
                    }
                    const Index attribute = attributes[k];
                    if (attribute < 0) continue;
                    const std::uint64_t key = entry_key(layout_->row(attribute).kind, attribute, p - first);
                    if constexpr (std::is_same_v<Entry, KeyAndValue>) {
                        entries.push_back({key, values[k]});
                    } else {
                        entries.push_back(key);
                    }
                }
            }
            sort_entries(entries, buffer, attribute_bits);
            std::size_t k = 0;
            for (const std::int32_t kind : {RowLayout::kFull, RowLayout::kMasked, RowLayout::kSparse}) {
                for (Index previous = -1; k < entries.size() && kind_of(key_of(entries[k])) == kind; ++k) {
                    const std::uint64_t key = key_of(entries[k]);
                    if (attribute_of(key) != previous) {
                        previous = attribute_of(key);
                        const RowLayout::Row& row = layout_->row(previous);
                        groups_.push_back(
                            {static_cast<std::uint32_t>(row.offset), static_cast<std::uint32_t>(row.length), 0});
                    }
                    ++groups_.back().n_entries;
                    rows_.push_back(row_of(key));
                    if constexpr (std::is_same_v<Entry, KeyAndValue>) values_.push_back(entries[k].value);
                }
                // With one row and all values 1 any order will do: rising lengths make loop branches predictable.
                if (kind == RowLayout::kSparse && single && values.empty()) {
                    const auto begin = groups_.begin() + group_ptr_.back();
                    const auto shorter = [](const Group& p, const Group& q) { return p.length < q.length; };
                    if (!std::is_sorted(begin, groups_.end(), shorter)) std::stable_sort(begin, groups_.end(), shorter);
                }
                group_ptr_.push_back(len(groups_.size()));
            }
            n_rows_.push_back(last - first);
            entry_ptr_.push_back(len(rows_.size()));
        }
    }

    Groups groups_of(Index i) const {
        const Index* ends = group_ptr_.data() + 3 * i;
        const Group* all = groups_.data();
        const Index entry = entry_ptr_[i];
        return {all + ends[0], all + ends[1],        all + ends[2],
                all + ends[3], rows_.data() + entry, values_.empty() ? nullptr : values_.data() + entry};
    }

    template <int W, bool HasValues>
    void scores_of_width(Index i, const double* __restrict w, double* __restrict out) const {
        const Index width = W > 0 ? W : layout_->width();
        const std::int32_t* all_columns = layout_->all_columns();
        auto [full, masked, sparse, end, rows, values] = groups_of(i);
        fill(out, num_slots(i), 0.0);
        const Group* g = full;
        for (; g < sparse; ++g) {
            if (g + kAhead < sparse) __builtin_prefetch(w + g[kAhead].offset);
            const double* __restrict weights = w + g->offset;
            for (std::uint32_t e = 0; e < g->n_entries; ++e) {
                double* __restrict target = out + rows[e] * width;
                const double x = HasValues ? values[e] : 1.0;
                for (Index b = 0; b < width; ++b) target[b] += x * weights[b];
            }
            rows += g->n_entries;
            if (HasValues) values += g->n_entries;
        }
        for (; g < end; ++g) {
            if (g + kAhead < end) {
                __builtin_prefetch(w + g[kAhead].offset);
                __builtin_prefetch(all_columns + g[kAhead].offset);
            }
            const double* __restrict weights = w + g->offset;
            const std::int32_t* __restrict columns = all_columns + g->offset;
            for (std::uint32_t e = 0; e < g->n_entries; ++e) {
                double* __restrict target = out + rows[e] * width;
                for (std::uint32_t j = 0; j < g->length; ++j) {
                    target[columns[j]] += HasValues ? values[e] * weights[j] : weights[j];
                }
            }
            rows += g->n_entries;
            if (HasValues) values += g->n_entries;
        }
    }

    template <class F>
    void dispatch(F&& f) const {
        with_width(layout_->width(),
                   [&](auto width) { values_.empty() ? f(width, std::false_type{}) : f(width, std::true_type{}); });
    }

    // Passes v = A_i' slots to a sink, by weight row or by single weight.
    template <int W, bool HasValues, class Sink>
    void visit(Index i, const double* __restrict slots, Sink& sink) const {
        const Index width = W > 0 ? W : layout_->width();
        const std::int32_t* all_columns = layout_->all_columns();
        auto [full, masked, sparse, end, rows, values] = groups_of(i);
        std::vector<double> long_row(W > 0 ? 0 : width);
        for (const Group* g = full; g < sparse; ++g) {
            if (g + kAhead < sparse) sink.prefetch(g[kAhead].offset);
            double short_row[W > 0 ? W : 1];
            double* __restrict v = W > 0 ? short_row : long_row.data();
            for (Index b = 0; b < width; ++b) v[b] = 0.0;
            for (std::uint32_t e = 0; e < g->n_entries; ++e) {
                const double* __restrict source = slots + rows[e] * width;
                const double x = HasValues ? values[e] : 1.0;
                for (Index b = 0; b < width; ++b) v[b] += x * source[b];
            }
            if (g >= masked) {
                const std::uint8_t* __restrict present = layout_->all_present() + g->offset;
                for (Index b = 0; b < width; ++b) v[b] *= static_cast<double>(present[b]);
            }
            sink.row(Index{g->offset}, v, width);
            rows += g->n_entries;
            if (HasValues) values += g->n_entries;
        }
        for (const Group* g = sparse; g < end; ++g) {
            if (g + kAhead < end) {
                sink.prefetch(g[kAhead].offset);
                __builtin_prefetch(all_columns + g[kAhead].offset);
            }
            const std::int32_t* __restrict columns = all_columns + g->offset;
            if (g->n_entries == 1) {  // always true if an example is one row
                const double* __restrict source = slots + rows[0] * width;
                const double x = HasValues ? values[0] : 1.0;
                for (std::uint32_t j = 0; j < g->length; ++j) {
                    one_by_one(j);
                    sink.one(Index{g->offset} + j, x * source[columns[j]]);
                }
                rows += 1;
                if (HasValues) values += 1;
                continue;
            }
            for (std::uint32_t j = 0; j < g->length; ++j) {
                double v = 0;
                for (std::uint32_t e = 0; e < g->n_entries; ++e) {
                    const double x = HasValues ? values[e] : 1.0;
                    v += x * slots[rows[e] * width + columns[j]];
                }
                sink.one(Index{g->offset} + j, v);
            }
            rows += g->n_entries;
            if (HasValues) values += g->n_entries;
        }
    }

    std::vector<Index> n_rows_;     // number of rows of each example
    std::vector<Index> group_ptr_;  // the ends of each example's three runs of groups, after a 0
    std::vector<Index> entry_ptr_;  // first entry of each example
    std::vector<Group> groups_;
    std::vector<std::int32_t> rows_;  // for each entry, its row within the example
    std::vector<double> values_;      // for each entry; empty if all are 1
};

}  // namespace

std::unique_ptr<AttributeSegment> make_attribute_rows(std::shared_ptr<const RowLayout> layout,
                                                      const AttributeTable& table, RowUse use) {
    return std::make_unique<AttributeRows>(std::move(layout), table, std::move(use));
}

}  // namespace partwise
