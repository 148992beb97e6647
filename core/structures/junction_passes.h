// Messages along a junction tree: sums, maxima, and what follows from them.
//
// factors: scores of all factors' entries, kLogOfZero where forbidden; tables, separated: tree.table_size and
// tree.separated_size doubles.
#pragma once

#include <random>
#include <vector>

#include "structures/junction_tree.h"
#include "support/workspace.h"

namespace partwise::junction {

// Up, in the order of elimination. A table's entry is T(r, s) = factors + messages of the children, and its message is
//   m(s) = log sum_r exp T(r, s).
// Leaves the conditionals exp(T(r, s) - m(s)) in the tables, each the one exponential of its entry, and in `entropies`
// (separated_size values, or null) the entropy of each column. Returns log Z.
double sum_up(const Tree& tree, const double* factors, double* tables, double* separated, double* entropies,
              Workspace& ws);

// Down: conditionals become joint probabilities of cliques, conditional times the separator's marginal, which is summed
// from the parent's table. Leaves the expected use of factors' entries in `factors`, if it is not null. Returns the
// entropy, the mean of the columns', if `entropies` are given.
double sum_down(const Tree& tree, double* tables, double* separated, const double* entropies, double* factors,
                Workspace& ws);

// Entries of cliques that are allowed: those of which `tables` is above `least`.
struct Support {
    const double* tables;
    double least;
};

// Up, with m(s) = max_r T(r, s); leaves T in the tables. Returns the maximum. support: entries outside of it are
// forbidden.
double max_up(const Tree& tree, const double* factors, double* tables, double* separated, Workspace& ws,
              const Support* support);

// The row with the largest T of each variable, the last variable first; ties go to the lowest. Variables below `done` of
// the order are chosen; the others were.
void choose(const Tree& tree, const double* tables, Index done, Index* rows);

// Rows drawn from the conditionals that sum_up left.
void draw(const Tree& tree, const double* tables, std::mt19937_64& rng, Index* rows);

// The k best labellings from what max_up left, best first: rows of all variables, end to end.
std::vector<Index> k_best(const Tree& tree, double maximum, const double* tables, Index k);

// Expected use of factors' entries from joint probabilities of cliques.
void factors_of(const Tree& tree, const double* tables, double* factors, Workspace& ws);

// Of each clique's separator the sums that its parent's table gives; nothing is written for roots.
void separators_of(const Tree& tree, const double* tables, double* separated);

// The derivative of what factors_of gives after sum_up and sum_down, along `direction` (as `factors`); overwrites
// tables.
void tangent(const Tree& tree, const double* factors, const double* direction, double* tables, double* separated,
             double* out, Workspace& ws);

// Where the separator's rows are in the columns of clique p's table.
inline Index column_of(const Clique& c, const Index* rows) {
    Index column = 0;
    for (std::size_t k = 0; k < c.separator.size(); ++k) column += c.steps[k] * rows[c.separator[k]];
    return column;
}

}  // namespace partwise::junction
