// Checks of sizes and pointers that a caller gives: errors instead of integer overflow.
#pragma once

#include "support/types.h"

namespace partwise {

// The largest size of an array of doubles: such arrays can be addressed, but no machine has so much memory.
constexpr Index kMostValues = Index{1} << 59;

[[noreturn]] inline void too_large(const char* what) { throw InputError(what, " is too large"); }

// a and b: 0 or more.
inline Index checked_product(Index a, Index b, const char* what) {
    if (b != 0 && a > kMostValues / b) too_large(what);
    return a * b;
}

inline Index checked_sum(Index a, Index b, const char* what) {
    if (a > kMostValues || b > kMostValues - a) too_large(what);
    return a + b;
}

// Throws InputError unless ptr starts at 0, never falls, and ends at `end`.
inline void check_pointers(std::span<const Index> ptr, Index end, const char* name) {
    const std::string what(name);
    if (ptr.empty() || ptr.front() != 0) throw InputError(what, " must start at 0");
    for (std::size_t k = 1; k < ptr.size(); ++k) {
        if (ptr[k] < ptr[k - 1]) throw InputError(what, " decreases at entry ", k);
    }
    if (ptr.back() != end) throw InputError(what, " ends at ", ptr.back(), ", not at ", end);
}

}  // namespace partwise
