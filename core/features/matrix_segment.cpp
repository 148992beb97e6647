#include <algorithm>
#include <cmath>
#include <tuple>

#include "features/segments.h"
#include "support/sizes.h"

namespace partwise {

MatrixSegment::MatrixSegment(Index n_examples, Index n_columns, Index width, Index num_weights,
                             std::span<const Index> cell_ptr, std::span<const Index> features,
                             std::span<const double> values)
    : width_(width), num_weights_(num_weights) {
    if (n_examples < 0 || n_columns < 1 || width < n_columns)
        throw InputError("a matrix of features needs examples and rows of at least one slot");
    if (width > std::numeric_limits<std::int32_t>::max()) too_large("the width of a row");
    if (num_weights < 0 || num_weights > Index{0x7FFFFFFF}) throw InputError("too many features, or fewer than none");
    if (len(cell_ptr.size()) != checked_product(n_examples, n_columns, "the number of slots") + 1)
        throw InputError("a matrix of features needs a row for every slot of every example");
    check_pointers(cell_ptr, len(features.size()), "cell_ptr");
    row_length_ = longest_row(cell_ptr);
    if (!values.empty() && values.size() != features.size()) throw InputError("values must have one value a feature");
    check_values(values, [&](Index k) { return "feature " + std::to_string(features[idx(k)]); });
    for (const Index t : features) {
        if (t < 0 || t >= num_weights) throw InputError("feature " + std::to_string(t) + " is out of range");
    }

    struct Cell {
        Entry entry;
        double value;
    };
    std::vector<Cell> cells;
    bool binary = true;
    ptr_.assign(1, 0);
    for (Index i = 0; i < n_examples; ++i) {
        cells.clear();
        for (Index r = 0; r < n_columns; ++r) {
            const Index c = i * n_columns + r;
            for (Index k = cell_ptr[idx(c)]; k < cell_ptr[idx(c) + 1]; ++k) {
                cells.push_back({{static_cast<std::int32_t>(features[idx(k)]), static_cast<std::int32_t>(r)},
                                 values.empty() ? 1.0 : values[idx(k)]});
            }
        }
        std::sort(cells.begin(), cells.end(), [](const Cell& p, const Cell& q) {
            return std::tie(p.entry.feature, p.entry.slot) < std::tie(q.entry.feature, q.entry.slot);
        });
        for (std::size_t k = 0; k < cells.size();) {
            const Entry entry = cells[k].entry;
            double sum = 0;
            for (; k < cells.size() && cells[k].entry.feature == entry.feature && cells[k].entry.slot == entry.slot;
                 ++k) {
                sum += cells[k].value;
            }
            if (sum == 0.0) continue;
            entries_.push_back(entry);
            values_.push_back(sum);
            binary = binary && sum == 1.0;
        }
        ptr_.push_back(len(entries_.size()));
    }
    if (binary) std::vector<double>().swap(values_);
}

std::span<const MatrixSegment::Entry> MatrixSegment::entries(Index i) const {
    return std::span(entries_).subspan(idx(ptr_[idx(i)]), idx(ptr_[idx(i) + 1] - ptr_[idx(i)]));
}

void MatrixSegment::scores(Index i, const double* w, double* out) const {
    fill(out, width_, 0.0);
    const double* value = values(i);
    std::size_t k = 0;
    for (const Entry& entry : entries(i)) out[entry.slot] += (value ? value[k++] : 1.0) * w[entry.feature];
}

template <class F>
void MatrixSegment::visit(Index i, const double* slots, F&& f) const {
    const std::span<const Entry> all = entries(i);
    const double* value = values(i);
    for (std::size_t k = 0; k < all.size();) {
        const std::int32_t feature = all[k].feature;
        double sum = 0;
        for (; k < all.size() && all[k].feature == feature; ++k) sum += (value ? value[k] : 1.0) * slots[all[k].slot];
        f(Index{feature}, sum);
    }
}

Added MatrixSegment::add_transpose(Index i, const double* slots, double scale, double* w) const {
    Added added;
    visit(i, slots, [&](Index feature, double v) {
        added += {v * v, v * w[feature]};
        w[feature] += scale * v;
    });
    return added;
}

void MatrixSegment::project(Index i, const double* slots, Index first, SparseVector& out) const {
    visit(i, slots, [&](Index feature, double v) { out.append(first + feature, &v, 1); });
}

double MatrixSegment::transpose_norm2(Index i, const double* slots) const {
    double sum = 0;
    visit(i, slots, [&](Index, double v) { sum += v * v; });
    return sum;
}

// Of two bounds the smaller: each coordinate of a difference is at most that feature's range over slots (0 counts where
// a slot is without it, which is always so for padding), and |x - y| <= |x| + |y|.
double MatrixSegment::psi2_bound(Index i) const {
    const std::span<const Entry> all = entries(i);
    const double* value = values(i);
    std::vector<double> norms(idx(width_), 0.0);
    double ranges = 0;
    for (std::size_t k = 0; k < all.size();) {
        const std::int32_t feature = all[k].feature;
        double low = 0;
        double high = 0;
        for (; k < all.size() && all[k].feature == feature; ++k) {
            const double v = value ? value[k] : 1.0;
            low = std::min(low, v);
            high = std::max(high, v);
            norms[idx(all[k].slot)] += v * v;
        }
        ranges += (high - low) * (high - low);
    }
    std::partial_sort(norms.begin(), norms.begin() + std::min<std::ptrdiff_t>(2, std::ssize(norms)), norms.end(),
                      std::greater<>());
    const double both = std::sqrt(norms[0]) + (norms.size() > 1 ? std::sqrt(norms[1]) : 0.0);
    return std::min(ranges, both * both);
}

}  // namespace partwise
