#include "solvers/smo.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_smo(nb::module_& m) {
    nb::class_<SmoReport>(m, "SmoReport")
        .def_ro("visits", &SmoReport::visits)
        .def_ro("steps", &SmoReport::steps)
        .def_ro("dual_gain", &SmoReport::dual_gain);

    using State = Held<SmoState>;
    nb::class_<State>(m, "SmoState")
        .def(
            "__init__",
            [](State* self, Objective& o, const MutableFloats& weights, const MutableFloats& cliques,
               const MutableFloats& gaps) {
                std::vector<Index> starts = clique_starts(o.structure());
                check_size(cliques, starts.back(), "cliques");
                new (self) State{{o, per_weight(o, weights, "weights"), cliques.data(), std::move(starts),
                                  per_example(o, gaps, "gaps")},
                                 {share(o), keep_alive(weights), keep_alive(cliques), keep_alive(gaps)}};
            },
            "objective"_a, nb::kw_only(), "weights"_a.noconvert(), "cliques"_a.noconvert(), "gaps"_a.noconvert());

    nb::class_<SmoOptions>(m, "SmoOptions")
        .def(
            "__init__",
            [](SmoOptions* self, double l2) {
                check_l2(l2);
                new (self) SmoOptions{l2};
            },
            nb::kw_only(), "l2"_a);

    m.def(
        "check_clique_marginals",
        [](const Objective& o, const Floats& cliques, int n_jobs) {
            check_size(cliques, clique_starts(o.structure()).back(), "cliques");
            check_finite(cliques, "cliques");
            const CliqueReport report = run_kernel(
                [&](auto& interrupt) { return check_clique_marginals(o, cliques.data(), n_jobs, interrupt); });
            return std::pair(report.off, report.complaint);
        },
        "objective"_a, "cliques"_a, "n_jobs"_a = 1);

    m.def(
        "smo_epoch",
        [](const State& held, const Ints& order, const SmoOptions& options) {
            check_order(held.state.objective, order);
            return run_kernel(
                [&](auto& interrupt) { return smo_epoch(held.state, span_of(order), options, interrupt); });
        },
        "state"_a, "order"_a.noconvert(), "options"_a);
}

}  // namespace partwise::bindings
