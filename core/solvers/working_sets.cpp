#include "solvers/working_sets.h"

#include <numeric>

#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

constexpr Index kMaxIndex = 0xFFFFFFFF;
constexpr Index kEntry = sizeof(double) + sizeof(std::uint32_t);  // bytes of a slot with its count

void sort_by_slot(SlotCounts& labelling) {
    constexpr std::size_t kFew = 64;
    auto& [slots, counts] = labelling;
    if (std::is_sorted(slots.begin(), slots.end())) return;
    if (slots.size() <= kFew) {  // few slots: sort without memory for pairs
        for (std::size_t k = 1; k < slots.size(); ++k) {
            const Index slot = slots[k];
            const double count = counts[k];
            std::size_t at = k;
            for (; at > 0 && slots[at - 1] > slot; --at) {
                slots[at] = slots[at - 1];
                counts[at] = counts[at - 1];
            }
            slots[at] = slot;
            counts[at] = count;
        }
        return;
    }
    std::vector<std::pair<Index, double>> pairs;
    pairs.reserve(slots.size());
    for (std::size_t k = 0; k < slots.size(); ++k) pairs.emplace_back(slots[k], counts[k]);
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t k = 0; k < pairs.size(); ++k) std::tie(slots[k], counts[k]) = pairs[k];
}

// Hashes sorted slots (FNV-1a, one step per slot).
std::uint64_t hash_slots(const SlotCounts& labelling) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const Index slot : labelling.slots) hash = (hash ^ static_cast<std::uint64_t>(slot)) * 0x100000001b3ULL;
    return hash;
}

}  // namespace

Atom::Atom(const SlotCounts& labelling, double coefficient_, Index stamp_)
    : coefficient(coefficient_),
      stamp(stamp_),
      n_slots_(len(labelling.slots.size())),
      hash_(hash_slots(labelling)),
      counts_(std::make_unique_for_overwrite<double[]>(labelling.slots.size())),
      slots_(std::make_unique_for_overwrite<std::uint32_t[]>(labelling.slots.size())) {
    std::copy(labelling.counts.begin(), labelling.counts.end(), counts_.get());
    std::transform(labelling.slots.begin(), labelling.slots.end(), slots_.get(),
                   [](Index slot) { return static_cast<std::uint32_t>(slot); });
}

bool Atom::is(const SlotCounts& labelling, std::uint64_t hash) const {
    return hash_ == hash && n_slots_ == len(labelling.slots.size()) &&
           std::equal(labelling.slots.begin(), labelling.slots.end(), slots_.get(),
                      [](Index p, std::uint32_t q) { return p == Index{q}; }) &&
           std::equal(labelling.counts.begin(), labelling.counts.end(), counts_.get());
}

Index Atom::bytes() const { return len(sizeof(Atom)) + kEntry * n_slots_; }

double WorkingSets::Set::difference(std::size_t k, const double* scores) const {
    double sum = 0;
    for (std::size_t j = differences.begin(k); j < differences.ends[k]; ++j) {
        sum += differences.values[j] * scores[differences.indices[j]];
    }
    return sum;
}

void WorkingSets::Set::add_difference(std::size_t k, double scale, double* slots) const {
    for (std::size_t j = differences.begin(k); j < differences.ends[k]; ++j) {
        slots[differences.indices[j]] += scale * differences.values[j];
    }
}

WorkingSets::WorkingSets(Index num_examples) {
    if (num_examples < 0) throw InputError("the number of examples is negative");
    sets_.resize(num_examples);
    totals_.resize(sets_.size());
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
    totals_.resize(sets_.size());
    SlotCounts labelling;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
        for (Index k = table.example_ptr[i]; k < table.example_ptr[i + 1]; ++k) {
            const double x = table.coefficients[k];
            if (!(x >= 0.0) || x == kInfinity) throw InputError("atoms: a coefficient is negative or not finite");
            labelling.clear();
            for (Index r = table.labelling_ptr[k]; r < table.labelling_ptr[k + 1]; ++r) {
                if (table.slots[r] < 0 || table.slots[r] > kMaxIndex) throw InputError("atoms: a slot is out of range");
                labelling.add(table.slots[r], table.counts[r]);
            }
            sort_by_slot(labelling);
            sets_[i].atoms.emplace_back(labelling, x, table.stamps[k]);
        }
        count_bytes(sets_[i]);
    }
}

