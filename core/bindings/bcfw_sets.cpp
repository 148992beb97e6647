#include "solvers/bcfw_sets.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_bcfw_sets(nb::module_& m) {
    nb::class_<BcfwSetReport>(m, "BcfwSetReport")
        .def_ro("visits", &BcfwSetReport::visits)
        .def_ro("steps", &BcfwSetReport::steps)
        .def_ro("merged", &BcfwSetReport::merged)
        .def_ro("work", &BcfwSetReport::work)
        .def_ro("dual_gain", &BcfwSetReport::dual_gain)
        .def_ro("gap_estimate", &BcfwSetReport::gap_estimate)
        .def_ro("bound", &BcfwSetReport::bound);

    using State = Held<BcfwSetState>;
    nb::class_<State>(m, "BcfwSetState")
        .def(
            "__init__",
            [](State* self, Objective& o, const MutableFloats& weights, WorkingSets& sets, const MutableFloats& gaps) {
                new (self) State{{o, per_weight(o, weights, "weights"), sets, per_example(o, gaps, "gaps")},
                                 {share(o), keep_alive(weights), share(sets), keep_alive(gaps)}};
            },
            "objective"_a, nb::kw_only(), "weights"_a.noconvert(), "sets"_a, "gaps"_a.noconvert());

    constexpr BcfwSetOptions usual;
    nb::class_<BcfwSetOptions>(m, "BcfwSetOptions")
        .def(
            "__init__",
            [](BcfwSetOptions* self, double l2, bool search, bool pairwise, Index steps, Index now, Index keep,
               Index max_bytes, Index violators) {
                check_l2(l2);
                if (violators < 1) throw InputError("violators must be at least 1");
                if (steps < 0 || keep < 0) throw InputError("steps and keep must be 0 or more");
                new (self) BcfwSetOptions{l2, search, pairwise, steps, now, keep, max_bytes, violators};
            },
            nb::kw_only(), "l2"_a, "search"_a = usual.search, "pairwise"_a = usual.pairwise, "steps"_a = usual.steps,
            "now"_a = usual.now, "keep"_a = usual.keep, "max_bytes"_a = usual.max_bytes,
            "violators"_a = usual.violators);

    m.def(
        "bcfw_set_epoch",
        [](const State& held, const Ints& order, const BcfwSetOptions& options) {
            check_order(held.state.objective, order);
            return run_kernel(
                [&](auto& interrupt) { return bcfw_set_epoch(held.state, span_of(order), options, interrupt); });
        },
        "state"_a, "order"_a.noconvert(), "options"_a);
}

}  // namespace partwise::bindings
