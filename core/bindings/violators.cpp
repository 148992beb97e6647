#include "solvers/violators.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_violators(nb::module_& m) {
    nb::class_<ViolatorReport>(m, "ViolatorReport")
        .def_ro("visits", &ViolatorReport::visits)
        .def_ro("added", &ViolatorReport::added)
        .def_ro("merged", &ViolatorReport::merged)
        .def_ro("losses", &ViolatorReport::losses)
        .def_ro("largest", &ViolatorReport::largest)
        .def_ro("total", &ViolatorReport::total);

    constexpr ViolatorOptions usual;
    m.def(
        "find_violators",
        [](const Objective& o, const Floats& weights, WorkingSets& sets, const Ints& order, double epsilon, Index now,
           Index max_bytes) {
            const double* w = per_weight(o, weights, "weights");
            check_order(o, order);
            if (!(epsilon >= 0.0)) throw InputError("epsilon must be 0 or more");
            const ViolatorOptions options{epsilon, now, max_bytes};
            return run_kernel(
                [&](auto& interrupt) { return find_violators(o, w, sets, span_of(order), options, interrupt); });
        },
        "objective"_a, "weights"_a.noconvert(), "sets"_a, "order"_a.noconvert(), nb::kw_only(), "epsilon"_a,
        "now"_a = usual.now, "max_bytes"_a = usual.max_bytes);
}

}  // namespace partwise::bindings
