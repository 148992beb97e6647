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

// Sizes and indices are signed, because differences of them may be negative. Indexing a container converts an Index
// implicitly; comparisons and braced initialisers need these functions.
inline std::size_t idx(Index i) { return static_cast<std::size_t>(i); }
inline Index len(std::size_t n) { return static_cast<Index>(n); }

// A view of a labelling stored elsewhere: the slots that it uses, and how often it uses each.
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

// A labelling with its own memory.
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

// Joins strings and numbers to one text.
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

// Invalid input from the caller. The message joins these parts; Python gets a ValueError.
struct InputError : std::invalid_argument {
    template <class... Parts>
    explicit InputError(const Parts&... parts) : std::invalid_argument(concat(parts...)) {}
};

// A run cannot continue because of NaN or infinity; Python gets a DivergenceError.
struct NumberError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Returns the chosen index. An index below 0 means that none could be chosen, which happens only if scores overflow.
inline Index one_of_them(Index chosen) {
    if (chosen < 0) throw InputError("scores are beyond double precision: no labelling has a probability");
    return chosen;
}

// Ctrl-C was seen while the core was working.
struct Interrupted : std::runtime_error {
    Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace partwise
