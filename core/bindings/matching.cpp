#include "solvers/matching.h"

#include "bindings/states.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_matching(nb::module_& m) {
    nb::class_<MatchReport>(m, "MatchReport")
        .def_ro("inferences", &MatchReport::inferences)
        .def_ro("unmatched", &MatchReport::unmatched)
        .def_ro("largest", &MatchReport::largest);

    m.def(
        "match_counts",
        [](const Objective& o, const Floats& counts, const MutableFloats& scores, double tolerance,
           Index max_inferences, int n_jobs) {
            per_slot(o, counts, "counts");
            check_finite(counts, "counts");
            per_slot(o, scores, "scores");
            if (!(tolerance > 0.0) || max_inferences < 1) {
                throw InputError("tolerance must be above 0 and max_inferences at least 1");
            }
            const MatchOptions options{tolerance, max_inferences};
            return run_kernel([&](auto& interrupt) {
                return match_counts(o, counts.data(), scores.data(), options, n_jobs, interrupt);
            });
        },
        "objective"_a, "counts"_a, "scores"_a.noconvert(), nb::kw_only(), "tolerance"_a, "max_inferences"_a,
        "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
