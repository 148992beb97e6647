#include "features/kernel_segment.h"

#include <algorithm>
#include <cmath>

#include "support/multiply.h"
#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

KernelSegment::KernelSegment(std::shared_ptr<const Kernel> kernel, std::vector<Index> example_ptr, Index n_columns,
                             Index width, double memory_limit, bool recompute)
    : kernel_(std::move(kernel)), example_ptr_(std::move(example_ptr)), width_(width), limit_(0) {
    if (n_columns < 1 || width < n_columns || width % 4 != 0)
        throw InputError("the row width does not fit the columns");
    if (!(memory_limit >= 0.0)) throw InputError("memory_limit must be 0 or more");
    if (example_ptr_.empty()) throw InputError("example_ptr is empty");
    check_pointers(example_ptr_, kernel_->num_queries(), "example_ptr");
    checked_product(kernel_->num_support(), width, "the number of weights");
    checked_product(kernel_->num_queries(), width, "the number of slots");
    if (!kernel_->square()) return;
    const double needed = static_cast<double>(kernel_->num_queries()) * static_cast<double>(kernel_->num_support()) *
                          static_cast<double>(sizeof(double));
    if (needed > memory_limit && !recompute) {
        throw InputError("the kernel matrix of ", kernel_->num_queries(), " rows takes ", std::llround(needed / 1e6),
                         " MB, above the memory limit of ", std::llround(memory_limit / 1e6),
                         " MB: raise memory_limit, train on less data, or have what does not fit recomputed in "
                         "every pass (recompute)");
    }
    limit_ = static_cast<Index>(std::min(memory_limit, needed) / static_cast<double>(sizeof(double)));
    cache_ = std::vector<std::atomic<const double*>>(num_examples());
    gram_ptr_.push_back(0);
    for (Index i = 0; i < num_examples(); ++i) gram_ptr_.push_back(gram_ptr_.back() + n_rows(i) * n_rows(i));
    grams_.resize(gram_ptr_.back());
    for (Index i = 0; i < num_examples(); ++i) {
        const Index first = example_ptr_[i];
        const Index last = example_ptr_[i + 1];
        kernel_->values(first, last, first, last, grams_.data() + gram_ptr_[i]);
    }
}

KernelSegment::~KernelSegment() {
    for (auto& entry : cache_) delete[] entry.load();
}

void KernelSegment::need_square() const {
    if (!kernel_->square()) throw InputError("these rows are for prediction: weights are coefficients of other rows");
}

const double* KernelSegment::keep(Index i) const {
    if (const double* found = cache_[i].load(std::memory_order_acquire)) return found;
    const Index n = kernel_->num_support();
    const Index size = n_rows(i) * n;
    if (kept_.fetch_add(size) + size > limit_) {
        kept_.fetch_sub(size);
        return nullptr;
    }
    auto fresh = std::make_unique_for_overwrite<double[]>(size);
    kernel_->values(example_ptr_[i], example_ptr_[i + 1], 0, n, fresh.get());
    const double* none = nullptr;
    if (cache_[i].compare_exchange_strong(none, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
    kept_.fetch_sub(size);  // another thread was faster
    return none;
}

const double* KernelSegment::rows(Index i, Index begin, std::vector<double>& scratch, Index& stride) const {
    const Index first = example_ptr_[i];
    const Index n = kernel_->num_support();
    stride = n;
    if (const double* stored = kernel_->stored(first)) return stored + begin;
    if (kernel_->square()) {
        if (const double* kept = keep(i)) return kept + begin;
    }
    stride = n - begin;
    scratch.resize(n_rows(i) * stride);
    kernel_->values(first, first + n_rows(i), begin, n, scratch.data());
    return scratch.data();
}

void KernelSegment::scores(Index i, const double* w, double* out) const {
    if (n_rows(i) == 0) return;
    std::vector<double> scratch;
    Index stride = 0;
    const double* k = rows(i, 0, scratch, stride);
    multiply({k, stride}, {w, width_}, n_rows(i), kernel_->num_support(), width_, out, width_);
}

// sum over rows t, p of k(t, p) <w_t, v_p>. For |w|^2 pairs of different examples are looked at once and count twice.
double KernelSegment::weights_dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const {
    need_square();
    const bool same = w == v;
    const Index n = kernel_->num_support();
    std::vector<double> sums(num_examples(), 0.0);
    parallel_for(num_examples(), n_jobs, interrupt, [&](Index i, int) {
        const Index size = n_rows(i) * width_;
        if (size == 0) return;
        const double* mine = w + example_ptr_[i] * width_;
        std::vector<double> scratch;
        std::vector<double> product(size);
        Index stride = 0;
        const Index begin = same ? example_ptr_[i + 1] : 0;
        if (begin < n) {
            const double* k = rows(i, begin, scratch, stride);
            multiply({k, stride}, {v + begin * width_, width_}, n_rows(i), n - begin, width_, product.data(), width_);
            sums[i] = dot(mine, product.data(), size);
        }
        if (same) {
            multiply({gram(i), n_rows(i)}, {mine, width_}, n_rows(i), n_rows(i), width_, product.data(), width_);
            sums[i] = 2.0 * sums[i] + dot(mine, product.data(), size);
        }
    });
    double sum = 0;
    for (const double s : sums) sum += s;
    return sum;
}

Added KernelSegment::add_transpose(Index i, const double* slots, double scale, double* w) const {
    need_square();
    const Added added{transpose_norm2(i, slots), std::numeric_limits<double>::quiet_NaN()};
    axpy(scale, slots, w + example_ptr_[i] * width_, num_slots(i));
    return added;
}

void KernelSegment::append_projection(Index, const double*, Index, SparseVector&) const {
    throw InputError("a kernel has no vectors of weight space");
}

double KernelSegment::transpose_norm2(Index i, const double* slots) const {
    need_square();
    const Index n = n_rows(i);
    const double* k = gram(i);
    double sum = 0;
    for (Index t = 0; t < n; ++t) {
        sum += k[t * n + t] * norm2(slots + t * width_, width_);
        for (Index s = 0; s < t; ++s) sum += 2.0 * k[t * n + s] * dot(slots + t * width_, slots + s * width_, width_);
    }
    return sum;
}

double KernelSegment::psi2_bound(Index i) const {
    need_square();
    return kernel_->psi2_bound(example_ptr_[i], example_ptr_[i + 1], gram(i));
}

}  // namespace partwise
