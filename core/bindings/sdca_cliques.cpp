#include "solvers/sdca_cliques.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

void check_cliques(const Structure& structure) {
    if (!(structure.capabilities() & kCliques)) throw InputError("this structure has no clique view");
}

void check_sizes(const Structure& structure, const Floats& cliques) {
    check_cliques(structure);
    check_size(cliques, clique_starts(structure).back(), "cliques");
}

}  // namespace

void bind_sdca_cliques(nb::module_& m) {
    nb::class_<SdcaLineReport>(m, "SdcaLineReport")
        .def_ro("visits", &SdcaLineReport::visits)
        .def_ro("trials", &SdcaLineReport::trials)
        .def_ro("dual_gain", &SdcaLineReport::dual_gain);

    m.def(
        "clique_starts",
        [](const Structure& s) {
            check_cliques(s);
            return numpy(clique_starts(s));
        },
        "structure"_a);

    m.def(
        "cliques_of_scores",
        [](const Structure& s, const Floats& scores, int n_jobs) {
            check_cliques(s);
            check_size(scores, s.slot_offsets().back(), "scores");
            std::vector<double> cliques(idx(clique_starts(s).back()));
            run_kernel(
                [&](auto& interrupt) { cliques_of_scores(s, scores.data(), cliques.data(), n_jobs, interrupt); });
            return numpy(std::move(cliques));
        },
        "structure"_a, "scores"_a.noconvert(), "n_jobs"_a = 1);

    m.def(
        "read_cliques",
        [](const Structure& s, const Floats& cliques, int n_jobs) {
            check_sizes(s, cliques);
            std::vector<double> counts(idx(s.slot_offsets().back()));
            std::vector<double> entropies(idx(s.num_examples()));
            run_kernel([&](auto& interrupt) {
                read_cliques(s, cliques.data(), counts.data(), entropies.data(), n_jobs, interrupt);
            });
            return std::pair(numpy(std::move(counts)), numpy(std::move(entropies)));
        },
        "structure"_a, "cliques"_a.noconvert(), "n_jobs"_a = 1);

    m.def(
        "entropy_along",
        [](const Structure& s, Index i, const Floats& cliques, const Floats& direction, double step) {
            check_cliques(s);
            check_index(i, s.num_examples());
            check_size(cliques, s.clique_offsets(i).back(), "cliques");
            check_size(direction, len(cliques.size()), "direction");
            if (!(step >= 0.0 && step <= 1.0)) throw InputError("step must be between 0 and 1");
            Workspace ws;
            const Along found = s.entropy_along(i, cliques.data(), direction.data(), step, ws);
            return std::tuple(found.value, found.slope, found.curvature);
        },
        "structure"_a, "i"_a, "cliques"_a.noconvert(), "direction"_a.noconvert(), "step"_a);

    using State = Held<SdcaLineState>;
    nb::class_<State>(m, "SdcaLineState")
        .def(
            "__init__",
            [](State* self, Objective& o, const MutableFloats& weights, const MutableFloats& cliques,
               const MutableFloats& counts, const MutableFloats& entropies, const MutableFloats& gaps,
               const MutableFloats& steps, const std::optional<MutableFloats>& plane) {
                check_cliques(o.structure());
                if (!o.loss().link.fixed_mass()) throw InputError("clique marginals need the identity link");
                if (!(o.loss().temperature > 0.0)) throw InputError("sdca needs a temperature above 0");
                std::vector<Index> starts = clique_starts(o.structure());
                check_size(cliques, starts.back(), "cliques");
                new (self) State{
                    {o, std::move(starts), per_weight(o, weights, "weights"),
                     plane ? per_weight(o, *plane, "plane") : nullptr, cliques.data(), per_slot(o, counts, "counts"),
                     per_example(o, entropies, "entropies"), per_example(o, gaps, "gaps"),
                     per_example(o, steps, "steps")},
                    {share(o), keep_alive(weights), keep_alive(cliques), keep_alive(counts), keep_alive(entropies),
                     keep_alive(gaps), keep_alive(steps), keep_alive(plane ? *plane : weights)}};
            },
            "objective"_a, nb::kw_only(), "weights"_a.noconvert(), "cliques"_a.noconvert(), "counts"_a.noconvert(),
            "entropies"_a.noconvert(), "gaps"_a.noconvert(), "steps"_a.noconvert(),
            "plane"_a.noconvert().none() = nb::none());

    nb::class_<SdcaLineOptions>(m, "SdcaLineOptions")
        .def(
            "__init__",
            [](SdcaLineOptions* self, double l2, double line_tol, double l1) {
                check_l2(l2);
                check_l1(l1);
                if (!(line_tol >= 0.0)) throw InputError("line_tol must be 0 or more");
                new (self) SdcaLineOptions{l2, line_tol, l1};
            },
            nb::kw_only(), "l2"_a, "line_tol"_a, "l1"_a = 0.0);

    m.def(
        "sdca_line_epoch",
        [](const State& held, const Ints& order, const SdcaLineOptions& options) {
            check_order(held.state.objective, order);
            check_plane(options.l1, held.state.plane);
            return run_kernel(
                [&](auto& interrupt) { return sdca_line_epoch(held.state, span_of(order), options, interrupt); });
        },
        "state"_a, "order"_a.noconvert(), "options"_a);
}

}  // namespace partwise::bindings
