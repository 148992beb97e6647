#include "solvers/eg.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

// The states of all batches, which must have the same weights.
std::vector<EgState> of_one_problem(const std::vector<const Held<EgState>*>& held) {
    if (held.empty()) throw InputError("at least one state is needed");
    std::vector<EgState> states;
    for (const auto* each : held) {
        if (each == nullptr) throw InputError("a state is None");
        const EgState& state = each->state;
        const EgState& first = held[0]->state;
        const bool same = state.weights == first.weights && state.plane == first.plane &&
                          state.objective.features().num_weights() == first.objective.features().num_weights();
        if (!same) throw InputError("states of several batches need the same weights and plane");
        states.push_back(state);
    }
    return states;
}

}  // namespace

void bind_eg(nb::module_& m) {
    nb::class_<EgReport>(m, "EgReport")
        .def_ro("visits", &EgReport::visits)
        .def_ro("dual_gain", &EgReport::dual_gain)
        .def_ro("rejected", &EgReport::rejected)
        .def_ro("lanes", &EgReport::lanes)
        .def_ro("rounds", &EgReport::rounds)
        .def_ro("taken_back", &EgReport::taken_back);

    using State = Held<EgState>;
    nb::class_<State>(m, "EgState")
        .def(
            "__init__",
            [](State* self, Objective& o, const MutableFloats& weights, const MutableFloats& scores,
               const MutableFloats& marginals, const MutableFloats& entropies, const MutableFloats& step_sizes,
               const std::optional<MutableFloats>& plane) {
                if (!o.loss().link.fixed_mass()) throw InputError("exponentiated gradient needs the identity link");
                double* u = plane ? per_weight(o, *plane, "plane") : nullptr;
                new (self) State{{o, per_weight(o, weights, "weights"), u, per_slot(o, scores, "scores"),
                                  per_slot(o, marginals, "marginals"), per_example(o, entropies, "entropies"),
                                  per_example(o, step_sizes, "step_sizes")},
                                 {share(o), keep_alive(weights), keep_alive(scores), keep_alive(marginals),
                                  keep_alive(entropies), keep_alive(step_sizes), keep_alive(plane ? *plane : weights)}};
            },
            "objective"_a, nb::kw_only(), "weights"_a.noconvert(), "scores"_a.noconvert(), "marginals"_a.noconvert(),
            "entropies"_a.noconvert(), "step_sizes"_a.noconvert(), "plane"_a.noconvert().none() = nb::none());

    constexpr EgOptions usual;
    nb::class_<EgOptions>(m, "EgOptions")
        .def(
            "__init__",
            [](EgOptions* self, double l2, bool adaptive, double growth, double max_step, int n_jobs, Index round_size,
               double l1, std::optional<double> temperature) {
                check_l2(l2);
                check_l1(l1);
                if (temperature && !(*temperature >= 0.0 && *temperature < kInfinity))
                    throw InputError("the temperature must be a number >= 0");
                new (self) EgOptions{l2, adaptive, growth, max_step, n_jobs, round_size, l1, temperature};
            },
            nb::kw_only(), "l2"_a, "adaptive"_a = usual.adaptive, "growth"_a = usual.growth,
            "max_step"_a = usual.max_step, "n_jobs"_a = usual.n_jobs, "round_size"_a = usual.round_size,
            "l1"_a = usual.l1, "temperature"_a = nb::none());

    const auto epoch = [](const std::vector<const State*>& held, const Ints& order, const EgOptions& options) {
        const std::vector<EgState> states = of_one_problem(held);
        Index num_examples = 0;
        for (const EgState& state : states) num_examples += state.objective.num_examples();
        for (const Index i : span_of(order)) check_index(i, num_examples);
        check_plane(options.l1, states[0].plane);
        return run_kernel([&](auto& interrupt) { return eg_epoch(states, span_of(order), options, interrupt); });
    };
    m.def("eg_epoch", epoch, "states"_a, "order"_a.noconvert(), "options"_a);
    m.def(
        "eg_epoch",
        [epoch](const State& held, const Ints& order, const EgOptions& options) {
            return epoch({&held}, order, options);
        },
        "state"_a, "order"_a.noconvert(), "options"_a);
}

}  // namespace partwise::bindings
