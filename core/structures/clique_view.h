// A structure's distribution seen as marginals of a junction tree's cliques, end to end.
#pragma once

#include "support/vector_math.h"
#include "support/workspace.h"

namespace partwise {

// A function of one variable at a point: its value and its first two derivatives.
struct Along {
    double value = 0;
    double slope = 0;
    double curvature = 0;
};

// The view of structures with the capability kCliques (Structure::cliques).
class CliqueView {
   public:
    virtual ~CliqueView() = default;

    virtual std::vector<Index> clique_offsets(Index i) const = 0;
    // Gives the log partition, as `log_partition` does.
    virtual double clique_marginals(Index i, const double* scores, double temperature, double* out,
                                    Workspace& ws) const = 0;
    // Linear: of a difference of marginals, too.
    virtual void slots_from_cliques(Index i, const double* cliques, double* slots) const = 0;
    // The largest difference between what two neighbouring cliques say of the variables that they share; infinite where
    // the structure cannot tell.
    virtual double clique_disagreement(Index i, const double* cliques, Workspace& ws) const;
    // Entropy of the distribution with these clique marginals; gradient (may be null) with respect to them.
    virtual double entropy_of_cliques(Index i, const double* cliques, double* gradient, Workspace& ws) const = 0;
    // The entropy at cliques + step * direction as a function of step, 0 <= step <= 1, where direction leads to other
    // clique marginals at step 1. By default the curvature is a difference of slopes.
    virtual Along entropy_along(Index i, const double* cliques, const double* direction, double step,
                                Workspace& ws) const;
    // Log potentials of the cliques whose Gibbs distribution has these marginals.
    virtual void scores_from_cliques(Index i, const double* cliques, double* out) const = 0;
    // The same as scores of slots, where every clique's entries are slots of their own; false where they are not (tied
    // slots, cliques of several parts).
    virtual bool slot_scores_from_cliques(Index, const double*, double*) const { return false; }

    // Capability kSupport: the entry of each clique that a labelling uses, one per clique, in their order.
    virtual void clique_entries(Index i, SlotView labelling, Index* entries, Workspace& ws) const = 0;
    // max of <count(y), scores> over the labellings whose entries all are above `least` in `cliques`, and the labelling.
    // Throws InputError if there is none.
    virtual double maximize_in_support(Index i, const double* scores, const double* cliques, double least,
                                       SlotCounts& best, Workspace& ws) const = 0;

   protected:
    [[noreturn]] static void no_support(Index i) {
        throw InputError("the clique marginals of example ", i, " give no labelling a chance");
    }
};

// What -sum x log x adds to the value and derivatives by `step` of an entropy at x = p + step d. The terms x of a whole
// distribution, whose d sum to nothing, need no constants. sign 1: a clique's table; -1: a separator's.
[[gnu::always_inline]] inline void add_entropy(double sign, const double* __restrict p, const double* __restrict d,
                                               double step, Index n, Along& out) {
    double value = 0;
    double slope = 0;
    double curvature = 0;
#pragma omp simd reduction(+ : value, slope, curvature)
    for (Index k = 0; k < n; ++k) {
        const double x = p[k] + step * d[k];
        const double u = x > 1e-300 ? x : 1e-300;
        const double log_x = fast_log(u);
        value += x * log_x;
        slope += d[k] * log_x;
        curvature += d[k] * d[k] / u;
    }
    out.value -= sign * value;
    out.slope -= sign * slope;
    out.curvature -= sign * curvature;
}

}  // namespace partwise
