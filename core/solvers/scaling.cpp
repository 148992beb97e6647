#include "solvers/scaling.h"

#include "solvers/scaling_functions.h"

namespace partwise {

namespace {

class Scaling {
   public:
    Scaling(const ScalingState& state, const ScalingOptions& options, Interrupt& interrupt)
        : objective_(state.objective),
          columns_(scaling_columns(objective_)),
          l2_(options.l2),
          tau_(objective_.loss().temperature),
          options_(options),
          state_(state),
          cells_{state.potentials, state.inverse, objective_.weights_unless_one(), objective_.num_examples()},
          n_jobs_(objective_.jobs(options.n_jobs)),
          interrupt_(interrupt) {
        if (options_.bound != Bound::kIis) return;
        cell_sums_ = scaling_cell_sums(objective_, options.n_jobs, interrupt);
    }

    double function(Index k, double z) const {
        Scratch scratch;
        const Column c = columns_.column(k);
        scratch.view.load(cells_, c);
        const double mean = scratch.view.moments().mean;
        const OneVariable a = one_variable(c);
        const double s = a.scale(z);
        switch (options_.bound) {
            case Bound::kIis:
                collect(scratch);
                return a.with(scratch.terms.at(s), z).value;
            case Bound::kCd:
                return a.quadratic(z) + tau_ * scratch.view.log_partition_change(s);
            case Bound::kLog:
                return a.with(logarithmic(mean, c.highest, mass(c), s), z).value;
            default:
                return a.with(exponential(mean, steepness(c), s), z).value;
        }
    }

    ScalingReport sequential(std::span<const Index> order) {
        ScalingReport report;
        Scratch scratch;
        for (const Index k : order) visit(k, scratch, report);
        return report;
    }

    ScalingReport rounds(VisitPlan& plan) {
        // The fixed cost of a visit to a weight, in units of cells read.
        constexpr double kVisit = 100.0;
        ScalingReport report;
        Scratch scratch;
        const auto gain = [&](Index k) {
            const double before = report.gain;
            visit(k, scratch, report);
            return report.gain - before;
        };
        const auto cost = [&](Index k) { return kVisit + static_cast<double>(columns_.column(k).size); };
        do {
            plan.round(gain, cost);
        } while (report.cells < columns_.num_cells());
        return report;
    }

    ScalingReport parallel(std::span<const Index> order) {
        std::vector<Scratch> scratch(n_jobs_);
        const std::span<const Index> weights = columns_.weights();
        const ScalingReport total = step_together(
            order, state_.weights, n_jobs_, interrupt_, [&](Index k) { return weights[k]; },
            [&](Index begin, Index end, double* steps, ScalingReport& report, int worker) {
                for (Index j = begin; j < end; ++j) {
                    *steps++ = solve(columns_.column(order[j]), scratch[worker], report, 0.0);
                }
            });
        scaling_refresh(objective_, state_.weights, state_.potentials, state_.inverse, n_jobs_, interrupt_);
        return total;
    }

   private:
    struct Scratch {
        ColumnView view;
        IisTerms terms;
    };

    // Algorithm 1's step for one weight (column k).
    void visit(Index k, Scratch& scratch, ScalingReport& report) {
        interrupt_.check();
        const Column c = columns_.column(k);
        const Index most = options_.bound == Bound::kCd ? options_.max_newton : 1;
        for (Index step = 0; step < most; ++step) {
            const double z = solve(c, scratch, report, step > 0 ? options_.newton_tol : 0.0);
            if (z == 0.0) break;
            ++report.updates;
            state_.weights[c.weight] += z;
            scratch.view.update(cells_, z / tau_, columns_.width());
        }
    }

    void collect(Scratch& scratch) const {
        scratch.terms.collect(scratch.view, cell_sums_.data(), cells_.n, columns_.binary());
    }

    OneVariable one_variable(const Column& c) const {
        return {l2_, state_.weights[c.weight], state_.empirical[c.weight], tau_};
    }
    double mass(const Column& c) const { return state_.mass[c.weight]; }
    // F of GIS or SCGIS, 1 for a column without cells.
    double steepness(const Column& c) const {
        const double f = options_.bound == Bound::kGis ? state_.largest_sum : c.highest;
        return f > 0.0 ? f : 1.0;
    }

    // The step for one column: (an approximation of) argmin A_t, or 0 if |A_t'(0)| <= flat.
    double solve(const Column& c, Scratch& scratch, ScalingReport& report, double flat) const {
        const OneVariable a = one_variable(c);
        scratch.view.load(cells_, c);
        const Moments at_zero = scratch.view.moments();
        report.cells += c.size;
        const double slope = l2_ * a.weight - a.empirical + at_zero.mean;  // dL/dw_t
        if (std::abs(slope) <= flat) return 0.0;
        if (options_.bound == Bound::kCd) return one_newton_step(scratch.view, a, at_zero, report, slope);

        double z = 0;
        double value = 0;
        double reach = 0;
        if (options_.bound == Bound::kIis) {
            collect(scratch);
            const IisTerms& terms = scratch.terms;
            reach = reach_of(terms.steepest());
            const auto function = [&](double x) { return a.with(terms.at(a.scale(x)), x); };
            z = minimum(function, reach, ceiling(a, at_zero.mean, terms.least));
            value = function(z).value;
        } else if (options_.bound == Bound::kLog && mass(c) > 0.0) {
            const auto function = [&](double x) {
                return a.with(logarithmic(at_zero.mean, c.highest, mass(c), a.scale(x)), x);
            };
            reach = reach_of(c.highest);
            z = l2_ > 0.0 ? minimum(function, reach, kInfinity) : bounded(log_odds(c, a, at_zero.mean), reach);
            value = function(z).value;
        } else {
            const double f = steepness(c);
            const auto slopes = [&](double x) { return a.with(exponential_slopes(at_zero.mean, f, a.scale(x)), x); };
            reach = reach_of(f);
            // The closed form (25), if there is no penalty.
            z = l2_ > 0.0 ? minimum(slopes, reach, ceiling(a, at_zero.mean, f))
                          : bounded(tau_ * std::log(a.empirical / at_zero.mean) / f, reach);
            value = a.with(exponential(at_zero.mean, f, a.scale(z)), z).value;
        }
        if (!(value < 0.0)) return 0.0;
        report.gain -= value;
        report.capped += std::abs(z) >= reach;
        return z;
    }

