#include <functional>

#include "features/segments.h"
#include "support/sizes.h"

namespace partwise {

namespace {

constexpr Index kMostInt32 = std::numeric_limits<std::int32_t>::max();

// Names the slot of entry k of a table, for messages.
std::string slot_of(const SlotTable& table, Index k) {
    const auto row = std::upper_bound(table.row_ptr.begin(), table.row_ptr.end(), k) - table.row_ptr.begin() - 1;
    const auto i = std::upper_bound(table.slot_ptr.begin(), table.slot_ptr.end(), row) - table.slot_ptr.begin() - 1;
    return "slot " + std::to_string(row - table.slot_ptr[i]) + " of example " + std::to_string(i);
}

void check(const SlotTable& table, Index num_weights) {
    if (num_weights < 0 || num_weights > kMostInt32) throw InputError("the number of features is out of range");
    check_pointers(table.row_ptr, len(table.features.size()), "row_ptr");
    check_pointers(table.slot_ptr, len(table.row_ptr.size()) - 1, "slot_ptr");
    if (longest_row(table.slot_ptr) > kMostInt32) too_large("the number of slots of an example");
    const auto name = [&](Index k) { return slot_of(table, k) + ": feature " + std::to_string(table.features[k]); };
    for (std::size_t k = 0; k < table.values.size(); ++k) {
        if (!std::isfinite(table.values[k])) throw InputError(name(len(k)), " has a value that is NaN or infinite");
    }
    check_values(table.values, name);
    for (std::size_t k = 0; k < table.features.size(); ++k) {
        if (table.features[k] < -1 || table.features[k] >= num_weights)
            throw InputError(name(len(k)), " is out of range, there are ", num_weights);
    }
}

// Vectors of counts with at most `uses` per slot and `parts` in total.
struct Counts {
    Index uses;
    Index parts;
    Index n_slots = parts / uses + (parts % uses != 0);  // the most slots that can have a count

    // max <count, x>: the largest values of x with the largest counts. Changes the order of x.
    double largest_sum(std::vector<double>& x) const {
        const Index n = std::min(len(x.size()), n_slots);
        if (n == n_slots) std::partial_sort(x.begin(), x.begin() + n, x.end(), std::greater<>());
        double sum = 0;
        Index left = parts;
        for (Index k = 0; k < n; ++k, left -= uses)
            sum += static_cast<double>(std::min(uses, left)) * std::max(x[k], 0.0);
        return sum;
    }

