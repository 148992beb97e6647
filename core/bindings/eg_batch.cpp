#include "solvers/eg_batch.h"

#include <cmath>

#include "bindings/checks.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_eg_batch(nb::module_& m) {
    m.def(
        "eg_batch_step",
        [](const Objective& o, const Floats& weights, double step, const Floats& scores, const MutableFloats& moved,
           int n_jobs) {
            if (o.loss().link != Link::kIdentity) throw InputError("exponentiated gradient needs the identity link");
            check_weights(o.features(), weights);
            check_size(scores, o.total_slots(), "scores");
            check_size(moved, o.total_slots(), "moved");
            if (!(step > 0.0) || !std::isfinite(step)) throw InputError("step must be above 0 and finite");
            Interrupt interrupt = python_interrupt();
            Plane plane;
            {
                const nb::gil_scoped_release release;
                plane = eg_batch_step(o, weights.data(), step, scores.data(), moved.data(), n_jobs, interrupt);
            }
            return nb::make_tuple(numpy(std::move(plane.u)), plane.b);
        },
        "objective"_a, "weights"_a, "step"_a, "scores"_a.noconvert(), "moved"_a.noconvert(), "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
