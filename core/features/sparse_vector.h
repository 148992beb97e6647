// A merged sparse vector of weight space, kept as runs of neighbouring weights (feature rows are such runs).
#pragma once

#include <algorithm>
#include <vector>

#include "support/types.h"
#include "support/vector_math.h"

namespace partwise {

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

}  // namespace partwise
