#include <cstring>
#include <numeric>

#include "features/segments.h"
#include "structures/width_dispatch.h"

namespace partwise {

namespace {

// How many entries ahead weight rows are prefetched, if the weights do not fit into the L1 and L2 caches.
constexpr Index kAhead = 12;
constexpr Index kNear = Index{1} << 15;

// Examples of a block are visited in the order of their rows' lengths: the branch at a row's end is then predictable.
constexpr Index kBlock = 64;

// An example's entries; x is null if all values are 1.
struct Entries {
    const std::uint32_t* offsets;
    const double* x;
    Index n;
};

template <bool HasValues>
double value(const double* x, Index e) {
    if constexpr (HasValues) {
        return x[e];
    } else {
        return 1.0;
    }
}

// out = sum_j x_j w_j: four partial sums, so that additions do not wait for each other.
template <int W, bool HasValues, bool Far>
[[gnu::always_inline]] inline void add_rows(const Entries& entries, const double* __restrict w, double* __restrict out,
                                            Index width) {
    const Index n = entries.n;
    const std::uint32_t* __restrict offsets = entries.offsets;
    const double* __restrict x = entries.x;
    if constexpr (W == 4 || W == 8) {
        // Few labels: a second loop for the rest would cost as much, in mispredicted branches, as a short row.
        typedef double Row __attribute__((vector_size(W * sizeof(double))));
        Row acc[4] = {};
        for (Index e = 0; e < n; ++e) {
            if (Far && e + kAhead < n) __builtin_prefetch(w + offsets[e + kAhead]);
            Row row;
            std::memcpy(&row, w + offsets[e], sizeof row);
            const Row next = acc[0] + value<HasValues>(x, e) * row;
            acc[0] = acc[1];
            acc[1] = acc[2];
            acc[2] = acc[3];
            acc[3] = next;
        }
        const Row sum = (acc[0] + acc[1]) + (acc[2] + acc[3]);
        std::memcpy(out, &sum, sizeof sum);
    } else if constexpr (W > 0) {
        double acc[4][W] = {};
        Index e = 0;
        for (; e + 4 <= n; e += 4) {
            for (int k = 0; k < 4; ++k) {
                if (Far && e + k + kAhead < n) __builtin_prefetch(w + offsets[e + k + kAhead]);
                const double* __restrict row = w + offsets[e + k];
                for (int b = 0; b < W; ++b) acc[k][b] += value<HasValues>(x, e + k) * row[b];
            }
        }
        for (; e < n; ++e) {
            const double* __restrict row = w + offsets[e];
            for (int b = 0; b < W; ++b) acc[0][b] += value<HasValues>(x, e) * row[b];
        }
        for (int b = 0; b < W; ++b) out[b] = (acc[0][b] + acc[1][b]) + (acc[2][b] + acc[3][b]);
    } else {
        fill(out, width, 0.0);
        for (Index e = 0; e < n; ++e) axpy(value<HasValues>(x, e), w + offsets[e], out, width);
    }
}

// One row per example, and every attribute has every column (multiclass): A'd = x (x) d, |A'd|^2 = |x|^2 |d|^2.
class SingleRows final : public AttributeSegment {
   public:
    SingleRows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table, RowUse use)
        : AttributeSegment(std::move(layout), table, std::move(use)) {
        const Index n = len(table.example_ptr.size()) - 1;
        entry_ptr_.assign(1, 0);
        entry_ptr_.reserve(n + 1);
        norm2_.reserve(n);
        offsets_.reserve(table.attributes.size());
        values_.reserve(table.attributes.size());
        std::vector<std::pair<Index, double>> entries;
        for (Index i = 0; i < n; ++i) {
            table.read_row(i, entries);
            double sum = 0;
            for_each_merged(entries, [&](Index attribute, double x) {
                offsets_.push_back(static_cast<std::uint32_t>(layout_->row(attribute).offset));
                values_.push_back(x);
                sum += x * x;
            });
            entry_ptr_.push_back(len(offsets_.size()));
            norm2_.push_back(sum);
        }
        order_.resize(n);
        for (Index block = 0; block < n; block += kBlock) {
            const auto first = order_.begin() + block;
            const auto last = order_.begin() + std::min(block + kBlock, n);
            std::iota(first, last, std::uint8_t{0});
            std::stable_sort(first, last, [&](std::uint8_t p, std::uint8_t q) {
                const auto length = [&](std::uint8_t k) { return entry_ptr_[block + k + 1] - entry_ptr_[block + k]; };
                return length(p) < length(q);
            });
        }
        if (std::all_of(values_.begin(), values_.end(), [](double x) { return x == 1.0; }))
            values_ = std::vector<double>();
    }