Index WorkingSets::num_atoms() const {
    return std::accumulate(sets_.begin(), sets_.end(), Index{0},
                           [](Index sum, const Set& set) { return sum + len(set.atoms.size()); });
}

Index WorkingSets::next_stamp(Index i) const {
    Index latest = 0;
    for (const Atom& atom : sets_[i].atoms) latest = std::max(latest, atom.stamp);
    return latest + 1;
}

AtomTable WorkingSets::table() const {
    AtomTable out;
    for (const Set& set : sets_) {
        for (const Atom& atom : set.atoms) out.add(atom.slots(), atom.counts(), atom.coefficient, atom.stamp);
        out.end_example();
    }
    return out;
}

void WorkingSets::check(const Objective& objective, int n_jobs, Interrupt& interrupt) const {
    const Structure& structure = objective.structure();
    parallel_with_scratch(num_examples(), objective.jobs(n_jobs), interrupt, [&](Index i, Workspace& ws) {
        if (objective.weight(i) == 0.0) return;
        for (const Atom& atom : sets_[i].atoms) {
            const std::vector<Index> slots(atom.slots().begin(), atom.slots().end());
            const auto whole = [](double count) { return count == std::floor(count); };
            if (std::ranges::all_of(atom.counts(), whole)) {
                structure.check_labelling(i, {slots, atom.counts()}, ws);
            } else {
                structure.check_mixture(i, {slots, atom.counts()}, ws);
            }
        }
    });
}

void WorkingSets::attach(const Objective& objective, Interrupt& interrupt) {
    if (num_examples() != objective.num_examples()) {
        throw InputError("working sets of ", num_examples(), " examples, the objective has ", objective.num_examples());
    }
    if (objective.features().num_weights() > kMaxIndex) throw InputError("working sets take up to 2^32 weights");
    if (attached_) return;
    for (Index i = 0; i < num_examples(); ++i) {
        const Set& set = sets_[i];
        if (set.attached) continue;
        interrupt.check();
        for (const Atom& atom : set.atoms) {
            if (atom.slots().empty() || Index{atom.slots().back()} < objective.num_slots(i)) continue;
            throw InputError("example ", i, ": an atom has slot ", atom.slots().back(), ", there are ",
                             objective.num_slots(i));
        }
        complete(objective, i, 0);
    }
    attached_ = true;
}

void WorkingSets::prefetch_places(Index i) const { prefetch_object(sets_[i]); }

void WorkingSets::prefetch(Index i) const {
    const Set& set = sets_[i];
    prefetch_begin(set.atoms);
    prefetch_begin(set.gram);
    prefetch_begin(set.differences.ends);
    prefetch_begin(set.differences.indices);
    prefetch_begin(set.differences.values);
    set.rows.prefetch();
}

bool WorkingSets::find_or_add(const Objective& objective, Index i, SlotCounts& labelling, Index stamp) {
    sort_by_slot(labelling);
    auto& atoms = of(i);
    const std::uint64_t hash = hash_slots(labelling);
    const auto found = std::find_if(atoms.begin(), atoms.end(), [&](const Atom& p) { return p.is(labelling, hash); });
    if (found != atoms.end()) {
        found->stamp = stamp;
        return false;
    }
    atoms.emplace_back(labelling, 0.0, stamp);
    complete(objective, i, atoms.size() - 1);
    return true;
}

double* WorkingSets::slot_scratch(Index num_slots) {
    if (len(slots_.size()) < num_slots) slots_.resize(num_slots, 0.0);
    return slots_.data();
}

