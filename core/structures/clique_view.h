// A distribution over labellings as the marginals of a junction tree's cliques, concatenated in one array.
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
    // Writes the clique marginals and returns the log partition.
    virtual double clique_marginals(Index i, const double* scores, double temperature, double* out,
                                    Workspace& ws) const = 0;
    // Expected counts of slots. The map is linear, so it may be applied to a difference of marginals.
    virtual void slots_from_cliques(Index i, const double* cliques, double* slots) const = 0;
    // The largest difference between the marginals that two neighbouring cliques give to the variables they share;
    // infinity if the structure cannot compute it.
    virtual double clique_disagreement(Index i, const double* cliques, Workspace& ws) const;
    // Entropy of the distribution with these clique marginals; gradient (may be null) with respect to them.
    virtual double entropy_of_cliques(Index i, const double* cliques, double* gradient, Workspace& ws) const = 0;
    // The entropy at cliques + step * direction as a function of step, 0 <= step <= 1, where direction leads to other
    // clique marginals at step 1. By default the curvature is a difference of slopes.
    virtual Along entropy_along(Index i, const double* cliques, const double* direction, double step,
                                Workspace& ws) const;
    // Log potentials of the cliques whose Gibbs distribution has these marginals.
    virtual void scores_from_cliques(Index i, const double* cliques, double* out) const = 0;
    // The same as scores of slots, if every entry of a clique is a slot of its own; else (tied slots, cliques of
    // several parts) returns false.
    virtual bool slot_scores_from_cliques(Index, const double*, double*) const { return false; }

    // Capability kSupport: the entry of each clique that a labelling uses, one per clique, in their order.
    virtual void clique_entries(Index i, SlotView labelling, Index* entries, Workspace& ws) const = 0;
    // The same as Structure::maximize over the labellings whose entries in `cliques` are all above `least`. Throws
    // InputError if there is no such labelling.
    virtual double maximize_in_support(Index i, const double* scores, const double* cliques, double least,
                                       SlotCounts& best, Workspace& ws) const = 0;

   protected:
    [[noreturn]] static void no_support(Index i) {
        throw InputError("the clique marginals of example ", i, " give no labelling a chance");
    }
};

// Adds -sum x log x at x = p + step d, and its first two derivatives by `step`, to `out`. Constant terms of the slope
// are left out, because the d of a whole distribution sum to 0. sign: 1 for a clique's table, -1 for a separator's.
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
