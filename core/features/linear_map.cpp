#include <algorithm>
#include <cmath>

#include "features/feature_map.h"
#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

void FeatureMap::scores_of(Index begin, Index end, const double* w, double* out) const {
    for (Index i = begin; i < end; ++i) {
        scores(i, w, 1.0, out);
        out += num_slots(i);
    }
}

double FeatureMap::reach(Index i) const { return std::sqrt(psi2_bound(i)); }

namespace {

template <class Map>
void norms2_of_units(const Map& map, Index i, double* out) {
    std::vector<double> unit(idx(map.num_slots(i)), 0.0);
    for (std::size_t r = 0; r < unit.size(); ++r) {
        unit[r] = 1.0;
        out[r] = map.transpose_norm2(i, unit.data());
        unit[r] = 0.0;
    }
}

}  // namespace

void FeatureMap::slot_norms2(Index i, double* out) const { norms2_of_units(*this, i, out); }

void Segment::slot_norms2(Index i, double* out) const { norms2_of_units(*this, i, out); }

namespace {

// Slot by slot, from what one slot projects to: project(slots, vector).
template <class F>
void rows_of_units(Index n, std::span<const Index> slots, PackedRows& out, F&& project) {
    std::vector<double> unit(idx(n), 0.0);
    SparseVector row;
    for (const Index r : slots) {
        unit[idx(r)] = 1.0;
        row.clear();
        project(unit.data(), row);
        unit[idx(r)] = 0.0;
        for (const SparseVector::Run& run : row.runs()) {
            const double* x = row.values(run);
            for (Index k = 0; k < run.length; ++k) out.append(run.start + k, x[k]);
        }
        out.finish_row();
    }
}

}  // namespace

void FeatureMap::slot_rows(Index i, std::span<const Index> slots, PackedRows& out) const {
    rows_of_units(num_slots(i), slots, out, [&](const double* unit, SparseVector& row) { project(i, unit, row); });
}

void Segment::slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const {
    rows_of_units(num_slots(i), slots, out,
                  [&](const double* unit, SparseVector& row) { project(i, unit, first, row); });
}

void FeatureMap::add_transpose_of(Index begin, Index end, const double* slots, double* w) const {
    for (Index i = begin; i < end; ++i) {
        add_transpose(i, slots, 1.0, w);
        slots += num_slots(i);
    }
}

namespace {

// Slot by slot, from what one slot projects to: project(i, slots, vector).
template <class F>
void add_squares(Index n, const double* slots, double* w, F&& project) {
    std::vector<double> unit(idx(n), 0.0);
    SparseVector row;
    for (Index r = 0; r < n; ++r) {
        if (slots[r] == 0.0) continue;
        unit[idx(r)] = 1.0;
        row.clear();
        project(unit.data(), row);
        unit[idx(r)] = 0.0;
        for (const SparseVector::Run& run : row.runs()) {
            const double* x = row.values(run);
            for (Index k = 0; k < run.length; ++k) w[run.start + k] += slots[r] * x[k] * x[k];
        }
    }
}

Added add_shrunk(const SparseVector& v, double scale, const ShrunkWeights& to) {
    Shrinking<1> sums(to);
    for (const SparseVector::Run& run : v.runs()) {
        const double* values = v.values(run);
        for (Index k = 0; k < run.length; ++k) {
            sums.move(0, scale * values[k], to.u[run.start + k], to.w[run.start + k]);
        }
    }
    return Added::of(sums, scale);
}

}  // namespace

Added FeatureMap::add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const {
    SparseVector v;
    project(i, slots, v);
    return add_shrunk(v, scale, to);
}

Added Segment::add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const {
    SparseVector v;
    project(i, slots, 0, v);
    return add_shrunk(v, scale, to);
}

void FeatureMap::add_squares_of(Index begin, Index end, const double* slots, double* w) const {
    for (Index i = begin; i < end; slots += num_slots(i), ++i) {
        add_squares(num_slots(i), slots, w, [&](const double* unit, SparseVector& out) { project(i, unit, out); });
    }
}

void Segment::add_squares_of(Index begin, Index end, const double* slots, double* w) const {
    for (Index i = begin; i < end; slots += num_slots(i), ++i) {
        add_squares(num_slots(i), slots, w, [&](const double* unit, SparseVector& out) { project(i, unit, 0, out); });
    }
}

void Segment::scores_of(Index begin, Index end, const double* w, double* out) const {
    for (Index i = begin; i < end; ++i) {
        scores(i, w, out);
        out += num_slots(i);
    }
}

void Segment::add_transpose_of(Index begin, Index end, const double* slots, double* w) const {
    for (Index i = begin; i < end; ++i) {
        add_transpose(i, slots, 1.0, w);
        slots += num_slots(i);
    }
}

double Segment::weights_dot(const double* w, const double* v, int, Interrupt&) const {
    return partwise::dot(w, v, num_weights());
}

LinearMap::LinearMap(std::vector<std::shared_ptr<const Segment>> segments) : segments_(std::move(segments)) {
    if (segments_.empty()) throw InputError("a feature map needs at least one segment");
    num_examples_ = segments_.front()->num_examples();
    for (const auto& segment : segments_) {
        if (segment->num_examples() != num_examples_) {
            throw InputError("segments disagree on the number of examples: " + std::to_string(num_examples_) + " and " +
                             std::to_string(segment->num_examples()));
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

double LinearMap::dot(const double* w, const double* v, int n_jobs, Interrupt& interrupt) const {
    double sum = 0;
    Index first = 0;
    for (const auto& segment : segments_) {
        sum += segment->weights_dot(w + first, v + first, n_jobs, interrupt);
        first += segment->num_weights();
    }
    return sum;
}

void LinearMap::scores(Index i, const double* w, double scale, double* out) const {
    for (const auto& segment : segments_) {
        const Index n = segment->num_slots(i);
        segment->scores(i, w, out);
        if (scale != 1.0) {
            for (Index r = 0; r < n; ++r) out[r] *= scale;
        }
        w += segment->num_weights();
        out += n;
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
    add_by_segment(begin, end, slots, w, &Segment::add_transpose_of);
}

void LinearMap::add_squares_of(Index begin, Index end, const double* slots, double* w) const {
    add_by_segment(begin, end, slots, w, &Segment::add_squares_of);
}

void LinearMap::add_by_segment(Index begin, Index end, const double* slots, double* w, SegmentSum sum) const {
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

void LinearMap::project(Index i, const double* slots, SparseVector& out) const {
    if (!explicit_weights_) throw InputError("a map without explicit weights has no vectors of weight space");
    out.clear();
    Index first = 0;
    for (const auto& segment : segments_) {
        segment->project(i, slots, first, out);
        first += segment->num_weights();
        slots += segment->num_slots(i);
    }
    out.finish();
}

void LinearMap::slot_rows(Index i, std::span<const Index> slots, PackedRows& out) const {
    if (!explicit_weights_) throw InputError("a map without explicit weights has no vectors of weight space");
    std::vector<Index> own;  // slots of one segment
    Index first = 0;
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