    template <class F>
    double minimum(F&& function, double reach, double most) const {
        return bounded(newton(function, reach, most, options_.newton_tol, options_.max_newton), reach);
    }

    double reach_of(double steepness) const { return tau_ * kMostExponent / steepness; }
    static double bounded(double z, double reach) { return std::clamp(z, -reach, reach); }

    // A' >= l2 w - e + E exp(z F / tau) for z >= 0: a positive root of A' is not above the root of this bound.
    double ceiling(const OneVariable& a, double expectation, double f) const {
        const double room = a.empirical - l2_ * a.weight;
        return room > expectation && expectation > 0.0 ? tau_ * std::log(room / expectation) / f : kInfinity;
    }

    // The minimiser of the bound (39) without a penalty: x with q exp(x) / (1 - q + q exp(x)) = e / (F M).
    double log_odds(const Column& c, const OneVariable& a, double expectation) const {
        const double whole = c.highest * mass(c);
        const double odds = std::log(a.empirical / (whole - a.empirical));
        return tau_ * (odds - std::log(expectation / (whole - expectation))) / c.highest;
    }

    // Huang et al. 2010, Algorithm 3, steps 1 and 2, with step 2' of section 3.2.1.
    double one_newton_step(const ColumnView& view, const OneVariable& a, const Moments& at_zero, ScalingReport& report,
                           double slope) const {
        const Column& c = view.column();
        const double curvature = l2_ + at_zero.variance / tau_;
        const double largest = std::max({c.highest, -c.lowest, 0.0});
        const double reach = largest > 0.0 ? reach_of(largest) : kInfinity;
        const double whole = bounded(-slope / curvature, reach);
        if (!std::isfinite(whole)) return 0.0;
        report.capped += std::abs(whole) >= reach;
        // The feature is 0 at labels without a cell in the column.
        const double range = std::max(c.highest, 0.0) - std::min(c.lowest, 0.0);
        // Sets `value` to A(z) or a bound of it; returns whether it fulfils (35), a sufficient decrease.
        const auto decreases = [&](double z, double& value) {
            const double enough = options_.gamma * z * slope;
            const double s = a.scale(z);
            if (c.size > 0 && options_.search_bound == SearchBound::kThirdOrder) {
                value = a.quadratic(z) + tau_ * third_order(at_zero, range, s);
                if (value <= enough) return true;
            }
            if (c.size > 0 && options_.search_bound != SearchBound::kNone && c.lowest >= 0.0) {  // (38)
                value = a.quadratic(z) + tau_ * logarithmic(at_zero.mean, c.highest, mass(c), s).value;
                if (value <= enough) return true;
            }
            ++report.searches;  // A itself, in (35)
            report.cells += c.size;
            value = a.quadratic(z) + tau_ * view.log_partition_change(s);
            return value <= enough;
        };
        // A is convex and A'' <= H = l2 + M range^2 / (4 tau): (35) holds for all steps up to 2 (1 - gamma) |A'(0)| / H
        // (Theorem 4), and for all steps shorter than one that fulfils it. Exceptions are due to rounding.
        const double steepest = l2_ + 0.25 * mass(c) * range * (range / tau_);
        const double sure = std::min(2.0 * (1.0 - options_.gamma) * std::abs(slope) / steepest, reach / kMostExponent);
        const Trial found = first_good(whole, options_.beta, sure, decreases);
        report.gain -= found.value;
        return found.z;
    }

    const Objective& objective_;
    const ColumnAccess& columns_;
    double l2_;
    double tau_;
    ScalingOptions options_;
    ScalingState state_;
    Cells cells_;
    int n_jobs_;
    Interrupt& interrupt_;
    std::vector<double> cell_sums_;  // f#(x, y) of every cell, for IIS
};

void check_signs(const ScalingState& state, const ScalingOptions& options) {
    const ColumnAccess& columns = scaling_columns(state.objective);
    if (options.bound != Bound::kCd && columns.negative() >= 0) {
        throw InputError("this method needs features that are not negative: ", columns.describe(columns.negative()),
                         " is");
    }
}

}  // namespace

double scaling_function(const ScalingState& state, Index k, double z, const ScalingOptions& options,
                        Interrupt& interrupt) {
    return Scaling(state, options, interrupt).function(k, z);
}

ScalingReport scaling_epoch(const ScalingState& state, std::span<const Index> order, const ScalingOptions& options,
                            Interrupt& interrupt) {
    check_signs(state, options);
    if (options.parallel && options.bound != Bound::kIis)
        throw InputError("the parallel update needs a bound that holds for all weights at once: iis (gis: gis_update)");
    Scaling scaling(state, options, interrupt);
    return options.parallel ? scaling.parallel(order) : scaling.sequential(order);
}

ScalingReport scaling_rounds(const ScalingState& state, VisitPlan& plan, const ScalingOptions& options,
                             Interrupt& interrupt) {
    check_signs(state, options);
    return Scaling(state, options, interrupt).rounds(plan);
}

}  // namespace partwise
