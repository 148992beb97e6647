#include "solvers/cd_l1.h"

#include "bindings/checks.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_cd_l1(nb::module_& m) {
    nb::class_<Columns>(m, "WorkingColumns")
        .def(
            "__init__",
            [](Columns* self, const Objective& o, const Ints& selected) {
                if (!(o.structure().capabilities() & kOnePart)) {
                    throw InputError("labellings of this structure have several parts");
                }
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
                new (self) Columns(o, span_of(selected), interrupt);
            },
            "objective"_a, "selected"_a.noconvert())
        .def_prop_ro("num_entries", &Columns::num_entries);

    nb::class_<CdReport>(m, "CdL1Report")
        .def_ro("sweeps", &CdReport::sweeps)
        .def_ro("steps", &CdReport::steps)
        .def_ro("violation", &CdReport::violation);

    m.def(
        "cd_l1",
        [](const Objective& o, const Columns& columns, double l1, double l2, Index max_sweeps, double tol,
           std::uint64_t seed, const MutableFloats& weights, const MutableFloats& unscaled, const MutableFloats& sums) {
            if (!(l1 >= 0.0 && l2 >= 0.0 && l1 < kInfinity && l2 < kInfinity)) {
                throw InputError("l1 and l2 must be 0 or more and finite");
            }
            check_size(weights, columns.size(), "weights");
            check_size(unscaled, o.total_slots(), "unscaled");
            check_size(sums, o.num_examples(), "sums");
            if (!o.loss().link.fixed_mass() || !(o.loss().temperature > 0.0)) {
                throw InputError("coordinate descent needs the identity link and a temperature above 0");
            }
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return cd_l1(o, columns, {l1, l2, max_sweeps, tol}, seed, weights.data(), unscaled.data(), sums.data(),
                         interrupt);
        },
        "objective"_a, "columns"_a, "l1"_a, "l2"_a, "max_sweeps"_a, "tol"_a, "seed"_a, "weights"_a.noconvert(),
        "unscaled"_a.noconvert(), "sums"_a.noconvert());
}

}  // namespace partwise::bindings
