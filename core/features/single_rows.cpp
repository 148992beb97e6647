#include <algorithm>

#include "features/segments.h"
#include "structures/width_dispatch.h"

namespace partwise {

namespace {
// How many entries ahead rows of weights are asked for.
constexpr Index kAhead = 12;
}  // namespace

SingleRows::SingleRows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table)
    : layout_(std::move(layout)) {
    const Index n = len(table.example_ptr.size()) - 1;
    entry_ptr_.assign(1, 0);
    offsets_.reserve(table.attributes.size());
    values_.reserve(table.attributes.size());
    std::vector<std::pair<Index, double>> entries;
    for (Index i = 0; i < n; ++i) {
        entries.clear();
        for (Index k = table.row_ptr[idx(i)]; k < table.row_ptr[idx(i) + 1]; ++k) {
            if (table.attributes[idx(k)] < 0) continue;
            entries.emplace_back(table.attributes[idx(k)], table.values.empty() ? 1.0 : table.values[idx(k)]);
        }
        const auto before = [](const auto& p, const auto& q) { return p.first < q.first; };
        if (!std::is_sorted(entries.begin(), entries.end(), before)) {
            std::stable_sort(entries.begin(), entries.end(), before);
        }
        double sum = 0;
        for (std::size_t k = 0; k < entries.size();) {
            const Index attribute = entries[k].first;
            double x = 0;
            for (; k < entries.size() && entries[k].first == attribute; ++k) x += entries[k].second;
            offsets_.push_back(static_cast<std::uint32_t>(layout_->row(attribute).offset));
            values_.push_back(x);
            sum += x * x;
        }
        entry_ptr_.push_back(len(offsets_.size()));
        norm2_.push_back(sum);
    }
}

// Four partial sums, so that additions do not wait for each other.
void SingleRows::scores(Index i, const double* __restrict w, double* __restrict out) const {
    const Index n = entry_ptr_[idx(i) + 1] - entry_ptr_[idx(i)];
    const std::uint32_t* __restrict offsets = offsets_.data() + entry_ptr_[idx(i)];
    const double* __restrict x = values_.data() + entry_ptr_[idx(i)];
    with_width(layout_->width(), [&](auto constant) {
        constexpr int W = constant();
        if constexpr (W > 0) {
            double acc[4][W] = {};
            Index e = 0;
            for (; e + 4 <= n; e += 4) {
                for (int k = 0; k < 4; ++k) {
                    if (e + k + kAhead < n) __builtin_prefetch(w + offsets[e + k + kAhead]);
                    const double* __restrict row = w + offsets[e + k];
                    for (int b = 0; b < W; ++b) acc[k][b] += x[e + k] * row[b];
                }
            }
            for (; e < n; ++e) {
                const double* __restrict row = w + offsets[e];
                for (int b = 0; b < W; ++b) acc[0][b] += x[e] * row[b];
            }
            for (int b = 0; b < W; ++b) out[b] = (acc[0][b] + acc[1][b]) + (acc[2][b] + acc[3][b]);
        } else {
            fill(out, layout_->width(), 0.0);
            for (Index e = 0; e < n; ++e) axpy(x[e], w + offsets[e], out, layout_->width());
        }
    });
}

// <w, x (x) d> = <sum_j x_j w_j, d>: the rows are added up on the way.
Added SingleRows::add_transpose(Index i, const double* __restrict slots, double scale, double* __restrict w) const {
    const Index n = entry_ptr_[idx(i) + 1] - entry_ptr_[idx(i)];
    const std::uint32_t* __restrict offsets = offsets_.data() + entry_ptr_[idx(i)];
    const double* __restrict x = values_.data() + entry_ptr_[idx(i)];
    Added added{transpose_norm2(i, slots), 0.0};
    with_width(layout_->width(), [&](auto constant) {
        constexpr int W = constant();
        if constexpr (W > 0) {
            double sums[W] = {};
            double d[W];
            for (int b = 0; b < W; ++b) d[b] = scale * slots[b];
            for (Index e = 0; e < n; ++e) {
                if (e + kAhead < n) __builtin_prefetch(w + offsets[e + kAhead], 1);
                double* __restrict row = w + offsets[e];
                for (int b = 0; b < W; ++b) {
                    sums[b] += x[e] * row[b];
                    row[b] += x[e] * d[b];
                }
            }
            for (int b = 0; b < W; ++b) added.dot += sums[b] * slots[b];
        } else {
            const Index width = layout_->width();
            for (Index e = 0; e < n; ++e) {
                added.dot += x[e] * dot(w + offsets[e], slots, width);
                axpy(scale * x[e], slots, w + offsets[e], width);
            }
        }
    });
    return added;
}

void SingleRows::project(Index i, const double* slots, Index first, SparseVector& out) const {
    const Index width = layout_->width();
    std::vector<double> row(idx(width));
    for (Index e = entry_ptr_[idx(i)]; e < entry_ptr_[idx(i) + 1]; ++e) {
        for (Index b = 0; b < width; ++b) row[idx(b)] = values_[idx(e)] * slots[b];
        out.append(first + offsets_[idx(e)], row.data(), width);
    }
}

double SingleRows::transpose_norm2(Index i, const double* slots) const {
    return norm2_[idx(i)] * norm2(slots, layout_->width());
}

}  // namespace partwise
