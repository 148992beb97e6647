// Clique marginals of all examples of a structure, concatenated.
#pragma once

#include "solvers/objective.h"
#include "structures/clique_view.h"
#include "support/parallel.h"

namespace partwise {

// The index of each example's first clique marginal, and at the end the number of all clique marginals.
std::vector<Index> clique_starts(const Structure& structure);

// Clique marginals of the Gibbs distributions with these slot scores.
void cliques_of_scores(const Structure& structure, const double* scores, double* cliques, int n_jobs,
                       Interrupt& interrupt);

// Computes expected counts and entropies from clique marginals.
void read_cliques(const Structure& structure, const double* cliques, double* counts, double* entropies, int n_jobs,
                  Interrupt& interrupt);

// The largest violation of the conditions that clique marginals of distributions satisfy (infinity if the structure
// cannot check whether cliques agree), and what is violated (empty: nothing, except for rounding).
struct CliqueReport {
    double off = 0;
    std::string complaint;
};

// Checks whether neighbouring cliques agree and masked entries are 0, for examples of positive weight. Throws
// InputError if a marginal is negative or a clique's marginals do not sum to 1.
CliqueReport check_clique_marginals(const Objective& objective, const double* cliques, int n_jobs,
                                    Interrupt& interrupt);

}  // namespace partwise
