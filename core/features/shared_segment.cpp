#include "features/segments.h"
#include "support/sizes.h"

namespace partwise {

SharedSegment::SharedSegment(Index size, std::vector<Index> uses, std::vector<std::uint8_t> mask)
    : size_(size), uses_(std::move(uses)) {
    if (size < 0) throw InputError("the size of a shared segment is negative");
    if (size > kMostValues) too_large("the size of a shared segment");
    if (!mask.empty() && len(mask.size()) != size) throw InputError("the mask must have one value per weight");
    for (const std::uint8_t m : mask) keep_.push_back(m ? 1.0 : 0.0);
    for (const Index n : uses_) {
        if (n < 0) throw InputError("uses must not be negative");
    }
}

void SharedSegment::scores(Index, const double* __restrict w, double* __restrict out) const {
    copy(w, out, size_);
    for (std::size_t r = 0; r < keep_.size(); ++r) out[r] *= keep_[r];
}

Added SharedSegment::add_transpose(Index i, const double* __restrict slots, double scale, double* __restrict w) const {
    // Slots without a weight (mask) have a 0 in w, so they add nothing to the product.
    const Added added{transpose_norm2(i, slots), dot(w, slots, size_)};
    add_kept(slots, scale, w);
    return added;
}

void SharedSegment::add_transpose_of(Index begin, Index end, const double* slots, double* w) const {
    for (Index i = begin; i < end; ++i, slots += size_) add_kept(slots, 1.0, w);
}

void SharedSegment::add_kept(const double* __restrict slots, double scale, double* __restrict w) const {
    if (keep_.empty()) return axpy(scale, slots, w, size_);
    const double* __restrict keep = keep_.data();
    for (Index r = 0; r < size_; ++r) w[r] += scale * slots[r] * keep[r];
}

Added SharedSegment::add_transpose_shrunk(Index, const double* slots, double scale, const ShrunkWeights& to) const {
    constexpr int kLanes = 8;
    Shrinking<kLanes> sums(to);
    double* __restrict u = to.u;
    double* __restrict w = to.w;
    const auto move = [&](Index r, int lane) {
        sums.move(lane, scale * slots[r] * (keep_.empty() ? 1.0 : keep_[r]), u[r], w[r]);
    };
    Index r = 0;
    for (; r + kLanes <= size_; r += kLanes) {
        for (int b = 0; b < kLanes; ++b) move(r + b, b);
    }
    for (; r < size_; ++r) move(r, 0);
    return Added::of(sums, scale);
}

// Entries are 0 or 1, so they equal their squares.
void SharedSegment::add_squares_of(Index begin, Index end, const double* slots, double* w) const {
    add_transpose_of(begin, end, slots, w);
}

void SharedSegment::append_projection(Index i, const double* slots, Index first, SparseVector& out) const {
    std::vector<double> sum(size_, 0.0);
    add_transpose(i, slots, 1.0, sum.data());
    out.append(first, sum.data(), size_);
}

void SharedSegment::slot_rows(Index, std::span<const Index> slots, Index first, PackedRows& out) const {
    for (const Index r : slots) {
        out.append(first + r, keep_.empty() ? 1.0 : keep_[r]);
        out.finish_row();
    }
}

double SharedSegment::transpose_norm2(Index, const double* __restrict slots) const {
    if (keep_.empty()) return norm2(slots, size_);
    const double* __restrict keep = keep_.data();
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index r = 0; r < size_; ++r) sum += slots[r] * slots[r] * keep[r];
    return sum;
}

// |difference|^2 for two labellings with n parts each is largest if each uses a single slot n times: 2 n^2.
double SharedSegment::psi2_bound(Index i) const {
    const auto n = static_cast<double>(uses_[i]);
    return 2.0 * n * n;
}

}  // namespace partwise
