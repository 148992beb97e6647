#include "solvers/working_sets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

constexpr Index kMaxIndex = 0xFFFFFFFF;

void sort_by_slot(SlotCounts& labelling) {
    auto& [slots, counts] = labelling;
    if (std::is_sorted(slots.begin(), slots.end())) return;
    std::vector<std::pair<Index, double>> pairs;
    pairs.reserve(slots.size());
    for (std::size_t k = 0; k < slots.size(); ++k) pairs.emplace_back(slots[k], counts[k]);
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t k = 0; k < pairs.size(); ++k) std::tie(slots[k], counts[k]) = pairs[k];
}

}  // namespace

Atom::Atom(const SlotCounts& labelling, double coefficient_, Index stamp_)
    : coefficient(coefficient_),
      stamp(stamp_),
      n_slots_(len(labelling.slots.size())),
      counts_(std::make_unique_for_overwrite<double[]>(labelling.slots.size())),
      slots_(std::make_unique_for_overwrite<std::uint32_t[]>(labelling.slots.size())) {
    std::copy(labelling.counts.begin(), labelling.counts.end(), counts_.get());
    std::transform(labelling.slots.begin(), labelling.slots.end(), slots_.get(),
                   [](Index slot) { return static_cast<std::uint32_t>(slot); });
}

bool Atom::is(const SlotCounts& labelling) const {
    return n_slots_ == len(labelling.slots.size()) &&
           std::equal(labelling.slots.begin(), labelling.slots.end(), slots_.get(),
                      [](Index p, std::uint32_t q) { return p == Index{q}; }) &&
           std::equal(labelling.counts.begin(), labelling.counts.end(), counts_.get());
}

Index Atom::bytes() const {
    constexpr Index kEntry = sizeof(double) + sizeof(std::uint32_t);
    return len(sizeof(Atom)) + kEntry * (n_slots_ + std::max<Index>(n_values_, 0));
}

void Atom::project(const Objective& objective, Index i, Workspace& ws, SparseVector& scratch) {
    const Index n = objective.num_slots(i);
    Workspace::Frame frame(ws);
    double* direction = frame.take(n);  // g - count
    double* costs = frame.take(n);
    fill(direction, n, 0.0);
    fill(costs, n, 0.0);
    objective.add_cost(i, objective.loss().cost_scale, costs);
    objective.add_gold(i, 1.0, direction);
    cost = 0;
    for (Index k = 0; k < n_slots_; ++k) {
        const Index slot = slots_[idx(k)];
        direction[slot] -= counts_[idx(k)];
        cost += counts_[idx(k)] * costs[slot];
    }
    objective.features().project(i, direction, scratch);
    n_values_ = 0;
    for (const auto& run : scratch.runs()) {
        const double* x = scratch.values(run);
        n_values_ += std::count_if(x, x + run.length, [](double value) { return value != 0.0; });
    }
    values_ = std::make_unique_for_overwrite<double[]>(idx(n_values_));
    indices_ = std::make_unique_for_overwrite<std::uint32_t[]>(idx(n_values_));
    std::size_t at = 0;
    for (const auto& run : scratch.runs()) {
        const double* x = scratch.values(run);
        for (Index j = 0; j < run.length; ++j) {
            if (x[j] == 0.0) continue;
            values_[at] = x[j];
            indices_[at++] = static_cast<std::uint32_t>(run.start + j);
        }
    }
    norm2 = partwise::norm2(values_.get(), n_values_);
}

WorkingSets::WorkingSets(Index num_examples) {
    if (num_examples < 0) throw InputError("the number of examples is negative");
    sets_.resize(idx(num_examples));
}

WorkingSets::WorkingSets(const AtomTable& table) {
    const Index n_atoms = len(table.coefficients.size());
    check_pointers(table.example_ptr, n_atoms, "example_ptr");
    check_pointers(table.labelling_ptr, len(table.slots.size()), "labelling_ptr");
    if (len(table.labelling_ptr.size()) != n_atoms + 1 || len(table.stamps.size()) != n_atoms ||
        table.counts.size() != table.slots.size()) {
        throw InputError("atoms: the arrays' lengths do not match");
    }
    if (!all_finite(table.counts.data(), len(table.counts.size()))) throw InputError("atoms: a count is not finite");
    sets_.resize(table.example_ptr.size() - 1);
    SlotCounts labelling;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
        for (std::size_t k = idx(table.example_ptr[i]); k < idx(table.example_ptr[i + 1]); ++k) {
            const double x = table.coefficients[k];
            if (!(x >= 0.0) || x == kInfinity) throw InputError("atoms: a coefficient is negative or not finite");
            labelling.clear();
            for (std::size_t r = idx(table.labelling_ptr[k]); r < idx(table.labelling_ptr[k + 1]); ++r) {
                if (table.slots[r] < 0 || table.slots[r] > kMaxIndex) throw InputError("atoms: a slot is negative");
                labelling.add(table.slots[r], table.counts[r]);
            }
            sort_by_slot(labelling);
            sets_[i].atoms.emplace_back(labelling, x, table.stamps[k]);
            bytes_ += sets_[i].atoms.back().bytes();
        }
    }
}

Index WorkingSets::num_atoms() const {
    return std::accumulate(sets_.begin(), sets_.end(), Index{0},
                           [](Index sum, const Set& set) { return sum + len(set.atoms.size()); });
}

Index WorkingSets::next_stamp(Index i) const {
    Index latest = 0;
    for (const Atom& atom : sets_[idx(i)].atoms) latest = std::max(latest, atom.stamp);
    return latest + 1;
}

