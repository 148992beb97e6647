// Prediction for whole data sets.
#include "solvers/inference.h"

#include <numeric>

#include "bindings/labellings.h"
#include "bindings/states.h"

namespace partwise::bindings {

void bind_inference(nb::module_& m) {
    m.def(
        "decode",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, int n_jobs,
           const std::optional<Ints>& examples) {
            check_weights(features, weights);
            std::vector<Index> some = vector_of(examples);
            if (!examples) {
                some.resize(structure.num_examples());
                std::iota(some.begin(), some.end(), Index{0});
            }
            for (const Index i : some) check_index(i, structure.num_examples());
            Decoded out = run_kernel(
                [&](auto& interrupt) { return decode(structure, features, weights.data(), some, n_jobs, interrupt); });
            return tuple_of(std::move(out.indptr), std::move(out.slots), std::move(out.counts), std::move(out.values));
        },
        "structure"_a, "features"_a, "weights"_a, "n_jobs"_a = 1, "examples"_or_none);
    m.def(
        "infer",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, double temperature,
           int n_jobs, bool with_entropies) {
            check_weights(features, weights);
            check_temperature(temperature);
            std::vector<double> marginals(structure.slot_offsets().back());
            std::vector<double> values(structure.num_examples());
            std::vector<double> entropies(with_entropies ? values.size() : 0);
            run_kernel([&](auto& interrupt) {
                infer(structure, features, weights.data(), temperature, n_jobs, interrupt, marginals.data(),
                      values.data(), with_entropies ? entropies.data() : nullptr);
            });
            return tuple_of(std::move(marginals), std::move(values), std::move(entropies));
        },
        "structure"_a, "features"_a, "weights"_a, "temperature"_a = 1.0, "n_jobs"_a = 1, "entropies"_a = true);
    m.def(
        "labelling_values",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, const Ints& indptr,
           const Ints& slots, const Floats& counts, int n_jobs) {
            check_weights(features, weights);
            std::vector<SlotView> labellings;
            decode_all(structure, indptr, slots, counts, [&](Index, SlotView one) { labellings.push_back(one); });
            return fill_array(len(labellings.size()), [&](double* values, Interrupt& interrupt) {
                labelling_values(structure, features, weights.data(), labellings, n_jobs, interrupt, values);
            });
        },
        "structure"_a, "features"_a, "weights"_a, "indptr"_same, "slots"_same, "counts"_a, "n_jobs"_a = 1);
    m.def(
        "all_scores",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, int n_jobs) {
            check_weights(features, weights);
            return fill_array(structure.slot_offsets().back(), [&](double* scores, Interrupt& interrupt) {
                all_scores(structure, features, weights.data(), n_jobs, interrupt, scores);
            });
        },
        "structure"_a, "features"_a, "weights"_a, "n_jobs"_a = 1);
    m.def(
        "slot_norms",
        [](const Structure& structure, const FeatureMap& features, int n_jobs) {
            return fill_array(structure.slot_offsets().back(), [&](double* norms, Interrupt& interrupt) {
                slot_norms(structure, features, n_jobs, interrupt, norms);
            });
        },
        "structure"_a, "features"_a, "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