    // max <count, x> - min <count, x>
    double range(std::vector<double>& x) const {
        if (n_slots == 1) {
            double low = 0;
            double high = 0;
            for (const double v : x) {
                low = std::min(low, v);
                high = std::max(high, v);
            }
            return static_cast<double>(parts) * (high - low);
        }
        const double highest = largest_sum(x);
        for (double& v : x) v = -v;
        return highest + largest_sum(x);
    }
};

}  // namespace

SlotSegment::SlotSegment(const SlotTable& table, Index num_weights, Index uses, Index parts)
    : num_weights_(num_weights), uses_(uses), parts_(parts), row_length_(longest_row(table.row_ptr)) {
    check(table, num_weights);
    if (uses < 1) throw InputError("uses must be at least 1");
    if (parts < 1) throw InputError("parts must be at least 1");
    std::vector<std::pair<Entry, double>> cells;
    bool binary = true;
    ptr_.assign(1, 0);
    for (std::size_t i = 0; i + 1 < table.slot_ptr.size(); ++i) {
        const Index first = table.slot_ptr[i];
        const Index n = table.slot_ptr[i + 1] - first;
        cells.clear();
        for (Index r = 0; r < n; ++r) {
            for (Index k = table.row_ptr[first + r]; k < table.row_ptr[first + r + 1]; ++k) {
                if (table.features[k] < 0) continue;
                cells.emplace_back(Entry{static_cast<std::int32_t>(table.features[k]), static_cast<std::int32_t>(r)},
                                   table.values.empty() ? 1.0 : table.values[k]);
            }
        }
        for_each_merged(cells, [&](const Entry& entry, double sum) {
            if (sum == 0.0) return;
            entries_.push_back(entry);
            values_.push_back(sum);
            binary = binary && sum == 1.0;
        });
        n_slots_.push_back(static_cast<std::int32_t>(n));
        ptr_.push_back(len(entries_.size()));
    }
    if (binary) std::vector<double>().swap(values_);
}

std::span<const SlotSegment::Entry> SlotSegment::entries(Index i) const {
    return std::span(entries_).subspan(ptr_[i], ptr_[i + 1] - ptr_[i]);
}

void SlotSegment::scores(Index i, const double* w, double* out) const {
    fill(out, num_slots(i), 0.0);
    const double* value = values(i);
    std::size_t k = 0;
    for (const Entry& entry : entries(i)) out[entry.slot] += (value ? value[k++] : 1.0) * w[entry.feature];
}

template <class F>
void SlotSegment::visit(Index i, const double* slots, F&& f) const {
    const std::span<const Entry> all = entries(i);
    const double* value = values(i);
    for (std::size_t k = 0; k < all.size();) {
        const std::int32_t feature = all[k].feature;
        double sum = 0;
        for (; k < all.size() && all[k].feature == feature; ++k) sum += (value ? value[k] : 1.0) * slots[all[k].slot];
        f(Index{feature}, sum);
    }
}

Added SlotSegment::add_transpose(Index i, const double* slots, double scale, double* w) const {
    Added added;
    visit(i, slots, [&](Index feature, double v) {
        added += {v * v, v * w[feature]};
        w[feature] += scale * v;
    });
    return added;
}

Added SlotSegment::add_transpose_shrunk(Index i, const double* slots, double scale, const ShrunkWeights& to) const {
    Shrinking<1> sums(to);
    visit(i, slots, [&](Index feature, double v) { sums.move(0, scale * v, to.u[feature], to.w[feature]); });
    return Added::of(sums, scale);
}

void SlotSegment::add_squares_of(Index begin, Index end, const double* slots, double* w) const {
    for (Index i = begin; i < end; slots += num_slots(i), ++i) {
        const double* value = values(i);
        std::size_t k = 0;
        for (const Entry& entry : entries(i)) {
            const double x = value ? value[k++] : 1.0;
            w[entry.feature] += slots[entry.slot] * x * x;
        }
    }
}

void SlotSegment::append_projection(Index i, const double* slots, Index first, SparseVector& out) const {
    visit(i, slots, [&](Index feature, double v) { out.append(first + feature, &v, 1); });
}

void SlotSegment::slot_rows(Index i, std::span<const Index> slots, Index first, PackedRows& out) const {
    std::vector<std::int32_t> place(num_slots(i), -1);
    for (std::size_t q = 0; q < slots.size(); ++q) place[slots[q]] = static_cast<std::int32_t>(q);
    RowCollector rows(slots.size());
    const double* value = values(i);
    std::size_t k = 0;
    for (const Entry& entry : entries(i)) {
        const double x = value ? value[k++] : 1.0;
        if (const std::int32_t q = place[entry.slot]; q >= 0) rows.add(q, first + entry.feature, x);
    }
    rows.finish(out);
}

double SlotSegment::transpose_norm2(Index i, const double* slots) const {
    double sum = 0;
    visit(i, slots, [&](Index, double v) { sum += v * v; });
    return sum;
}

// The smaller of two bounds. (1) Coordinate j of A' count(y) lies between the smallest and the largest sum of column j
// over the parts of a labelling, or 0. (2) Two labellings differ by at most 2 * parts rows of A, each taken at most
// `uses` times, so |A' (count(y) - count(z))| is at most the largest such sum of row norms.
double SlotSegment::psi2_bound(Index i) const {
    const Counts counts{uses_, parts_};
    const Counts differences{uses_, parts_ > kAnyNumber / 2 ? kAnyNumber : 2 * parts_};
    const std::span<const Entry> all = entries(i);
    const double* value = values(i);
    std::vector<double> norms(num_slots(i), 0.0);
    std::vector<double> column;
    double ranges = 0;
    for (std::size_t k = 0; k < all.size();) {
        const std::int32_t feature = all[k].feature;
        column.clear();
        for (; k < all.size() && all[k].feature == feature; ++k) {
            const double v = value ? value[k] : 1.0;
            norms[all[k].slot] += v * v;
            column.push_back(v);
        }
        const double range = counts.range(column);
        ranges += range * range;
    }
    for (double& v : norms) v = std::sqrt(v);
    const double both = differences.largest_sum(norms);
    return std::min(ranges, both * both);
}

}  // namespace partwise
