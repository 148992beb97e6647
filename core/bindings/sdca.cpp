#include "solvers/sdca.h"

#include "bindings/checks.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

void check_one_part(const Objective& o) {
    if (!(o.structure().capabilities() & kOnePart)) throw InputError("labellings of this structure have several parts");
}

}  // namespace

void bind_sdca(nb::module_& m) {
    nb::class_<SdcaReport>(m, "SdcaReport")
        .def_ro("visits", &SdcaReport::visits)
        .def_ro("dual_gain", &SdcaReport::dual_gain)
        .def_ro("iterations", &SdcaReport::iterations)
        .def_ro("refused", &SdcaReport::refused);

    m.def(
        "slot_curvatures",
        [](const Objective& o, const Ints& examples) -> std::optional<NumPy<double>> {
            check_one_part(o);
            check_order(o, examples);
            std::vector<double> found;
            Index slots = 0;
            for (const Index i : span_of(examples)) slots += o.num_slots(i);
            {
                Interrupt interrupt = python_interrupt();
                const nb::gil_scoped_release release;
                found = slot_curvatures(o, span_of(examples), interrupt);
            }
            if (len(found.size()) != slots) return std::nullopt;
            return numpy(std::move(found));
        },
        "objective"_a, "examples"_a.noconvert());

    m.def(
        "sdca_start",
        [](const Objective& o, double reach, const MutableFloats& scores, int n_jobs) {
            check_one_part(o);
            check_size(scores, o.total_slots(), "scores");
            std::vector<double> entropies(idx(o.num_examples()));
            Interrupt interrupt = python_interrupt();
            {
                const nb::gil_scoped_release release;
                sdca_start(o, reach, scores.data(), entropies.data(), n_jobs, interrupt);
            }
            return numpy(std::move(entropies));
        },
        "objective"_a, "reach"_a, "scores"_a.noconvert(), "n_jobs"_a = 1);

    m.def(
        "sdca_epoch",
        [](const Objective& o, double l2, const Ints& order, const Floats& curvatures, const MutableFloats& weights,
           const MutableFloats& scores, const MutableFloats& entropies, const MutableFloats& gains) {
            check_l2(l2);
            check_one_part(o);
            check_order(o, order);
            check_size(curvatures, o.total_slots(), "curvatures");
            check_size(weights, o.features().num_weights(), "weights");
            check_size(scores, o.total_slots(), "scores");
            check_size(entropies, o.num_examples(), "entropies");
            check_size(gains, o.num_examples(), "gains");
            if (!o.loss().link.fixed_mass()) throw InputError("exact blocks need the identity link");
            if (!(o.loss().temperature > 0.0)) throw InputError("exact blocks need a temperature above 0");
            const SdcaState state{weights.data(), scores.data(), entropies.data(), gains.data()};
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return sdca_epoch(o, l2, span_of(order), curvatures.data(), state, interrupt);
        },
        "objective"_a, "l2"_a, "order"_a.noconvert(), "curvatures"_a.noconvert(), "weights"_a.noconvert(),
        "scores"_a.noconvert(), "entropies"_a.noconvert(), "gains"_a.noconvert());
}

}  // namespace partwise::bindings
