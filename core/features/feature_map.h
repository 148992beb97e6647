// A_i, the linear map from weights to the slot scores of example i, and the geometry of weight space.
#pragma once

#include "features/sparse_rows.h"
#include "support/parallel.h"

namespace partwise {

// One feature f_t: the cells (example, slot) where its value is not 0, sorted by example. A Column owns no arrays.
struct Column {
    Index weight;                  // index of the feature's weight
    Index slot;                    // the slot of all cells (each example then occurs once); -1: see `slots`
    Index size;                    // number of cells
    const std::int32_t* examples;  // ascending
    const std::int32_t* slots;     // null if all are `slot`
    const double* values;          // null if all are 1
    double lowest;                 // smallest value of the cells
    double highest;
};

inline double value_at(const Column& c, Index k) { return c.values ? c.values[k] : 1.0; }

// Calls f(example, its first cell, one past its last cell) for each example of a column.
template <class F>
void for_each_example(const Column& c, F&& f) {
    for (Index k = 0; k < c.size;) {
        const Index first = k;
        while (k < c.size && c.examples[k] == c.examples[first]) ++k;
        f(Index{c.examples[first]}, first, k);
    }
}

class ColumnAccess {
   public:
    virtual ~ColumnAccess() = default;

    // The number of columns, in a good order to visit them. Weights that are padding have no column.
    virtual Index num_columns() const = 0;
    virtual Column column(Index k) const = 0;
    // column(k).weight of every k.
    virtual std::span<const Index> weights() const = 0;
    // The number of slots, which is the same for every example.
    virtual Index width() const = 0;
    virtual Index num_cells() const = 0;
    virtual bool binary() const = 0;
    // The weight of a feature that has a negative value, -1 if there is none.
    virtual Index negative() const = 0;
    virtual std::string describe(Index weight) const = 0;
};

// Soft thresholding: sign(x) max(|x| - l1, 0).
[[gnu::always_inline]] inline double soft(double x, double l1) { return std::max(x - l1, 0.0) + std::min(x + l1, 0.0); }

// The weights of a dual point under an elastic net, updated together with u: w = soft(u, l1) / l2. The conjugate R*(u)
// = |soft(u, l1)|^2 / (2 l2) has the gradient w. From u to u + scale v it rises by
//   scale <w, v> + scale^2 / (2 l2) q,   0 <= q <= |v|^2,   q = |v|^2 if no weight is or becomes zero.
// With l1 = 0, q = |v|^2; using q in its place gives one formula of the dual's change for both penalties.
struct ShrunkWeights {
    double l1;
    double l2;
    double* u;
    double* w;

    // The pointers for a segment whose first weight has the index `first`.
    ShrunkWeights from(Index first) const { return {l1, l2, u + first, w + first}; }
};

// Sums over the weights that a step changes, in units of l2. With a = soft(u, l1) before a step d and b after it:
//   quadratic  b^2 - a^2 - 2 a d, computed as d^2 where b - a = d (the difference of squares would cancel)
//   linear     a d
// Lanes: the number of parallel sums, for loops over that many columns at once.
template <int Lanes>
struct Shrinking {
    double l1;
    double inverse;  // 1 / l2
    double quadratic[Lanes] = {};
    double linear[Lanes] = {};

    explicit Shrinking(const ShrunkWeights& to) : l1(to.l1), inverse(1.0 / to.l2) {}

    // u += d, and w is updated to match.
    [[gnu::always_inline]] void move(int lane, double d, double& u, double& w) {
        const double a = soft(u, l1);
        const double moved = u + d;
        const double b = soft(moved, l1);
        u = moved;
        w = b * inverse;
        const double e = b - a;
        quadratic[lane] += a * b > 0.0 ? d * d : 2.0 * a * (e - d) + e * e;
        linear[lane] += a * d;
    }
};

// What adding v = A' slots to w yields as by-products.
struct Added {
    double norm2 = 0;  // |v|^2; with an elastic net, q (see `ShrunkWeights`)
    double dot = 0;  // <w, v>, w before the addition; NaN if weights are not explicit: it would cost as much as scores

