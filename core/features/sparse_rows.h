// Sparse vectors of weight space: a single vector as runs of neighbouring weights, and many rows in one array.
#pragma once

#include <utility>

#include "support/vector_math.h"

namespace partwise {

// A sparse vector with each weight at most once, stored as runs of neighbouring weights (feature rows are such runs).
class SparseVector {
   public:
    struct Run {
        Index start;  // index of the run's first weight
        Index length;
        Index offset;  // index of its first value in `values`
    };

    void clear() {
        runs_.clear();
        values_.clear();
    }
    // Runs may come in any order but must not overlap; a run that begins where the last one ended extends it. finish()
    // sorts the runs.
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

// Calls f(key, sum of its values) for each key, ascending. Entries are sorted; equal keys are summed in their order.
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

// Sparse rows in one array, for example the rows A_i' e_r of a feature map for some slots r of example i. A row has
// each index at most once, and no zeros.
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

// Collects entries in any order of rows and packs them into PackedRows.
class RowCollector {
   public:
    explicit RowCollector(std::size_t num_rows) : sizes_(num_rows, 0) { entries_.reserve(kUsual * num_rows); }

    // Entries of the same row and index must be added in succession (other rows may come between); their values add up.
    void add(std::size_t row, Index index, double value) {
        entries_.push_back({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(index), value});
        ++sizes_[row];
    }

    // Appends the rows; each row keeps its entries in the order in which they were added.
    void finish(PackedRows& out) {
        std::size_t sum = 0;
        for (std::size_t& size : sizes_) sum += std::exchange(size, sum);  // the size of each row becomes its beginning
        sorted_.resize(entries_.size());
        for (const Entry& entry : entries_) sorted_[sizes_[entry.row]++] = entry;  // each beginning becomes an end
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
    // Entries per row that the constructor reserves memory for; rows may have more.
    static constexpr std::size_t kUsual = 32;
    std::vector<std::size_t> sizes_;
    std::vector<Entry> entries_;
    std::vector<Entry> sorted_;
};

}  // namespace partwise
