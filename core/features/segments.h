// The ways weights become slot scores.
#pragma once

#include <algorithm>
#include <span>
#include <variant>

#include "features/feature_map.h"
#include "features/row_layout.h"
#include "support/multiply.h"
#include "support/scratch_pool.h"

namespace partwise {

// Sparse attributes as the caller has them. Row p has attributes[row_ptr[p]..row_ptr[p+1]) with these values (empty:
// all 1); example i has rows [example_ptr[i], example_ptr[i+1]). Attribute -1 is passed over; repeated ones add up.
struct AttributeTable {
    std::span<const Index> example_ptr;
    std::span<const Index> row_ptr;
    std::span<const Index> attributes;
    std::span<const double> values;
};

// How labellings use rows: each at most `uses` times, and all of them together parts[i] times in example i (empty: any
// number). Bounds of features rely on it.
struct RowUse {
    Index uses = 1;
    std::vector<Index> parts;

    // Of example i: the most that sums over the used rows of entries with this sum and this maximum can be.
    double most(Index i, double sum, double largest) const {
        const double all = static_cast<double>(uses) * sum;
        return parts.empty() ? all : std::min(all, static_cast<double>(parts[i]) * largest);
    }
    RowUse of(Index i) const { return {uses, parts.empty() ? parts : std::vector<Index>{parts[i]}}; }
};

// Whether every example is one row.
bool has_single_rows(const AttributeTable& table);
// Of the distances between neighbours in a list of row starts, the largest.
Index longest_row(std::span<const Index> row_ptr);

// Rows of sparse attributes, stored in the way that suits them.
class AttributeSegment : public Segment {
   public:
    // once: every example's scores will be asked for about once, as in prediction. The answers are the same; where all
    // examples are one row, but for rounding.
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

// One row per example, and every attribute has every column (multiclass): A'd = x (x) d, |A'd|^2 = |x|^2 |d|^2.
class SingleRows final : public AttributeSegment {
   public:
    SingleRows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table, RowUse use = {});

    Index num_examples() const override { return len(entry_ptr_.size()) - 1; }
    Index num_slots(Index) const override { return layout_->width(); }
    void scores(Index i, const double* w, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override;
    void scores_of(Index begin, Index end, const double* w, double* out) const override;
    void add_transpose_of(Index begin, Index end, const double* slots, double* w) const override {
        add_powers<1>(begin, end, slots, w);
    }
    void add_squares_of(Index begin, Index end, const double* slots, double* w) const override {
        add_powers<2>(begin, end, slots, w);
    }
    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override;
    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override;
    double transpose_norm2(Index i, const double* slots) const override;
    double psi2_bound(Index i) const override {
        const double most = use_.most(i, 1.0, 1.0);
        return 2.0 * most * most * norm2_[i];
    }

   private:
    // f(row width, whether there are values, whether weights are many), all as constants
    template <class F>
    void dispatch(F&& f) const;
    template <class F>
    void for_each_by_length(Index begin, Index end, F&& f) const;
    // With entries of A to this power.
    template <int Power>
    void add_powers(Index begin, Index end, const double* slots, double* w) const;

    std::vector<Index> entry_ptr_;
    std::vector<std::uint32_t> offsets_;  // first weight of an entry's row
    std::vector<double> values_;          // an entry, merged; empty if all 1
    std::vector<double> norm2_;           // |x|^2, an example
    std::vector<std::uint8_t> order_;     // of visits in each block of examples
};

// Several rows per example, or rows with columns left out. Kept attribute by attribute within an example, so that a row
// of weights is fetched once however often its attribute is repeated, and A'd comes out merged.
class AttributeRows final : public AttributeSegment {
   public:
    AttributeRows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table, RowUse use = {});

    Index num_examples() const override { return len(n_rows_.size()); }
    Index num_slots(Index i) const override { return n_rows_[i] * layout_->width(); }
    void scores(Index i, const double* w, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override;
    void scores_of(Index begin, Index end, const double* w, double* out) const override;
    void add_transpose_of(Index begin, Index end, const double* slots, double* w) const override;
    void add_squares_of(Index begin, Index end, const double* slots, double* w) const override;
    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override;
    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override;
    double transpose_norm2(Index i, const double* slots) const override;
    void slot_norms2(Index i, double* out) const override;
    double psi2_bound(Index i) const override;

   private:
    // One attribute of one example. Where its weights lie is repeated here from the layout, so that the kernels read
    // one stream in order and can fetch weights ahead of their use.
    struct Group {
        std::uint32_t offset;
        std::uint32_t length;
        std::uint32_t n_entries;
    };
    // An example's groups, in three runs: full, masked and sparse rows.
    struct Groups {
        const Group* full;
        const Group* masked;
        const Group* sparse;
        const Group* end;
        const std::int32_t* rows;
        const double* values;  // null if all 1
    };
    Groups groups_of(Index i) const;
    template <class Entry>
    void add_examples(const AttributeTable& table);
    // Hands A_i' slots to a sink, row by row and weight by weight.
    template <int W, bool HasValues, class Sink>
    void visit(Index i, const double* slots, Sink& sink) const;
    template <class F>
    void dispatch(F&& f) const;
    template <int W, bool HasValues>
    void scores_of_width(Index i, const double* w, double* out) const;

    std::vector<Index> n_rows_;     // rows of each example
    std::vector<Index> group_ptr_;  // the ends of each example's three runs of groups, after a 0
    std::vector<Index> entry_ptr_;  // first entry of each example
    std::vector<Group> groups_;
    std::vector<std::int32_t> rows_;  // row within the example, an entry
    std::vector<double> values_;      // an entry; empty if all 1
};

// The same for examples that are looked at once: rows stay as they came, because to store them by attribute takes
// longer than one pass over them. Scores are those of AttributeRows bit for bit (which has an order of its own if all
// examples are one row); for all else it makes them of the example.
class PassingRows final : public AttributeSegment {
   public:
    PassingRows(std::shared_ptr<const RowLayout> layout, const AttributeTable& table, RowUse use = {});
    ~PassingRows() override;

