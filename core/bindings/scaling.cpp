#include "solvers/scaling.h"

#include "bindings/states.h"
#include "solvers/gis.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

Bound bound_named(const std::string& name) {
    if (name == "gis") return Bound::kGis;
    if (name == "iis") return Bound::kIis;
    if (name == "scgis") return Bound::kScgis;
    if (name == "cd") return Bound::kCd;
    if (name == "log") return Bound::kLog;
    throw InputError("unknown approximate function '" + name + "'; there are gis, iis, scgis, cd and log");
}

SearchBound search_bound_named(const std::string& name) {
    if (name == "none") return SearchBound::kNone;
    if (name == "paper") return SearchBound::kPaper;
    if (name == "third-order") return SearchBound::kThirdOrder;
    throw InputError("unknown bound '" + name + "' for the line search; there are none, paper and third-order");
}

void check_cells(const Objective& o, const MutableFloats& potentials, const MutableFloats& inverse) {
    check_size(potentials, o.num_examples() * scaling_columns(o).width(), "potentials");
    check_size(inverse, o.num_examples(), "inverse");
}

void check_columns(const Objective& o, std::span<const Index> columns) {
    const Index n = scaling_columns(o).num_columns();
    for (const Index k : columns) {
        if (k < 0 || k >= n) throw InputError("no column " + std::to_string(k));
    }
}

}  // namespace

