// The best spanning tree of arcs from head to modifier (Chu and Liu 1965, Edmonds 1967) in O(n^2), by growing a path
// against the arcs and contracting the cycles that it closes (Tarjan 1977, for dense graphs).
#pragma once

#include "support/types.h"

namespace partwise {

// Heads (n values) of the best tree for arc scores in slot layout, -infinity where there is no arc. Under the
// single-root rule the number of arcs from the root is made least before the score is made largest: the method only
// adds, subtracts and compares, so it works on tuples in lexicographic order, with no large constant that would cost
// digits. Of trees with equal scores it takes one with the smallest sum of heads. False if there is no tree (or none
// with one root).
bool best_arborescence(Index n, const double* arcs, bool single_root, Index* heads);

}  // namespace partwise
