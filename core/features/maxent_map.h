// Features of (context, label) pairs with access by row (an example's scores) and by column (a feature's cells).
//
// Two forms. Attributes times labels: f_(a,y)(x, y') = x_a [y' = y] for the pairs (a, y) of a layout; the features of
// one attribute share a list of examples. And a general sparse matrix f_t(x, y).
#pragma once

#include "features/segments.h"

namespace partwise {

class MaxentMap final : public LinearMap, public ColumnAccess {
   public:
    // Example i has attributes[row_ptr[i]..row_ptr[i+1]) with these values (empty: all 1); -1 is ignored, repeated
    // attributes add up.
    MaxentMap(std::shared_ptr<const RowLayout> layout, std::span<const Index> row_ptr,
              std::span<const Index> attributes, std::span<const double> values);
    // Row i * n_labels + y of the matrix holds the features of example i with label y.
    MaxentMap(Index n_examples, Index n_labels, Index width, Index n_features, std::span<const Index> row_ptr,
              std::span<const Index> features, std::span<const double> values);

    const ColumnAccess* columns() const override { return this; }
    Index num_columns() const override { return len(columns_.size()); }
    Column column(Index k) const override;
    std::span<const Index> weights() const override { return weights_; }
    Index width() const override { return width_; }
    Index num_cells() const override { return num_cells_; }
    bool binary() const override { return values_.empty(); }
    Index negative() const override { return negative_; }
    std::string describe(Index weight) const override;

   private:
    struct Place {
        Index weight;
        std::int32_t list;
        std::int32_t slot;  // -1: each cell has its slot in slots_
    };
    // The cells of one attribute, or of one feature of the matrix.
    struct List {
        Index begin;
        Index end;
        Index values;  // index of its first value in values_, -1 if all are 1
        double lowest;
        double highest;
    };
    // Makes lists of entries: each(add) calls add(list, example, slot, value) for all of them, example by example.
    template <class Each>
    void make_lists(Index n_lists, bool with_slots, Each&& each);
    void finish();
    MaxentMap(std::shared_ptr<const SlotSegment> matrix, Index width);

    std::shared_ptr<const RowLayout> layout_;  // null for a matrix
    Index width_;
    Index num_cells_ = 0;
    Index negative_ = -1;
    std::vector<Place> columns_;
    std::vector<Index> weights_;  // the weight of each column
    std::vector<List> lists_;
    std::vector<std::int32_t> examples_;
    std::vector<std::int32_t> slots_;  // empty if every list has a single slot
    std::vector<double> values_;       // values of the lists whose values are not all 1
};

}  // namespace partwise
