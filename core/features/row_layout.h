// Which (attribute, column) pairs have a weight, and the weight's index.
//
// An attribute's weights are consecutive (a run). If most columns are present, the run is a whole row of `width`
// weights (0 for columns without a weight), for vector instructions; otherwise it holds the present pairs only.
#pragma once

#include <functional>

#include "support/types.h"

namespace partwise {

class RowLayout {
   public:
    enum Kind : std::int32_t { kFull, kMasked, kSparse };
    struct Row {
        Index offset;         // index of the run's first weight
        std::int32_t length;  // number of weights; width for whole rows
        Kind kind;
    };

    static RowLayout dense(Index num_attributes, Index n_columns, Index width);
    // Attribute a has columns[indptr[a]..indptr[a+1]), ascending. Column: Index, or std::uint16_t (model files).
    template <class Column>
    static RowLayout from_pairs(Index num_attributes, Index n_columns, Index width, std::span<const Index> indptr,
                                std::span<const Column> columns);
    // The pairs (attribute of row p, labels[p]) that occur at least min_count times; attribute -1 is ignored.
    static RowLayout observed(Index num_attributes, Index n_columns, Index width, std::span<const Index> row_ptr,
                              std::span<const Index> attributes, std::span<const Index> labels, Index min_count);

    Index num_attributes() const { return len(rows_.size()); }
    Index n_columns() const { return n_columns_; }
    Index width() const { return width_; }
    Index num_weights() const { return num_weights_; }
    Index num_pairs() const { return num_pairs_; }
    // Whether every attribute has every column: |A'd|^2 of a single row is then |x|^2 |d|^2.
    bool all_full() const { return all_full_; }

    const Row& row(Index attribute) const { return rows_[attribute]; }
    // Sparse rows: the column of each weight. Masked rows: 1 where the column has a weight, else 0.
    const std::int32_t* columns(const Row& row) const { return columns_.data() + row.offset; }
    const std::uint8_t* present(const Row& row) const { return present_.data() + row.offset; }
    // `columns` of all rows in one array, indexed by weight.
    const std::int32_t* all_columns() const { return columns_.data(); }
    const std::uint8_t* all_present() const { return present_.data(); }

    // Calls f(weight, column, attribute) for every pair, in the order of weights.
    template <class F>
    void for_each_pair(F&& f) const {
        for (Index a = 0; a < num_attributes(); ++a) {
            const Row& row = rows_[a];
            if (row.kind == kSparse) {
                for (Index j = 0; j < row.length; ++j) f(row.offset + j, Index{columns(row)[j]}, a);
                continue;
            }
            for (Index column = 0; column < n_columns_; ++column) {
                if (row.kind == kFull || present(row)[column]) f(row.offset + column, column, a);
            }
        }
    }
    void pairs(std::vector<Index>& indptr, std::vector<Index>& columns) const;
    void pack(const double* pair_values, double* weights) const;
    void unpack(const double* weights, double* pair_values) const;

   private:
    RowLayout(Index num_attributes, Index n_columns, Index width);

    std::vector<Row> rows_;
    std::vector<std::int32_t> columns_;
    std::vector<std::uint8_t> present_;
    Index n_columns_;
    Index width_;
    Index num_weights_ = 0;
    Index num_pairs_ = 0;
    bool all_full_ = false;
};

// Throws InputError unless all feature values are finite and small enough that sums of their squares do not overflow:
// every certificate contains the square of a gradient. owner(k) names the source of value k in the message.
void check_values(std::span<const double> values, const std::function<std::string(Index)>& owner);

}  // namespace partwise
