#include <atomic>
#include <unordered_map>

#include "solvers/scaling.h"

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

namespace {

// Fills arrays over all cells, in the order of Cells: row(i, values, workspace) computes the values of example i.
template <class F>
void fill_cells(const Objective& objective, double* out, int n_jobs, Interrupt& interrupt, F&& row) {
    constexpr Index kBlock = 64;  // several cache lines of every slot
    const Index n = objective.num_examples();
    parallel_with_scratch((n + kBlock - 1) / kBlock, objective.jobs(n_jobs), interrupt, [&](Index b, Workspace& ws) {
        const Index first = b * kBlock;
        const Index count = std::min(kBlock, n - first);
        const Index width = objective.num_slots(first);
        Workspace::Frame frame(ws);
        double* rows = frame.take(count * width);
        for (Index j = 0; j < count; ++j) row(first + j, rows + j * width, ws);
        for (Index r = 0; r < width; ++r) {
            double* __restrict target = out + r * n + first;
            for (Index j = 0; j < count; ++j) target[j] = rows[j * width + r];
        }
    });
}

// 1 for every weight that is not padding: the scores of these weights are f#(x, y) = sum_t f_t(x, y).
std::vector<double> unit_weights(const Objective& objective, const ColumnAccess& columns) {
    std::vector<double> ones(objective.features().num_weights(), 0.0);
    for (const Index weight : columns.weights()) ones[weight] = 1.0;
    return ones;
}

// The label probabilities P_w(.|x) of one example.
void probabilities(const Objective& objective, const double* weights, Index i, double* row, Workspace& ws) {
    Workspace::Frame frame(ws);
    double* scores = frame.take(objective.num_slots(i));
    objective.features().scores(i, weights, scores);
    objective.add_cost(i, objective.loss().cost_scale, scores);
    objective.structure().log_partition(i, scores, objective.loss().temperature, row, nullptr, ws);
}

// Calls f(i, likely) for every example, where likely[r] > 0 for the slots r that are labellings of the example.
template <class F>
void for_each_likely(const Objective& objective, Index width, Interrupt& interrupt, F&& f) {
    const std::vector<double> zero(objective.features().num_weights(), 0.0);
    std::vector<double> likely(width);
    Workspace ws;
    for (Index i = 0; i < objective.num_examples(); ++i) {
        interrupt.check();
        probabilities(objective, zero.data(), i, likely.data(), ws);
        f(i, likely);
    }
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
    parallel_with_scratch(objective.num_examples(), objective.jobs(n_jobs), interrupt, [&](Index i, Workspace& ws) {
        if (!(objective.weight(i) > 0.0)) return;
        const Index width = objective.num_slots(i);
        Workspace::Frame frame(ws);
        double* row = frame.take(width);
        double* gold = frame.take(width);
        probabilities(objective, weights, i, row, ws);
        fill(gold, width, 0.0);
        objective.add_gold(i, 1.0, gold);
        const Index best = std::max_element(row, row + width) - row;
        const bool alone = std::count(row, row + width, row[best]) == 1;
        if (!alone || gold[best] == 0.0) separated = false;
    });
    return separated;
}

ScalingConstants scaling_constants(const Objective& objective, Interrupt& interrupt) {
    const ColumnAccess& columns = scaling_columns(objective);
    ScalingConstants out;
    out.n_cells = columns.num_cells();
    out.empirical.assign(objective.features().num_weights(), 0.0);
    out.mass.assign(objective.features().num_weights(), 0.0);
    std::vector<double> slots(columns.width());
    std::vector<double> likeliest(slots);  // largest probability of each slot over the examples
    for_each_likely(objective, columns.width(), interrupt, [&](Index i, const std::vector<double>& likely) {
        fill(slots.data(), columns.width(), 0.0);
        objective.add_gold(i, 1.0, slots.data());
        objective.features().add_transpose(i, slots.data(), objective.weight(i), out.empirical.data());
        for (std::size_t r = 0; r < slots.size(); ++r) likeliest[r] = std::max(likeliest[r], likely[r]);
    });
    for (Index r = 0; r < columns.width(); ++r) {
        if (likeliest[r] > 0.0) out.labels.push_back(r);
    }
    // Features of one attribute share its list of examples. (An empty list begins where the next list does.)
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

std::vector<double> scaling_cell_sums(const Objective& objective, int n_jobs, Interrupt& interrupt) {
    const ColumnAccess& columns = scaling_columns(objective);
    std::vector<double> sums(objective.num_examples() * columns.width());
    const std::vector<double> ones = unit_weights(objective, columns);
    fill_cells(objective, sums.data(), n_jobs, interrupt,
               [&](Index i, double* row, Workspace&) { objective.features().scores(i, ones.data(), row); });
    return sums;
}

double scaling_largest_sum(const Objective& objective, Interrupt& interrupt) {
    const ColumnAccess& columns = scaling_columns(objective);
    const std::vector<double> ones = unit_weights(objective, columns);
    std::vector<double> sums(columns.width());
    double largest = 0;
    for_each_likely(objective, columns.width(), interrupt, [&](Index i, const std::vector<double>& likely) {
        if (!(objective.weight(i) > 0.0)) return;
        objective.features().scores(i, ones.data(), sums.data());
        for (std::size_t r = 0; r < sums.size(); ++r) {
            if (likely[r] > 0.0) largest = std::max(largest, sums[r]);
        }
    });
    return largest;
}

Extremes scaling_extremes(const Objective& objective, Interrupt& interrupt) {
    const ColumnAccess& columns = scaling_columns(objective);
    const Index n = objective.num_examples();
    const Index width = columns.width();
    Extremes out;
    out.lowest.assign(objective.features().num_weights(), 0.0);
    out.highest.assign(objective.features().num_weights(), 0.0);
    std::vector<bool> possible(n * width);  // one bit per cell: whether it is a labelling
    std::vector<Index> labels(n, 0);        // number of labellings of each example
    for_each_likely(objective, width, interrupt, [&](Index i, const std::vector<double>& likely) {
        for (Index r = 0; r < width; ++r) {
            possible[i * width + r] = likely[r] > 0.0;
            labels[i] += likely[r] > 0.0;
        }
    });
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