AtomTable WorkingSets::table() const {
    AtomTable out;
    out.example_ptr.push_back(0);
    out.labelling_ptr.push_back(0);
    for (const Set& set : sets_) {
        for (const Atom& atom : set.atoms) {
            out.slots.insert(out.slots.end(), atom.slots().begin(), atom.slots().end());
            out.counts.insert(out.counts.end(), atom.counts().begin(), atom.counts().end());
            out.labelling_ptr.push_back(len(out.slots.size()));
            out.coefficients.push_back(atom.coefficient);
            out.stamps.push_back(atom.stamp);
        }
        out.example_ptr.push_back(len(out.coefficients.size()));
    }
    return out;
}

void WorkingSets::attach(const Objective& objective, Interrupt& interrupt) {
    if (num_examples() != objective.num_examples()) {
        throw InputError("working sets of " + std::to_string(num_examples()) + " examples, the objective has " +
                         std::to_string(objective.num_examples()));
    }
    if (objective.features().num_weights() > kMaxIndex) throw InputError("working sets take up to 2^32 weights");
    for (Index i = 0; i < num_examples(); ++i) {
        interrupt.check();
        for (Atom& atom : of(i)) {
            if (atom.projected()) continue;
            if (!atom.slots().empty() && Index{atom.slots().back()} >= objective.num_slots(i)) {
                throw InputError("example " + std::to_string(i) + ": an atom has slot " +
                                 std::to_string(atom.slots().back()) + ", there are " +
                                 std::to_string(objective.num_slots(i)));
            }
            bytes_ -= atom.bytes();
            atom.project(objective, i, ws_, scratch_);
            bytes_ += atom.bytes();
        }
    }
}

Index WorkingSets::find_or_add(const Objective& objective, Index i, SlotCounts& labelling, Index stamp) {
    sort_by_slot(labelling);
    auto& atoms = of(i);
    const auto found = std::find_if(atoms.begin(), atoms.end(), [&](const Atom& p) { return p.is(labelling); });
    if (found != atoms.end()) {
        found->stamp = stamp;
        return found - atoms.begin();
    }
    atoms.emplace_back(labelling, 0.0, stamp);
    atoms.back().project(objective, i, ws_, scratch_);
    bytes_ += atoms.back().bytes();
    return len(atoms.size()) - 1;
}

const double* WorkingSets::gram(Index i, Index num_weights) {
    Set& set = sets_[idx(i)];
    const std::size_t n = set.atoms.size();
    if (set.gram_rows == n) return set.gram.data();
    set.gram.resize(n * (n + 1) / 2);
    dense_.resize(idx(num_weights), 0.0);
    for (std::size_t k = set.gram_rows; k < n; ++k) {
        double* row = set.gram.data() + k * (k + 1) / 2;
        set.atoms[k].axpy(1.0, dense_.data());
        for (std::size_t l = 0; l < k; ++l) row[l] = set.atoms[l].dot(dense_.data());
        row[k] = set.atoms[k].norm2;
        set.atoms[k].clear(dense_.data());
    }
    set.gram_rows = n;
    return set.gram.data();
}

void WorkingSets::keep(Index i) {
    Set& set = sets_[idx(i)];
    for (const Atom& atom : set.atoms) bytes_ -= atom.bytes();
    std::size_t rows = 0;  // known rows come first, so that those kept come first too
    for (std::size_t k = 0; k < kept_.size(); ++k) {
        const std::size_t from = kept_[k];
        if (from < set.gram_rows) {
            const double* old_row = set.gram.data() + from * (from + 1) / 2;
            double* row = set.gram.data() + k * (k + 1) / 2;
            for (std::size_t l = 0; l <= k; ++l) row[l] = old_row[kept_[l]];
            rows = k + 1;
        }
        if (from != k) set.atoms[k] = std::move(set.atoms[from]);
        bytes_ += set.atoms[k].bytes();
    }
    set.atoms.erase(set.atoms.begin() + len(kept_.size()), set.atoms.end());
    set.gram_rows = rows;
    set.gram.resize(rows * (rows + 1) / 2);
}

bool WorkingSets::merge(const Objective& objective, Index i) {
    auto& atoms = of(i);
    const auto positive = [](const Atom& atom) { return atom.coefficient > 0.0; };
    if (std::count_if(atoms.begin(), atoms.end(), positive) < 2) return false;
    const Index n = objective.num_slots(i);
    Workspace::Frame frame(ws_);
    double* sum = frame.take(n);
    fill(sum, n, 0.0);
    double mass = 0;
    Index newest = 0;
    for (const Atom& atom : atoms) {
        if (!positive(atom)) continue;
        mass += atom.coefficient;
        newest = std::max(newest, atom.stamp);
        for (std::size_t k = 0; k < atom.slots().size(); ++k)
            sum[atom.slots()[k]] += atom.coefficient * atom.counts()[k];
    }
    SlotCounts mixture;
    for (Index r = 0; r < n; ++r) {
        if (sum[r] != 0.0) mixture.add(r, sum[r] / mass);
    }
    // Vector and cost come from the counts, not from the old atoms': a run that starts from saved counts then has the
    // same bits.
    Atom merged(mixture, mass, newest);
    merged.project(objective, i, ws_, scratch_);
    remove_if(i, positive);
    bytes_ += merged.bytes();
    sets_[idx(i)].gram.clear();  // the atoms' order changed
    sets_[idx(i)].gram_rows = 0;
    atoms.insert(atoms.begin(), std::move(merged));
    return true;
}

}  // namespace partwise
