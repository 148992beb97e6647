// Methods that move one weight at a time, on columns of the features: iterative scaling, coordinate descent with l1.
#include "bindings/states.h"
#include "solvers/cd_l1.h"
#include "solvers/scaling.h"

namespace partwise::bindings {

namespace {

Bound bound_named(const std::string& name) {
    if (name == "gis") return Bound::kGis;
    if (name == "iis") return Bound::kIis;
    if (name == "scgis") return Bound::kScgis;
    if (name == "cd") return Bound::kCd;
    if (name == "log") return Bound::kLog;
    throw InputError("unknown approximate function '", name, "'; there are gis, iis, scgis, cd and log");
}

SearchBound search_bound_named(const std::string& name) {
    if (name == "none") return SearchBound::kNone;
    if (name == "paper") return SearchBound::kPaper;
    if (name == "third-order") return SearchBound::kThirdOrder;
    throw InputError("unknown bound '", name, "' for the line search; there are none, paper and third-order");
}

// A value per slot of every example, and one per example.
Index num_cells(const Objective& o) { return o.num_examples() * scaling_columns(o).width(); }

void check_columns(const Objective& o, std::span<const Index> columns) {
    const Index n = scaling_columns(o).num_columns();
    for (const Index k : columns) {
        if (k < 0 || k >= n) throw InputError("no column ", k);
    }
}

void bind_scaling_data(nb::module_& m) {
    define(m, "scaling_refresh", args("objective"_a, "weights"_a, "potentials"_same, "inverse"_same, "n_jobs"_a = 1),
           [](const Objective& o, const Floats& weights, const MutableFloats& potentials, const MutableFloats& inverse,
              int n_jobs) {
               check_weights(o.features(), weights);
               check_size(potentials, num_cells(o), "potentials");
               check_size(inverse, o.num_examples(), "inverse");
               run_kernel(scaling_refresh, o, weights.data(), potentials.data(), inverse.data(), n_jobs);
           });
    define(m, "scaling_constants", args("objective"_a), [](const Objective& o) {
        ScalingConstants found = run_kernel(scaling_constants, o);
        return tuple_of(std::move(found.empirical), std::move(found.mass), std::move(found.columns),
                        std::move(found.labels), found.n_cells);
    });
    define(m, "scaling_extremes", args("objective"_a), [](const Objective& o) {
        Extremes found = run_kernel(scaling_extremes, o);
        return tuple_of(std::move(found.lowest), std::move(found.highest));
    });
    define(m, "scaling_largest_sum", args("objective"_a),
           [](const Objective& o) { return run_kernel(scaling_largest_sum, o); });
    define(m, "scaling_separates", args("objective"_a, "weights"_a, "n_jobs"_a = 1),
           [](const Objective& o, const Floats& weights, int n_jobs) {
               check_weights(o.features(), weights);
               return run_kernel(scaling_separates, o, weights.data(), n_jobs);
           });
    define(m, "scaling_expectations", args("objective"_a, "weights"_a, "n_jobs"_a = 1),
           [](const Objective& o, const Floats& weights, int n_jobs) {
               check_weights(o.features(), weights);
               return numpy(run_kernel(scaling_expectations, o, weights.data(), n_jobs));
           });
}

void bind_scaling(nb::module_& m) {
    using R = ScalingReport;
    bind_report<R>(m, "ScalingReport", "updates", &R::updates, "searches", &R::searches, "capped", &R::capped, "gain",
                   &R::gain)
        .def_rw("cells", &R::cells);
    bind_state<ScalingState>(m, "ScalingState", unchecked, per_weight("weights"), sized("potentials", num_cells),
                             per_example("inverse"), per_weight<Floats>("empirical").converted(),
                             per_weight<Floats>("mass").converted(), NumberPart{"largest_sum"});
    using O = ScalingOptions;
    bind_options<O>(
        m, "ScalingOptions",
        [](const O& options) {
            if (!(options.l2 >= 0.0) || options.l2 == kInfinity) throw InputError("l2 must be 0 or more and finite");
        },
        required("l2", &O::l2), named("function", &O::bound, bound_named), usual("parallel", &O::parallel),
        named("search_bound", &O::search_bound, search_bound_named, "third-order"), usual("beta", &O::beta),
        usual("gamma", &O::gamma), usual("newton_tol", &O::newton_tol), usual("max_newton", &O::max_newton),
        usual("n_jobs", &O::n_jobs));

    define(m, "gis_update",
           args("weights"_same, "order"_same, nb::kw_only(), "empirical"_a, "expectations"_a, "largest_sum"_a,
                "temperature"_a, "options"_a),
           [](const MutableFloats& weights, const Ints& order, const Floats& empirical, const Floats& expectations,
              double largest_sum, double temperature, const O& options) {
               const Index n = len(weights.size());
               check_size(empirical, n, "empirical");
               check_size(expectations, n, "expectations");
               if (!(temperature > 0.0)) throw InputError("temperature must be above 0 here");
               for (const Index t : span_of(order)) {
                   if (t < 0 || t >= n) throw InputError("no weight ", t);
               }
               const GisSums sums{empirical.data(), expectations.data(), largest_sum, temperature};
               return run_kernel(gis_update, weights.data(), span_of(order), sums, options);
           });

    using State = Held<ScalingState>;
    using Plan = Held<VisitPlan>;
    nb::class_<Plan> cls(m, "VisitPlan");
    define(cls, "__init__", args("objective"_a, nb::kw_only(), "wait"_same, "rest"_same),
           [](Plan* self, const Objective& o, const MutableInts& wait, const MutableInts& rest) {
               const Index n_columns = scaling_columns(o).num_columns();
               check_size(wait, n_columns, "wait");
               check_size(rest, n_columns, "rest");
               new (self) Plan{{wait.data(), rest.data(), n_columns}, {keep_alive(wait), keep_alive(rest)}};
           });
    define(m, "scaling_function", args("state"_a, "k"_a, "z"_a, "options"_a),
           [](const State& held, Index k, double z, const O& options) {
               check_columns(held.state.objective, {&k, 1});
               return run_kernel(scaling_function, held.state, k, z, options);
           });
    define(m, "scaling_epoch", args("state"_a, "order"_same, "options"_a),
           [](const State& held, const Ints& order, const O& options) {
               check_columns(held.state.objective, span_of(order));
               return run_kernel(scaling_epoch, held.state, span_of(order), options);
           });
    define(m, "scaling_rounds", args("state"_a, "plan"_a, "options"_a),
           [](const State& held, Plan& plan, const O& options) {
               if (plan.state.size() != scaling_columns(held.state.objective).num_columns()) {
                   throw InputError("a plan of visits for another number of columns");
               }
               return run_kernel(scaling_rounds, held.state, plan.state, options);
           });
}

void bind_cd_l1(nb::module_& m) {
    nb::class_<Columns> working_columns(m, "WorkingColumns");
    define(working_columns, "__init__", args("objective"_a, "selected"_same, "rows"_a = true, nb::keep_alive<1, 2>()),
           [](Columns* self, const Objective& o, const Ints& selected, bool rows) {
               check_one_part(o);
               if (!o.features().explicit_weights()) throw InputError("columns need explicit weights");
               Index last = -1;
               for (const Index k : span_of(selected)) {
                   if (k <= last || k >= o.features().num_weights()) {
                       throw InputError("selected weights must be in range, ascending and different");
                   }
                   last = k;
               }
               run_kernel([&](auto& interrupt) { new (self) Columns(o, span_of(selected), rows, interrupt); });
           });
    working_columns.def_prop_ro("num_entries", &Columns::num_entries);

    bind_report<CdReport>(m, "CdL1Report", "sweeps", &CdReport::sweeps, "steps", &CdReport::steps, "violation",
                          &CdReport::violation);
    using State = Held<CdState>;
    nb::class_<State> cdl1_state(m, "CdL1State");
    define(cdl1_state, "__init__", args("columns"_a, nb::kw_only(), "weights"_same, "unscaled"_same, "sums"_same),
           [](State* self, Columns& columns, const MutableFloats& weights, const MutableFloats& unscaled,
              const MutableFloats& sums) {
               const Objective& o = columns.objective();
               check_size(weights, columns.size(), "weights");
               if (!o.loss().link.fixed_mass() || !(o.loss().temperature > 0.0)) {
                   throw InputError("coordinate descent needs the identity link and a temperature above 0");
               }
               check_size(unscaled, o.total_slots(), "unscaled");
               check_size(sums, o.num_examples(), "sums");
               new (self) State{{columns, weights.data(), unscaled.data(), sums.data()},
                                {share(columns), keep_alive(weights), keep_alive(unscaled), keep_alive(sums)}};
           });
    using O = CdOptions;
    bind_options<O>(
        m, "CdL1Options",
        [](const O& options) {
            if (!(options.l1 >= 0.0 && options.l2 >= 0.0 && options.l1 < kInfinity && options.l2 < kInfinity)) {
                throw InputError("l1 and l2 must be 0 or more and finite");
            }
        },
        required("l1", &O::l1), required("l2", &O::l2), required("max_sweeps", &O::max_sweeps),
        required("tol", &O::tol), usual("seed", &O::seed));
    define(m, "cd_l1", args("state"_a, "options"_a),
           [](const State& held, const O& options) { return run_kernel(cd_l1, held.state, options); });
    define(m, "cd_l1_model", args("state"_a, "options"_a, "entropies"_same),
           [](const State& held, const O& options, const MutableFloats& entropies) {
               check_size(entropies, held.state.columns.objective().num_examples(), "entropies");
               return run_kernel(cd_l1_model, held.state, entropies.data(), options);
           });
}

}  // namespace

void bind_columns(nb::module_& m) {
    bind_scaling_data(m);
    bind_scaling(m);
    bind_cd_l1(m);
}

}  // namespace partwise::bindings
