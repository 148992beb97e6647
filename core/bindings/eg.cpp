#include "solvers/eg.h"

#include "bindings/checks.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_eg(nb::module_& m) {
    nb::class_<EgReport>(m, "EgReport")
        .def_ro("visits", &EgReport::visits)
        .def_ro("dual_gain", &EgReport::dual_gain)
        .def_ro("rejected", &EgReport::rejected)
        .def_ro("lanes", &EgReport::lanes)
        .def_ro("rounds", &EgReport::rounds)
        .def_ro("taken_back", &EgReport::taken_back);

    m.def(
        "eg_epoch",
        [](const Objective& o, double l2, const Ints& order, const MutableFloats& step_sizes,
           const MutableFloats& weights, const MutableFloats& scores, const MutableFloats& marginals,
           const MutableFloats& entropies, bool adaptive, double growth, double max_step, int n_jobs,
           Index round_size) {
            check_l2(l2);
            check_order(o, order);
            check_size(weights, o.features().num_weights(), "weights");
            check_size(step_sizes, o.num_examples(), "step_sizes");
            check_size(scores, o.total_slots(), "scores");
            check_size(marginals, o.total_slots(), "marginals");
            check_size(entropies, o.num_examples(), "entropies");
            if (!o.loss().link.fixed_mass()) throw InputError("exponentiated gradient needs the identity link");
            const EgOptions options{adaptive, growth, max_step, n_jobs, round_size};
            const EgState state{weights.data(), scores.data(), marginals.data(), entropies.data(), step_sizes.data()};
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return eg_epoch(o, l2, span_of(order), state, options, interrupt);
        },
        "objective"_a, "l2"_a, "order"_a.noconvert(), "step_sizes"_a.noconvert(), "weights"_a.noconvert(),
        "scores"_a.noconvert(), "marginals"_a.noconvert(), "entropies"_a.noconvert(), "adaptive"_a, "growth"_a = 1.05,
        "max_step"_a = kInfinity, "n_jobs"_a = 1, "round_size"_a = 0);
}

}  // namespace partwise::bindings
