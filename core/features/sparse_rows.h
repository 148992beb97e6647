// Sparse vectors of weight space: one as runs of neighbouring weights, and many rows end to end.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "support/types.h"
#include "support/vector_math.h"

namespace partwise {

// A merged sparse vector, kept as runs of neighbouring weights (feature rows are such runs).
class SparseVector {
   public:
    struct Run {
        Index start;  // in weight space
        Index length;
        Index offset;  // in values
    };

    void clear() {
        runs_.clear();
        values_.clear();
    }
    // Runs may come in any order but must not overlap; one that goes on where the last ended makes it longer.
    // finish() sorts them.
    void append(Index start, const double* values, Index length) {
        if (!runs_.empty() && runs_.back().start + runs_.back().length == start) {
            runs_.back().length += length;
        } else {
            runs_.push_back({start, length, len(values_.size())});
        }
        values_.insert(values_.end(), values, values + length);
    }
    void finish() {
        std::sort(runs_.begin(), runs_.end(), [](const Run& p, const Run& q) { return p.start < q.start; });
    }

    const std::vector<Run>& runs() const { return runs_; }
    const double* values(const Run& run) const { return values_.data() + run.offset; }
    Index num_values() const { return len(values_.size()); }

    double norm2() const { return partwise::norm2(values_.data(), len(values_.size())); }

    double dot(const double* weights) const {
        double sum = 0;
        for (const Run& run : runs_) sum += partwise::dot(values(run), weights + run.start, run.length);
        return sum;
    }

    double dot(const SparseVector& other) const {
        double sum = 0;
        auto p = runs_.begin();
        auto q = other.runs_.begin();
        while (p != runs_.end() && q != other.runs_.end()) {
            const Index begin = std::max(p->start, q->start);
            const Index end = std::min(p->start + p->length, q->start + q->length);
            if (begin < end) {
                sum +=
                    partwise::dot(values(*p) + (begin - p->start), other.values(*q) + (begin - q->start), end - begin);
            }
            if (p->start + p->length < q->start + q->length) {
                ++p;
            } else {
                ++q;
            }
        }
        return sum;
    }

    void axpy(double scale, double* weights) const {
        for (const Run& run : runs_) partwise::axpy(scale, values(run), weights + run.start, run.length);
    }

   private:
    std::vector<Run> runs_;
    std::vector<double> values_;
};

// f(key, sum of its values) for each key, in ascending order. Entries are sorted; those of one key add up in their order.
template <class Key, class F>
void for_each_merged(std::vector<std::pair<Key, double>>& entries, F&& f) {
    const auto before = [](const auto& p, const auto& q) { return p.first < q.first; };
    if (!std::is_sorted(entries.begin(), entries.end(), before)) {
        std::stable_sort(entries.begin(), entries.end(), before);
    }
    for (std::size_t k = 0; k < entries.size();) {
        const Key key = entries[k].first;
        double sum = 0;
        for (; k < entries.size() && entries[k].first == key; ++k) sum += entries[k].second;
        f(key, sum);
    }
}

// Sparse rows end to end, as those of a feature map, A_i' e_r, for some of an example's slots r. No index twice in a row,
// and no zeros.
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
