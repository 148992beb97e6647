#include "solvers/bcfw_sets.h"

#include <numeric>
#include <tuple>

#include "support/extremes.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

// The values v, coefficients x and inner products G of one block's working set (the symbols of bcfw_sets.h).
class Block {
   public:
    Block(std::size_t n, double ratio, double* v, double* x, Gram gram)
        : n_(n), ratio_(ratio), v_(v), x_(x), inner_(gram) {
        double largest = 1.0;
        for (std::size_t k = 0; k < n_; ++k) largest = std::max(largest, std::abs(v_[k]));
        noise_ = 1e-11 * largest;
    }

    // x_k += d, and the values v follow.
    void move(std::size_t k, double d) {
        x_[k] += d;
        const double* row = inner_.row(k);
        for (std::size_t l = 0; l < n_; ++l) v_[l] -= ratio_ * d * row[l];
    }

    // A pairwise step. Returns the dual's gain divided by omega, 0 if no step gains more than rounding.
    double pairwise() {
        const std::size_t s = best();
        const std::size_t a = worst();
        if (!(v_[s] - v_[a] > noise_)) return 0.0;
        const double slope = v_[s] - v_[a];
        const double curvature = ratio_ * std::max(0.0, inner_(s, s) + inner_(a, a) - 2.0 * inner_(s, a));
        const double gamma = slope < curvature * x_[a] ? slope / curvature : x_[a];
        const double* to = inner_.row(s);
        const double* from = inner_.row(a);
        const double scale = ratio_ * gamma;
#pragma omp simd
        for (std::size_t l = 0; l < n_; ++l) v_[l] -= scale * (to[l] - from[l]);
        x_[s] += gamma;
        x_[a] = gamma == x_[a] ? 0.0 : x_[a] - gamma;
        return gamma * (slope - 0.5 * gamma * curvature);
    }

    double towards() {
        const std::size_t s = best();
        double value = 0;  // <x, v>, the block's mean value
        for (std::size_t k = 0; k < n_; ++k) value += x_[k] * v_[k];
        const double slope = v_[s] - value;
        if (!(slope > noise_)) return 0.0;
        double cross = 0;   // <psi_s, psi_x>
        double square = 0;  // |psi_x|^2
        for (std::size_t k = 0; k < n_; ++k) {
            if (x_[k] == 0.0) continue;
            cross += x_[k] * inner_(s, k);
            for (std::size_t l = 0; l < n_; ++l) square += x_[k] * x_[l] * inner_(k, l);
        }
        const double curvature = ratio_ * std::max(0.0, inner_(s, s) - 2.0 * cross + square);
        const double gamma = slope < curvature ? slope / curvature : 1.0;
        for (std::size_t k = 0; k < n_; ++k) {
            if (x_[k] == 0.0 && k != s) continue;
            const double target = (1.0 - gamma) * x_[k] + (k == s ? gamma : 0.0);
            move(k, target - x_[k]);
            x_[k] = target;
        }
        return gamma * (slope - 0.5 * gamma * curvature);
    }

    // c: the curvature of phi*.
    double coordinate(double c) {
        const double s = std::accumulate(x_, x_ + n_, 0.0);
        std::size_t at = n_;
        double gain = 0;
        double step = 0;
        for (std::size_t k = 0; k < n_; ++k) {
            const double slope = v_[k] - c * s;
            const double curvature = ratio_ * inner_(k, k) + c;
            const double d = std::max(slope / curvature, -x_[k]);
            const double g = d * (slope - 0.5 * d * curvature);
            if (std::abs(slope) > noise_ && g > gain) std::tie(at, gain, step) = std::tuple(k, g, d);
        }
        if (at == n_) return 0.0;
        const bool drop = step == -x_[at];
        move(at, step);
        if (drop) x_[at] = 0.0;
        return gain;
    }

   private:
    // The first atom whose value is the largest up to rounding: an exact step leaves two values equal.
    std::size_t best() const {
        double largest = -kInfinity;
        PARTWISE_SIMD_MAX(largest)
        for (std::size_t k = 0; k < n_; ++k) largest = std::max(largest, v_[k]);
        std::size_t s = 0;
        while (!(v_[s] >= largest - noise_) && s + 1 < n_) ++s;
        return s;
    }
    // The first atom of positive coefficient whose value is the smallest up to rounding.
    std::size_t worst() const {
        double smallest = kInfinity;
        PARTWISE_SIMD_MIN(smallest)
        for (std::size_t k = 0; k < n_; ++k) smallest = std::min(smallest, x_[k] > 0.0 ? v_[k] : kInfinity);
        std::size_t a = 0;
        while (!(x_[a] > 0.0 && v_[a] <= smallest + noise_) && a + 1 < n_) ++a;
        return a;
    }

    std::size_t n_;
    double ratio_;
    double* v_;
    double* x_;
    Gram inner_;
    double noise_;  // differences of values below this are rounding
};

template <class L>
class Visits {
   public:
    Visits(const BcfwSetState& state, const BcfwSetOptions& options)
        : objective_(state.objective), w_(state.weights), sets_(state.sets), gaps_(state.gaps), options_(options) {}

    BcfwSetReport report;

