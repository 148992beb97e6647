#include "solvers/inference.h"

#include "solvers/sum_examples.h"

namespace partwise {

namespace {

void check_alike(const Structure& structure, const FeatureMap& features) {
    if (features.num_examples() != structure.num_examples())
        throw InputError("structure and features differ in examples");
}

Index slots_of(const Structure& structure, const FeatureMap& features, Index i) {
    const Index n_slots = structure.num_slots(i);
    if (features.num_slots(i) != n_slots) throw InputError("example ", i, ": slots and features differ");
    return n_slots;
}

// Calls f(k, i, scores, workspace) for the k-th of these examples, example i, with its slot scores; null: all examples.
template <class F>
void for_examples(const Structure& structure, const FeatureMap& features, const double* w,
                  const std::vector<Index>* examples, int n_jobs, Interrupt& interrupt, F&& f) {
    check_alike(structure, features);
    const Index n = examples ? len(examples->size()) : structure.num_examples();
    parallel_with_scratch(n, structure.jobs(n_jobs), interrupt, [&](Index k, Workspace& ws) {
        const Index i = examples ? (*examples)[k] : k;
        Workspace::Frame frame(ws);
        double* scores = frame.take(slots_of(structure, features, i));
        features.scores(i, w, scores);
        f(k, i, scores, ws);
    });
}

void maximize_together(const Structure& structure, const FeatureMap& features, const double* w,
                       const std::vector<Index>& examples, Interrupt& interrupt, double* values, SlotCounts* best) {
    check_alike(structure, features);
    Workspace ws;
    std::vector<const double*> scores;
    for (std::size_t begin = 0; begin < examples.size(); begin += scores.size()) {
        interrupt.check();
        Workspace::Frame frame(ws);
        scores.clear();
        for (Index slots = 0; begin + scores.size() < examples.size();) {
            const Index i = examples[begin + scores.size()];
            const Index n_slots = slots_of(structure, features, i);
            slots += n_slots;
            if (!scores.empty() && slots > kManySlots) break;
            double* own = frame.take(n_slots);
            features.scores(i, w, own);
            scores.push_back(own);
        }
        structure.maximize_of({examples.data() + begin, scores.size()}, scores.data(), values + begin, best + begin,
                              ws);
    }
}

void infer_together(const Structure& structure, const FeatureMap& features, const double* w, double temperature,
                    const std::vector<Index>& offsets, Interrupt& interrupt, double* marginals, double* values,
                    double* entropies) {
    check_alike(structure, features);
    Workspace ws;
    const Index n = structure.num_examples();
    for (Index begin = 0, end = 0; begin < n; begin = end) {
        interrupt.check();
        end = begin + 1;
        while (end < n && offsets[end + 1] - offsets[begin] <= kManySlots) ++end;
        Workspace::Frame frame(ws);
        double* scores = frame.take(offsets[end] - offsets[begin]);
        for (Index i = begin; i < end; ++i) {
            slots_of(structure, features, i);
            features.scores(i, w, scores + (offsets[i] - offsets[begin]));
        }
        double* own = entropies ? entropies + begin : frame.take(end - begin);
        structure.log_partition_of(begin, end, scores, temperature, values + begin, marginals + offsets[begin], own,
                                   ws);
    }
}

}  // namespace

Decoded decode(const Structure& structure, const FeatureMap& features, const double* w,
               const std::vector<Index>& examples, int n_jobs, Interrupt& interrupt) {
    std::vector<SlotCounts> best(examples.size());
    Decoded out;
    out.values.resize(best.size());
    if (structure.together()) {
        maximize_together(structure, features, w, examples, interrupt, out.values.data(), best.data());
    } else {
        for_examples(structure, features, w, &examples, n_jobs, interrupt,
                     [&](Index k, Index i, const double* scores, Workspace& ws) {
                         out.values[k] = structure.maximize(i, scores, best[k], ws);
                     });
    }
    for (const SlotCounts& labelling : best) {
        out.slots.insert(out.slots.end(), labelling.slots.begin(), labelling.slots.end());
        out.counts.insert(out.counts.end(), labelling.counts.begin(), labelling.counts.end());
        out.indptr.push_back(len(out.slots.size()));
    }
    return out;
}

void infer(const Structure& structure, const FeatureMap& features, const double* w, double temperature, int n_jobs,
           Interrupt& interrupt, double* marginals, double* values, double* entropies) {
    const std::vector<Index> offsets = structure.slot_offsets();
    if (structure.together()) {
        infer_together(structure, features, w, temperature, offsets, interrupt, marginals, values, entropies);
        return;
    }
    for_examples(structure, features, w, nullptr, n_jobs, interrupt,
                 [&](Index, Index i, const double* scores, Workspace& ws) {
                     double* entropy = entropies ? entropies + i : nullptr;
                     values[i] = structure.log_partition(i, scores, temperature, marginals + offsets[i], entropy, ws);
                 });
}

void labelling_values(const Structure& structure, const FeatureMap& features, const double* w,
                      const std::vector<SlotView>& labellings, int n_jobs, Interrupt& interrupt, double* values) {
    for_examples(structure, features, w, nullptr, n_jobs, interrupt,
                 [&](Index, Index i, const double* scores, Workspace&) {
                     for (const Index slot : labellings[i].slots) {
                         if (slot < 0 || slot >= structure.num_slots(i))
                             throw InputError("example ", i, ": no slot ", slot);
                     }
                     values[i] = structure.value_of(i, scores, labellings[i]);
                 });
}

void all_scores(const Structure& structure, const FeatureMap& features, const double* w, int n_jobs,
                Interrupt& interrupt, double* scores) {
    const std::vector<Index> offsets = structure.slot_offsets();
    for_examples(structure, features, w, nullptr, n_jobs, interrupt,
                 [&](Index, Index i, const double* own, Workspace&) {
                     std::copy(own, own + structure.num_slots(i), scores + offsets[i]);
                 });
}

void slot_norms(const Structure& structure, const FeatureMap& features, int n_jobs, Interrupt& interrupt,
                double* norms) {
    check_alike(structure, features);
    const std::vector<Index> offsets = structure.slot_offsets();
    parallel_for(structure.num_examples(), n_jobs, interrupt, [&](Index i, int) {
        const Index n = slots_of(structure, features, i);
        double* own = norms + offsets[i];
        features.slot_norms2(i, own);
        for (Index r = 0; r < n; ++r) own[r] = std::sqrt(own[r]);
    });
}

}  // namespace partwise
