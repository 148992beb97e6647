// Junction trees by variable elimination: which tables a sum or maximum over all labellings of a graph goes through.
//
// Variables are numbered by their place in the order of elimination. Eliminating variable p makes a clique: p and the
// later variables that it is then joined to, its separator. The clique's table has one row per label of p and one
// column per labelling of the separator; all axes are in the order of elimination, so that a separator inside its
// parent's table, and a factor inside a clique's, is a subset of axes in the same order, the last of which run in step.
// Both have the first axis of that table, the variable of its rows: small tables go into large ones row by row.
// Cliques that another one contains are kept (they are small): each clique then eliminates one variable, and there are
// as many as variables. Their order is a valid order of messages: parents come later.
#pragma once

#include "support/types.h"

namespace partwise::junction {

// A small table inside a large one with more axes: which entry of the small one belongs to each of the large one.
// Axes along which both run in step, or only the large one runs, are joined.
struct Inside {
    std::vector<Index> sizes;  // of the outer loops, outermost first
    std::vector<Index> steps;  // the step of the small table in each
    Index rows = 1;            // the loop over inner runs
    Index row_step = 0;
    Index run = 1;       // entries of an inner run of the large table
    bool moves = false;  // whether the small table has a different entry for each of them
};

struct Factor {
    Index begin;  // of its entries among those of all factors
    Index size;
    Inside place;  // inside the clique's local table
};

struct Clique {
    Index rows;        // labels of the variable that is eliminated
    Index columns;     // labellings of the separator
    Index table;       // where its table begins
    Index separated;   // where its values per column begin
    Index parent;      // -1: none, the separator is empty
    Inside in_parent;  // a row of the separator's table, by the parent's label, inside a row of the parent's
    Index row;         // entries of such a row
    std::vector<Index> separator;  // variables, ascending
    std::vector<Index> steps;      // the distance between columns of successive labels of each
    std::vector<Index> children;
    std::vector<Factor> factors;  // those whose first variable is the clique's
    Index local;                  // entries of the table of its factors' variables; 0: the clique's table itself
    Inside local_place;           // a row of that table inside a row of the clique's
};

struct Tree {
    std::vector<Index> order;  // the caller's number of each variable
    std::vector<Clique> cliques;
    Index table_size = 0;      // entries of all tables
    Index separated_size = 0;  // columns of all tables
    Index factor_size = 0;     // entries of all factors
    Index local_size = 0;      // of the largest local table
    Index width = 0;           // variables of the largest clique, less one

    // The number of doubles that sums over labellings need.
    Index doubles() const { return table_size + 2 * separated_size + factor_size + local_size; }
};

// Thrown if no order of elimination keeps to the memory limit. at_least: the order was abandoned, so `bytes` and
// `width` are lower bounds.
struct TooWide {
    Index width;
    double bytes;
    double most_bytes;  // the limit
    bool at_least;
};

// sizes: labels of each variable (2 or more); scopes: variables of each factor. The order of elimination is that of
// least fill, ties to the smallest degree and number; where that takes much memory, also that of the smallest tables
// and that of the numbers, and the best of the three. Throws TooWide if it would take more bytes than the limit.
Tree make_tree(const std::vector<Index>& sizes, const std::vector<std::vector<Index>>& scopes, double most_bytes);

// Calls f(place in the large table, place in the small one) for each run.
template <class F>
inline void for_each_run(const Inside& in, F&& f) {
    Index at = 0;
    Index from = 0;
    const std::size_t n = in.sizes.size();
    Index counters[64] = {};
    while (true) {
        for (Index r = 0, small = from; r < in.rows; ++r, small += in.row_step, at += in.run) f(at, small);
        std::size_t axis = n;
        while (axis > 0) {
            --axis;
            from += in.steps[axis];
            if (++counters[axis] < in.sizes[axis]) break;
            from -= in.steps[axis] * in.sizes[axis];
            counters[axis] = 0;
            if (axis == 0) return;
        }
        if (n == 0) return;
    }
}

}  // namespace partwise::junction
