#include <cmath>

#include "features/segments.h"
#include "structures/width_dispatch.h"
#include "support/sizes.h"

namespace partwise {

DenseSegment::DenseSegment(DenseRows rows, std::vector<Index> example_ptr, Index n_columns, Index width)
    : rows_(std::move(rows)), example_ptr_(std::move(example_ptr)), width_(width) {
    if (n_columns < 1 || width < n_columns || width % 4 != 0)
        throw InputError("the row width does not fit the columns");
    if (rows_.n_inputs < 1) throw InputError("dense rows need at least one input");
    check_pointers(example_ptr_, rows_.n_rows, "example_ptr");
    checked_product(rows_.n_inputs, width, "the number of weights");
    checked_product(rows_.n_rows, width, "the number of slots");
    check_values({rows_.data, idx(rows_.n_rows * rows_.n_inputs)},
                 [&](Index k) { return "input " + std::to_string(k % rows_.n_inputs); });
}

// out_t = sum_j x_tj w_j: four partial sums, so that additions do not wait for each other.
void DenseSegment::scores(Index i, const double* __restrict w, double* __restrict out) const {
    with_width(width_, [&](auto constant) {
        constexpr int W = constant();
        for (Index t = 0; t < n_rows(i); ++t) {
            const double* __restrict x = input(i, t);
            double* __restrict target = out + t * width_;
            if constexpr (W > 0) {
                double acc[4][W] = {};
                Index j = 0;
                for (; j + 4 <= rows_.n_inputs; j += 4) {
                    for (int k = 0; k < 4; ++k) {
                        for (int b = 0; b < W; ++b) acc[k][b] += x[j + k] * w[(j + k) * W + b];
                    }
                }
                for (; j < rows_.n_inputs; ++j) {
                    for (int b = 0; b < W; ++b) acc[0][b] += x[j] * w[j * W + b];
                }
                for (int b = 0; b < W; ++b) target[b] = (acc[0][b] + acc[1][b]) + (acc[2][b] + acc[3][b]);
            } else {
                fill(target, width_, 0.0);
                for (Index j = 0; j < rows_.n_inputs; ++j) axpy(x[j], w + j * width_, target, width_);
            }
        }
    });
}

Added DenseSegment::add_transpose(Index i, const double* __restrict slots, double scale, double* __restrict w) const {
    Added added{transpose_norm2(i, slots), 0.0};
    const Index n = n_rows(i);
    if (n == 0) return added;  // a sequence of length 1 has no edges
    with_width(width_, [&](auto constant) {
        constexpr int W = constant();
        if constexpr (W > 0) {
            double products[W] = {};  // column by column: a horizontal sum per row would cost more than the row
            for (Index j = 0; j < rows_.n_inputs; ++j) {
                // Rows share weights: v_j = sum_t x_tj d_t is complete before w_j changes.
                double v[W];
                const double x = input(i, 0)[j];
                for (int b = 0; b < W; ++b) v[b] = x * slots[b];
                for (Index t = 1; t < n; ++t) {
                    const double y = input(i, t)[j];
                    for (int b = 0; b < W; ++b) v[b] += y * slots[t * W + b];
                }
                double* __restrict target = w + j * W;
                for (int b = 0; b < W; ++b) {
                    products[b] += target[b] * v[b];
                    target[b] += scale * v[b];
                }
            }
            for (int b = 0; b < W; ++b) added.dot += products[b];
        } else {
            std::vector<double> v(idx(width_));
            for (Index j = 0; j < rows_.n_inputs; ++j) {
                fill(v.data(), width_, 0.0);
                for (Index t = 0; t < n; ++t) axpy(input(i, t)[j], slots + t * width_, v.data(), width_);
                added.dot += dot(w + j * width_, v.data(), width_);
                axpy(scale, v.data(), w + j * width_, width_);
            }
        }
    });
    return added;
}

void DenseSegment::add_squares_of(Index begin, Index end, const double* slots, double* w) const {
    for (Index i = begin; i < end; ++i) {
        for (Index t = 0; t < n_rows(i); ++t, slots += width_) {
            const double* x = input(i, t);
            for (Index j = 0; j < rows_.n_inputs; ++j) axpy(x[j] * x[j], slots, w + j * width_, width_);
        }
    }
}

void DenseSegment::project(Index i, const double* slots, Index first, SparseVector& out) const {
    std::vector<double> sum(idx(num_weights()), 0.0);
    add_transpose(i, slots, 1.0, sum.data());
    out.append(first, sum.data(), num_weights());
}

void DenseSegment::slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const {
    for (const Index r : slots) {
        const double* x = input(i, r / width_);
        for (Index j = 0; j < rows_.n_inputs; ++j) out.append(first + j * width_ + r % width_, x[j]);
        out.finish_row();
    }
}

double DenseSegment::transpose_norm2(Index i, const double* slots) const {
    if (n_rows(i) == 1) return norm2(input(i, 0), rows_.n_inputs) * norm2(slots, width_);
    std::vector<double> row(idx(width_));
    double sum = 0;
    for (Index j = 0; j < rows_.n_inputs; ++j) {
        fill(row.data(), width_, 0.0);
        for (Index t = 0; t < n_rows(i); ++t) axpy(input(i, t)[j], slots + t * width_, row.data(), width_);
        sum += norm2(row.data(), width_);
    }
    return sum;
}

double DenseSegment::psi2_bound(Index i) const {
    double sum = 0;
    for (Index j = 0; j < rows_.n_inputs; ++j) {
        double total = 0;
        for (Index t = 0; t < n_rows(i); ++t) total += std::abs(input(i, t)[j]);
        sum += total * total;
    }
    return 2.0 * sum;
}

}  // namespace partwise
