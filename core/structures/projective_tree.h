// Projective dependency trees: no two arcs cross. Sums and maxima by Eisner's algorithm, in O(n^3).
#pragma once

#include "structures/chart_structure.h"
#include "structures/eisner.h"
#include "structures/tree.h"

namespace partwise {

class ProjectiveTree final : public ChartStructure<ProjectiveTree, Tree> {
   public:
    ProjectiveTree(std::vector<Index> lengths, bool single_root, Index max_length);

    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override;

   protected:
    bool best_heads(Index n, const double* arcs, Index* heads, Workspace& ws) const override;
    double sums(Index n, const double* arcs, double* marginals, double* entropy, Workspace& ws) const override;
    void check_kind(Index i, const Index* heads) const override;

   private:
    friend ChartStructure;
    template <class F>
    auto with_program(Index i, F&& f) const {
        return f(EisnerProgram{length(i), single_root()});
    }
    const double* to_program(Index i, const EisnerProgram&, const double* values, double scale, bool masked,
                             Workspace::Frame& frame) const {
        return masked ? arc_scores(i, values, scale, frame) : values;
    }
    // Computes sums in doubles; returns false if the weights differ too much for the range of doubles.
    bool plain_sums(Index n, const double* arcs, double* marginals, double* entropy, double& log_z,
                    Workspace& ws) const;
};

extern template class ChartStructure<ProjectiveTree, Tree>;

}  // namespace partwise
