
#include "features/segments.h"
#include "structures/width_dispatch.h"
#include "support/multiply.h"
#include "support/sizes.h"

namespace partwise {

namespace {

// Inputs are processed in blocks of kRows rows and a number of columns that stay in the L1 cache.
constexpr Index kRows = 16;
constexpr Index kInputs = 128;
// The approximate number of weights in one run of A' slots.
constexpr Index kRunWeights = 4096;

// A score is summed in kParts independent parts of the inputs, so that additions do not wait for each other.
constexpr Index kParts = 4;
Index part(Index k, Index n_inputs) { return k * n_inputs / kParts; }

}  // namespace

Matrix InputRows::block(Index row, Index n, Index first, Index size, double* room) const {
    if (const auto* doubles = std::get_if<const double*>(&data)) return {*doubles + row * n_inputs + first, n_inputs};
    const float* floats = std::get<const float*>(data) + row * n_inputs + first;
    for (Index t = 0; t < n; ++t) std::copy_n(floats + t * n_inputs, size, room + t * size);
    return {room, size};
}

DenseSegment::DenseSegment(InputRows rows, std::vector<Index> example_ptr, Index n_columns, Index width)
    : rows_(std::move(rows)), example_ptr_(std::move(example_ptr)), width_(width) {
    if (n_columns < 1 || width < n_columns || width % 4 != 0)
        throw InputError("the row width does not fit the columns");
    if (rows_.n_inputs < 1) throw InputError("dense rows need at least one input");
    check_pointers(example_ptr_, rows_.n_rows, "example_ptr");
    checked_product(rows_.n_inputs, width, "the number of weights");
    checked_product(rows_.n_rows, width, "the number of slots");
    for (Index row = 0; row < rows_.n_rows; ++row) {
        read(row, [&](Index first, const double* x, Index n) {
            check_values({x, idx(n)}, [&](Index k) { return "input " + std::to_string(first + k); });
        });
    }
}

template <class F>
void DenseSegment::read(Index row, F&& f) const {
    double room[kInputs];
    for (Index j = 0; j < rows_.n_inputs; j += kInputs) {
        const Index n = std::min(kInputs, rows_.n_inputs - j);
        f(j, rows_.block(row, 1, j, n, room).data, n);
    }
}

template <class F>
void DenseSegment::visit(Index row, Index n_rows, const double* slots, F&& f) const {
    const Index run = std::min(std::clamp<Index>(kRunWeights / width_, 8, kInputs), rows_.n_inputs);
    double room[kRows * kInputs];
    std::vector<double> v(run * width_);
    for (Index j = 0; j < rows_.n_inputs; j += run) {
        const Index n = std::min(run, rows_.n_inputs - j);
        fill(v.data(), n * width_, 0.0);
        for (Index t = 0; t < n_rows; t += kRows) {
            const Index several = std::min(kRows, n_rows - t);
            const Matrix x = rows_.block(row + t, several, j, n, room);
            continue_product({x.data, x.step, x.stride}, {slots + t * width_, width_}, n, several, width_, v.data(),
                             width_);
        }
        f(j * width_, v.data(), n * width_);
    }
}

void DenseSegment::scores(Index i, const double* w, double* out) const { scores_of(i, i + 1, w, out); }

void DenseSegment::scores_of(Index begin, Index end, const double* w, double* out) const {
    const Index last = example_ptr_[end];
    for (Index row = example_ptr_[begin]; row < last; row += kRows, out += kRows * width_) {
        const Index n = std::min(kRows, last - row);
        if (n == 1) {
            scores_of_row(row, w, out);
        } else {
            scores_of_rows(row, n, w, out);
        }
    }
}

void DenseSegment::scores_of_rows(Index row, Index n, const double* w, double* out) const {
    const Index size = n * width_;
    std::vector<double> sums(kParts * size, 0.0);
    double room[kRows * kInputs];
    for (Index k = 0; k < kParts; ++k) {
        const Index end = part(k + 1, rows_.n_inputs);
        for (Index j = part(k, rows_.n_inputs); j < end; j += kInputs) {
            const Index inputs = std::min(kInputs, end - j);
            continue_product(rows_.block(row, n, j, inputs, room), {w + j * width_, width_}, n, inputs, width_,
                             sums.data() + k * size, width_);
        }
    }
    const double* __restrict s = sums.data();
    for (Index r = 0; r < size; ++r) out[r] = (s[r] + s[size + r]) + (s[2 * size + r] + s[3 * size + r]);
}

// A single row has too few scores to keep the processor busy: its kParts partial sums are computed in parallel.
void DenseSegment::scores_of_row(Index row, const double* __restrict w, double* __restrict out) const {
    with_width(width_, [&](auto constant) {
        constexpr int W = constant();
        if constexpr (W > 0) {
            std::visit(
                [&](const auto* data) {
                    const auto* __restrict x = data + row * rows_.n_inputs;
                    double sums[kParts][W] = {};
                    const auto add = [&](Index k, Index j) {
                        const double value = x[j];
                        for (int b = 0; b < W; ++b) sums[k][b] = multiply_add(value, w[j * W + b], sums[k][b]);
                    };
                    const Index all_have = rows_.n_inputs / kParts;
                    for (Index j = 0; j < all_have; ++j) {
                        for (Index k = 0; k < kParts; ++k) add(k, part(k, rows_.n_inputs) + j);
                    }
                    for (Index k = 0; k < kParts; ++k) {
                        for (Index j = part(k, rows_.n_inputs) + all_have; j < part(k + 1, rows_.n_inputs); ++j) {
                            add(k, j);
                        }
                    }
                    for (int b = 0; b < W; ++b) out[b] = (sums[0][b] + sums[1][b]) + (sums[2][b] + sums[3][b]);
                },
                rows_.data);
        } else {
            scores_of_rows(row, 1, w, out);
        }
    });
}

Added DenseSegment::add_transpose(Index i, const double* slots, double scale, double* w) const {
    if (n_rows(i) == 1) return add_row(example_ptr_[i], slots, scale, w);
    Added added;
    visit(example_ptr_[i], n_rows(i), slots, [&](Index first, const double* v, Index n) {
        added += {norm2(v, n), dot(w + first, v, n)};
        axpy(scale, v, w + first, n);
    });
    return added;
}

// A'd of a single row x is the outer product of x and d, so |A'd|^2 = |x|^2 |d|^2.
Added DenseSegment::add_row(Index row, const double* __restrict slots, double scale, double* __restrict w) const {
    Added added;
    read(row, [&](Index first, const double* x, Index n) {
        added.norm2 += norm2(x, n);
        with_width(width_, [&](auto constant) {
            constexpr int W = constant();
            double* __restrict rows = w + first * width_;
            if constexpr (W > 0) {
                double products[W] = {};  // one per column: a horizontal sum per row would cost more than the row
                double d[W];
                for (int b = 0; b < W; ++b) d[b] = scale * slots[b];
                for (Index j = 0; j < n; ++j) {
                    double* __restrict target = rows + j * W;
                    for (int b = 0; b < W; ++b) {
                        products[b] += x[j] * target[b];
                        target[b] += x[j] * d[b];
                    }
                }
                for (int b = 0; b < W; ++b) added.dot += products[b] * slots[b];
            } else {
                for (Index j = 0; j < n; ++j) {
                    added.dot += x[j] * dot(rows + j * width_, slots, width_);
                    axpy(scale * x[j], slots, rows + j * width_, width_);
                }
            }
        });
    });
    added.norm2 *= norm2(slots, width_);
    return added;
}

void DenseSegment::add_transpose_of(Index begin, Index end, const double* slots, double* w) const {
    constexpr Index kMostRows = 64;  // rows that are summed before the sum is added to w
    const Index last = example_ptr_[end];
    for (Index row = example_ptr_[begin]; row < last; row += kMostRows, slots += kMostRows * width_) {
        visit(row, std::min(kMostRows, last - row), slots,
              [&](Index first, const double* v, Index n) { axpy(1.0, v, w + first, n); });
    }
}

void DenseSegment::add_squares_of(Index begin, Index end, const double* slots, double* w) const {
    for (Index row = example_ptr_[begin]; row < example_ptr_[end]; ++row, slots += width_) {
        read(row, [&](Index first, const double* x, Index n) {
            for (Index j = 0; j < n; ++j) axpy(x[j] * x[j], slots, w + (first + j) * width_, width_);
        });
    }
}

void DenseSegment::append_projection(Index i, const double* slots, Index first, SparseVector& out) const {
    visit(example_ptr_[i], n_rows(i), slots, [&](Index at, const double* v, Index n) { out.append(first + at, v, n); });
}

void DenseSegment::slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const {
    for (const Index r : slots) {
        read(example_ptr_[i] + r / width_, [&](Index input, const double* x, Index n) {
            for (Index j = 0; j < n; ++j) out.append(first + (input + j) * width_ + r % width_, x[j]);
        });
        out.finish_row();
    }
}

double DenseSegment::transpose_norm2(Index i, const double* slots) const {
    double sum = 0;
    if (n_rows(i) == 1) {
        read(example_ptr_[i], [&](Index, const double* x, Index n) { sum += norm2(x, n); });
        return sum * norm2(slots, width_);
    }
    visit(example_ptr_[i], n_rows(i), slots, [&](Index, const double* v, Index n) { sum += norm2(v, n); });
    return sum;
}

double DenseSegment::psi2_bound(Index i) const {
    std::vector<double> totals(rows_.n_inputs, 0.0);
    for (Index row = example_ptr_[i]; row < example_ptr_[i + 1]; ++row) {
        read(row, [&](Index first, const double* x, Index n) {
            for (Index j = 0; j < n; ++j) totals[first + j] += std::abs(x[j]);
        });
    }
    return 2.0 * norm2(totals.data(), rows_.n_inputs);
}

}  // namespace partwise
