#include "solvers/bcfw.h"

#include "bindings/checks.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_bcfw(nb::module_& m) {
    nb::class_<BcfwReport>(m, "BcfwReport")
        .def_ro("visits", &BcfwReport::visits)
        .def_ro("gap_estimate", &BcfwReport::gap_estimate)
        .def_ro("steps", &BcfwReport::steps);

    m.def(
        "bcfw_epoch",
        [](const Objective& o, double l2, const Ints& order, const MutableFloats& weights, const MutableFloats& counts,
           const MutableFloats& mass, const MutableFloats& linear, const MutableFloats& lag,
           const MutableFloats& average, const std::optional<MutableFloats>& gaps) {
            check_l2(l2);
            check_order(o, order);
            check_size(weights, o.features().num_weights(), "weights");
            check_size(lag, o.features().num_weights(), "lag");
            check_size(counts, o.total_slots(), "counts");
            check_size(mass, o.num_examples(), "mass");
            check_size(linear, o.num_examples(), "linear");
            check_size(average, 3, "average");
            if (gaps) check_size(*gaps, o.num_examples(), "gaps");
            const BcfwState state{weights.data(),
                                  counts.data(),
                                  mass.data(),
                                  linear.data(),
                                  lag.data(),
                                  average.data(),
                                  gaps ? gaps->data() : nullptr};
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return bcfw_epoch(o, l2, span_of(order), state, interrupt);
        },
        "objective"_a, "l2"_a, "order"_a.noconvert(), "weights"_a.noconvert(), "counts"_a.noconvert(),
        "mass"_a.noconvert(), "linear"_a.noconvert(), "lag"_a.noconvert(), "average"_a.noconvert(),
        "gaps"_a.noconvert().none() = nb::none());
}

}  // namespace partwise::bindings
