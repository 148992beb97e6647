// Products and sums of sizes that a caller gives: an error instead of a number that has gone round.
#pragma once

#include "support/types.h"

namespace partwise {

// So many doubles can be addressed, and more than any machine has.
constexpr Index kMostValues = Index{1} << 59;

[[noreturn]] inline void too_large(const char* what) { throw InputError(std::string(what) + " is too large"); }

// a and b: 0 or more.
inline Index checked_product(Index a, Index b, const char* what) {
    if (b != 0 && a > kMostValues / b) too_large(what);
    return a * b;
}

inline Index checked_sum(Index a, Index b, const char* what) {
    if (a > kMostValues || b > kMostValues - a) too_large(what);
    return a + b;
}

}  // namespace partwise
