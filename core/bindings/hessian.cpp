#include "solvers/hessian.h"

#include "bindings/checks.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_hessian(nb::module_& m) {
    nb::class_<Hessian>(m, "Hessian")
        .def(
            "__init__",
            [](Hessian* self, const Objective& objective, const Floats& weights, int n_jobs, Index every,
               const std::optional<Floats>& marginals) {
                check_weights(objective.features(), weights);
                if (marginals) {
                    check_size(*marginals, objective.total_slots(), "marginals");
                    check_finite(*marginals, "marginals");
                }
                Interrupt interrupt = python_interrupt();
                const nb::gil_scoped_release release;
                new (self) Hessian(objective, weights.data(), marginals ? marginals->data() : nullptr, every, n_jobs,
                                   interrupt);
            },
            "objective"_a, "weights"_a, "n_jobs"_a = 1, "every"_a = 1, "marginals"_a = nb::none(),
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 6>())
        .def(
            "product",
            [](const Hessian& hessian, const Floats& direction, int n_jobs) {
                check_size(direction, hessian.objective().features().num_weights(), "direction");
                check_finite(direction, "direction");
                Interrupt interrupt = python_interrupt();
                std::vector<double> out;
                {
                    const nb::gil_scoped_release release;
                    out = hessian.product(direction.data(), n_jobs, interrupt);
                }
                return numpy(std::move(out));
            },
            "direction"_a, "n_jobs"_a = 1)
        .def(
            "diagonal",
            [](const Hessian& hessian, int n_jobs) {
                if (!hessian.objective().features().explicit_weights()) {
                    throw InputError("a diagonal needs explicit weights");
                }
                Interrupt interrupt = python_interrupt();
                std::vector<double> out;
                {
                    const nb::gil_scoped_release release;
                    out = hessian.diagonal(n_jobs, interrupt);
                }
                return numpy(std::move(out));
            },
            "n_jobs"_a = 1)
        .def_prop_ro("partial", &Hessian::partial);
}

}  // namespace partwise::bindings
