#include "solvers/scaling.h"

#include "bindings/checks.h"

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

void check_cells(const Objective& o, const MutableFloats& potentials, const MutableFloats& inverse) {
    check_size(potentials, o.num_examples() * scaling_columns(o).width(), "potentials");
    check_size(inverse, o.num_examples(), "inverse");
}

ScalingSettings settings_of(const Objective& o, double l2, const std::string& function, const Floats& empirical,
                            const Floats& mass, double largest_sum) {
    if (!(l2 >= 0.0) || l2 == kInfinity) throw InputError("l2 must be 0 or more and finite");
    check_size(empirical, o.features().num_weights(), "empirical");
    check_size(mass, o.features().num_weights(), "mass");
    ScalingSettings settings{};
    settings.bound = bound_named(function);
    settings.largest_sum = largest_sum;
    settings.empirical = empirical.data();
    settings.mass = mass.data();
    return settings;
}

void set_minimiser(ScalingSettings& settings, bool check_bound, double beta, double gamma, double newton_tol,
                   Index max_newton) {
    settings.check_bound = check_bound;
    settings.beta = beta;
    settings.gamma = gamma;
    settings.newton_tol = newton_tol;
    settings.max_newton = max_newton;
}

}  // namespace

void bind_scaling(nb::module_& m) {
    nb::class_<ScalingReport>(m, "ScalingReport")
        .def_ro("updates", &ScalingReport::updates)
        .def_ro("cells", &ScalingReport::cells)
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
                                  numpy(std::move(constants.columns)), constants.n_cells);
        },
        "objective"_a);

    m.def(
        "scaling_extremes",
        [](const Objective& o, const Floats& potentials) {
            check_size(potentials, o.num_examples() * scaling_columns(o).width(), "potentials");
            Interrupt interrupt = python_interrupt();
            Extremes extremes;
            {
                const nb::gil_scoped_release release;
                extremes = scaling_extremes(o, potentials.data(), interrupt);
            }
            return nb::make_tuple(numpy(std::move(extremes.lowest)), numpy(std::move(extremes.highest)));
        },
        "objective"_a, "potentials"_a);

    m.def(
        "scaling_largest_sum",
        [](const Objective& o, const Floats& potentials) {
            check_size(potentials, o.num_examples() * scaling_columns(o).width(), "potentials");
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return scaling_largest_sum(o, potentials.data(), interrupt);
        },
        "objective"_a, "potentials"_a);

    m.def(
        "scaling_function",
        [](const Objective& o, double l2, const std::string& function, Index k, double z, const Floats& empirical,
           const Floats& mass, double largest_sum, const MutableFloats& weights, const MutableFloats& potentials,
           const MutableFloats& inverse) {
            const ScalingSettings settings = settings_of(o, l2, function, empirical, mass, largest_sum);
            check_size(weights, o.features().num_weights(), "weights");
            check_cells(o, potentials, inverse);
            if (k < 0 || k >= scaling_columns(o).num_columns()) throw InputError("no column " + std::to_string(k));
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return scaling_function(o, l2, settings, {weights.data(), potentials.data(), inverse.data()}, k, z,
                                    interrupt);
        },
        "objective"_a, "l2"_a, "function"_a, "k"_a, "z"_a, "empirical"_a, "mass"_a, "largest_sum"_a,
        "weights"_a.noconvert(), "potentials"_a.noconvert(), "inverse"_a.noconvert());

    m.def(
        "scaling_epoch",
        [](const Objective& o, double l2, const std::string& function, const Ints& order, const Floats& empirical,
           const Floats& mass, double largest_sum, const MutableFloats& weights, const MutableFloats& potentials,
           const MutableFloats& inverse, bool parallel, bool check_bound, double beta, double gamma, double newton_tol,
           Index max_newton, int n_jobs) {
            ScalingSettings settings = settings_of(o, l2, function, empirical, mass, largest_sum);
            settings.parallel = parallel;
            set_minimiser(settings, check_bound, beta, gamma, newton_tol, max_newton);
            check_size(weights, o.features().num_weights(), "weights");
            check_cells(o, potentials, inverse);
            const Index n_columns = scaling_columns(o).num_columns();
            for (const Index k : span_of(order)) {
                if (k < 0 || k >= n_columns) throw InputError("no column " + std::to_string(k));
            }
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return scaling_epoch(o, l2, settings, span_of(order), {weights.data(), potentials.data(), inverse.data()},
                                 n_jobs, interrupt);
        },
        "objective"_a, "l2"_a, "function"_a, "order"_a.noconvert(), "empirical"_a, "mass"_a, "largest_sum"_a,
        "weights"_a.noconvert(), "potentials"_a.noconvert(), "inverse"_a.noconvert(), "parallel"_a = false,
        "check_bound"_a = true, "beta"_a = 0.5, "gamma"_a = 0.001, "newton_tol"_a = 1e-5, "max_newton"_a = 1,
        "n_jobs"_a = 1);

    m.def(
        "scaling_rounds",
        [](const Objective& o, double l2, const std::string& function, const MutableInts& wait, const MutableInts& rest,
           const Floats& empirical, const Floats& mass, double largest_sum, const MutableFloats& weights,
           const MutableFloats& potentials, const MutableFloats& inverse, bool check_bound, double beta, double gamma,
           double newton_tol, Index max_newton) {
            ScalingSettings settings = settings_of(o, l2, function, empirical, mass, largest_sum);
            set_minimiser(settings, check_bound, beta, gamma, newton_tol, max_newton);
            check_size(weights, o.features().num_weights(), "weights");
            check_cells(o, potentials, inverse);
            const Index n_columns = scaling_columns(o).num_columns();
            check_size(wait, n_columns, "wait");
            check_size(rest, n_columns, "rest");
            VisitPlan plan(wait.data(), rest.data(), n_columns);
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return scaling_rounds(o, l2, settings, plan, {weights.data(), potentials.data(), inverse.data()},
                                  interrupt);
        },
        "objective"_a, "l2"_a, "function"_a, "wait"_a.noconvert(), "rest"_a.noconvert(), "empirical"_a, "mass"_a,
        "largest_sum"_a, "weights"_a.noconvert(), "potentials"_a.noconvert(), "inverse"_a.noconvert(),
        "check_bound"_a = true, "beta"_a = 0.5, "gamma"_a = 0.001, "newton_tol"_a = 1e-5, "max_newton"_a = 1);
}

}  // namespace partwise::bindings
