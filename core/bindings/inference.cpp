#include "solvers/inference.h"

#include <numeric>

#include "bindings/checks.h"
#include "bindings/labellings.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_inference(nb::module_& m) {
    m.def(
        "decode",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, int n_jobs,
           const std::optional<Ints>& examples) {
            check_weights(features, weights);
            std::vector<Index> some(examples ? 0 : idx(structure.num_examples()));
            std::iota(some.begin(), some.end(), Index{0});
            if (examples) some = vector_of<Index>(*examples);
            for (const Index i : some) check_index(i, structure.num_examples());
            Interrupt interrupt = python_interrupt();
            Decoded out;
            {
                const nb::gil_scoped_release release;
                out = decode(structure, features, weights.data(), some, n_jobs, interrupt);
            }
            return nb::make_tuple(numpy(std::move(out.indptr)), numpy(std::move(out.slots)),
                                  numpy(std::move(out.counts)), numpy(std::move(out.values)));
        },
        "structure"_a, "features"_a, "weights"_a, "n_jobs"_a = 1, "examples"_a.none() = nb::none());

    m.def(
        "infer",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, double temperature,
           int n_jobs, bool with_entropies) {
            check_weights(features, weights);
            check_temperature(temperature);
            Interrupt interrupt = python_interrupt();
            std::vector<double> marginals(idx(structure.slot_offsets().back()));
            std::vector<double> values(idx(structure.num_examples()));
            std::vector<double> entropies(with_entropies ? values.size() : 0);
            {
                const nb::gil_scoped_release release;
                infer(structure, features, weights.data(), temperature, n_jobs, interrupt, marginals.data(),
                      values.data(), with_entropies ? entropies.data() : nullptr);
            }
            return nb::make_tuple(numpy(std::move(marginals)), numpy(std::move(values)), numpy(std::move(entropies)));
        },
        "structure"_a, "features"_a, "weights"_a, "temperature"_a = 1.0, "n_jobs"_a = 1, "entropies"_a = true);

    m.def(
        "labelling_values",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, const Ints& indptr,
           const Ints& slots, const Floats& counts, int n_jobs) {
            check_weights(features, weights);
            std::vector<SlotView> labellings;
            decode_all(structure, indptr, slots, counts, [&](Index, SlotView one) { labellings.push_back(one); });
            Interrupt interrupt = python_interrupt();
            std::vector<double> values(labellings.size());
            {
                const nb::gil_scoped_release release;
                labelling_values(structure, features, weights.data(), labellings, n_jobs, interrupt, values.data());
            }
            return numpy(std::move(values));
        },
        "structure"_a, "features"_a, "weights"_a, "indptr"_a.noconvert(), "slots"_a.noconvert(), "counts"_a,
        "n_jobs"_a = 1);

    m.def(
        "all_scores",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, int n_jobs) {
            check_weights(features, weights);
            Interrupt interrupt = python_interrupt();
            std::vector<double> scores(idx(structure.slot_offsets().back()));
            {
                const nb::gil_scoped_release release;
                all_scores(structure, features, weights.data(), n_jobs, interrupt, scores.data());
            }
            return numpy(std::move(scores));
        },
        "structure"_a, "features"_a, "weights"_a, "n_jobs"_a = 1);

    m.def(
        "slot_norms",
        [](const Structure& structure, const FeatureMap& features, int n_jobs) {
            Interrupt interrupt = python_interrupt();
            std::vector<double> norms(idx(structure.slot_offsets().back()));
            {
                const nb::gil_scoped_release release;
                slot_norms(structure, features, n_jobs, interrupt, norms.data());
            }
            return numpy(std::move(norms));
        },
        "structure"_a, "features"_a, "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
