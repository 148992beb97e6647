// Segments: the kinds of linear maps from weights to slot scores.
#pragma once

#include <variant>

#include "features/feature_map.h"
#include "features/row_layout.h"
#include "support/multiply.h"
#include "support/scratch_pool.h"

namespace partwise {

// Sparse attributes in the caller's arrays. Row p has attributes[row_ptr[p]..row_ptr[p+1]) with these values (empty:
// all 1); example i has rows [example_ptr[i], example_ptr[i+1]). Attribute -1 is ignored; repeated attributes add up.
struct AttributeTable {
    std::span<const Index> example_ptr;
    std::span<const Index> row_ptr;
    std::span<const Index> attributes;
    std::span<const double> values;

    // Replaces `entries` by the (attribute, value) pairs of row p, without attributes -1.
    void read_row(Index p, std::vector<std::pair<Index, double>>& entries) const {
        entries.clear();
        for (Index k = row_ptr[p]; k < row_ptr[p + 1]; ++k) {
            if (attributes[k] >= 0) entries.emplace_back(attributes[k], values.empty() ? 1.0 : values[k]);
        }
    }
};

// How often labellings use rows, for bounds on features: each row at most `uses` times, and all rows of example i
// together parts[i] times (`parts` empty: any number of times).
struct RowUse {
    Index uses = 1;
    std::vector<Index> parts;

    // The largest sum over the used rows of example i of entries that have this sum and this maximum over all rows.
    double most(Index i, double sum, double largest) const {
        const double all = static_cast<double>(uses) * sum;
        return parts.empty() ? all : std::min(all, static_cast<double>(parts[i]) * largest);
    }
    RowUse of(Index i) const { return {uses, parts.empty() ? parts : std::vector<Index>{parts[i]}}; }
};

Index longest_row(std::span<const Index> row_ptr);

// Rows of sparse attributes. `make` chooses how they are stored.
class AttributeSegment : public Segment {
   public:
    // once: every example's scores will be computed about once, as in prediction. The answers are the same, except for
    // rounding where all examples are one row.
    static std::unique_ptr<AttributeSegment> make(std::shared_ptr<const RowLayout> layout, const AttributeTable& table,
                                                  bool once = false, RowUse use = {});

    Index num_weights() const override { return layout_->num_weights(); }
    Index row_length() const override { return row_length_; }

   protected:
    AttributeSegment(std::shared_ptr<const RowLayout> layout, const AttributeTable& table, RowUse use);

    std::shared_ptr<const RowLayout> layout_;
    Index row_length_;
    RowUse use_;
};

// The three kinds, each in its own file: examples of one row with all columns; all other examples; examples whose
// scores are computed about once.
std::unique_ptr<AttributeSegment> make_single_rows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table,
                                                   RowUse use);
std::unique_ptr<AttributeSegment> make_attribute_rows(std::shared_ptr<const RowLayout> layout,
                                                      const AttributeTable& table, RowUse use);
std::unique_ptr<AttributeSegment> make_passing_rows(std::shared_ptr<const RowLayout> layout,
                                                    const AttributeTable& table, RowUse use);

// A matrix that the caller stores; `owner` keeps it alive.
struct DenseRows {
    const double* data;
    Index n_rows;
    Index n_inputs;
    std::shared_ptr<const void> owner;
};

// Dense rows in double or single precision.
struct InputRows {
    std::variant<const double*, const float*> data;
    Index n_rows;
    Index n_inputs;
    std::shared_ptr<const void> owner;

    // The inputs [first, first + n) of n_rows rows: in place if they are doubles, otherwise converted into `room`.
    Matrix block(Index row, Index n_rows, Index first, Index n, double* room) const;
};

// Rows of dense input; the weight of (input j, column a) has the index j * width + a. Sums of floats are in doubles.
class DenseSegment final : public Segment {
   public:
    DenseSegment(InputRows rows, std::vector<Index> example_ptr, Index n_columns, Index width);

