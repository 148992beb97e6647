#include "solvers/difference_rows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "support/prefetch.h"

namespace partwise {

namespace {

template <class T>
void grow(std::vector<T>& to, std::size_t by) {
    to.resize(to.size() + by);
}

template <class T>
void copy_part(const std::vector<T>& from, std::size_t begin, std::size_t end, std::vector<T>& to, std::size_t at) {
    std::copy(from.begin() + len(begin), from.begin() + len(end), to.begin() + len(at));
}

// The part [begin, end) to where it ends at `at`, later than it did.
template <class T>
void move_back(std::vector<T>& all, std::size_t begin, std::size_t end, std::size_t at) {
    std::copy_backward(all.begin() + len(begin), all.begin() + len(end), all.begin() + len(at));
}

}  // namespace

Index DifferenceRows::bytes() const {
    constexpr Index kRow = 2 * sizeof(std::uint32_t) + sizeof(double);
    return kRow * len(slots_.size()) + len(sizeof(std::uint32_t) * weights_.size() + sizeof(double) * values_.size());
}

void DifferenceRows::insert(std::span<const Index> slots, const PackedRows& rows, const double* costs) {
    if (weights_.size() + rows.indices.size() > std::numeric_limits<std::uint32_t>::max())
        throw InputError("labellings of one example have more than 2^32 features");
    const bool ones = std::all_of(rows.values.begin(), rows.values.end(), [](double x) { return x == 1.0; });
    if (!ones && !has_values()) values_.assign(weights_.size(), 1.0);
    const bool with_values = !ones || has_values();
    std::size_t old = slots_.size();
    std::size_t old_end = weights_.size();
    std::size_t k = slots.size();
    std::size_t used = weights_.size() + rows.indices.size();
    grow(slots_, k);
    grow(costs_, k);
    grow(ends_, k);
    grow(weights_, rows.indices.size());
    if (with_values) grow(values_, rows.values.size());
    // From the back, so that nothing is written over before it was moved.
    for (std::size_t to = slots_.size(); k > 0;) {
        ends_[--to] = static_cast<std::uint32_t>(used);
        if (old > 0 && Index{slots_[old - 1]} > slots[k - 1]) {
            const std::size_t end = std::exchange(old_end, --old > 0 ? ends_[old - 1] : 0);
            move_back(weights_, old_end, end, used);
            if (with_values) move_back(values_, old_end, end, used);
            used -= end - old_end;
            slots_[to] = slots_[old];
            costs_[to] = costs_[old];
        } else {
            const std::size_t begin = rows.begin(--k);
            used -= rows.ends[k] - begin;
            copy_part(rows.indices, begin, rows.ends[k], weights_, used);
            if (with_values) copy_part(rows.values, begin, rows.ends[k], values_, used);
            slots_[to] = static_cast<std::uint32_t>(slots[k]);
            costs_[to] = costs[slots[k]];
        }
    }
}

void DifferenceRows::retain(const double* keep) {
    std::size_t to = 0;
    std::size_t used = 0;
    std::size_t begin = 0;
    for (std::size_t k = 0; k < slots_.size(); ++k) {
        const std::size_t end = ends_[k];
        if (keep[slots_[k]] != 0.0) {
            copy_part(weights_, begin, end, weights_, used);
            if (has_values()) copy_part(values_, begin, end, values_, used);
            used += end - begin;
            slots_[to] = slots_[k];
            costs_[to] = costs_[k];
            ends_[to++] = static_cast<std::uint32_t>(used);
        }
        begin = end;
    }
    slots_.resize(to);
    costs_.resize(to);
    ends_.resize(to);
    weights_.resize(used);
    if (!has_values()) return;
    values_.resize(used);
    // Whether they are stored is a matter of the rows that there are, not of those that there were.
    if (std::all_of(values_.begin(), values_.end(), [](double x) { return x == 1.0; })) values_.clear();
}

namespace {

// <row, w> + first: four sums, so that additions do not wait for each other.
template <bool HasValues>
double row_sum(const std::uint32_t* __restrict weight, const double* __restrict value, std::size_t n,
               const double* __restrict w, double first) {
    const auto term = [&](std::size_t j) { return HasValues ? value[j] * w[weight[j]] : w[weight[j]]; };
    double a = first;
    double b = 0;
    double c = 0;
    double d = 0;
    std::size_t j = 0;
    for (; j + 4 <= n; j += 4) {
        a += term(j);
        b += term(j + 1);
        c += term(j + 2);
        d += term(j + 3);
    }
    for (; j < n; ++j) a += term(j);
    return (a + b) + (c + d);
}

}  // namespace

void DifferenceRows::scores(const double* w, double scale, double* out) const {
    std::size_t begin = 0;
    for (std::size_t k = 0; k < slots_.size(); ++k) {
        const std::uint32_t* weights = weights_.data() + begin;
        const std::size_t n = ends_[k] - begin;
        const double first = scale * costs_[k];
        out[slots_[k]] = has_values() ? row_sum<true>(weights, values_.data() + begin, n, w, first)
                                      : row_sum<false>(weights, nullptr, n, w, first);
        begin = ends_[k];
    }
}

void DifferenceRows::costs(double* out) const {
    for (std::size_t k = 0; k < slots_.size(); ++k) out[slots_[k]] = costs_[k];
}

void DifferenceRows::prefetch() const {
    prefetch_begin(slots_);
    prefetch_begin(costs_);
    prefetch_begin(ends_);
    prefetch_begin(weights_);
    prefetch_begin(values_);
}

template <class F>
void DifferenceRows::for_each_used(const double* slots, F&& f) const {
    std::size_t begin = 0;
    for (std::size_t k = 0; k < slots_.size(); ++k) {
        const std::size_t end = ends_[k];
        if (const double x = slots[slots_[k]]; x != 0.0) f(x, begin, end);
        begin = end;
    }
}

void DifferenceRows::add(const double* slots, double scale, double* __restrict w) const {
    const std::uint32_t* __restrict weight = weights_.data();
    const double* __restrict value = values_.data();
    for_each_used(slots, [&](double x, std::size_t begin, std::size_t end) {
        const double d = scale * x;
        if (has_values()) {
            for (std::size_t j = begin; j < end; ++j) w[weight[j]] += d * value[j];
        } else {
            for (std::size_t j = begin; j < end; ++j) w[weight[j]] += d;
        }
    });
}

void DifferenceRows::clear(const double* slots, double* w) const {
    for_each_used(slots, [&](double, std::size_t begin, std::size_t end) {
        for (std::size_t j = begin; j < end; ++j) w[weights_[j]] = 0.0;
    });
}

}  // namespace partwise
