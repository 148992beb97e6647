// Features of (context, label) pairs with access by row (an example's scores) and by column (a feature's cells).
//
// Two forms. Attributes times labels: f_(a,y)(x, y') = x_a [y' = y] for the pairs (a, y) of a layout; the features of
// an attribute share one list of contexts, so that all of them together take the room of the attributes. And a general
// sparse matrix f_t(x, y).
#pragma once

#include "features/segments.h"

namespace partwise {

class MaxentMap final : public FeatureMap, public ColumnAccess {
   public:
    // Example i has attributes[row_ptr[i]..row_ptr[i+1]) with these values (empty: all 1); -1 is passed over, repeated
    // ones add up.
    MaxentMap(std::shared_ptr<const RowLayout> layout, std::span<const Index> row_ptr,
              std::span<const Index> attributes, std::span<const double> values);
    // Row i * n_labels + y of the matrix holds the features of example i with label y.
    MaxentMap(Index n_examples, Index n_labels, Index width, Index n_features, std::span<const Index> row_ptr,
              std::span<const Index> features, std::span<const double> values);

    Index num_examples() const override { return rows_->num_examples(); }
    Index num_weights() const override { return rows_->num_weights(); }
    Index num_slots(Index i) const override { return rows_->num_slots(i); }
    double dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const override;
    void scores(Index i, const double* w, double scale, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override {
        return rows_->add_transpose_shrunk(i, slots, scale, to);
    }
    void scores_of(Index begin, Index end, const double* w, double* out) const override {
        rows_->scores_of(begin, end, w, out);
    }
    void add_transpose_of(Index begin, Index end, const double* slots, double* w) const override {
        rows_->add_transpose_of(begin, end, slots, w);
    }
    void add_squares_of(Index begin, Index end, const double* slots, double* w) const override {
        rows_->add_squares_of(begin, end, slots, w);
    }
    void project(Index i, const double* slots, SparseVector& out) const override;
    void slot_rows(Index i, std::span<const Index> slots, PackedRows& out) const override {
        rows_->slot_rows(i, slots, 0, out);
    }
    double transpose_norm2(Index i, const double* slots) const override { return rows_->transpose_norm2(i, slots); }
    double psi2_bound(Index i) const override { return rows_->psi2_bound(i); }
    Index row_length() const override { return rows_->row_length(); }

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
        std::int32_t slot;  // -1: the list's own slots
    };
    // Cells of one attribute or one feature of the matrix.
    struct List {
        Index begin;
        Index end;
        Index values;  // where its values begin, -1 if all are 1
        double lowest;
        double highest;
    };
    // Turns entries (list, example, slot, value), which come example by example, into lists.
    struct Builder;
    void finish();

    std::shared_ptr<const Segment> rows_;
    std::shared_ptr<const RowLayout> layout_;  // null for a matrix
    Index width_;
    Index num_cells_ = 0;
    Index negative_ = -1;
    std::vector<Place> columns_;
    std::vector<Index> weights_;  // of the columns
    std::vector<List> lists_;
    std::vector<std::int32_t> examples_;
    std::vector<std::int32_t> slots_;  // empty if every list is of one slot
    std::vector<double> values_;       // of the lists that are not all 1
};

}  // namespace partwise
