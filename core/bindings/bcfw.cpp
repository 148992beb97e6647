#include "solvers/bcfw.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_bcfw(nb::module_& m) {
    nb::class_<BcfwReport>(m, "BcfwReport")
        .def_ro("visits", &BcfwReport::visits)
        .def_ro("gap_estimate", &BcfwReport::gap_estimate)
        .def_ro("steps", &BcfwReport::steps);

    using State = Held<BcfwState>;
    nb::class_<State>(m, "BcfwState")
        .def(
            "__init__",
            [](State* self, Objective& o, const MutableFloats& weights, const MutableFloats& counts,
               const MutableFloats& mass, const MutableFloats& linear, const MutableFloats& lag,
               const MutableFloats& average, const std::optional<MutableFloats>& gaps) {
                check_size(average, 3, "average");
                new (self)
                    State{{o, per_weight(o, weights, "weights"), per_slot(o, counts, "counts"),
                           per_example(o, mass, "mass"), per_example(o, linear, "linear"), per_weight(o, lag, "lag"),
                           average.data(), gaps ? per_example(o, *gaps, "gaps") : nullptr},
                          {share(o), keep_alive(weights), keep_alive(counts), keep_alive(mass), keep_alive(linear),
                           keep_alive(lag), keep_alive(average)}};
                if (gaps) self->owners.push_back(keep_alive(*gaps));
            },
            "objective"_a, nb::kw_only(), "weights"_a.noconvert(), "counts"_a.noconvert(), "mass"_a.noconvert(),
            "linear"_a.noconvert(), "lag"_a.noconvert(), "average"_a.noconvert(),
            "gaps"_a.noconvert().none() = nb::none());

    nb::class_<BcfwOptions>(m, "BcfwOptions")
        .def(
            "__init__",
            [](BcfwOptions* self, double l2) {
                check_l2(l2);
                new (self) BcfwOptions{l2};
            },
            nb::kw_only(), "l2"_a);

    m.def(
        "bcfw_epoch",
        [](const State& held, const Ints& order, const BcfwOptions& options) {
            check_order(held.state.objective, order);
            return run_kernel(
                [&](auto& interrupt) { return bcfw_epoch(held.state, span_of(order), options, interrupt); });
        },
        "state"_a, "order"_a.noconvert(), "options"_a);
}

}  // namespace partwise::bindings
