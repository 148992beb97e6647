// Dependency trees that need not be projective: spanning trees. Sums by the matrix-tree theorem in O(n^3), maxima by
// Chu-Liu-Edmonds in O(n^2).
#pragma once

#include "structures/tree.h"

namespace partwise {

// Heads (n values) of the best tree for arc scores in slot layout, -infinity where there is no arc. Under the
// single-root rule the number of arcs from the root is made least before the score is made largest: the method only
// adds, subtracts and compares, so it works on tuples in lexicographic order, with no large constant that would cost
// digits. Of trees with equal scores it takes one with the smallest sum of heads. Returns false if no tree is allowed.
bool best_arborescence(Index n, const double* arcs, bool single_root, Index* heads);

class SpanningTree final : public Tree {
   public:
    SpanningTree(std::vector<Index> lengths, bool single_root, Index max_length);

    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override;
    std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                   Workspace& ws) const override;
    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace& ws) const override;

   protected:
    bool best_heads(Index n, const double* arcs, Index* heads, Workspace& ws) const override;
    double sums(Index n, const double* arcs, double* marginals, double* entropy, Workspace& ws) const override;

   private:
    // Computes sums in doubles; returns false if the weights differ too much for the range of doubles.
    bool plain_sums(Index n, const double* arcs, double* marginals, double& log_z, Workspace& ws) const;
    void log_sums(Index n, const double* arcs, double* marginals, double& log_z, Workspace& ws) const;
    bool plain_tangents(Index n, const double* arcs, const double* direction, double* out, Workspace& ws) const;
    // Shifts each word's scores so that the arcs of the best tree have the score 0; returns that tree's score.
    double shift_to_best(Index n, double* arcs, Workspace& ws) const;
};

}  // namespace partwise
