#include <algorithm>
#include <cmath>

#include "features/segments.h"
#include "structures/width_dispatch.h"

namespace partwise {

AttributeSegment::AttributeSegment(std::shared_ptr<const RowLayout> layout, std::span<const Index> example_ptr,
                                   std::span<const Index> row_ptr, std::span<const Index> attributes,
                                   std::span<const double> values)
    : layout_(std::move(layout)) {
    check_pointers(row_ptr, len(attributes.size()), "row_ptr");
    check_pointers(example_ptr, len(row_ptr.size()) - 1, "example_ptr");
    if (!values.empty() && values.size() != attributes.size()) throw InputError("values must have one value an attribute");
    if (!all_finite(values.data(), len(values.size()))) throw InputError("a feature value is NaN or infinite");
    for (const Index attribute : attributes) {
        if (attribute < -1 || attribute >= layout_->num_attributes()) {
            throw InputError("attribute " + std::to_string(attribute) + " is out of range");
        }
    }
    const Index n = len(example_ptr.size()) - 1;
    n_rows_.reserve(idx(n));
    group_ptr_.assign(1, 0);
    entry_ptr_.assign(1, 0);
    rows_.reserve(attributes.size());
    if (!values.empty()) values_.reserve(attributes.size());

    struct Entry {
        std::int32_t kind;
        std::int32_t attribute;
        std::int32_t row;
        double value;
    };
    std::vector<Entry> entries;
    for (Index i = 0; i < n; ++i) {
        const Index first = example_ptr[idx(i)];
        const Index last = example_ptr[idx(i) + 1];
        entries.clear();
        for (Index p = first; p < last; ++p) {
            for (Index k = row_ptr[idx(p)]; k < row_ptr[idx(p) + 1]; ++k) {
                if (attributes[idx(k)] < 0) continue;
                const auto attribute = static_cast<std::int32_t>(attributes[idx(k)]);
                entries.push_back({layout_->row(attribute).kind, attribute, static_cast<std::int32_t>(p - first),
                                   values.empty() ? 1.0 : values[idx(k)]});
            }
        }
        // By kind (so that the kernels' branch is predictable), then by attribute, then by row.
        std::sort(entries.begin(), entries.end(), [](const Entry& p, const Entry& q) {
            return std::tie(p.kind, p.attribute, p.row) < std::tie(q.kind, q.attribute, q.row);
        });
        for (std::size_t k = 0; k < entries.size(); ++k) {
            if (k == 0 || entries[k].attribute != entries[k - 1].attribute) groups_.push_back({entries[k].attribute, 0});
            ++groups_.back().n_entries;
            rows_.push_back(entries[k].row);
            if (!values.empty()) values_.push_back(entries[k].value);
        }
        n_rows_.push_back(last - first);
        group_ptr_.push_back(len(groups_.size()));
        entry_ptr_.push_back(len(rows_.size()));
    }
    const bool single = std::all_of(n_rows_.begin(), n_rows_.end(), [](Index t) { return t == 1; });
    if (single && layout_->all_full()) {
        for (Index i = 0; i < n; ++i) row_norm2_.push_back(psi2_bound(i) / 2.0);
    }
}

template <int W>
void AttributeSegment::scores_of_width(Index i, const double* w, double* __restrict out) const {
    const Index width = W > 0 ? W : layout_->width();
    fill(out, num_slots(i), 0.0);
    const std::int32_t* __restrict rows = rows_.data() + entry_ptr_[idx(i)];
    const double* __restrict values = values_.empty() ? nullptr : values_.data() + entry_ptr_[idx(i)];
    for (Index g = group_ptr_[idx(i)]; g < group_ptr_[idx(i) + 1]; ++g) {
        const Index n = groups_[idx(g)].n_entries;
        const RowLayout::Row& row = layout_->row(groups_[idx(g)].attribute);
        const double* __restrict weights = w + row.offset;
        if (row.kind != RowLayout::kSparse) {
            for (Index e = 0; e < n; ++e) {
                double* __restrict target = out + rows[e] * width;
                const double x = values ? values[e] : 1.0;
                for (Index b = 0; b < width; ++b) target[b] += x * weights[b];
            }
        } else {
            const std::int32_t* __restrict columns = layout_->columns(row);
            for (Index e = 0; e < n; ++e) {
                double* __restrict target = out + rows[e] * width;
                const double x = values ? values[e] : 1.0;
                for (Index j = 0; j < row.length; ++j) target[columns[j]] += x * weights[j];
            }
        }
        rows += n;
        if (values) values += n;
    }
}

void AttributeSegment::scores(Index i, const double* w, double* out) const {
    with_width(layout_->width(), [&](auto width) { scores_of_width<width()>(i, w, out); });
}

template <int W, class Sink>
void AttributeSegment::visit(Index i, const double* __restrict slots, Sink&& sink) const {
    const Index width = W > 0 ? W : layout_->width();
    std::vector<double> long_row;
    double short_row[W > 0 ? W : 1];
    double* __restrict acc = short_row;
    if constexpr (W == 0) {
        long_row.resize(idx(width));
        acc = long_row.data();
    }
    const std::int32_t* __restrict rows = rows_.data() + entry_ptr_[idx(i)];
    const double* __restrict values = values_.empty() ? nullptr : values_.data() + entry_ptr_[idx(i)];
    for (Index g = group_ptr_[idx(i)]; g < group_ptr_[idx(i) + 1]; ++g) {
        const Index n = groups_[idx(g)].n_entries;
        const RowLayout::Row& row = layout_->row(groups_[idx(g)].attribute);
        if (row.kind != RowLayout::kSparse) {
            for (Index b = 0; b < width; ++b) acc[b] = 0.0;
            for (Index e = 0; e < n; ++e) {
                const double* __restrict source = slots + rows[e] * width;
                const double x = values ? values[e] : 1.0;
                for (Index b = 0; b < width; ++b) acc[b] += x * source[b];
            }
            if (row.kind == RowLayout::kMasked) {
                const std::uint8_t* __restrict present = layout_->present(row);
                for (Index b = 0; b < width; ++b) acc[b] *= static_cast<double>(present[b]);
            }
            sink(row.offset, acc, width);
        } else {
            const std::int32_t* __restrict columns = layout_->columns(row);
            for (Index j = 0; j < row.length; ++j) acc[j] = 0.0;
            for (Index e = 0; e < n; ++e) {
                const double* __restrict source = slots + rows[e] * width;
                const double x = values ? values[e] : 1.0;
                for (Index j = 0; j < row.length; ++j) acc[j] += x * source[columns[j]];
            }
            sink(row.offset, acc, Index{row.length});
        }
        rows += n;
        if (values) values += n;
    }
}

void AttributeSegment::add_transpose(Index i, const double* slots, double scale, double* w) const {
    with_width(layout_->width(), [&](auto width) {
        visit<width()>(i, slots, [&](Index at, const double* __restrict x, Index n) {
            double* __restrict target = w + at;
            for (Index k = 0; k < n; ++k) target[k] += scale * x[k];
        });
    });
}

void AttributeSegment::project(Index i, const double* slots, Index first, SparseVector& out) const {
    with_width(layout_->width(), [&](auto width) {
        visit<width()>(i, slots, [&](Index at, const double* x, Index n) { out.append(first + at, x, n); });
    });
}

double AttributeSegment::transpose_norm2(Index i, const double* slots) const {
    if (!row_norm2_.empty()) return row_norm2_[idx(i)] * norm2(slots, layout_->width());
    double sum = 0;
    with_width(layout_->width(), [&](auto width) {
        visit<width()>(i, slots, [&](Index, const double* x, Index n) { sum += norm2(x, n); });
    });
    return sum;
}

// |sum_t x_t (x) d_t|^2 <= 2 sum over attributes of (sum_t |x_t|)^2, because rows of a difference of labellings have
// entries +1 and -1 at most once each: <d_t, d_s> <= 2.
double AttributeSegment::psi2_bound(Index i) const {
    double sum = 0;
    Index e = entry_ptr_[idx(i)];
    for (Index g = group_ptr_[idx(i)]; g < group_ptr_[idx(i) + 1]; ++g) {
        double total = 0;
        for (Index k = 0; k < groups_[idx(g)].n_entries; ++k, ++e) total += values_.empty() ? 1.0 : std::abs(values_[idx(e)]);
        sum += total * total;
    }
    return 2.0 * sum;
}

}  // namespace partwise