    Index num_examples() const override { return len(example_ptr_.size()) - 1; }
    Index num_weights() const override { return rows_.n_inputs * width_; }
    Index num_slots(Index i) const override { return n_rows(i) * width_; }
    void scores(Index i, const double* w, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    void scores_of(Index begin, Index end, const double* w, double* out) const override;
    void add_transpose_of(Index begin, Index end, const double* slots, double* w) const override;
    void add_squares_of(Index begin, Index end, const double* slots, double* w) const override;
    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override;
    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override;
    double transpose_norm2(Index i, const double* slots) const override;
    double psi2_bound(Index i) const override;
    Index row_length() const override { return rows_.n_inputs; }

   private:
    Index n_rows(Index i) const { return example_ptr_[i + 1] - example_ptr_[i]; }
    // Calls f(first weight, v, number of weights) for runs of v = A' slots, in order, of the rows [row, row + n_rows).
    template <class F>
    void visit(Index row, Index n_rows, const double* slots, F&& f) const;
    // Calls f(first input, inputs, number of inputs) for runs of a row's inputs, converted to doubles.
    template <class F>
    void read(Index row, F&& f) const;
    void scores_of_rows(Index row, Index n_rows, const double* w, double* out) const;
    void scores_of_row(Index row, const double* w, double* out) const;
    Added add_row(Index row, const double* slots, double scale, double* w) const;

    InputRows rows_;
    std::vector<Index> example_ptr_;
    Index width_;
};

// One weight per slot, shared by all examples (tied transitions): slot scores are the weights themselves.
class SharedSegment final : public Segment {
   public:
    // mask: which slots have a weight (empty: all). uses[i]: the most parts of a labelling of example i that lie here.
    SharedSegment(Index size, std::vector<Index> uses, std::vector<std::uint8_t> mask);

    Index num_examples() const override { return len(uses_.size()); }
    Index num_weights() const override { return size_; }
    Index num_slots(Index) const override { return size_; }
    void scores(Index i, const double* w, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override;
    void add_transpose_of(Index begin, Index end, const double* slots, double* w) const override;
    void add_squares_of(Index begin, Index end, const double* slots, double* w) const override;
    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override;
    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override;
    double transpose_norm2(Index i, const double* slots) const override;
    double psi2_bound(Index i) const override;
    Index row_length() const override { return 1; }

   private:
    void add_kept(const double* slots, double scale, double* w) const;

    Index size_;
    std::vector<Index> uses_;
    std::vector<double> keep_;  // 1 for slots with a weight, else 0; empty: all have one
};

// Sparse features of slots in the caller's arrays. Slot r (the slots of all examples are concatenated) has
// features[row_ptr[r]..row_ptr[r+1]) with these values (empty: all 1); example i has slots [slot_ptr[i],
// slot_ptr[i+1]). Feature -1 is ignored; repeated features add up.
struct SlotTable {
    std::span<const Index> slot_ptr;
    std::span<const Index> row_ptr;
    std::span<const Index> features;
    std::span<const double> values;
};

// Features of single slots, which slots may share: A is a sparse matrix with one row per slot and one column per
// weight.
class SlotSegment final : public Segment {
   public:
    static constexpr Index kAnyNumber = std::numeric_limits<Index>::max();

    // A labelling uses a slot at most `uses` times and has at most `parts` parts (a slot used twice counts as two).
    SlotSegment(const SlotTable& table, Index num_weights, Index uses = 1, Index parts = kAnyNumber);

    // One value of an example's rows of A; sorted by feature, then by slot.
    struct Entry {
        std::int32_t feature;
        std::int32_t slot;
        auto operator<=>(const Entry&) const = default;
    };
    std::span<const Entry> entries(Index i) const;
    const double* values(Index i) const { return values_.empty() ? nullptr : values_.data() + ptr_[i]; }

    Index num_examples() const override { return len(n_slots_.size()); }
    Index num_weights() const override { return num_weights_; }
    Index num_slots(Index i) const override { return n_slots_[i]; }
    void scores(Index i, const double* w, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override;
    void add_squares_of(Index begin, Index end, const double* slots, double* w) const override;
    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override;
    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override;
    double transpose_norm2(Index i, const double* slots) const override;
    double psi2_bound(Index i) const override;
    Index row_length() const override { return row_length_; }

   private:
    // Calls f(feature, value) for every nonzero entry of A_i' slots, in ascending order of features.
    template <class F>
    void visit(Index i, const double* slots, F&& f) const;

    Index num_weights_;
    Index uses_;
    Index parts_;
    Index row_length_;
    std::vector<std::int32_t> n_slots_;  // number of slots of each example
    std::vector<Index> ptr_;             // starts of the examples' entries
    std::vector<Entry> entries_;
    std::vector<double> values_;  // empty if all 1
};

}  // namespace partwise
