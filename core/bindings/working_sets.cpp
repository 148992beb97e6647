#include "solvers/working_sets.h"

#include "bindings/states.h"
#include "solvers/likely_labellings.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_working_sets(nb::module_& m) {
    nb::class_<WorkingSets>(m, "WorkingSets")
        .def(nb::init<Index>(), "num_examples"_a)
        .def_static(
            "from_arrays",
            [](const Ints& example_ptr, const Ints& labelling_ptr, const Ints& slots, const Floats& counts,
               const Floats& coefficients, const Ints& stamps) {
                return std::make_unique<WorkingSets>(
                    AtomTable{vector_of<Index>(example_ptr), vector_of<Index>(labelling_ptr), vector_of<Index>(slots),
                              vector_of<double>(counts), vector_of<double>(coefficients), vector_of<Index>(stamps)});
            },
            "example_ptr"_a, "labelling_ptr"_a, "slots"_a, "counts"_a, "coefficients"_a, "stamps"_a)
        .def_prop_ro("num_examples", &WorkingSets::num_examples)
        .def_prop_ro("num_atoms", &WorkingSets::num_atoms)
        .def_prop_ro("bytes", &WorkingSets::bytes)
        .def(
            "check",
            [](const WorkingSets& sets, const Objective& o, int n_jobs) {
                if (sets.num_examples() != o.num_examples()) throw InputError("working sets of other examples");
                run_kernel([&](auto& interrupt) { sets.check(o, n_jobs, interrupt); });
            },
            "objective"_a, "n_jobs"_a = 1)
        .def("to_arrays", [](const WorkingSets& sets) {
            AtomTable table = sets.table();
            nb::dict out;
            out["example_ptr"] = numpy(std::move(table.example_ptr));
            out["labelling_ptr"] = numpy(std::move(table.labelling_ptr));
            out["slots"] = numpy(std::move(table.slots));
            out["counts"] = numpy(std::move(table.counts));
            out["coefficients"] = numpy(std::move(table.coefficients));
            out["stamps"] = numpy(std::move(table.stamps));
            return out;
        });

    m.def(
        "likely_labellings",
        [](const Objective& o, const Floats& scores, Index most) {
            if (most < 1) throw InputError("the number of labellings must be at least 1");
            const double* own = per_slot(o, scores, "scores");
            const AtomTable table =
                run_kernel([&](auto& interrupt) { return likely_labellings(o, own, most, interrupt); });
            return std::make_unique<WorkingSets>(table);
        },
        "objective"_a, "scores"_a.noconvert(), "most"_a);
}

}  // namespace partwise::bindings