void WorkingSets::complete(const Objective& objective, Index i, std::size_t first) {
    Set& set = sets_[i];
    const bool all = std::exchange(attached_, false);  // stays false if the following is interrupted
    set.attached = false;
    needed_.clear();
    if (first == 0) set.differences.clear();
    const std::size_t n = set.atoms.size();
    for (std::size_t k = first; k < n; ++k) compare(objective, i);
    std::sort(needed_.begin(), needed_.end());
    needed_.erase(std::unique(needed_.begin(), needed_.end()), needed_.end());
    fresh_.clear();
    const auto known = set.rows.slots();
    std::set_difference(needed_.begin(), needed_.end(), known.begin(), known.end(), std::back_inserter(fresh_));
    if (len(products_.size()) < objective.num_slots(i)) products_.resize(objective.num_slots(i));
    if (!fresh_.empty()) {
        objective.costs(i, products_.data());
        fresh_rows_.clear();
        objective.features().slot_rows(i, fresh_, 0, fresh_rows_);
        set.rows.insert(fresh_, fresh_rows_, products_.data());
    }
    set.rows.costs(products_.data());
    for (std::size_t k = first; k < n; ++k) set.atoms[k].cost = -set.difference(k, products_.data());
    dense_.resize(objective.features().num_weights(), 0.0);
    set.gram.resize(n * n);
    for (std::size_t k = first; k-- > 1;) {
        const auto row = set.gram.begin() + len(k * first);
        std::copy_backward(row, row + len(first), set.gram.begin() + len(k * n + first));
    }
    for (std::size_t k = first; k < n; ++k) fill_gram_row(set, k);
    set.attached = true;
    attached_ = all;
    count_bytes(set);
    add_up(i);
}

void WorkingSets::add_up(Index i) {
    Totals& totals = totals_[i];
    totals = {};
    for (const Atom& atom : of(i)) {
        totals.cost += atom.coefficient * atom.cost;
        totals.mass += atom.coefficient;
    }
}

void WorkingSets::count_bytes(Set& set) {
    bytes_ -= set.bytes;
    set.bytes = kEntry * len(set.differences.indices.size()) + len(set.gram.size() * sizeof(double));
    for (const Atom& atom : set.atoms) set.bytes += atom.bytes();
    bytes_ += set.bytes;
}

void WorkingSets::compare(const Objective& objective, Index i) {
    Set& set = sets_[i];
    const Atom& atom = set.atoms[set.differences.size()];
    double* d = slot_scratch(objective.num_slots(i));
    objective.add_gold(i, 1.0, d);
    for (std::size_t k = 0; k < atom.slots().size(); ++k) d[atom.slots()[k]] -= atom.counts()[k];
    difference_.clear();
    const auto take = [&](Index slot) {
        if (const double value = std::exchange(d[slot], 0.0); value != 0.0) difference_.add(slot, value);
    };
    for (const Index slot : objective.gold(i).slots) take(slot);
    for (const std::uint32_t slot : atom.slots()) take(slot);
    sort_by_slot(difference_);
    needed_.insert(needed_.end(), difference_.slots.begin(), difference_.slots.end());
    for (std::size_t k = 0; k < difference_.slots.size(); ++k) {
        set.differences.append(difference_.slots[k], difference_.counts[k]);
    }
    set.differences.finish_row();
}

// Fills row and column k of the inner products: <psi_k, psi_l> = <d_l, A psi_k>, where d_l is atom l's difference from
// gold and psi_l = A'd_l. Sums run in the order of slots, so that a resumed run gets the same bits.
void WorkingSets::fill_gram_row(Set& set, std::size_t k) {
    const std::size_t n = set.atoms.size();
    double* d = slots_.data();
    set.add_difference(k, 1.0, d);
    set.rows.add(d, 1.0, dense_.data());
    set.rows.scores(dense_.data(), 0.0, products_.data());
    set.rows.clear(d, dense_.data());
    for (const std::uint32_t slot : set.rows.slots()) d[slot] = 0.0;
    for (std::size_t l = 0; l <= k; ++l) {
        set.gram[k * n + l] = set.gram[l * n + k] = set.difference(l, products_.data());
    }
}

// cost - <w, psi> = <count, theta + kappa c> - <g, theta> = -<d, theta + kappa c>, as gold slots have cost 0.
void WorkingSets::values(Index i, const double* scores, double* v) const {
    const Set& set = sets_[i];
    for (std::size_t k = 0; k < set.atoms.size(); ++k) v[k] = -set.difference(k, scores);
}

void WorkingSets::move(Index i, const double* x, double scale, double* w) {
    Set& set = sets_[i];
    double* net = slots_.data();
    for (std::size_t k = 0; k < set.atoms.size(); ++k) {
        const double change = x[k] - std::exchange(set.atoms[k].coefficient, x[k]);
        if (change != 0.0) set.add_difference(k, change, net);
    }
    set.rows.add(net, scale, w);
    for (const std::uint32_t slot : set.rows.slots()) net[slot] = 0.0;
    add_up(i);
}

