// Visits of dual coordinate descent (Chang and Yih 2013, Algorithms 1 to 3) at temperature 0, for the squared hinge or
// any other link with a quadratic conjugate phi*(s) = c/2 s^2; c = 1/2 in the paper.
//
// In the paper's terms C_i = omega_i / l2 and alpha = C_i x, where x is an atom's coefficient (its share of s mu). With
// s the sum of example i's coefficients, the violation g of an atom and Algorithm 1's step on it are
//   g = cost - <w, psi> - c s,      x' = max(x + g / (C_i |psi|^2 + c), 0),      w' = w + C_i (x' - x) psi
// and the dual rises by omega_i (d g - d^2 / 2 (C_i |psi|^2 + c)), d = x' - x.
#pragma once

#include "solvers/working_sets.h"

namespace partwise {

struct DcdOptions {
    double l2 = 0;
    bool search = true;      // call the oracle, and add its labelling if its violation is at least delta
    bool update = true;      // Algorithm 1 on the working set, then remove atoms with coefficient 0
    double delta = 0;        // the least violation of an added labelling
    std::uint64_t seed = 0;  // seed of the random orders of atoms
    // merge a searched example's atoms as long as all atoms together take more bytes than this
    Index max_bytes = std::numeric_limits<Index>::max();
    Index violators = 1;  // the most labellings that a search adds; above 1 the structure must have k_best
};

// The arrays that a pass updates in place.
struct DcdState {
    const Objective& objective;
    double* weights;
    WorkingSets& sets;
};

struct DcdReport {
    Index visits = 0;  // oracle calls
    Index steps = 0;   // number of changes of coefficients
    Index added = 0;
    Index removed = 0;
    Index merged = 0;  // number of working sets that were merged
    Index work = 0;    // approximate count of numbers of rows and slots that were read or written
    double dual_gain = 0;
    double gap_estimate = 0;  // sum of the searched examples' gaps, as if their working sets were solved
    double violation = 0;     // the largest |projected gradient| g before a step
};

// The random numbers of the shuffles: SplitMix64, which a reimplementation in another language can reproduce exactly.
class SplitMix64 {
   public:
    explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }

   private:
    std::uint64_t state_;
};

DcdReport dcd_epoch(const DcdState& state, std::span<const Index> order, const DcdOptions& options,
                    Interrupt& interrupt);

}  // namespace partwise
