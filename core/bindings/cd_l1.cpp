#include "solvers/cd_l1.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_cd_l1(nb::module_& m) {
    nb::class_<Columns>(m, "WorkingColumns")
        .def(
            "__init__",
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
                Interrupt interrupt = python_interrupt();
                const nb::gil_scoped_release release;
                new (self) Columns(o, span_of(selected), rows, interrupt);
            },
            "objective"_a, "selected"_a.noconvert(), "rows"_a = true, nb::keep_alive<1, 2>())
        .def_prop_ro("num_entries", &Columns::num_entries);

    nb::class_<CdReport>(m, "CdL1Report")
        .def_ro("sweeps", &CdReport::sweeps)
        .def_ro("steps", &CdReport::steps)
        .def_ro("violation", &CdReport::violation);

    using State = Held<CdState>;
    nb::class_<State>(m, "CdL1State")
        .def(
            "__init__",
            [](State* self, Columns& columns, const MutableFloats& weights, const MutableFloats& unscaled,
               const MutableFloats& sums) {
                const Objective& o = columns.objective();
                check_size(weights, columns.size(), "weights");
                if (!o.loss().link.fixed_mass() || !(o.loss().temperature > 0.0)) {
                    throw InputError("coordinate descent needs the identity link and a temperature above 0");
                }
                new (self)
                    State{{columns, weights.data(), per_slot(o, unscaled, "unscaled"), per_example(o, sums, "sums")},
                          {share(columns), keep_alive(weights), keep_alive(unscaled), keep_alive(sums)}};
            },
            "columns"_a, nb::kw_only(), "weights"_a.noconvert(), "unscaled"_a.noconvert(), "sums"_a.noconvert());

    constexpr CdOptions usual;
    nb::class_<CdOptions>(m, "CdL1Options")
        .def(
            "__init__",
            [](CdOptions* self, double l1, double l2, Index max_sweeps, double tol, std::uint64_t seed) {
                if (!(l1 >= 0.0 && l2 >= 0.0 && l1 < kInfinity && l2 < kInfinity)) {
                    throw InputError("l1 and l2 must be 0 or more and finite");
                }
                new (self) CdOptions{l1, l2, max_sweeps, tol, seed};
            },
            nb::kw_only(), "l1"_a, "l2"_a, "max_sweeps"_a, "tol"_a, "seed"_a = usual.seed);

    m.def(
        "cd_l1",
        [](const State& held, const CdOptions& options) {
            return run_kernel([&](auto& interrupt) { return cd_l1(held.state, options, interrupt); });
        },
        "state"_a, "options"_a);
    m.def(
        "cd_l1_model",
        [](const State& held, const CdOptions& options, const MutableFloats& entropies) {
            double* out = per_example(held.state.columns.objective(), entropies, "entropies");
            return run_kernel([&](auto& interrupt) { return cd_l1_model(held.state, out, options, interrupt); });
        },
        "state"_a, "options"_a, "entropies"_a.noconvert());
}

}  // namespace partwise::bindings
