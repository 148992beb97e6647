// Clique marginals of all examples of a structure, end to end.
#pragma once

#include "structures/structure.h"
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

// Throws InputError if a clique's marginals do not sum to 1 or are negative.
void check_clique_marginals(const Structure& structure, const double* cliques);

}  // namespace partwise
