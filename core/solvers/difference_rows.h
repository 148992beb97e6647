// The rows A'e_r of those slots of one example in which labellings that are kept differ from gold, with the slots'
// costs. Many labellings differ in the same few slots: a sweep reads and writes each row once for all of them.
#pragma once

#include <span>
#include <vector>

#include "features/sparse_rows.h"

namespace partwise {

class DifferenceRows {
   public:
    std::span<const std::uint32_t> slots() const { return slots_; }  // ascending
    // Numbers in all rows.
    Index num_values() const { return len(weights_.size()); }
    Index bytes() const;

    // Rows of new slots, which ascend; `costs` has a value for every slot of the example.
    void insert(std::span<const Index> slots, const PackedRows& rows, const double* costs);
    // Forgets the rows of slots where keep, a value per slot of the example, is 0.
    void retain(const double* keep);

    // out[r] = <A'e_r, w> + scale * cost of r, for each row's slot r. The order of sums depends on the row alone.
    void scores(const double* w, double scale, double* out) const;
    // out[r] = cost of r, for each row's slot r
    void costs(double* out) const;
    // w += scale * sum over rows of slots[r] A'e_r, in the order of slots
    void add(const double* slots, double scale, double* w) const;
    void prefetch() const;
    // w = 0 under the rows of slots that are not 0.
    void clear(const double* slots, double* w) const;

   private:
    // f(slots[r], where row r begins, where it ends) for the rows of slots that are not 0
    template <class F>
    void for_each_used(const double* slots, F&& f) const;
    // Whether values are stored: not while all are 1.
    bool has_values() const { return !values_.empty(); }

    std::vector<std::uint32_t> slots_;
    std::vector<double> costs_;
    std::vector<std::uint32_t> ends_;
    std::vector<std::uint32_t> weights_;
    std::vector<double> values_;
};

}  // namespace partwise
