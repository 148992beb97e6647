#include "solvers/dcd.h"

#include "bindings/checks.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_dcd(nb::module_& m) {
    nb::class_<DcdReport>(m, "DcdReport")
        .def_ro("visits", &DcdReport::visits)
        .def_ro("steps", &DcdReport::steps)
        .def_ro("added", &DcdReport::added)
        .def_ro("removed", &DcdReport::removed)
        .def_ro("merged", &DcdReport::merged)
        .def_ro("dual_gain", &DcdReport::dual_gain)
        .def_ro("gap_estimate", &DcdReport::gap_estimate)
        .def_ro("violation", &DcdReport::violation);

    m.def(
        "dcd_epoch",
        [](const Objective& o, double l2, const Ints& order, const MutableFloats& weights, WorkingSets& sets,
           std::uint64_t seed, bool search, bool update, double delta, Index max_bytes) {
            check_l2(l2);
            check_order(o, order);
            check_size(weights, o.features().num_weights(), "weights");
            if (!(delta >= 0.0)) throw InputError("delta must be 0 or more");
            const DcdOptions options{search, update, delta, seed, max_bytes};
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return dcd_epoch(o, l2, span_of(order), weights.data(), sets, options, interrupt);
        },
        "objective"_a, "l2"_a, "order"_a.noconvert(), "weights"_a.noconvert(), "sets"_a, "seed"_a, "search"_a = true,
        "update"_a = true, "delta"_a = 0.0, "max_bytes"_a = std::numeric_limits<Index>::max());
}

}  // namespace partwise::bindings
