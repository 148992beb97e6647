// One label per example: slot a is label a.
#pragma once

#include "structures/clique_view.h"
#include "structures/structure.h"

namespace partwise {

class Multiclass final : public Structure, public CliqueView {
   public:
    Multiclass(Index num_examples, Index n_labels);

    Index n_labels() const { return n_labels_; }
    Index width() const { return width_; }

    unsigned capabilities() const override { return kCliques | kSupport | kCovariance | kKBest | kSample | kOnePart; }
    Index num_slots(Index) const override { return width_; }
    Index num_row_slots(Index) const override { return width_; }
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override;
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override;
    void log_partition_of(Index begin, Index end, const double* scores, double temperature, double* values,
                          double* marginals, double* entropies, Workspace& ws) const override;
    void log_values_of(Index begin, Index end, const double* scores, double temperature, double* values,
                       Workspace& ws) const override;
    void add_cost(Index i, SlotView gold, double scale, double* scores) const override;
    void check_labelling(Index i, SlotView labelling, Workspace& ws) const override;
    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override;
    std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                   Workspace& ws) const override;
    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace& ws) const override;
    void covariance_of_marginals(Index begin, Index end, const double* marginals, const double* direction,
                                 const double* factors, double* out) const override;

    // One clique: the label itself, so clique marginals are the slots.
    const CliqueView& cliques() const override { return *this; }
    std::vector<Index> clique_offsets(Index) const override { return {0, width_}; }
    double clique_marginals(Index i, const double* scores, double temperature, double* out,
                            Workspace& ws) const override;
    void slots_from_cliques(Index i, const double* cliques, double* slots) const override;
    double clique_disagreement(Index i, const double* cliques, Workspace& ws) const override;
    double entropy_of_cliques(Index i, const double* cliques, double* gradient, Workspace& ws) const override;
    Along entropy_along(Index i, const double* cliques, const double* direction, double step,
                        Workspace& ws) const override;
    void scores_from_cliques(Index i, const double* cliques, double* out) const override;
    bool slot_scores_from_cliques(Index i, const double* cliques, double* scores) const override {
        scores_from_cliques(i, cliques, scores);
        return true;
    }
    void clique_entries(Index i, SlotView labelling, Index* entries, Workspace& ws) const override;
    double maximize_in_support(Index i, const double* scores, const double* cliques, double least, SlotCounts& best,
                               Workspace& ws) const override;

   protected:
    void check_mask(Index i) const override;

   private:
    bool allows(Index i, Index a) const { return !mask(i) || mask(i)[a]; }

    Index n_labels_;
    Index width_;
};

}  // namespace partwise