void bind_scaling(nb::module_& m) {
    nb::class_<ScalingReport>(m, "ScalingReport")
        .def_ro("updates", &ScalingReport::updates)
        .def_rw("cells", &ScalingReport::cells)
        .def_ro("searches", &ScalingReport::searches)
        .def_ro("capped", &ScalingReport::capped)
        .def_ro("gain", &ScalingReport::gain);

    m.def(
        "scaling_refresh",
        [](const Objective& o, const Floats& weights, const MutableFloats& potentials, const MutableFloats& inverse,
           int n_jobs) {
            check_weights(o.features(), weights);
            check_cells(o, potentials, inverse);
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            scaling_refresh(o, weights.data(), potentials.data(), inverse.data(), n_jobs, interrupt);
        },
        "objective"_a, "weights"_a, "potentials"_a.noconvert(), "inverse"_a.noconvert(), "n_jobs"_a = 1);

    m.def(
        "scaling_constants",
        [](const Objective& o) {
            Interrupt interrupt = python_interrupt();
            ScalingConstants constants;
            {
                const nb::gil_scoped_release release;
                constants = scaling_constants(o, interrupt);
            }
            return nb::make_tuple(numpy(std::move(constants.empirical)), numpy(std::move(constants.mass)),
                                  numpy(std::move(constants.columns)), numpy(std::move(constants.labels)),
                                  constants.n_cells);
        },
        "objective"_a);

    m.def(
        "scaling_extremes",
        [](const Objective& o) {
            Interrupt interrupt = python_interrupt();
            Extremes extremes;
            {
                const nb::gil_scoped_release release;
                extremes = scaling_extremes(o, interrupt);
            }
            return nb::make_tuple(numpy(std::move(extremes.lowest)), numpy(std::move(extremes.highest)));
        },
        "objective"_a);

    m.def(
        "scaling_largest_sum",
        [](const Objective& o) {
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return scaling_largest_sum(o, interrupt);
        },
        "objective"_a);

    m.def(
        "scaling_separates",
        [](const Objective& o, const Floats& weights, int n_jobs) {
            check_weights(o.features(), weights);
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return scaling_separates(o, weights.data(), n_jobs, interrupt);
        },
        "objective"_a, "weights"_a, "n_jobs"_a = 1);

    m.def(
        "scaling_expectations",
        [](const Objective& o, const Floats& weights, int n_jobs) {
            check_weights(o.features(), weights);
            return numpy(run_kernel(
                [&](auto& interrupt) { return scaling_expectations(o, weights.data(), n_jobs, interrupt); }));
        },
        "objective"_a, "weights"_a, "n_jobs"_a = 1);

    using State = Held<ScalingState>;
    nb::class_<State>(m, "ScalingState")
        .def(
            "__init__",
            [](State* self, Objective& o, const MutableFloats& weights, const MutableFloats& potentials,
               const MutableFloats& inverse, const Floats& empirical, const Floats& mass, double largest_sum) {
                check_cells(o, potentials, inverse);
                new (self) State{{o, per_weight(o, weights, "weights"), potentials.data(), inverse.data(),
                                  per_weight(o, empirical, "empirical"), per_weight(o, mass, "mass"), largest_sum},
                                 {share(o), keep_alive(weights), keep_alive(potentials), keep_alive(inverse),
                                  keep_alive(empirical), keep_alive(mass)}};
            },
            "objective"_a, nb::kw_only(), "weights"_a.noconvert(), "potentials"_a.noconvert(), "inverse"_a.noconvert(),
            "empirical"_a, "mass"_a, "largest_sum"_a);

    constexpr ScalingOptions usual;
    nb::class_<ScalingOptions>(m, "ScalingOptions")
        .def(
            "__init__",
            [](ScalingOptions* self, double l2, const std::string& function, bool parallel,
               const std::string& search_bound, double beta, double gamma, double newton_tol, Index max_newton,
               int n_jobs) {
                if (!(l2 >= 0.0) || l2 == kInfinity) throw InputError("l2 must be 0 or more and finite");
                new (self) ScalingOptions{l2,         bound_named(function),
                                          parallel,   search_bound_named(search_bound),
                                          beta,       gamma,
                                          newton_tol, max_newton,
                                          n_jobs};
            },
            nb::kw_only(), "l2"_a, "function"_a, "parallel"_a = usual.parallel, "search_bound"_a = "third-order",
            "beta"_a = usual.beta, "gamma"_a = usual.gamma, "newton_tol"_a = usual.newton_tol,
            "max_newton"_a = usual.max_newton, "n_jobs"_a = usual.n_jobs);

    m.def(
        "gis_update",
        [](const MutableFloats& weights, const Ints& order, const Floats& empirical, const Floats& expectations,
           double largest_sum, double temperature, const ScalingOptions& options) {
            const Index n = len(weights.size());
            check_size(empirical, n, "empirical");
            check_size(expectations, n, "expectations");
            if (!(temperature > 0.0)) throw InputError("temperature must be above 0 here");
            for (const Index t : span_of(order)) {
                if (t < 0 || t >= n) throw InputError("no weight " + std::to_string(t));
            }
            const GisSums sums{empirical.data(), expectations.data(), largest_sum, temperature};
            return run_kernel(
                [&](auto& interrupt) { return gis_update(weights.data(), span_of(order), sums, options, interrupt); });
        },
        "weights"_a.noconvert(), "order"_a.noconvert(), nb::kw_only(), "empirical"_a, "expectations"_a, "largest_sum"_a,
        "temperature"_a, "options"_a);

    using Plan = Held<VisitPlan>;
    nb::class_<Plan>(m, "VisitPlan")
        .def(
            "__init__",
            [](Plan* self, const Objective& o, const MutableInts& wait, const MutableInts& rest) {
                const Index n_columns = scaling_columns(o).num_columns();
                check_size(wait, n_columns, "wait");
                check_size(rest, n_columns, "rest");
                new (self) Plan{{wait.data(), rest.data(), n_columns}, {keep_alive(wait), keep_alive(rest)}};
            },
            "objective"_a, nb::kw_only(), "wait"_a.noconvert(), "rest"_a.noconvert());

    m.def(
        "scaling_function",
        [](const State& held, Index k, double z, const ScalingOptions& options) {
            check_columns(held.state.objective, {&k, 1});
            return run_kernel([&](auto& interrupt) { return scaling_function(held.state, k, z, options, interrupt); });
        },
        "state"_a, "k"_a, "z"_a, "options"_a);

    m.def(
        "scaling_epoch",
        [](const State& held, const Ints& order, const ScalingOptions& options) {
            check_columns(held.state.objective, span_of(order));
            return run_kernel(
                [&](auto& interrupt) { return scaling_epoch(held.state, span_of(order), options, interrupt); });
        },
        "state"_a, "order"_a.noconvert(), "options"_a);

    m.def(
        "scaling_rounds",
        [](const State& held, Plan& plan, const ScalingOptions& options) {
            if (plan.state.size() != scaling_columns(held.state.objective).num_columns()) {
                throw InputError("a plan of visits for another number of columns");
            }
            return run_kernel(
                [&](auto& interrupt) { return scaling_rounds(held.state, plan.state, options, interrupt); });
        },
        "state"_a, "plan"_a, "options"_a);
}

}  // namespace partwise::bindings