    void visit(Index i) {
        const double omega = objective_.weight(i);
        if (omega == 0.0) return;
        auto& atoms = sets_.of(i);
        Workspace::Frame frame(ws_);
        double* scores = frame.take(objective_.num_slots(i));  // slots' scores with costs (few slots if !search)
        if (options_.search) search(i, scores);
        // With a fixed mass, a working set of one labelling has its only possible coefficient: no step to make.
        const std::size_t fewest = kFixedMass<L> && !options_.search ? 2 : 1;
        if (atoms.size() < fewest) {
            gaps_[i] = 0.0;
            return;
        }
        if (!options_.search) {
            sets_.rows(i).scores(w_, 1.0, scores);
            report.work += sets_.rows(i).num_values();
        }
        const auto n = len(atoms.size());
        double* v = frame.take(n);
        double* x = frame.take(n);
        sets_.values(i, scores, v);
        for (std::size_t k = 0; k < atoms.size(); ++k) x[k] = atoms[k].coefficient;
        const double gap = omega * block_gap(options_.search ? margin_ : *std::max_element(v, v + n), v, x, n);
        report.gap_estimate += gap;
        gaps_[i] = gap;
        if (gap > 0.0) move(i, omega, v, x);
        for (Atom& atom : atoms) {
            if (atom.coefficient > 0.0) atom.stamp = options_.now;
        }
        sets_.remove_if(
            i, [&](const Atom& atom) { return atom.coefficient == 0.0 && atom.stamp <= options_.now - options_.keep; });
        if (options_.search && sets_.bytes() > options_.max_bytes && sets_.merge(objective_, i)) ++report.merged;
    }

    double bound() {
        double sum = 0;
        for (Index i = 0; i < objective_.num_examples(); ++i) {
            const auto& [mass, cost] = sets_.totals(i);
            sum += objective_.weight(i) * (cost - L::conjugate(mass));
        }
        return sum;
    }

   private:
    // The labelling that maximises cost - <w, psi> (the maximum is margin_) joins the working set, and so do the next
    // best ones whose values show that adding weight to them would raise the dual.
    void search(Index i, double* scores) {
        ++report.visits;
        const double gold_score = objective_.augmented_scores(i, w_, scores);
        report.work += kSlot * objective_.num_slots(i) * options_.violators;
        if (options_.violators == 1) {
            margin_ = objective_.structure().maximize(i, scores, answer_, ws_) - gold_score;
            join(i, answer_);
            return;
        }
        std::vector<Scored> best = objective_.worst_labellings(i, scores, gold_score, options_.violators, ws_);
        margin_ = best.front().value;
        // Values equal to the level of a solved block can be above it by rounding.
        const double level = this->level(i, scores) + 1e-9 * std::max(1.0, std::abs(margin_));
        for (std::size_t k = 0; k < best.size() && (k == 0 || best[k].value > level); ++k) join(i, best[k].labelling);
    }

    void join(Index i, SlotCounts& labelling) {
        if (sets_.find_or_add(objective_, i, labelling, options_.now))
            report.work += kNewAtom * sets_.rows(i).num_values();
    }

    // The value v above which moving weight to a labelling raises the dual: <x, v> with fixed mass, phi*'(s) otherwise.
    double level(Index i, [[maybe_unused]] const double* scores) {
        if constexpr (kFixedMass<L>) {
            const auto& atoms = sets_.of(i);
            Workspace::Frame frame(ws_);
            double* v = frame.take(len(atoms.size()));
            sets_.values(i, scores, v);
            double linear = 0;
            for (std::size_t k = 0; k < atoms.size(); ++k) linear += atoms[k].coefficient * v[k];
            return linear;
        } else {
            return L::kConjugateCurvature * sets_.totals(i).mass;
        }
    }

    // The block's duality gap without its weight omega: phi(margin) - [<x, v> - phi*(s)].
    static double block_gap(double margin, const double* v, const double* x, Index n) {
        return std::max(0.0, L::value(margin) - dot(x, v, n) + L::conjugate(std::accumulate(x, x + n, 0.0)));
    }

    double step(Block& block) const {
        if constexpr (kFixedMass<L>) {
            return options_.pairwise ? block.pairwise() : block.towards();
        } else {
            return block.coordinate(L::kConjugateCurvature);
        }
    }

    // Each step that moves weight between coefficients can lose a unit in the last place. Without this correction the
    // dual would count the lost or gained sum of many visits as mass.
    static void restore_mass(double* x, Index n) {
        const double mass = std::accumulate(x, x + n, 0.0);
        if (mass != L::kLeastMass) scale(L::kLeastMass / mass, x, n);
    }

    void move(Index i, double omega, double* v, double* x) {
        const double ratio = omega / options_.l2;
        Block block(sets_.of(i).size(), ratio, v, x, sets_.gram(i));
        Index steps = 0;
        for (; steps < options_.steps; ++steps) {
            const double gain = this->step(block);
            if (!(gain > 0.0)) break;
            report.dual_gain += omega * gain;
        }
        if (steps == 0) return;
        if constexpr (kFixedMass<L>) restore_mass(x, len(sets_.of(i).size()));
        report.steps += steps;
        report.work += sets_.rows(i).num_values();
        sets_.move(i, x, ratio, w_);
    }

    const Objective& objective_;
    double* w_;
    WorkingSets& sets_;
    double* gaps_;
    BcfwSetOptions options_;
    Workspace ws_;
    SlotCounts answer_;
    double margin_ = 0;
};

}  // namespace

BcfwSetReport bcfw_set_epoch(const BcfwSetState& state, std::span<const Index> order, const BcfwSetOptions& options,
                             Interrupt& interrupt) {
    if (state.objective.loss().temperature != 0.0) throw InputError("bcfw needs a loss of temperature 0");
    state.sets.attach(state.objective, interrupt);
    return state.objective.loss().link.with_block_steps<BcfwSetReport>("bcfw", [&](auto link) {
        Visits<decltype(link)> visits(state, options);
        for (std::size_t k = 0; k < order.size(); ++k) {
            interrupt.check();
            if (k + 2 < order.size()) state.sets.prefetch_places(order[k + 2]);
            if (k + 1 < order.size()) state.sets.prefetch(order[k + 1]);
            visits.visit(order[k]);
        }
        visits.report.bound = visits.bound();
        return visits.report;
    });
}

}  // namespace partwise
