// The arguments of solvers' kernels as Python makes them. Every kernel takes
//
//   a state      what it updates in place: pointers into NumPy's arrays, whose shapes are checked where it is made
//   an order     which examples or columns to visit
//   options      numbers and switches, checked where they are made
//
// so that an epoch looks the same in both languages: epoch(state, order, options).
#pragma once

#include "bindings/checks.h"
#include "bindings/keep_alive.h"

namespace partwise::bindings {

// A state, and what keeps its memory alive: the objective and the arrays live as long as it does.
template <class State>
struct Held {
    State state;
    std::vector<std::shared_ptr<const void>> owners;
};

// The array's memory, once it has a value per weight, slot or example.
template <class Array>
auto* per_weight(const Objective& objective, const Array& array, const char* name) {
    check_size(array, objective.features().num_weights(), name);
    return array.data();
}

template <class Array>
auto* per_slot(const Objective& objective, const Array& array, const char* name) {
    check_size(array, objective.total_slots(), name);
    return array.data();
}

template <class Array>
auto* per_example(const Objective& objective, const Array& array, const char* name) {
    check_size(array, objective.num_examples(), name);
    return array.data();
}

inline void check_one_part(const Objective& objective) {
    if (!(objective.structure().capabilities() & kOnePart)) {
        throw InputError("labellings of this structure have several parts");
    }
}

// Runs a kernel on a state without the GIL, for as long as Ctrl-C lets it.
template <class F>
auto run_kernel(F&& kernel) {
    Interrupt interrupt = python_interrupt();
    const nb::gil_scoped_release release;
    return kernel(interrupt);
}

}  // namespace partwise::bindings
