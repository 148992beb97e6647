#include "solvers/sdca.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

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

    using State = Held<SdcaState>;
    nb::class_<State>(m, "SdcaState")
        .def(
            "__init__",
            [](State* self, Objective& o, const Floats& curvatures, const MutableFloats& weights,
               const MutableFloats& scores, const MutableFloats& entropies, const MutableFloats& gains,
               const std::optional<MutableFloats>& plane) {
                check_one_part(o);
                if (!o.loss().link.fixed_mass()) throw InputError("exact blocks need the identity link");
                if (!(o.loss().temperature > 0.0)) throw InputError("exact blocks need a temperature above 0");
                new (self) State{{o, per_slot(o, curvatures, "curvatures"), per_weight(o, weights, "weights"),
                                  plane ? per_weight(o, *plane, "plane") : nullptr, per_slot(o, scores, "scores"),
                                  per_example(o, entropies, "entropies"), per_example(o, gains, "gains")},
                                 {share(o), keep_alive(curvatures), keep_alive(weights), keep_alive(scores),
                                  keep_alive(entropies), keep_alive(gains), keep_alive(plane ? *plane : weights)}};
            },
            "objective"_a, nb::kw_only(), "curvatures"_a.noconvert(), "weights"_a.noconvert(), "scores"_a.noconvert(),
            "entropies"_a.noconvert(), "gains"_a.noconvert(), "plane"_a.noconvert().none() = nb::none());

    nb::class_<SdcaOptions>(m, "SdcaOptions")
        .def(
            "__init__",
            [](SdcaOptions* self, double l2, double l1, std::pair<Index, Index> pulled, double pull) {
                check_l2(l2);
                check_l1(l1);
                const auto [start, stop] = pulled;
                if (!(0 <= start && start <= stop)) throw InputError("pulled weights: the first one is after the last");
                if (!(pull > 0.0 && pull < kInfinity)) throw InputError("the pull must be a number above 0");
                new (self) SdcaOptions{l2, l1, start, stop, pull};
            },
            nb::kw_only(), "l2"_a, "l1"_a = 0.0, "pulled"_a = std::pair<Index, Index>(0, 0), "pull"_a = 1.0);

    m.def(
        "sdca_epoch",
        [](const State& held, const Ints& order, const SdcaOptions& options) {
            check_order(held.state.objective, order);
            check_plane(options.l1, held.state.plane);
            if (options.pulled_stop > held.state.objective.features().num_weights())
                throw InputError("pulled weights: there are not so many");
            return run_kernel(
                [&](auto& interrupt) { return sdca_epoch(held.state, span_of(order), options, interrupt); });
        },
        "state"_a, "order"_a.noconvert(), "options"_a);
}

}  // namespace partwise::bindings