    Added& operator+=(const Added& other) {
        norm2 += other.norm2;
        dot += other.dot;
        return *this;
    }
    // The sums of a step scale * v under an elastic net, divided so that they are sums for v.
    template <int Lanes>
    static Added of(const Shrinking<Lanes>& sums, double scale) {
        Added all;
        for (int k = 0; k < Lanes; ++k) all += {sums.quadratic[k], sums.linear[k]};
        return {all.norm2 / (scale * scale), all.dot * sums.inverse / scale};
    }
};

class FeatureMap {
   public:
    FeatureMap() = default;
    virtual ~FeatureMap() = default;
    FeatureMap(const FeatureMap&) = delete;
    FeatureMap& operator=(const FeatureMap&) = delete;

    virtual Index num_examples() const = 0;
    virtual Index num_weights() const = 0;
    virtual Index num_slots(Index i) const = 0;
    // Whether weights are coordinates. If not, they are coefficients of a basis known by its inner products alone
    // (kernels): there is no project() then, but sums and multiples of weights are still valid.
    virtual bool explicit_weights() const { return true; }
    // <w, v> in weight space. If weights are not explicit, this costs as much as the scores of all examples.
    virtual double weights_dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const;
    // out = A_i w
    virtual void scores(Index i, const double* w, double* out) const = 0;
    // w += scale * A_i' slots
    virtual Added add_transpose(Index i, const double* slots, double scale, double* w) const = 0;
    // u += scale * A_i' slots, scale != 0, and w = soft(u, l1) / l2 where u changed. Explicit weights only.
    virtual Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const;
    // Scores of the examples [begin, end), concatenated: a call per example can cost as much as a short example.
    virtual void scores_of(Index begin, Index end, const double* w, double* out) const;
    // w += sum over the examples [begin, end) of A_i' slots_i; their slots are concatenated
    virtual void add_transpose_of(Index begin, Index end, const double* slots, double* w) const;
    // Adds squares of A_i's entries instead: w_j += sum over r of A_rj^2 slots_r. Explicit weights only.
    virtual void add_squares_of(Index begin, Index end, const double* slots, double* w) const;
    // out = A_i' slots with one entry per weight; explicit weights only
    void project(Index i, const double* slots, SparseVector& out) const;
    // Appends A_i' slots as runs. Here and below `first` is added to the indices of weights.
    virtual void append_projection(Index i, const double* slots, Index first, SparseVector& out) const = 0;
    // Appends the rows A_i' e_r of these slots, which are in ascending order; explicit weights only
    virtual void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const = 0;
    virtual double transpose_norm2(Index i, const double* slots) const = 0;
    // out_r = |A_i' e_r|^2 of every slot r
    virtual void slot_norms2(Index i, double* out) const;
    // An upper bound of |A_i' (count(y) - count(z))|^2 over labellings y, z.
    virtual double psi2_bound(Index i) const = 0;
    // An upper bound of |A_i' count(y)| over labellings y, which also holds for the partial sums of a score.
    virtual double reach(Index i) const;
    // The most weights that are summed to one slot's score.
    virtual Index row_length() const = 0;
    // The capability "column access"; null if the map does not offer it.
    virtual const ColumnAccess* columns() const { return nullptr; }

   protected:
    void need_explicit_weights() const;
};

// A part of a LinearMap: it has one run of the weights and one run of every example's slots.
class Segment : public FeatureMap {};

// Stacked segments: their weights are concatenated, and so are their slots.
class LinearMap : public FeatureMap {
   public:
    explicit LinearMap(std::vector<std::shared_ptr<const Segment>> segments);

    const std::vector<std::shared_ptr<const Segment>>& segments() const { return segments_; }
    Index num_examples() const override { return num_examples_; }
    Index num_weights() const override { return num_weights_; }
    Index num_slots(Index i) const override;
    bool explicit_weights() const override { return explicit_weights_; }
    double weights_dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const override;
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
    Index row_length() const override;

   private:
    using Sum = void (FeatureMap::*)(Index begin, Index end, const double* slots, double* w) const;
    void add_by_segment(Index begin, Index end, const double* slots, double* w, Sum sum) const;

    std::vector<std::shared_ptr<const Segment>> segments_;
    Index num_examples_ = 0;
    Index num_weights_ = 0;
    bool explicit_weights_ = true;
};

}  // namespace partwise
