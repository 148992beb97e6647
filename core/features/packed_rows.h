// Sparse rows end to end, as those of a feature map, A_i' e_r, for some of an example's slots r.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "support/types.h"

namespace partwise {

// No index twice in a row, and no zeros.
struct PackedRows {
    std::vector<std::uint32_t> ends;
    std::vector<std::uint32_t> indices;
    std::vector<double> values;

    std::size_t size() const { return ends.size(); }
    std::size_t begin(std::size_t k) const { return k > 0 ? ends[k - 1] : 0; }
    void clear() {
        ends.clear();
        indices.clear();
        values.clear();
    }
    void append(Index index, double value) {
        if (value == 0.0) return;
        indices.push_back(static_cast<std::uint32_t>(index));
        values.push_back(value);
    }
    void finish_row() { ends.push_back(static_cast<std::uint32_t>(indices.size())); }
};

// Makes rows of entries that come in another order.
class RowCollector {
   public:
    explicit RowCollector(std::size_t num_rows) : sizes_(num_rows, 0) { entries_.reserve(kUsual * num_rows); }

    // Entries of the same row and index come one after the other, and add up.
    void add(std::size_t row, Index index, double value) {
        entries_.push_back({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(index), value});
        ++sizes_[row];
    }

    // Appends the rows, the entries of each in the order in which they came.
    void finish(PackedRows& out) {
        std::size_t sum = 0;
        for (std::size_t& size : sizes_) sum += std::exchange(size, sum);  // now: where a row begins
        sorted_.resize(entries_.size());
        for (const Entry& entry : entries_) sorted_[sizes_[entry.row]++] = entry;  // now: where it ends
        std::size_t k = 0;
        for (const std::size_t end : sizes_) {
            while (k < end) {
                const std::uint32_t index = sorted_[k].index;
                double value = 0;
                for (; k < end && sorted_[k].index == index; ++k) value += sorted_[k].value;
                out.append(index, value);
            }
            out.finish_row();
        }
    }

   private:
    struct Entry {
        std::uint32_t row;
        std::uint32_t index;
        double value;
    };
    static constexpr std::size_t kUsual = 32;  // entries of a row
    std::vector<std::size_t> sizes_;
    std::vector<Entry> entries_;
    std::vector<Entry> sorted_;
};

}  // namespace partwise
