// A_i, the linear map from weights to the slot scores of example i, and the geometry of weight space.
#pragma once

#include <memory>
#include <vector>

#include "features/columns.h"
#include "features/packed_rows.h"
#include "features/shrunk_weights.h"
#include "features/sparse_vector.h"
#include "support/parallel.h"
#include "support/types.h"

namespace partwise {

// What comes for free when v = A' slots is added to w.
struct Added {
    double norm2 = 0;  // |v|^2, with an elastic net what stands for it (`shrunk_weights`)
    double dot = 0;    // <w, v>, w before the addition; NaN without explicit weights, where it costs as much as scores

    Added& operator+=(const Added& other) {
        norm2 += other.norm2;
        dot += other.dot;
        return *this;
    }
    // The sums of steps scale * v under an elastic net, in units of v.
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
    // Whether weights are coordinates, so that dot is the plain inner product and project() works. If not, they are
    // coefficients of a basis known by its inner products alone (kernels): sums and multiples still mean what they say.
    virtual bool explicit_weights() const { return true; }
    // <w, v> in weight space; as much work as the scores of all examples where weights are not explicit.
    virtual double dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const = 0;
    // out = scale * A_i w
    virtual void scores(Index i, const double* w, double scale, double* out) const = 0;
    // w += scale * A_i' slots
    virtual Added add_transpose(Index i, const double* slots, double scale, double* w) const = 0;
    // u += scale * A_i' slots, scale != 0, and w = soft(u, l1) / l2 on those rows. Explicit weights only.
    virtual Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const;
    // Scores of the examples [begin, end), slots end to end: what batch methods ask for, where a call per example would
    // cost as much as a short example itself.
    virtual void scores_of(Index begin, Index end, const double* w, double* out) const;
    // w += sum over the examples [begin, end) of A_i' slots_i, slots end to end
    virtual void add_transpose_of(Index begin, Index end, const double* slots, double* w) const;
    // The same with the squares of A_i's entries: w_j += sum over r of A_rj^2 slots_r. Explicit weights only.
    virtual void add_squares_of(Index begin, Index end, const double* slots, double* w) const;
    // A_i' slots, merged; explicit weights only
    virtual void project(Index i, const double* slots, SparseVector& out) const = 0;
    // Appends the rows A_i' e_r of these slots, which ascend; explicit weights only
    virtual void slot_rows(Index i, std::span<const Index> slots, PackedRows& out) const;
    // |A_i' slots|^2
    virtual double transpose_norm2(Index i, const double* slots) const = 0;
    // out_r = |A_i' e_r|^2 of every slot r
    virtual void slot_norms2(Index i, double* out) const;
    // An upper bound of |A_i' (count(y) - count(z))|^2 over labellings y, z.
    virtual double psi2_bound(Index i) const = 0;
    // An upper bound of |A_i' count(y)| over labellings y, with absolute values throughout: a labelling's score, and
    // every partial sum of it, is at most this times |w|.
    virtual double reach(Index i) const;
    // How many weights a slot's score is a sum of, at most.
    virtual Index row_length() const = 0;
    // Capability "column access": null without it.
    virtual const ColumnAccess* columns() const { return nullptr; }
};

// One run of the weights mapped to one run of every example's slots.
class Segment {
   public:
    Segment() = default;
    virtual ~Segment() = default;
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    virtual Index num_examples() const = 0;
    virtual Index num_weights() const = 0;
    virtual Index num_slots(Index i) const = 0;
    virtual bool explicit_weights() const { return true; }
    virtual double weights_dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const;
    virtual void scores(Index i, const double* w, double* out) const = 0;
    virtual Added add_transpose(Index i, const double* slots, double scale, double* w) const = 0;
    virtual Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const;
    virtual void scores_of(Index begin, Index end, const double* w, double* out) const;
    virtual void add_transpose_of(Index begin, Index end, const double* slots, double* w) const;
    virtual void add_squares_of(Index begin, Index end, const double* slots, double* w) const;
    // Appends runs; `first` is the segment's first weight.
    virtual void project(Index i, const double* slots, Index first, SparseVector& out) const = 0;
    virtual void slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const;
    virtual double transpose_norm2(Index i, const double* slots) const = 0;
    virtual void slot_norms2(Index i, double* out) const;
    virtual double psi2_bound(Index i) const = 0;
    virtual Index row_length() const = 0;
};

// Segments stacked: weights end to end, slots end to end.
class LinearMap final : public FeatureMap {
   public:
    explicit LinearMap(std::vector<std::shared_ptr<const Segment>> segments);

    const std::vector<std::shared_ptr<const Segment>>& segments() const { return segments_; }
    Index num_examples() const override { return num_examples_; }
    Index num_weights() const override { return num_weights_; }
    Index num_slots(Index i) const override;
    bool explicit_weights() const override { return explicit_weights_; }
    double dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const override;
    void scores(Index i, const double* w, double scale, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    Added add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const override;
    void scores_of(Index begin, Index end, const double* w, double* out) const override;
    void add_transpose_of(Index begin, Index end, const double* slots, double* w) const override;
    void add_squares_of(Index begin, Index end, const double* slots, double* w) const override;
    void project(Index i, const double* slots, SparseVector& out) const override;
    void slot_rows(Index i, std::span<const Index> slots, PackedRows& out) const override;
    double transpose_norm2(Index i, const double* slots) const override;
    void slot_norms2(Index i, double* out) const override;
    double psi2_bound(Index i) const override;
    Index row_length() const override;

   private:
    using SegmentSum = void (Segment::*)(Index begin, Index end, const double* slots, double* w) const;
    void add_by_segment(Index begin, Index end, const double* slots, double* w, SegmentSum sum) const;

    std::vector<std::shared_ptr<const Segment>> segments_;
    Index num_examples_ = 0;
    Index num_weights_ = 0;
    bool explicit_weights_ = true;
};

}  // namespace partwise
