// Features one by one: what methods that change one weight at a time need of a feature map.
#pragma once

#include <span>
#include <string>

#include "support/types.h"

namespace partwise {

// One feature: the cells (example, slot) where its value f_t is not 0, by example. Somebody else stores the arrays.
struct Column {
    Index weight;                  // which weight it is
    Index slot;                    // the slot of all its cells (then an example occurs once), or -1: see `slots`
    Index size;                    // number of cells
    const std::int32_t* examples;  // ascending
    const std::int32_t* slots;     // null if all are `slot`
    const double* values;          // null if all are 1
    double lowest;                 // over its cells
    double highest;
};

inline double value_at(const Column& c, Index k) { return c.values ? c.values[k] : 1.0; }

// f(example, its first cell, one past its last) for each example of a column.
template <class F>
void for_each_example(const Column& c, F&& f) {
    for (Index k = 0; k < c.size;) {
        const Index first = k;
        while (k < c.size && c.examples[k] == c.examples[first]) ++k;
        f(Index{c.examples[first]}, first, k);
    }
}

class ColumnAccess {
   public:
    virtual ~ColumnAccess() = default;

    // Weights that are padding have no column. The order is a good one to visit them in.
    virtual Index num_columns() const = 0;
    virtual Column column(Index k) const = 0;
    // column(k).weight of every k.
    virtual std::span<const Index> weights() const = 0;
    // Slots of every example.
    virtual Index width() const = 0;
    // Cells of all columns together.
    virtual Index num_cells() const = 0;
    // Whether every value is 1.
    virtual bool binary() const = 0;
    // The weight of a feature with a negative value, -1 if there is none.
    virtual Index negative() const = 0;
    // A feature's name in messages.
    virtual std::string describe(Index weight) const = 0;
};

}  // namespace partwise
