#include "solvers/eg_batch.h"

#include <cmath>

#include "bindings/checks.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

void check_identity_link(const Objective& objective) {
    if (!objective.loss().link.fixed_mass()) throw InputError("exponentiated gradient needs the identity link");
}

nb::tuple pack(EgMove move) {
    return nb::make_tuple(numpy(std::move(move.u)), move.b, move.log_partition, move.reference);
}

}  // namespace

void bind_eg_batch(nb::module_& m) {
    m.def(
        "eg_batch_step",
        [](const Objective& o, const Floats& weights, double step, const Floats& scores, const MutableFloats& moved,
           int n_jobs) {
            check_identity_link(o);
            check_weights(o.features(), weights);
            check_size(scores, o.total_slots(), "scores");
            check_size(moved, o.total_slots(), "moved");
            if (!(step >= 0.0) || !std::isfinite(step)) throw InputError("step must be finite and not negative");
            Interrupt interrupt = python_interrupt();
            EgMove move;
            {
                const nb::gil_scoped_release release;
                move = eg_batch_step(o, weights.data(), step, scores.data(), moved.data(), n_jobs, interrupt);
            }
            return pack(std::move(move));
        },
        "objective"_a, "weights"_a, "step"_a, "scores"_a.noconvert(), "moved"_a.noconvert(), "n_jobs"_a = 1);

    m.def(
        "eg_primal_point",
        [](const Objective& o, const Floats& z, double cost_scale, double old_cost_scale, int n_jobs) {
            check_identity_link(o);
            check_size(z, o.features().num_weights(), "z");
            check_finite(z, "z");
            if (!std::isfinite(cost_scale) || !std::isfinite(old_cost_scale))
                throw InputError("cost scales must be finite");
            Interrupt interrupt = python_interrupt();
            EgMove move;
            {
                const nb::gil_scoped_release release;
                move = eg_primal_point(o, z.data(), cost_scale, old_cost_scale, n_jobs, interrupt);
            }
            return pack(std::move(move));
        },
        "objective"_a, "z"_a, "cost_scale"_a, "old_cost_scale"_a, "n_jobs"_a = 1);

    m.def(
        "gold_features",
        [](const Objective& o, int n_jobs) {
            Interrupt interrupt = python_interrupt();
            std::vector<double> sum;
            {
                const nb::gil_scoped_release release;
                sum = gold_features(o, n_jobs, interrupt);
            }
            return numpy(std::move(sum));
        },
        "objective"_a, "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
