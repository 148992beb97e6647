// Checks that all services of a structure (maximum, sums, k best, samples, ...) agree about one example.
#pragma once

#include <algorithm>
#include <cmath>

#include "bytes.h"
#include "structures/structure.h"

namespace partwise::fuzz {

// The answer's slots lie in the example, its counts are whole, and the structure accepts it as a labelling.
inline void check_answer(const Structure& s, Index i, const SlotCounts& y, Workspace& ws) {
    require(y.slots.size() == y.counts.size(), "a labelling has a count for each slot");
    for (std::size_t k = 0; k < y.slots.size(); ++k) {
        require(y.slots[k] >= 0 && y.slots[k] < s.num_slots(i), "slots of an answer lie in the example");
        require(!s.mask(i) || s.mask(i)[y.slots[k]], "an answer uses allowed slots");
        require(y.counts[k] >= 1 && y.counts[k] == std::floor(y.counts[k]), "counts of an answer are whole");
    }
    require(accepted([&] { s.check_labelling(i, {y.slots, y.counts}, ws); }), "an answer is a labelling");
}

// Tries a labelling with invented slots: the structure may refuse it, but must not read out of range.
inline void try_labelling(const Structure& s, Index i, Bytes& in, Workspace& ws) {
    SlotCounts y;
    for (Index k = in.below(0, 12); k > 0; --k)
        y.add(in.near(0, std::min<Index>(s.num_slots(i), 250) - 1), in.number(true));
    const auto in_range = [&](Index slot) { return slot >= 0 && slot < s.num_slots(i); };
    const bool taken = accepted([&] { s.check_labelling(i, {y.slots, y.counts}, ws); });
    require(!taken || std::all_of(y.slots.begin(), y.slots.end(), in_range),
            "what is taken for a labelling is in range");
    if (!taken || !s.linear()) return;
    std::vector<double> cost(s.num_slots(i), 0.0);
    s.add_cost(i, {y.slots, y.counts}, 1.0, cost.data());
    for (const Index slot : y.slots) require(cost[slot] <= 0.0 || !s.num_row_slots(i), "what is right costs nothing");
}

inline void mask_some(Structure& s, Index i, Bytes& in) {
    if (!in.flag()) return;
    std::vector<std::uint8_t> allowed(s.num_slots(i));
    const std::uint8_t often = in.byte();
    for (std::uint8_t& one : allowed) one = in.byte() <= often;
    if (in.byte() > 250) allowed.push_back(1);
    accepted([&] { s.set_mask(i, std::move(allowed)); });
}

inline void check_marginals(const Structure& s, Index i, const std::vector<double>& marginals, Index width) {
    for (std::size_t k = 0; k < marginals.size(); ++k) {
        require(marginals[k] >= -1e-9 && std::isfinite(marginals[k]), "marginals are finite and not negative");
        require(!s.mask(i) || s.mask(i)[k] || std::abs(marginals[k]) < 1e-9, "what is forbidden has no probability");
    }
    if (width == 0) return;
    for (Index row = 0; row < s.num_row_slots(i); row += width) {
        double sum = 0;
        for (Index c = 0; c < width; ++c) sum += marginals[row + c];
        require(std::abs(sum - 1.0) < 1e-6, "a row's marginals sum to one");
    }
}

// width: the size of the rows of which every labelling uses one slot each; 0: rows of several sizes, or no rows.
inline void check_answers(Structure& s, Index i, Bytes& in, Index width) {
    Workspace ws;
    try_labelling(s, i, in, ws);
    const bool wide = in.flag();
    const std::vector<double> scores = in.numbers(s.num_slots(i), wide);
    double size = 0;
    for (const double score : scores) size = std::max(size, std::abs(score));
    // Sums of larger scores may overflow: answers may then be errors, and their values are not compared.
    const bool safe = size < 1e280;
    const double tolerance = 1e-9 * (1.0 + size) * static_cast<double>(s.num_slots(i));

    SlotCounts best;
    double value = 0;
    if (!accepted([&] { value = s.maximize(i, scores.data(), best, ws); })) return;
    check_answer(s, i, best, ws);
    if (safe) {
        require(std::abs(s.value_of(i, scores.data(), {best.slots, best.counts}) - value) <= tolerance,
                "the best value is that of the best labelling");
    }
    std::vector<double> marginals(s.num_slots(i), std::nan(""));
    for (const double temperature : {1.0, 0.0, s.linear() ? 0.25 : 1.0}) {
        double entropy = 0;
        double sums = 0;
        if (!accepted([&] { sums = s.log_partition(i, scores.data(), temperature, marginals.data(), &entropy, ws); })) {
            continue;
        }
        if (!safe) continue;
        require(sums >= value - tolerance || !s.linear(), "a log partition is not below the maximum");
        require(entropy >= -1e-6 * (1.0 + size) && std::isfinite(entropy), "an entropy is finite and not negative");
        check_marginals(s, i, marginals, width);
        const double alone = s.log_partition(i, scores.data(), temperature, nullptr, nullptr, ws);
        require(std::abs(alone - sums) <= tolerance, "a log partition does not depend on what else is asked");
    }
    const unsigned can = s.capabilities();
    if (can & kKBest) {
        accepted([&] {
            const std::vector<Scored> all = s.k_best(i, scores.data(), in.near(0, 9), ws);
            for (std::size_t k = 0; k < all.size(); ++k) {
                check_answer(s, i, all[k].labelling, ws);
                if (k > 0 && safe) require(all[k].value <= all[k - 1].value + tolerance, "the k best are in order");
            }
            if (!all.empty() && safe) {
                require(std::abs(all[0].value - value) <= tolerance || !s.linear(),
                        "the first of the k best is the best");
            }
        });
    }
    if (can & kSample) {
        std::mt19937_64 rng(in.byte());
        accepted([&] {
            for (const SlotCounts& y : s.sample(i, scores.data(), 1.0, in.below(0, 5), rng, ws))
                check_answer(s, i, y, ws);
        });
    }
    if (can & kCovariance) {
        const std::vector<double> direction = in.numbers(s.num_slots(i), wide);
        std::vector<double> product(marginals.size(), std::nan(""));
        const bool done =
            accepted([&] { s.covariance_product(i, scores.data(), 1.0, direction.data(), product.data(), ws); });
        for (const double one : product) require(!done || wide || std::isfinite(one), "covariances are finite");
    }
    if (!(can & kCliques)) return;
    accepted([&] {
        const std::vector<Index> offsets = s.clique_offsets(i);
        std::vector<double> cliques(offsets.back());
        s.clique_marginals(i, scores.data(), 1.0, cliques.data(), ws);
        s.slots_from_cliques(i, cliques.data(), marginals.data());
        if (safe) check_marginals(s, i, marginals, width);
        std::vector<double> gradient(cliques.size());
        const double entropy = s.entropy_of_cliques(i, cliques.data(), gradient.data(), ws);
        require(!safe || std::isfinite(entropy), "an entropy of cliques is finite");
        s.scores_from_cliques(i, cliques.data(), gradient.data());
        s.slot_scores_from_cliques(i, cliques.data(), marginals.data());
        s.entropy_along(i, cliques.data(), std::vector<double>(cliques.size(), 0.0).data(), 0.5, ws);
        if (can & kSupport) {
            std::vector<Index> entries(offsets.size() - 1);
            s.clique_entries(i, {best.slots, best.counts}, entries.data(), ws);
            for (std::size_t c = 0; c < entries.size(); ++c) {
                require(entries[c] >= 0 && entries[c] < offsets.back(), "entries of cliques are in range");
            }
            SlotCounts other;
            s.maximize_in_support(i, scores.data(), cliques.data(), 0.0, other, ws);
            check_answer(s, i, other, ws);
        }
    });
}

}  // namespace partwise::fuzz