    Index num_examples() const override { return len(entry_ptr_.size()) - 1; }
    Index num_slots(Index) const override { return layout_->width(); }
    void add_transpose_of(Index begin, Index end, const double* slots, double* w) const override {
        add_powers<1>(begin, end, slots, w);
    }
    void add_squares_of(Index begin, Index end, const double* slots, double* w) const override {
        add_powers<2>(begin, end, slots, w);
    }
    double psi2_bound(Index i) const override {
        const double most = use_.most(i, 1.0, 1.0);
        return 2.0 * most * most * norm2_[i];
    }

    void scores(Index i, const double* w, double* out) const override { scores_of(i, i + 1, w, out); }

    void scores_of(Index begin, Index end, const double* w, double* out) const override {
        dispatch([&](auto constant, auto has_values, auto far) {
            constexpr bool kValues = has_values();
            const Index width = layout_->width();
            for_each_by_length(begin, end, [&](Index i) {
                const Index first = entry_ptr_[i];
                const Entries entries{offsets_.data() + first, kValues ? values_.data() + first : nullptr,
                                      entry_ptr_[i + 1] - first};
                add_rows<constant(), kValues, far()>(entries, w, out + (i - begin) * width, width);
            });
        });
    }

    // <w, x (x) d> = <sum_j x_j w_j, d>: the weight rows are summed while they are updated.
    Added add_transpose(Index i, const double* __restrict slots, double scale, double* __restrict w) const override {
        const Index n = entry_ptr_[i + 1] - entry_ptr_[i];
        const std::uint32_t* __restrict offsets = offsets_.data() + entry_ptr_[i];
        Added added{transpose_norm2(i, slots), 0.0};
        dispatch([&](auto constant, auto has_values, auto far) {
            constexpr int W = constant();
            constexpr bool kValues = has_values();
            const double* __restrict x = kValues ? values_.data() + entry_ptr_[i] : nullptr;
            if constexpr (W > 0) {
                double sums[W] = {};
                double d[W];
                for (int b = 0; b < W; ++b) d[b] = scale * slots[b];
                for (Index e = 0; e < n; ++e) {
                    if (far() && e + kAhead < n) __builtin_prefetch(w + offsets[e + kAhead], 1);
                    double* __restrict row = w + offsets[e];
                    for (int b = 0; b < W; ++b) {
                        sums[b] += value<kValues>(x, e) * row[b];
                        row[b] += value<kValues>(x, e) * d[b];
                    }
                }
                for (int b = 0; b < W; ++b) added.dot += sums[b] * slots[b];
            } else {
                const Index width = layout_->width();
                for (Index e = 0; e < n; ++e) {
                    added.dot += value<kValues>(x, e) * dot(w + offsets[e], slots, width);
                    axpy(scale * value<kValues>(x, e), slots, w + offsets[e], width);
                }
            }
        });
        return added;
    }

    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override {
        const Index n = entry_ptr_[i + 1] - entry_ptr_[i];
        const std::uint32_t* __restrict offsets = offsets_.data() + entry_ptr_[i];
        Added added;
        dispatch([&](auto constant, auto has_values, auto far) {
            constexpr int W = constant();
            constexpr bool kValues = has_values();
            const double* __restrict x = kValues ? values_.data() + entry_ptr_[i] : nullptr;
            const Index width = layout_->width();
            Shrinking<W == 0 ? 1 : W> sums(to);
            double d[W > 0 ? W : 1];
            for (int b = 0; b < W; ++b) d[b] = scale * slots[b];
            for (Index e = 0; e < n; ++e) {
                if (far() && e + kAhead < n) {
                    __builtin_prefetch(to.u + offsets[e + kAhead], 1);
                    __builtin_prefetch(to.w + offsets[e + kAhead], 1);
                }
                double* __restrict u = to.u + offsets[e];
                double* __restrict w = to.w + offsets[e];
                const double factor = value<kValues>(x, e);
                if constexpr (W > 0) {
                    for (int b = 0; b < W; ++b) sums.move(b, factor * d[b], u[b], w[b]);
                } else {
                    for (Index b = 0; b < width; ++b) sums.move(0, factor * scale * slots[b], u[b], w[b]);
                }
            }
            added = Added::of(sums, scale);
        });
        return added;
    }

    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override {
        const Index width = layout_->width();
        std::vector<double> row(width);
        for (Index e = entry_ptr_[i]; e < entry_ptr_[i + 1]; ++e) {
            const double x = values_.empty() ? 1.0 : values_[e];
            for (Index b = 0; b < width; ++b) row[b] = x * slots[b];
            out.append(first + offsets_[e], row.data(), width);
        }
    }

    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override {
        for (const Index r : slots) {
            for (Index e = entry_ptr_[i]; e < entry_ptr_[i + 1]; ++e) {
                out.append(first + Index{offsets_[e]} + r, values_.empty() ? 1.0 : values_[e]);
            }
            out.finish_row();
        }
    }