    Index num_examples() const override { return len(example_ptr_.size()) - 1; }
    Index num_slots(Index i) const override { return (example_ptr_[i + 1] - example_ptr_[i]) * layout_->width(); }
    void scores(Index i, const double* w, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override;
    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override;
    void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const override;
    double transpose_norm2(Index i, const double* slots) const override;
    void slot_norms2(Index i, double* out) const override;
    double psi2_bound(Index i) const override;

   private:
    struct Scratch;
    AttributeRows stored(Index i) const;
    template <int W, bool HasValues>
    void scores_of_width(Index i, const double* w, double* out, Scratch& s) const;

    std::vector<Index> example_ptr_;
    std::vector<Index> row_ptr_;
    std::vector<std::int32_t> attributes_;  // -1: passed over
    std::vector<double> values_;            // an attribute; empty if all 1
    std::unique_ptr<ScratchPool<Scratch>> scratch_;
};

// A matrix stored elsewhere; owner keeps it alive.
struct DenseRows {
    const double* data;
    Index n_rows;
    Index n_inputs;
    std::shared_ptr<const void> owner;
};

// The same in double or single precision.
struct InputRows {
    std::variant<const double*, const float*> data;
    Index n_rows;
    Index n_inputs;
    std::shared_ptr<const void> owner;

    // The inputs [first, first + n) of this row and the next ones: in place if they are doubles, else in `room`, which
    // holds n_rows * n values.
    Matrix block(Index row, Index n_rows, Index first, Index n, double* room) const;
};

// Rows of dense input; weight (j, a) is at j * width + a. Rows of floats take half the memory; they are the doubles of
// the same values: sums are in double precision, and have the same bits.
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
    // f(first weight, v, number of weights) for runs of v = A' slots, in order, of the rows [row, row + n_rows).
    template <class F>
    void visit(Index row, Index n_rows, const double* slots, F&& f) const;
    // f(first input, inputs, number of inputs) for runs of a row's inputs, as doubles.
    template <class F>
    void read(Index row, F&& f) const;
    void scores_of_rows(Index row, Index n_rows, const double* w, double* out) const;
    void scores_of_row(Index row, const double* w, double* out) const;
    Added add_row(Index row, const double* slots, double scale, double* w) const;

    InputRows rows_;
    std::vector<Index> example_ptr_;
    Index width_;
};

// Weights that are slots themselves, shared by all examples (tied transitions).
class SharedSegment final : public Segment {
   public:
    // mask: which slots have a weight (empty: all). uses[i]: the most parts a labelling of example i has here.
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
    std::vector<double> keep_;  // 1 where there is a weight, else 0; empty: all
};

// Sparse features of slots as the caller has them. Slot r (all examples end to end) has
// features[row_ptr[r]..row_ptr[r+1]) with these values (empty: all 1); example i has slots [slot_ptr[i],
// slot_ptr[i+1]). Feature -1 is passed over; repeated ones add up.
struct SlotTable {
    std::span<const Index> slot_ptr;
    std::span<const Index> row_ptr;
    std::span<const Index> features;
    std::span<const double> values;
};

// Features of single slots, any of them shared by slots: a sparse matrix with one row per slot, whose columns are the
// weights.
class SlotSegment final : public Segment {
   public:
    static constexpr Index kAnyNumber = std::numeric_limits<Index>::max();

    // A labelling uses a slot at most `uses` times, and has at most `parts` parts, counted as often as they are used.
    SlotSegment(const SlotTable& table, Index num_weights, Index uses = 1, Index parts = kAnyNumber);

    // One value of one example, by feature and then by slot.
    struct Entry {
        std::int32_t feature;
        std::int32_t slot;
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
    void add_examples(const SlotTable& table);
    // f(feature, value) for every entry of A_i' slots, merged.
    template <class F>
    void visit(Index i, const double* slots, F&& f) const;

    Index num_weights_;
    Index uses_;
    Index parts_;
    Index row_length_;
    std::vector<std::int32_t> n_slots_;  // of each example
    std::vector<Index> ptr_;             // an example's entries
    std::vector<Entry> entries_;
    std::vector<double> values_;  // empty if all 1
};

}  // namespace partwise
