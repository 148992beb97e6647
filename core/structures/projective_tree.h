// Projective dependency trees: no two arcs cross. Sums and maxima by Eisner's algorithm, in O(n^3).
#pragma once

#include "structures/tree.h"

namespace partwise {

class ProjectiveTree final : public Tree {
   public:
    ProjectiveTree(std::vector<Index> lengths, bool single_root, Index max_length);

    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override;
    std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                   Workspace& ws) const override;
    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace& ws) const override;

   protected:
    bool best_heads(Index n, const double* arcs, Index* heads, Workspace& ws) const override;
    double sums(Index n, const double* arcs, double* marginals, double* entropy, Workspace& ws) const override;
    void check_kind(Index i, const Index* heads) const override;

   private:
    // In doubles; false where weights are too far apart for their range.
    bool plain_sums(Index n, const double* arcs, double* marginals, double* entropy, double& log_z,
                    Workspace& ws) const;
};

}  // namespace partwise
