#include <algorithm>
#include <atomic>
#include <cmath>
#include <unordered_map>

#include "solvers/scaling.h"
#include "solvers/scaling_cells.h"

namespace partwise {

const ColumnAccess& scaling_columns(const Objective& objective) {
    const ColumnAccess* columns = objective.features().columns();
    if (!columns) throw InputError("the feature map has no column access");
    if (!(objective.structure().capabilities() & kOnePart))
        throw InputError("labellings of more than one part: weights cannot be changed one at a time here");
    if (!(objective.loss().temperature > 0.0)) throw InputError("temperature must be above 0 here");
    if (!objective.loss().link.fixed_mass()) throw InputError("the link must be the identity here");
    return *columns;
}

std::vector<double> unit_weights(const Objective& objective, const ColumnAccess& columns) {
    std::vector<double> ones(objective.features().num_weights(), 0.0);
    for (Index k = 0; k < columns.num_columns(); ++k) ones[columns.column(k).weight] = 1.0;
    return ones;
}

namespace {

// P_w(.|x) of one example; above 0 at moderate weights, such as 0, for the slots that are labellings.
void probabilities(const Objective& objective, const double* weights, Index i, double* row, Workspace& ws) {
    Workspace::Frame frame(ws);
    double* scores = frame.take(objective.num_slots(i));
    objective.features().scores(i, weights, scores);
    objective.add_cost(i, objective.loss().cost_scale, scores);
    objective.structure().log_partition(i, scores, objective.loss().temperature, row, nullptr, ws);
}

}  // namespace

void scaling_refresh(const Objective& objective, const double* weights, double* potentials, double* inverse, int n_jobs,
                     Interrupt& interrupt) {
    scaling_columns(objective);
    fill(inverse, objective.num_examples(), 1.0);
    fill_cells(objective, potentials, n_jobs, interrupt,
               [&](Index i, double* row, Workspace& ws) { probabilities(objective, weights, i, row, ws); });
}

bool scaling_separates(const Objective& objective, const double* weights, int n_jobs, Interrupt& interrupt) {
    scaling_columns(objective);
    std::atomic<bool> separated = true;
    for_blocks_of_rows(
        objective, n_jobs, interrupt,
        [&](Index i, double* row, Workspace& ws) {
            probabilities(objective, weights, i, row, ws);
            if (!(objective.weight(i) > 0.0)) return;
            const Index width = objective.num_slots(i);
            Workspace::Frame frame(ws);
            double* gold = frame.take(width);
            fill(gold, width, 0.0);
            objective.add_gold(i, 1.0, gold);
            const Index best = std::max_element(row, row + width) - row;
            const bool alone = std::count(row, row + width, row[best]) == 1;
            if (!alone || gold[best] == 0.0) separated = false;
        },
        [](Index, Index, const double*, Index) {});
    return separated;
}

ScalingConstants scaling_constants(const Objective& objective, Interrupt& interrupt) {
    const ColumnAccess& columns = scaling_columns(objective);
    ScalingConstants out;
    out.n_cells = columns.num_cells();
    out.empirical.assign(objective.features().num_weights(), 0.0);
    out.mass.assign(objective.features().num_weights(), 0.0);
    const std::vector<double> zero(out.mass);
    std::vector<double> slots(columns.width());
    std::vector<double> likeliest(slots);  // of each slot, over the examples
    Workspace ws;
    for (Index i = 0; i < objective.num_examples(); ++i) {
        interrupt.check();
        fill(slots.data(), columns.width(), 0.0);
        objective.add_gold(i, 1.0, slots.data());
        objective.features().add_transpose(i, slots.data(), objective.weight(i), out.empirical.data());
        probabilities(objective, zero.data(), i, slots.data(), ws);
        for (std::size_t r = 0; r < slots.size(); ++r) likeliest[r] = std::max(likeliest[r], slots[r]);
    }
    for (Index r = 0; r < columns.width(); ++r) {
        if (likeliest[r] > 0.0) out.labels.push_back(r);
    }
    // Features of one attribute share its examples. (An empty list begins where the next one does.)
    std::unordered_map<const std::int32_t*, double> known;
    for (Index k = 0; k < columns.num_columns(); ++k) {
        interrupt.check();
        const Column c = columns.column(k);
        out.columns.push_back(c.weight);
        if (c.size == 0) continue;
        const auto [place, fresh] = known.try_emplace(c.examples, 0.0);
        if (fresh) {
            for_each_example(c, [&, &sum = place->second](Index i, Index, Index) { sum += objective.weight(i); });
        }
        out.mass[c.weight] = place->second;
    }
    return out;
}

double scaling_largest_sum(const Objective& objective, Interrupt& interrupt) {
    const ColumnAccess& columns = scaling_columns(objective);
    const std::vector<double> ones = unit_weights(objective, columns);
    const std::vector<double> zero(ones.size(), 0.0);
    std::vector<double> sums(columns.width());
    std::vector<double> likely(sums);
    Workspace ws;
    double largest = 0;
    for (Index i = 0; i < objective.num_examples(); ++i) {
        interrupt.check();
        if (!(objective.weight(i) > 0.0)) continue;
        objective.features().scores(i, ones.data(), sums.data());
        probabilities(objective, zero.data(), i, likely.data(), ws);
        for (std::size_t r = 0; r < sums.size(); ++r) {
            if (likely[r] > 0.0) largest = std::max(largest, sums[r]);
        }
    }
    return largest;
}

Extremes scaling_extremes(const Objective& objective, Interrupt& interrupt) {
    const ColumnAccess& columns = scaling_columns(objective);
    const Index n = objective.num_examples();
    const Index width = columns.width();
    Extremes out;
    out.lowest.assign(objective.features().num_weights(), 0.0);
    out.highest.assign(objective.features().num_weights(), 0.0);
    std::vector<bool> possible(n * width);  // bits: the cells that are labellings
    std::vector<Index> labels(n, 0);        // how many each example has
    std::vector<double> likely(width);
    Workspace ws;
    for (Index i = 0; i < n; ++i) {
        interrupt.check();
        probabilities(objective, out.lowest.data(), i, likely.data(), ws);  // the weights are 0
        for (Index r = 0; r < width; ++r) {
            possible[i * width + r] = likely[r] > 0.0;
            labels[i] += likely[r] > 0.0;
        }
    }
    for (Index k = 0; k < columns.num_columns(); ++k) {
        interrupt.check();
        const Column c = columns.column(k);
        for_each_example(c, [&](Index i, Index first, Index last) {
            Index found = 0;
            double low = kInfinity;
            double high = -kInfinity;
            for (Index cell = first; cell < last; ++cell) {
                const Index slot = c.slots ? c.slots[cell] : c.slot;
                if (!possible[i * width + slot]) continue;
                ++found;
                low = std::min(low, value_at(c, cell));
                high = std::max(high, value_at(c, cell));
            }
            if (found < labels[i]) {
                low = std::min(low, 0.0);
                high = std::max(high, 0.0);
            }
            out.lowest[c.weight] += objective.weight(i) * low;
            out.highest[c.weight] += objective.weight(i) * high;
        });
    }
    return out;
}

}  // namespace partwise