    double transpose_norm2(Index i, const double* slots) const override {
        return norm2_[i] * norm2(slots, layout_->width());
    }

   private:
    // Calls f(row width, whether there are values, whether weights are many), all as compile-time constants.
    template <class F>
    void dispatch(F&& f) const {
        with_width(layout_->width(), [&](auto width) {
            const auto with_values = [&](auto has_values) {
                num_weights() > kNear ? f(width, has_values, std::true_type{})
                                      : f(width, has_values, std::false_type{});
            };
            values_.empty() ? with_values(std::false_type{}) : with_values(std::true_type{});
        });
    }

    template <class F>
    void for_each_by_length(Index begin, Index end, F&& f) const {
        for (Index i = begin; i < end;) {
            if (i % kBlock == 0 && i + kBlock <= end) {
                for (Index k = 0; k < kBlock; ++k) f(i + order_[i + k]);
                i += kBlock;
            } else {
                f(i++);
            }
        }
    }

    // w += A' slots with the entries of A raised to this power (1 or 2).
    template <int Power>
    void add_powers(Index begin, Index end, const double* slots, double* w) const {
        dispatch([&](auto constant, auto has_values, auto far) {
            constexpr int W = constant();
            constexpr bool kValues = has_values();
            const Index width = layout_->width();
            const std::uint32_t* __restrict offsets = offsets_.data();
            const double* __restrict x = values_.data();
            for_each_by_length(begin, end, [&](Index i) {
                const double* from = slots + (i - begin) * width;
                const Index last = entry_ptr_[i + 1];
                // A local copy cannot alias the weights, so the compiler keeps it in registers.
                double d[W > 0 ? W : 1];
                for (int b = 0; b < W; ++b) d[b] = from[b];
                for (Index e = entry_ptr_[i]; e < last; ++e) {
                    if (far() && e + kAhead < last) __builtin_prefetch(w + offsets[e + kAhead], 1);
                    double* __restrict row = w + offsets[e];
                    const double once = value<kValues>(x, e);
                    const double factor = Power == 2 ? once * once : once;
                    if constexpr (W > 0) {
#pragma omp simd
                        for (int b = 0; b < W; ++b) row[b] += factor * d[b];
                    } else {
                        axpy(factor, from, row, width);
                    }
                }
            });
        });
    }

    std::vector<Index> entry_ptr_;
    std::vector<std::uint32_t> offsets_;  // for each entry, the first weight of its row
    std::vector<double> values_;          // for each entry, repeated ones merged; empty if all are 1
    std::vector<double> norm2_;           // |x|^2 of each example
    std::vector<std::uint8_t> order_;     // order of visits in each block of examples
};

}  // namespace

std::unique_ptr<AttributeSegment> make_single_rows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table,
                                                   RowUse use) {
    return std::make_unique<SingleRows>(std::move(layout), table, std::move(use));
}

}  // namespace partwise
