// Kernels: inner products of rows of input in a feature space whose vectors are never computed.
//
// A Kernel has query rows (of the examples to score) and support rows (of the examples that the weights have
// coefficients for), and gives k(query, support). In training both are the same rows (`square`).
#pragma once

#include <atomic>

#include "features/segments.h"

namespace partwise {

// k = f(<x, y>) + bias, or f(|x - y|^2) + bias for kRbf. Values of gamma, coef0 and degree for which f is not a valid
// kernel are refused.
struct KernelFunction {
    enum class Kind { kLinear, kPolynomial, kRbf };
    Kind kind = Kind::kLinear;
    double gamma = 1.0;
    double coef0 = 0.0;
    int degree = 1;
    double bias = 0.0;  // the effect of an extra attribute that all rows have

    void check() const;
    bool of_distances() const { return kind == Kind::kRbf; }
    // Turns n inner products (kRbf: squared distances) into kernel values, in place.
    void apply(double* values, Index n) const;
    // Turns inner products of one row with n others into |x|^2 + |y|^2 - 2 <x, y>. Returns whether any result cancels.
    bool distances(double* __restrict values, Index n, double norm2, const double* __restrict norms2) const;
    // Whether a squared distance has lost digits that kRbf needs, and must be recomputed from differences. The formula
    // has an error of a few units of rounding of |x|^2 + |y|^2. The error of exp(-E), E = gamma |x - y|^2, is small if
    // gamma times that sum is moderate, or if the distance is a good part of the sum, as E exp(-E) < 1.
    bool cancels(double distance2, double norms2) const {
        return gamma * norms2 > 256.0 && !(distance2 > norms2 * 0x1p-6);
    }
};

class Kernel {
   public:
    virtual ~Kernel() = default;
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    Index num_queries() const { return num_queries_; }
    Index num_support() const { return num_support_; }
    bool square() const { return square_; }
    // A pointer to a query's row of the kernel matrix, with the next rows after it, if the matrix is stored; else null.
    virtual const double* stored(Index) const { return nullptr; }
    // Values of query rows [first, last) against support rows [begin, end), row by row into out.
    virtual void values(Index first, Index last, Index begin, Index end, double* out) const = 0;
    // An upper bound of |sum over rows t of phi(x_t) (e_y - e_z)|^2 over labels y, z of each row of a square kernel.
    // gram: the kernel values of these rows.
    virtual double psi2_bound(Index first, Index last, const double* gram) const;

   protected:
    Kernel(Index num_queries, Index num_support, bool square)
        : num_queries_(num_queries), num_support_(num_support), square_(square) {}

   private:
    Index num_queries_;
    Index num_support_;
    bool square_;
};

// A kernel of dense rows. If the support has null data, the queries are the support.
class DenseKernel final : public Kernel {
   public:
    DenseKernel(KernelFunction function, DenseRows queries, DenseRows support);

    void values(Index first, Index last, Index begin, Index end, double* out) const override;
    double psi2_bound(Index first, Index last, const double* gram) const override;

   private:
    // Replaces the squared distances of a query that cancel by sums of squared differences.
    void mend_distances(Index query, Index begin, Index end, double* distances2) const;

    KernelFunction function_;
    DenseRows queries_;
    DenseRows support_;
    static constexpr Index kPanel = 16;
    std::vector<double> panels_;  // the support, kPanel rows at a time: inputs x kPanel
    std::vector<double> query_norms2_;
    std::vector<double> support_norms2_;
};

// Sparse rows of attributes. Each row is in ascending order and has each attribute at most once.
class SparseRows {
   public:
    // Attribute -1 is ignored, repeated ones add up. values: empty if all are 1.
    SparseRows(Index num_attributes, std::span<const Index> row_ptr, std::span<const Index> attributes,
               std::span<const double> values);

    Index num_rows() const { return len(ptr_.size()) - 1; }
    Index num_attributes() const { return num_attributes_; }
    std::span<const Index> attributes(Index row) const { return std::span(attributes_).subspan(begin(row), size(row)); }
    std::span<const double> values(Index row) const { return std::span(values_).subspan(begin(row), size(row)); }
    double norm2(Index row) const;
    double dot(Index row, const SparseRows& other, Index other_row) const;
    double distance2(Index row, const SparseRows& other, Index other_row) const;

   private:
    std::size_t begin(Index row) const { return ptr_[row]; }
    std::size_t size(Index row) const { return ptr_[row + 1] - ptr_[row]; }

