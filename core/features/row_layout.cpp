#include "features/row_layout.h"

#include <numeric>
#include <sstream>

#include "support/sizes.h"

namespace partwise {

void check_values(std::span<const double> values, const std::function<std::string(Index)>& owner) {
    constexpr double kMost = 1e150;
    const double* x = values.data();
    double nothing = 0;  // stays 0 if all values are finite: x * 0 is 0 for finite x and NaN otherwise
    double most = 0;
#pragma omp simd reduction(+ : nothing) reduction(max : most)
    for (Index k = 0; k < len(values.size()); ++k) {
        const double size = std::abs(x[k]);
        nothing += size * 0.0;
        most = size > most ? size : most;
    }
    if (nothing != 0.0) throw InputError("a feature value is NaN or infinite");
    if (most <= kMost) return;
    const auto at = std::find_if(values.begin(), values.end(), [](double v) { return std::abs(v) > kMost; });
    std::ostringstream message;
    message << owner(at - values.begin()) << " has a value of " << *at << ": values must lie between " << -kMost
            << " and " << kMost << ", as sums of their squares have no double precision number beyond";
    throw InputError(message.str());
}

RowLayout::RowLayout(Index num_attributes, Index n_columns, Index width) : n_columns_(n_columns), width_(width) {
    if (num_attributes < 0) throw InputError("the number of attributes is negative");
    if (n_columns < 1 || width < n_columns || width % 4 != 0) {
        throw InputError("a row needs at least one column and a width that is a multiple of 4 and not below it");
    }
    if (width > std::numeric_limits<std::int32_t>::max()) too_large("the width of a row");
    checked_product(num_attributes, width, "the number of weights");
    rows_.resize(num_attributes);
}

RowLayout RowLayout::dense(Index num_attributes, Index n_columns, Index width) {
    RowLayout layout(num_attributes, n_columns, width);
    layout.all_full_ = true;
    for (Row& row : layout.rows_) {
        row = {layout.num_weights_, static_cast<std::int32_t>(width), kFull};
        layout.num_weights_ += width;
    }
    layout.num_pairs_ = num_attributes * n_columns;
    return layout;
}

template <class Column>
RowLayout RowLayout::from_pairs(Index num_attributes, Index n_columns, Index width, std::span<const Index> pointers,
                                std::span<const Column> columns) {
    RowLayout layout(num_attributes, n_columns, width);
    // Copied before the checks: the values may lie in a mapped file, which another process can change at any time.
    const std::vector<Index> indptr(pointers.begin(), pointers.end());
    if (len(indptr.size()) != num_attributes + 1)
        throw InputError("indptr must have one entry more than there are attributes");
    check_pointers(indptr, len(columns.size()), "indptr");
    layout.num_pairs_ = len(columns.size());
    for (Index a = 0; a < num_attributes; ++a) {
        for (Index k = indptr[a]; k < indptr[a + 1]; ++k) {
            const Index column = Index{columns[k]};
            if (column < 0 || column >= n_columns || (k > indptr[a] && column <= Index{columns[k - 1]})) {
                throw InputError("attribute ", a, ": columns must increase within [0, ", n_columns, ")");
            }
        }
    }
    // Attributes with whole rows come first, so that all whole rows have the same alignment. A whole row costs width /
    // 8 vector instructions, a sparse one about as many scalar instructions as it has pairs.
    const auto whole = [&](Index n) { return n > 4 && 3 * n > width; };
    for (const bool turn : {true, false}) {
        for (Index a = 0; a < num_attributes; ++a) {
            const Index n = indptr[a + 1] - indptr[a];
            if (whole(n) != turn) continue;
            const Index length = turn ? width : n;
            const Kind kind = turn ? (n == n_columns ? kFull : kMasked) : kSparse;
            layout.rows_[a] = {layout.num_weights_, static_cast<std::int32_t>(length), kind};
            layout.num_weights_ += length;
        }
    }
    layout.columns_.assign(layout.num_weights_, 0);
    layout.present_.assign(layout.num_weights_, 0);
    for (Index a = 0; a < num_attributes; ++a) {
        const Row& row = layout.rows_[a];
        for (Index k = indptr[a]; k < indptr[a + 1]; ++k) {
            const Index column = Index{columns[k]};
            if (column < 0 || column >= n_columns) throw InputError("columns changed while they were read");
            const Index at = row.offset + (row.kind == kSparse ? k - indptr[a] : column);
            layout.columns_[at] = static_cast<std::int32_t>(column);
            layout.present_[at] = 1;
        }
    }
    return layout;
}

template RowLayout RowLayout::from_pairs(Index, Index, Index, std::span<const Index>, std::span<const Index>);
template RowLayout RowLayout::from_pairs(Index, Index, Index, std::span<const Index>, std::span<const std::uint16_t>);

RowLayout RowLayout::observed(Index num_attributes, Index n_columns, Index width, std::span<const Index> row_ptr,
                              std::span<const Index> attributes, std::span<const Index> labels, Index min_count) {
    const RowLayout checked(num_attributes, n_columns, width);
    check_pointers(row_ptr, len(attributes.size()), "row_ptr");
    if (labels.size() + 1 != row_ptr.size()) throw InputError("labels must have one value per row");
    // Bucket the labels by attribute (counting sort), then count equal labels in each bucket.
    std::vector<Index> start(num_attributes + 1, 0);
    for (const Index attribute : attributes) {
        if (attribute < -1 || attribute >= num_attributes) {
            throw InputError("attribute ", attribute, " is out of range");
        }
        if (attribute >= 0) ++start[attribute + 1];
    }
    for (Index a = 0; a < num_attributes; ++a) start[a + 1] += start[a];
    std::vector<Index> next(start.begin(), start.end() - 1);
    std::vector<std::int32_t> bucket(start.back());
    for (std::size_t p = 0; p < labels.size(); ++p) {
        if (labels[p] < 0 || labels[p] >= n_columns) throw InputError("the label of row ", p, " is out of range");
        for (Index k = row_ptr[p]; k < row_ptr[p + 1]; ++k) {
            const Index attribute = attributes[k];
            if (attribute >= 0) bucket[next[attribute]++] = static_cast<std::int32_t>(labels[p]);
        }
    }
    std::vector<Index> indptr{0};
    std::vector<Index> columns;
    std::vector<Index> count(n_columns, 0);
    std::vector<std::int32_t> seen;
    for (Index a = 0; a < num_attributes; ++a) {
        seen.clear();
        for (Index k = start[a]; k < start[a + 1]; ++k) {
            if (count[bucket[k]]++ == 0) seen.push_back(bucket[k]);
        }
        std::sort(seen.begin(), seen.end());
        for (const std::int32_t column : seen) {
            if (count[column] >= min_count) columns.push_back(column);
            count[column] = 0;
        }
        indptr.push_back(len(columns.size()));
    }
    return from_pairs(num_attributes, n_columns, width, std::span<const Index>(indptr),
                      std::span<const Index>(columns));
}

void RowLayout::pairs(std::vector<Index>& indptr, std::vector<Index>& columns) const {
    indptr.assign(num_attributes() + 1, 0);
    columns.clear();
    columns.reserve(num_pairs_);
    for_each_pair([&](Index, Index column, Index attribute) {
        columns.push_back(column);
        ++indptr[attribute + 1];
    });
    std::partial_sum(indptr.begin(), indptr.end(), indptr.begin());
}

void RowLayout::pack(const double* pair_values, double* weights) const {
    std::fill(weights, weights + num_weights_, 0.0);
    for_each_pair([&](Index at, Index, Index) { weights[at] = *pair_values++; });
}

void RowLayout::unpack(const double* weights, double* pair_values) const {
    for_each_pair([&](Index at, Index, Index) { *pair_values++ = weights[at]; });
}

}  // namespace partwise
