#include "solvers/dcd.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_dcd(nb::module_& m) {
    nb::class_<DcdReport>(m, "DcdReport")
        .def_ro("visits", &DcdReport::visits)
        .def_ro("steps", &DcdReport::steps)
        .def_ro("added", &DcdReport::added)
        .def_ro("removed", &DcdReport::removed)
        .def_ro("merged", &DcdReport::merged)
        .def_ro("work", &DcdReport::work)
        .def_ro("dual_gain", &DcdReport::dual_gain)
        .def_ro("gap_estimate", &DcdReport::gap_estimate)
        .def_ro("violation", &DcdReport::violation);

    using State = Held<DcdState>;
    nb::class_<State>(m, "DcdState")
        .def(
            "__init__",
            [](State* self, Objective& o, const MutableFloats& weights, WorkingSets& sets) {
                new (self)
                    State{{o, per_weight(o, weights, "weights"), sets}, {share(o), keep_alive(weights), share(sets)}};
            },
            "objective"_a, nb::kw_only(), "weights"_a.noconvert(), "sets"_a);

    constexpr DcdOptions usual;
    nb::class_<DcdOptions>(m, "DcdOptions")
        .def(
            "__init__",
            [](DcdOptions* self, double l2, bool search, bool update, double delta, std::uint64_t seed, Index max_bytes,
               Index violators) {
                check_l2(l2);
                if (violators < 1) throw InputError("violators must be at least 1");
                if (!(delta >= 0.0)) throw InputError("delta must be 0 or more");
                new (self) DcdOptions{l2, search, update, delta, seed, max_bytes, violators};
            },
            nb::kw_only(), "l2"_a, "search"_a = usual.search, "update"_a = usual.update, "delta"_a = usual.delta,
            "seed"_a = usual.seed, "max_bytes"_a = usual.max_bytes, "violators"_a = usual.violators);

    m.def(
        "dcd_epoch",
        [](const State& held, const Ints& order, const DcdOptions& options) {
            check_order(held.state.objective, order);
            return run_kernel(
                [&](auto& interrupt) { return dcd_epoch(held.state, span_of(order), options, interrupt); });
        },
        "state"_a, "order"_a.noconvert(), "options"_a);
}

}  // namespace partwise::bindings