    Index num_attributes_;
    std::vector<Index> ptr_;
    std::vector<Index> attributes_;
    std::vector<double> values_;
};

class SparseKernel final : public Kernel {
   public:
    // If support is null, the queries are the support.
    SparseKernel(KernelFunction function, std::shared_ptr<const SparseRows> queries,
                 std::shared_ptr<const SparseRows> support);

    void values(Index first, Index last, Index begin, Index end, double* out) const override;
    double psi2_bound(Index first, Index last, const double* gram) const override;

   private:
    struct Posting {
        Index row;
        double value;
    };

    KernelFunction function_;
    std::shared_ptr<const SparseRows> queries_;
    std::shared_ptr<const SparseRows> support_;
    std::vector<double> query_norms2_;
    std::vector<double> support_norms2_;
    std::vector<Index> posting_ptr_;  // for each attribute, the support rows that have it, ascending
    std::vector<Posting> postings_;
};

// A matrix of kernel values that the caller stores: queries x support.
class StoredKernel final : public Kernel {
   public:
    StoredKernel(DenseRows matrix, bool square);

    const double* stored(Index query) const override { return matrix_.data + query * matrix_.n_inputs; }
    void values(Index first, Index last, Index begin, Index end, double* out) const override;

   private:
    DenseRows matrix_;
};

// A kernel that is 0 for rows at different places (positions in a sequence), and the given kernel at the same place. It
// acts as if each place had separate weights.
class PlacedKernel final : public Kernel {
   public:
    PlacedKernel(std::shared_ptr<const Kernel> kernel, std::vector<Index> query_places,
                 std::vector<Index> support_places);

    void values(Index first, Index last, Index begin, Index end, double* out) const override;

   private:
    std::shared_ptr<const Kernel> kernel_;
    std::vector<Index> query_places_;
    std::vector<Index> support_places_;
};

// Features known by their kernel alone: the weights are coefficients, `width` of them per support row.
//
//   w = sum over support rows p of phi(x_p) beta_p',   scores of row t = sum_p k(x_t, x_p) beta_p
//
// A' d adds d_t to beta_t; scores are products of the kernel's rows with beta. An example's kernel rows are computed
// together and kept while the memory limit allows. The timing of threads decides which are kept, but changes no value.
class KernelSegment final : public Segment {
   public:
    // memory_limit: bytes for kernel values. If the values of all rows need more, the constructor throws, or with
    // `recompute` the rest is evaluated at each use. Kernels that are not square are never kept.
    KernelSegment(std::shared_ptr<const Kernel> kernel, std::vector<Index> example_ptr, Index n_columns, Index width,
                  double memory_limit, bool recompute);
    ~KernelSegment() override;

    const Kernel& kernel() const { return *kernel_; }
    double kept_bytes() const { return static_cast<double>(kept_.load()) * sizeof(double); }

    Index num_examples() const override { return len(example_ptr_.size()) - 1; }
    Index num_weights() const override { return kernel_->num_support() * width_; }
    Index num_slots(Index i) const override { return n_rows(i) * width_; }
    bool explicit_weights() const override { return false; }
    double weights_dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const override;
    void scores(Index i, const double* w, double* out) const override;
    Added add_transpose(Index i, const double* slots, double scale, double* w) const override;
    void append_projection(Index, const double*, Index, SparseVector&) const override { need_explicit_weights(); }
    void slot_rows(Index, std::span<const Index>, Index, PackedRows&) const override { need_explicit_weights(); }
    double transpose_norm2(Index i, const double* slots) const override;
    double psi2_bound(Index i) const override;
    Index row_length() const override { return kernel_->num_support(); }

   private:
    Index n_rows(Index i) const { return example_ptr_[i + 1] - example_ptr_[i]; }
    void need_square() const;
    const double* gram(Index i) const { return grams_.data() + gram_ptr_[i]; }
    // Example i's rows of the kernel against support rows [begin, num_support), `stride` apart, maybe in scratch.
    const double* rows(Index i, Index begin, std::vector<double>& scratch, Index& stride) const;
    const double* keep(Index i) const;

    std::shared_ptr<const Kernel> kernel_;
    std::vector<Index> example_ptr_;
    Index width_;
    Index limit_;                  // the most kernel values to keep
    std::vector<Index> gram_ptr_;  // starts of each example's kernel values among its own rows (square kernels)
    std::vector<double> grams_;
    mutable std::vector<std::atomic<const double*>> cache_;  // each example's rows of the kernel; null: not kept
    mutable std::atomic<Index> kept_ = 0;                    // number of kernel values kept
};

}  // namespace partwise
