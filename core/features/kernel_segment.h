// Features known by their kernel alone: the weights are coefficients, `width` of them per support row.
//
//   w = sum over support rows p of phi(x_p) beta_p',   scores of row t = sum_p k(x_t, x_p) beta_p
//
// A' d adds d_t to beta_t, so that what costs is not the transpose but the scores: a product of the kernel's rows with
// beta. Rows of the kernel are evaluated an example at a time and kept as far as the memory limit goes; which ones are
// kept depends on the order of threads, their values do not.
#pragma once

#include <atomic>

#include "features/kernel.h"

namespace partwise {

class KernelSegment final : public Segment {
   public:
    // memory_limit: bytes for kernel values. If those of all rows need more, an error, or with `recompute` what does
    // not fit is evaluated each time. Kernels that are not square are evaluated as they come and never kept.
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
    void append_projection(Index i, const double* slots, Index first, SparseVector& out) const override;
    double transpose_norm2(Index i, const double* slots) const override;
    double psi2_bound(Index i) const override;
    Index row_length() const override { return kernel_->num_support(); }

   private:
    Index n_rows(Index i) const { return example_ptr_[i + 1] - example_ptr_[i]; }
    void need_square() const;
    const double* gram(Index i) const { return grams_.data() + gram_ptr_[i]; }
    // Example i's rows of the kernel against support rows [begin, num_support), `stride` apart. scratch is used if need
    // be.
    const double* rows(Index i, Index begin, std::vector<double>& scratch, Index& stride) const;
    const double* keep(Index i) const;

    std::shared_ptr<const Kernel> kernel_;
    std::vector<Index> example_ptr_;
    Index width_;
    Index limit_;                  // values to keep at most
    std::vector<Index> gram_ptr_;  // an example's kernel values among its own rows (square kernels)
    std::vector<double> grams_;
    mutable std::vector<std::atomic<const double*>> cache_;  // an example's rows of the kernel; null: not kept
    mutable std::atomic<Index> kept_ = 0;                    // values kept
};

}  // namespace partwise
