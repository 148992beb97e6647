// The rows A'e_r of those slots r of one example in which its kept labellings differ from the gold labelling, with the
// slots' costs. Many labellings differ in the same few slots: a sweep reads and writes each row once for all of them.
#pragma once

#include <utility>

#include "features/sparse_rows.h"

namespace partwise {

// Prefetches memory before its use.
constexpr std::size_t kCacheLine = 64;

inline void prefetch_bytes(const void* memory, std::size_t size) {
    const char* first = static_cast<const char*>(memory);
    for (std::size_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(first + at);
}

// Prefetches an object itself, not what it points to.
template <class T>
void prefetch_object(const T& object) {
    prefetch_bytes(&object, sizeof(T));
}

// Prefetches the beginning of a vector: the processor's own prefetcher fetches the rest.
template <class T>
void prefetch_begin(const std::vector<T>& values) {
    constexpr std::size_t kMost = 64 * kCacheLine;
    prefetch_bytes(values.data(), std::min(values.size() * sizeof(T), kMost));
}

class DifferenceRows {
   public:
    std::span<const std::uint32_t> slots() const { return slots_; }  // ascending
    Index num_values() const { return len(weights_.size()); }
    Index bytes() const {
        constexpr Index kRow = 2 * sizeof(std::uint32_t) + sizeof(double);
        return kRow * len(slots_.size()) +
               len(sizeof(std::uint32_t) * weights_.size() + sizeof(double) * values_.size());
    }

    // Adds the rows of new slots, which are in ascending order; `costs` has a value for every slot of the example.
    void insert(std::span<const Index> slots, const PackedRows& rows, const double* costs) {
        if (weights_.size() + rows.indices.size() > std::numeric_limits<std::uint32_t>::max())
            throw InputError("labellings of one example have more than 2^32 features");
        const bool ones = std::all_of(rows.values.begin(), rows.values.end(), [](double x) { return x == 1.0; });
        if (!ones && !has_values()) values_.assign(weights_.size(), 1.0);
        const bool with_values = !ones || has_values();
        std::size_t old = slots_.size();
        std::size_t old_end = weights_.size();
        std::size_t k = slots.size();
        std::size_t used = weights_.size() + rows.indices.size();
        slots_.resize(slots_.size() + k);
        costs_.resize(costs_.size() + k);
        ends_.resize(ends_.size() + k);
        weights_.resize(weights_.size() + rows.indices.size());
        if (with_values) values_.resize(values_.size() + rows.values.size());
        // From the back, so that no row is overwritten before it has been moved.
        for (std::size_t to = slots_.size(); k > 0;) {
            ends_[--to] = static_cast<std::uint32_t>(used);
            if (old > 0 && Index{slots_[old - 1]} > slots[k - 1]) {
                const std::size_t end = std::exchange(old_end, --old > 0 ? ends_[old - 1] : 0);
                std::copy_backward(weights_.data() + old_end, weights_.data() + end, weights_.data() + used);
                if (with_values)
                    std::copy_backward(values_.data() + old_end, values_.data() + end, values_.data() + used);
                used -= end - old_end;
                slots_[to] = slots_[old];
                costs_[to] = costs_[old];
            } else {
                const std::size_t begin = rows.begin(--k);
                used -= rows.ends[k] - begin;
                std::copy(rows.indices.data() + begin, rows.indices.data() + rows.ends[k], weights_.data() + used);
                if (with_values)
                    std::copy(rows.values.data() + begin, rows.values.data() + rows.ends[k], values_.data() + used);
                slots_[to] = static_cast<std::uint32_t>(slots[k]);
                costs_[to] = costs[slots[k]];
            }
        }
    }
    // Removes the rows of slots where `keep`, which has a value per slot of the example, is 0.
    void retain(const double* keep) {
        std::size_t to = 0;
        std::size_t used = 0;
        std::size_t begin = 0;
        for (std::size_t k = 0; k < slots_.size(); ++k) {
            const std::size_t end = ends_[k];
            if (keep[slots_[k]] != 0.0) {
                std::copy(weights_.data() + begin, weights_.data() + end, weights_.data() + used);
                if (has_values()) std::copy(values_.data() + begin, values_.data() + end, values_.data() + used);
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
        // Whether values are stored must depend on the remaining rows only, not on the removed ones.
        if (std::all_of(values_.begin(), values_.end(), [](double x) { return x == 1.0; })) values_.clear();
    }

    // out[r] = <A'e_r, w> + scale * cost of r, for each row's slot r. A row's sum has the same order in every call.
    void scores(const double* w, double scale, double* out) const {
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
    // out[r] = cost of r, for each row's slot r
    void costs(double* out) const {
        for (std::size_t k = 0; k < slots_.size(); ++k) out[slots_[k]] = costs_[k];
    }
    // w += scale * sum over rows of slots[r] A'e_r, in the order of slots
    void add(const double* slots, double scale, double* __restrict w) const {
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
    void prefetch() const {
        prefetch_begin(slots_);
        prefetch_begin(costs_);
        prefetch_begin(ends_);
        prefetch_begin(weights_);
        prefetch_begin(values_);
    }
    // Sets w to 0 where the rows of nonzero slots have entries.
    void clear(const double* slots, double* w) const {
        for_each_used(slots, [&](double, std::size_t begin, std::size_t end) {
            for (std::size_t j = begin; j < end; ++j) w[weights_[j]] = 0.0;
        });
    }

   private:
    // Calls f(slots[r], begin of row r, end of row r) for the rows of nonzero slots.
    template <class F>
    void for_each_used(const double* slots, F&& f) const {
        std::size_t begin = 0;
        for (std::size_t k = 0; k < slots_.size(); ++k) {
            const std::size_t end = ends_[k];
            if (const double x = slots[slots_[k]]; x != 0.0) f(x, begin, end);
            begin = end;
        }
    }
    // <row, w> + first, as four partial sums, so that additions do not wait for each other.
    template <bool HasValues>
    static double row_sum(const std::uint32_t* __restrict weight, const double* __restrict value, std::size_t n,
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
    // Whether values are stored: they are not if all are 1.
    bool has_values() const { return !values_.empty(); }

    std::vector<std::uint32_t> slots_;
    std::vector<double> costs_;
    std::vector<std::uint32_t> ends_;
    std::vector<std::uint32_t> weights_;
    std::vector<double> values_;
};

}  // namespace partwise
