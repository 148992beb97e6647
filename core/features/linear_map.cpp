
#include "features/feature_map.h"
#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

void FeatureMap::scores_of(Index begin, Index end, const double* w, double* out) const {
    for (Index i = begin; i < end; ++i) {
        scores(i, w, out);
        out += num_slots(i);
    }
}

double FeatureMap::reach(Index i) const { return std::sqrt(psi2_bound(i)); }

void FeatureMap::need_explicit_weights() const {
    if (!explicit_weights()) throw InputError("a map without explicit weights has no vectors of weight space");
}

double FeatureMap::weights_dot(const double* w, const double* v, int, Interrupt&) const {
    return partwise::dot(w, v, num_weights());
}

void FeatureMap::project(Index i, const double* slots, SparseVector& out) const {
    need_explicit_weights();
    out.clear();
    append_projection(i, slots, 0, out);
    out.finish();
}

void FeatureMap::slot_norms2(Index i, double* out) const {
    std::vector<double> unit(num_slots(i), 0.0);
    for (std::size_t r = 0; r < unit.size(); ++r) {
        unit[r] = 1.0;
        out[r] = transpose_norm2(i, unit.data());
        unit[r] = 0.0;
    }
}

void FeatureMap::add_transpose_of(Index begin, Index end, const double* slots, double* w) const {
    for (Index i = begin; i < end; ++i) {
        add_transpose(i, slots, 1.0, w);
        slots += num_slots(i);
    }
}

Added FeatureMap::add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const {
    SparseVector v;
    append_projection(i, slots, 0, v);
    Shrinking<1> sums(to);
    for (const SparseVector::Run& run : v.runs()) {
        const double* values = v.values(run);
        for (Index k = 0; k < run.length; ++k) {
            sums.move(0, scale * values[k], to.u[run.start + k], to.w[run.start + k]);
        }
    }
    return Added::of(sums, scale);
}

void FeatureMap::add_squares_of(Index begin, Index end, const double* slots, double* w) const {
    PackedRows row;
    for (Index i = begin; i < end; slots += num_slots(i), ++i) {
        for (Index r = 0; r < num_slots(i); ++r) {
            if (slots[r] == 0.0) continue;
            row.clear();
            slot_rows(i, {&r, 1}, 0, row);
            for (std::size_t k = 0; k < row.indices.size(); ++k) {
                w[row.indices[k]] += slots[r] * row.values[k] * row.values[k];
            }
        }
    }
}

LinearMap::LinearMap(std::vector<std::shared_ptr<const Segment>> segments) : segments_(std::move(segments)) {
    if (segments_.empty()) throw InputError("a feature map needs at least one segment");
    num_examples_ = segments_.front()->num_examples();
    for (const auto& segment : segments_) {
        if (segment->num_examples() != num_examples_) {
            throw InputError("segments disagree on the number of examples: ", num_examples_, " and ",
                             segment->num_examples());
        }
        num_weights_ = checked_sum(num_weights_, segment->num_weights(), "the number of weights");
        explicit_weights_ = explicit_weights_ && segment->explicit_weights();
    }
    for (Index i = 0; i < num_examples_; ++i) {
        Index n = 0;
        for (const auto& segment : segments_) n = checked_sum(n, segment->num_slots(i), "the number of slots");
    }
}

Index LinearMap::num_slots(Index i) const {
    Index n = 0;
    for (const auto& segment : segments_) n += segment->num_slots(i);
    return n;
}

double LinearMap::weights_dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const {
    double sum = 0;
    Index first = 0;
    for (const auto& segment : segments_) {
        sum += segment->weights_dot(w + first, v + first, n_jobs, interrupt);
        first += segment->num_weights();
    }
    return sum;
}

void LinearMap::scores(Index i, const double* w, double* out) const {
    for (const auto& segment : segments_) {
        segment->scores(i, w, out);
        w += segment->num_weights();
        out += segment->num_slots(i);
    }
}

Added LinearMap::add_transpose(Index i, const double* slots, double scale, double* w) const {
    Added sum;
    for (const auto& segment : segments_) {
        sum += segment->add_transpose(i, slots, scale, w);
        w += segment->num_weights();
        slots += segment->num_slots(i);
    }
    return sum;
}

Added LinearMap::add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const {
    Added sum;
    Index first = 0;
    for (const auto& segment : segments_) {
        sum += segment->add_transpose_shrunk(i, slots, scale, to.from(first));
        first += segment->num_weights();
        slots += segment->num_slots(i);
    }
    return sum;
}

void LinearMap::scores_of(Index begin, Index end, const double* w, double* out) const {
    if (segments_.size() > 1) return FeatureMap::scores_of(begin, end, w, out);
    segments_.front()->scores_of(begin, end, w, out);
}

void LinearMap::add_transpose_of(Index begin, Index end, const double* slots, double* w) const {
    add_by_segment(begin, end, slots, w, &FeatureMap::add_transpose_of);
}

void LinearMap::add_squares_of(Index begin, Index end, const double* slots, double* w) const {
    add_by_segment(begin, end, slots, w, &FeatureMap::add_squares_of);
}

void LinearMap::add_by_segment(Index begin, Index end, const double* slots, double* w, Sum sum) const {
    if (segments_.size() == 1) return ((*segments_.front()).*sum)(begin, end, slots, w);
    for (Index i = begin; i < end; ++i) {
        double* first = w;
        for (const auto& segment : segments_) {
            ((*segment).*sum)(i, i + 1, slots, first);
            first += segment->num_weights();
            slots += segment->num_slots(i);
        }
    }
}

void LinearMap::append_projection(Index i, const double* slots, Index first, SparseVector& out) const {
    for (const auto& segment : segments_) {
        segment->append_projection(i, slots, first, out);
        first += segment->num_weights();
        slots += segment->num_slots(i);
    }
}

void LinearMap::slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const {
    need_explicit_weights();
    std::vector<Index> own;  // the requested slots that belong to one segment
    Index first_slot = 0;
    auto slot = slots.begin();
    for (const auto& segment : segments_) {
        const Index end = first_slot + segment->num_slots(i);
        own.clear();
        for (; slot != slots.end() && *slot < end; ++slot) own.push_back(*slot - first_slot);
        if (!own.empty()) segment->slot_rows(i, own, first, out);
        first += segment->num_weights();
        first_slot = end;
    }
}

double LinearMap::transpose_norm2(Index i, const double* slots) const {
    double sum = 0;
    for (const auto& segment : segments_) {
        sum += segment->transpose_norm2(i, slots);
        slots += segment->num_slots(i);
    }
    return sum;
}

void LinearMap::slot_norms2(Index i, double* out) const {
    for (const auto& segment : segments_) {
        segment->slot_norms2(i, out);
        out += segment->num_slots(i);
    }
}

double LinearMap::psi2_bound(Index i) const {
    double sum = 0;
    for (const auto& segment : segments_) sum += segment->psi2_bound(i);
    return sum;
}

Index LinearMap::row_length() const {
    Index longest = 0;
    for (const auto& segment : segments_) longest = std::max(longest, segment->row_length());
    return longest;
}

}  // namespace partwise
