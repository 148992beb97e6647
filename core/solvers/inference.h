// Prediction for all examples of a data set: best labellings, marginals, entropies.
#pragma once

#include "features/feature_map.h"
#include "structures/structure.h"
#include "support/parallel.h"

namespace partwise {

struct Decoded {
    std::vector<Index> indptr{0};
    std::vector<Index> slots;
    std::vector<double> counts;
    std::vector<double> values;
};

Decoded decode(const Structure& structure, const FeatureMap& features, const double* w,
               const std::vector<Index>& examples, int n_jobs, Interrupt& interrupt);

// marginals: slots of all examples concatenated; values (log partitions or maxima) and entropies: one per example.
void infer(const Structure& structure, const FeatureMap& features, const double* w, double temperature, int n_jobs,
           Interrupt& interrupt, double* marginals, double* values, double* entropies);

void labelling_values(const Structure& structure, const FeatureMap& features, const double* w,
                      const std::vector<SlotView>& labellings, int n_jobs, Interrupt& interrupt, double* values);

void all_scores(const Structure& structure, const FeatureMap& features, const double* w, int n_jobs,
                Interrupt& interrupt, double* scores);

// |A_i' e_r| of every slot r, all examples concatenated.
void slot_norms(const Structure& structure, const FeatureMap& features, int n_jobs, Interrupt& interrupt,
                double* norms);

}  // namespace partwise
