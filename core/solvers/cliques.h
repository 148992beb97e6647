// Clique marginals of all examples of a structure, end to end.
#pragma once

#include <string>

#include "solvers/objective.h"
#include "structures/clique_view.h"
#include "support/parallel.h"

namespace partwise {

// Where each example's clique marginals begin, and where the last ones end.
std::vector<Index> clique_starts(const Structure& structure);

// Clique marginals of the Gibbs distributions with these slot scores.
void cliques_of_scores(const Structure& structure, const double* scores, double* cliques, int n_jobs,
                       Interrupt& interrupt);

// Expected counts and entropies of clique marginals.
void read_cliques(const Structure& structure, const double* cliques, double* counts, double* entropies, int n_jobs,
                  Interrupt& interrupt);

// By how much clique marginals fail to be those of distributions over labellings at most, infinity if a structure cannot
// tell whether cliques agree; and why they are not (empty: they are, but for rounding).
struct CliqueReport {
    double off = 0;
    std::string complaint;
};

// Whether neighbouring cliques agree and masks are kept, for examples with weight. Throws InputError where marginals are
// negative or a clique's do not sum to 1.
CliqueReport check_clique_marginals(const Objective& objective, const double* cliques, int n_jobs,
                                    Interrupt& interrupt);

}  // namespace partwise
