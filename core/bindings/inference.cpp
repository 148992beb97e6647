// Prediction for whole data sets.
#include "solvers/inference.h"

#include <numeric>

#include "bindings/labellings.h"
#include "bindings/states.h"

namespace partwise::bindings {

void bind_inference(nb::module_& m) {
    define(m, "decode", args("structure"_a, "features"_a, "weights"_a, "n_jobs"_a = 1, "examples"_or_none),
           [](const Structure& structure, const FeatureMap& features, const Floats& weights, int n_jobs,
              OrNone<Ints> examples) {
               check_weights(features, weights);
               std::vector<Index> some = vector_of(examples);
               if (!examples) {
                   some.resize(structure.num_examples());
                   std::iota(some.begin(), some.end(), Index{0});
               }
               for (const Index i : some) check_index(i, structure.num_examples());
               Decoded out = run_kernel(decode, structure, features, weights.data(), some, n_jobs);
               return tuple_of(std::move(out.indptr), std::move(out.slots), std::move(out.counts),
                               std::move(out.values));
           });
    define(m, "infer",
           args("structure"_a, "features"_a, "weights"_a, "temperature"_a = 1.0, "n_jobs"_a = 1, "entropies"_a = true),
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
           });
    define(m, "labelling_values",
           args("structure"_a, "features"_a, "weights"_a, "indptr"_same, "slots"_same, "counts"_a, "n_jobs"_a = 1),
           [](const Structure& structure, const FeatureMap& features, const Floats& weights, const Ints& indptr,
              const Ints& slots, const Floats& counts, int n_jobs) {
               check_weights(features, weights);
               std::vector<SlotView> labellings;
               decode_all(structure, indptr, slots, counts, [&](Index, SlotView one) { labellings.push_back(one); });
               return fill_array(len(labellings.size()), [&](double* values, Interrupt& interrupt) {
                   labelling_values(structure, features, weights.data(), labellings, n_jobs, interrupt, values);
               });
           });
    define(m, "all_scores", args("structure"_a, "features"_a, "weights"_a, "n_jobs"_a = 1),
           [](const Structure& structure, const FeatureMap& features, const Floats& weights, int n_jobs) {
               check_weights(features, weights);
               return fill_array(structure.slot_offsets().back(), [&](double* scores, Interrupt& interrupt) {
                   all_scores(structure, features, weights.data(), n_jobs, interrupt, scores);
               });
           });
    define(m, "slot_norms", args("structure"_a, "features"_a, "n_jobs"_a = 1),
           [](const Structure& structure, const FeatureMap& features, int n_jobs) {
               return fill_array(structure.slot_offsets().back(), [&](double* norms, Interrupt& interrupt) {
                   slot_norms(structure, features, n_jobs, interrupt, norms);
               });
           });
}

}  // namespace partwise::bindings