void WorkingSets::keep(Index i) {
    Set& set = sets_[i];
    const std::size_t n = set.atoms.size();
    const std::size_t m = kept_.size();
    PackedRows& all = set.differences;
    double* used = slots_.data();
    std::size_t end = 0;  // end of the kept differences in `all`
    for (std::size_t k = 0; k < m; ++k) {
        const std::size_t from = kept_[k];
        for (std::size_t l = 0; l < m; ++l) set.gram[k * m + l] = set.gram[from * n + kept_[l]];
        if (from != k) set.atoms[k] = std::move(set.atoms[from]);
        const std::size_t begin = all.begin(from);
        const std::size_t size = all.ends[from] - begin;
        for (std::size_t j = 0; j < size; ++j, ++end) {
            all.indices[end] = all.indices[begin + j];
            all.values[end] = all.values[begin + j];
            used[all.indices[end]] = 1.0;
        }
        all.ends[k] = static_cast<std::uint32_t>(end);
    }
    all.ends.resize(m);
    all.indices.resize(end);
    all.values.resize(end);
    set.atoms.erase(set.atoms.begin() + len(m), set.atoms.end());
    set.gram.resize(m * m);
    set.rows.retain(used);
    for (const std::uint32_t slot : set.rows.slots()) used[slot] = 0.0;
    count_bytes(set);
    add_up(i);
}

bool WorkingSets::merge(const Objective& objective, Index i) {
    auto& atoms = of(i);
    const auto positive = [](const Atom& atom) { return atom.coefficient > 0.0; };
    if (std::count_if(atoms.begin(), atoms.end(), positive) < 2) return false;
    double* sum = slot_scratch(objective.num_slots(i));
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
    for (Index r = 0; r < objective.num_slots(i); ++r) {
        if (const double count = std::exchange(sum[r], 0.0); count != 0.0) mixture.add(r, count / mass);
    }
    remove_if(i, positive);
    atoms.insert(atoms.begin(), Atom(mixture, mass, newest));
    // Recompute everything from the counts, so that a run that resumes from saved counts has the same bits.
    complete(objective, i, 0);
    sets_[i].gram.shrink_to_fit();
    atoms.shrink_to_fit();
    return true;
}

AtomTable likely_labellings(const Objective& objective, const double* scores, Index most, Interrupt& interrupt) {
    AtomTable out;
    Workspace ws;
    for (Index i = 0; i < objective.num_examples(); ++i) {
        interrupt.check();
        std::vector<Scored> best = objective.structure().k_best(i, scores + objective.offset(i), most, ws);
        const double first = best.front().value;
        while (std::exp(best.back().value - first) < kUnlikely) best.pop_back();
        double sum = 0;
        for (const Scored& found : best) sum += std::exp(found.value - first);
        for (const auto& [value, labelling] : best) {
            out.add(labelling.slots, labelling.counts, std::exp(value - first) / sum, 0);
        }
        out.end_example();
    }
    return out;
}

ViolatorReport find_violators(const Objective& objective, const double* weights, WorkingSets& sets,
                              std::span<const Index> order, const ViolatorOptions& options, Interrupt& interrupt) {
    if (objective.loss().temperature != 0.0) throw InputError("a search for violators needs a loss of temperature 0");
    sets.attach(objective, interrupt);
    ViolatorReport report;
    Workspace ws;
    SlotCounts answer;
    for_each_visit(objective, order, interrupt, [&](Index i) {
        ++report.visits;
        const double omega = objective.weight(i);
        const double margin = objective.worst_margin(i, weights, answer, ws);
        Workspace::Frame frame(ws);
        double* scores = frame.take(objective.num_slots(i));
        sets.rows(i).scores(weights, 1.0, scores);
        const Index n = len(sets.of(i).size());
        double* v = frame.take(n);
        sets.values(i, scores, v);
        // The slack of an empty working set is that of the gold labelling, 0.
        const double slack = n > 0 ? *std::max_element(v, v + n) : 0.0;
        const double violation = std::max(0.0, margin - slack);
        report.losses += omega * margin;
        report.total += omega * violation;
        report.largest = std::max(report.largest, violation);
        if (!(violation > options.epsilon)) return;
        ++report.added;
        sets.find_or_add(objective, i, answer, options.now);
        if (sets.bytes() > options.max_bytes && sets.merge(objective, i)) ++report.merged;
    });
    return report;
}

}  // namespace partwise
