// Plain types shared by the whole core, and the standard headers that most files use: no other file includes these.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace partwise {

using Index = std::int64_t;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Sizes and indices are signed, so that differences of them may be negative; containers convert them where they are
// indexed. Only comparisons and braces need these two.
inline std::size_t idx(Index i) { return static_cast<std::size_t>(i); }
inline Index len(std::size_t n) { return static_cast<Index>(n); }

// A labelling stored elsewhere: the slots that it uses, and how often each.
struct SlotView {
    std::span<const Index> slots;
    std::span<const double> counts;

    // <count, x>
    double dot(const double* x) const {
        double sum = 0;
        for (std::size_t k = 0; k < slots.size(); ++k) sum += counts[k] * x[slots[k]];
        return sum;
    }
    // x += scale * count
    void add_to(double* x, double scale) const {
        for (std::size_t k = 0; k < slots.size(); ++k) x[slots[k]] += scale * counts[k];
    }
};

// A labelling.
struct SlotCounts {
    std::vector<Index> slots;
    std::vector<double> counts;

    SlotView view() const { return {slots, counts}; }
    void clear() {
        slots.clear();
        counts.clear();
    }
    void add(Index slot, double count) {
        slots.push_back(slot);
        counts.push_back(count);
    }
};

// Strings and numbers as one text.
template <class... Parts>
std::string concat(const Parts&... parts) {
    std::string out;
    const auto add = [&](const auto& part) {
        if constexpr (requires { std::to_string(part); }) {
            out += std::to_string(part);
        } else {
            out += part;
        }
    };
    (add(parts), ...);
    return out;
}

// Bad input from the caller, described by these parts; becomes ValueError in Python.
struct InputError : std::invalid_argument {
    template <class... Parts>
    explicit InputError(const Parts&... parts) : std::invalid_argument(concat(parts...)) {}
};

// Numbers beyond double precision (NaN, infinity) where a run cannot go on; becomes DivergenceError in Python.
struct NumberError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What was drawn or found among several, which is nothing (below 0) only where scores overflow.
inline Index one_of_them(Index chosen) {
    if (chosen < 0) throw InputError("scores are beyond double precision: no labelling has a probability");
    return chosen;
}

// Ctrl-C was seen while the core was working.
struct Interrupted : std::runtime_error {
    Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace partwise
