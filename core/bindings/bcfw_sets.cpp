#include "solvers/bcfw_sets.h"

#include "bindings/checks.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_bcfw_sets(nb::module_& m) {
    nb::class_<BcfwSetReport>(m, "BcfwSetReport")
        .def_ro("visits", &BcfwSetReport::visits)
        .def_ro("steps", &BcfwSetReport::steps)
        .def_ro("merged", &BcfwSetReport::merged)
        .def_ro("dual_gain", &BcfwSetReport::dual_gain)
        .def_ro("gap_estimate", &BcfwSetReport::gap_estimate)
        .def_ro("bound", &BcfwSetReport::bound);

    m.def(
        "bcfw_set_epoch",
        [](const Objective& o, double l2, const Ints& order, const MutableFloats& weights, WorkingSets& sets,
           const MutableFloats& gaps, bool search, bool pairwise, Index steps, Index now, Index keep, Index max_bytes) {
            check_l2(l2);
            check_order(o, order);
            check_size(weights, o.features().num_weights(), "weights");
            check_size(gaps, o.num_examples(), "gaps");
            if (steps < 0 || keep < 0) throw InputError("steps and keep must be 0 or more");
            const BcfwSetOptions options{search, pairwise, steps, now, keep, max_bytes};
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return bcfw_set_epoch(o, l2, span_of(order), weights.data(), sets, gaps.data(), options, interrupt);
        },
        "objective"_a, "l2"_a, "order"_a.noconvert(), "weights"_a.noconvert(), "sets"_a, "gaps"_a.noconvert(),
        "search"_a = true, "pairwise"_a = true, "steps"_a = 1, "now"_a = 0, "keep"_a = 0,
        "max_bytes"_a = std::numeric_limits<Index>::max());
}

}  // namespace partwise::bindings
