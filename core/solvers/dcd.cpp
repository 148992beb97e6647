#include "solvers/dcd.h"

#include <numeric>
#include <utility>

#include "solvers/sum_examples.h"

namespace partwise {

namespace {

template <class L>
class Visits {
   public:
    Visits(const DcdState& state, const DcdOptions& options)
        : objective_(state.objective), w_(state.weights), sets_(state.sets), options_(options), random_(options.seed) {}

    DcdReport report;

    void visit(Index i) {
        if (options_.search && options_.violators > 1) search_several(i);
        if (options_.search && options_.violators == 1) {
            search(i, objective_.worst_margin(i, w_, answer_, ws_), answer_);
        }
        if (options_.update && !sets_.of(i).empty()) update(i);
        if (options_.search) stay_within_memory(i);
    }

    // Searches that leave the weights alone: the oracle is called for all these examples together.
    void search_all(std::span<const Index> examples) {
        margins_.resize(examples.size());
        answers_.resize(examples.size());
        objective_.worst_margins(examples, w_, margins_.data(), answers_.data(), ws_);
        for (std::size_t k = 0; k < examples.size(); ++k) {
            search(examples[k], margins_[k], answers_[k]);
            stay_within_memory(examples[k]);
        }
    }

   private:
    static constexpr double c = L::kConjugateCurvature;

    void stay_within_memory(Index i) {
        if (sets_.bytes() > options_.max_bytes && sets_.merge(objective_, i)) ++report.merged;
    }

    // Chang and Yih 2013, Algorithm 2, lines 5 to 8: add the oracle's answer if its violation is large enough.
    void search(Index i, double margin, SlotCounts& answer) {
        ++report.visits;
        const double s = sets_.totals(i).mass;
        // phi(margin) - [<x, v> - phi*(s)]; a solved working set has the values v = c s, hence <x, v> = 2 phi*(s).
        report.gap_estimate += objective_.weight(i) * std::max(0.0, L::value(margin) - L::conjugate(s));
        report.work += kSlot * objective_.num_slots(i) * options_.violators;
        if (margin - c * s >= options_.delta) join(i, answer);
    }

    // A search that also adds the next best labellings. The best is added last: `update` visits the newest first.
    void search_several(Index i) {
        Workspace::Frame frame(ws_);
        double* scores = frame.take(objective_.num_slots(i));
        const double gold_score = objective_.augmented_scores(i, w_, scores);
        std::vector<Scored> best = objective_.worst_labellings(i, scores, gold_score, options_.violators, ws_);
        const double s = sets_.totals(i).mass;
        for (std::size_t k = best.size() - 1; k > 0; --k) {
            if (best[k].value - c * s >= options_.delta) join(i, best[k].labelling);
        }
        search(i, best.front().value, best.front().labelling);
    }

    void join(Index i, SlotCounts& labelling) {
        if (!sets_.find_or_add(objective_, i, labelling, sets_.next_stamp(i))) return;
        ++report.added;
        report.work += kNewAtom * sets_.rows(i).num_values();
    }

    // Algorithm 1 of the paper. A change d of x_k changes atom l's value by -ratio d G_kl; w is updated at the end.
    void update(Index i) {
        auto& atoms = sets_.of(i);
        const double omega = objective_.weight(i);
        const double ratio = omega / options_.l2;
        Workspace::Frame frame(ws_);
        double* scores = frame.take(objective_.num_slots(i));
        double* v = frame.take(len(atoms.size()));
        double* x = frame.take(len(atoms.size()));
        sets_.rows(i).scores(w_, 1.0, scores);
        sets_.values(i, scores, v);
        for (std::size_t k = 0; k < atoms.size(); ++k) x[k] = atoms[k].coefficient;
        const Gram gram = sets_.gram(i);
        double s = sets_.totals(i).mass;
        bool emptied = false;
        shuffle(atoms);
        for (const std::size_t k : order_) {
            const double gradient = v[k] - c * s;
            const double curvature = ratio * gram(k, k) + c;
            const double projected = x[k] > 0.0 ? std::abs(gradient) : std::max(gradient, 0.0);
            report.violation = std::max(report.violation, projected);
            const double before = std::exchange(x[k], std::max(x[k] + gradient / curvature, 0.0));
            const double d = x[k] - before;
            emptied = emptied || x[k] == 0.0;
            if (d == 0.0) continue;
            ++report.steps;
            report.dual_gain += omega * d * (gradient - 0.5 * d * curvature);
            for (std::size_t l = 0; l < atoms.size(); ++l) v[l] -= ratio * d * gram(k, l);
            s += d;
        }
        report.work += 2 * sets_.rows(i).num_values();
        sets_.move(i, x, ratio, w_);
        if (!emptied) return;
        const Index before = len(atoms.size());
        sets_.remove_if(i, [](const Atom& atom) { return atom.coefficient == 0.0; });
        report.removed += before - len(atoms.size());
    }

    // Fills order_: the newest atom first, the others in random order.
    void shuffle(const std::vector<Atom>& atoms) {
        order_.resize(atoms.size());
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        const auto newest = std::max_element(atoms.begin(), atoms.end(),
                                             [](const Atom& p, const Atom& q) { return p.stamp < q.stamp; });
        std::swap(order_.front(), order_[newest - atoms.begin()]);
        for (std::size_t k = order_.size() - 1; k > 1; --k) std::swap(order_[k], order_[1 + random_.below(k)]);
    }

    const Objective& objective_;
    double* w_;
    WorkingSets& sets_;
    DcdOptions options_;
    SplitMix64 random_;
    Workspace ws_;
    SlotCounts answer_;
    std::vector<std::size_t> order_;
    std::vector<double> margins_;
    std::vector<SlotCounts> answers_;
};

// Calls f(examples) for runs of the order, as long as memory of scores allows. Examples of weight zero are left out.
template <class F>
void for_runs(const Objective& objective, std::span<const Index> order, Interrupt& interrupt, F&& f) {
    std::vector<Index> run;
    Index slots = 0;
    const auto flush = [&] {
        interrupt.check();
        if (!run.empty()) f(std::span<const Index>(run));
        run.clear();
        slots = 0;
    };
    for (const Index i : order) {
        if (objective.weight(i) == 0.0) continue;
        if (slots + objective.num_slots(i) > kManySlots) flush();
        run.push_back(i);
        slots += objective.num_slots(i);
    }
    flush();
}

[[noreturn]] void refuse() { throw InputError("dual coordinate descent needs temperature 0 and the squared link"); }

}  // namespace

DcdReport dcd_epoch(const DcdState& state, std::span<const Index> order, const DcdOptions& options,
                    Interrupt& interrupt) {
    return state.objective.loss().link.with([&](auto link) -> DcdReport {
        using L = decltype(link);
        if constexpr (kQuadraticConjugate<L>) {
            if (state.objective.loss().temperature != 0.0) refuse();
            state.sets.attach(state.objective, interrupt);
            Visits<L> visits(state, options);
            if (options.search && !options.update && options.violators == 1 && state.objective.structure().together()) {
                for_runs(state.objective, order, interrupt, [&](auto run) { visits.search_all(run); });
                return visits.report;
            }
            for_each_visit(state.objective, order, interrupt, [&](Index i) { visits.visit(i); });
            return visits.report;
        } else {
            refuse();
        }
    });
}

}  // namespace partwise
