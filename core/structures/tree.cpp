#include "structures/tree.h"

#include <cstdio>

#include "support/extremes.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

// Above this, n * (n + 1) slots of 8 bytes are more than any machine has.
constexpr Index kLongest = 1'000'000;

std::string in_words(double bytes, double operations) {
    char text[96];
    std::snprintf(text, sizeof text, "about %.3g MB of memory and %.2g operations", bytes / 1e6, operations);
    return text;
}

}  // namespace

Tree::Tree(std::vector<Index> lengths, bool single_root, Index max_length, Work (*work)(double n))
    : Structure(len(lengths.size())), lengths_(std::move(lengths)), single_root_(single_root), max_length_(max_length) {
    if (max_length < 1 || max_length > kLongest) throw InputError("max_length must be from 1 to ", kLongest);
    for (Index i = 0; i < num_examples(); ++i) {
        const Index n = length(i);
        if (n < 1) refuse(i, n == 0 ? "is empty" : "has a negative length");
        if (n > max_length) {
            const Work cost = work(static_cast<double>(n));
            refuse(i, "has ", n, " words, more than max_length = ", max_length, ": it would take ",
                   in_words(cost.bytes, cost.operations), " each time it is parsed");
        }
    }
}

double* Tree::arc_scores(Index i, const double* scores, double scale, Workspace::Frame& frame) const {
    const Index n = length(i);
    double* arcs = masked_scores(i, scores, scale, frame);
    for (Index m = 1; m <= n; ++m) arcs[(m - 1) * (n + 1) + m] = -kInfinity;
    return arcs;
}

double Tree::scored_labelling(Index i, const double* scores, const Index* heads, SlotCounts& out) const {
    labelling_of(i, heads, out);
    return value_of(i, scores, out.view());
}

double Tree::maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const {
    Workspace::Frame frame(ws);
    std::vector<Index> heads(length(i));
    // set_mask() made sure that a tree is allowed, so best_heads fails only if sums of scores overflow.
    if (!best_heads(length(i), arc_scores(i, scores, 1.0, frame), heads.data(), ws)) one_of_them(-1);
    return scored_labelling(i, scores, heads.data(), best);
}

double Tree::log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                           Workspace& ws) const {
    if (temperature == 0.0) return maximum_as_sums(i, scores, marginals, entropy, ws);
    const Index n = length(i);
    Workspace::Frame frame(ws);
    double* arcs = arc_scores(i, scores, 1.0 / temperature, frame);
    // Every word has one head, so a word's scores may be shifted: the largest become 0.
    double shift = 0;
    for (Index m = 0; m < n; ++m) {
        double* column = arcs + m * (n + 1);
        const double high = largest(column, n + 1);
        for (Index h = 0; h <= n; ++h) column[h] -= high;
        shift += high;
    }
    return temperature * (shift + sums(n, arcs, marginals, entropy, ws));
}

void Tree::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    const Index n = length(i);
    for (Index r = 0; r < num_slots(i); ++r) scores[r] += scale;
    for (Index m = 1; m <= n; ++m) scores[(m - 1) * (n + 1) + m] -= scale;
    for (const Index slot : gold.slots) scores[slot] -= scale;
}

void Tree::labelling_of(Index i, const Index* heads, SlotCounts& out) const {
    out.clear();
    for (Index m = 0; m < length(i); ++m) out.add(m * (length(i) + 1) + heads[m], 1.0);
}

void Tree::heads_of(Index i, SlotView labelling, Index* heads) const {
    const Index n = length(i);
    std::fill(heads, heads + n, Index{-1});
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
        const Index slot = labelling.slots[k];
        if (slot < 0 || slot >= num_slots(i)) refuse(i, "has no slot ", slot);
        const Index m = slot / (n + 1);
        if (heads[m] >= 0 || labelling.counts[k] != 1.0) refuse(i, "does not have one head for word ", m + 1);
        heads[m] = slot % (n + 1);
    }
    for (Index m = 0; m < n; ++m) {
        if (heads[m] < 0) refuse(i, "has no head for word ", m + 1);
    }
}

void Tree::check_heads(Index i, const Index* heads) const {
    const Index n = length(i);
    Index roots = 0;
    for (Index m = 1; m <= n; ++m) {
        const Index h = heads[m - 1];
        if (h < 0 || h > n) refuse(i, "has the head ", h, " for word ", m, ", which is not in [0, ", n, "]");
        if (h == 0) ++roots;
    }
    // Walk up from each word: 0 is a new word, a positive mark the walk that saw it first.
    std::vector<Index> seen(n + 1, 0);
    for (Index m = 1; m <= n; ++m) {
        Index at = m;
        for (; at != 0 && seen[at] == 0; at = heads[at - 1]) seen[at] = m;
        if (at != 0 && seen[at] == m) refuse(i, "has a cycle through word ", at);
    }
    if (single_root_ && roots != 1) {
        refuse(i, "has ", roots, " words with the head 0, and the single-root rule allows one");
    }
    check_kind(i, heads);
}

void Tree::check_labelling(Index i, SlotView labelling, Workspace&) const {
    std::vector<Index> heads(length(i));
    heads_of(i, labelling, heads.data());
    check_heads(i, heads.data());
    for (Index m = 1; mask(i) && m <= length(i); ++m) {
        const Index h = heads[m - 1];
        if (!mask(i)[(m - 1) * (length(i) + 1) + h]) {
            refuse(i, "has the head ", h, " for word ", m, ", which its mask forbids");
        }
    }
}

void Tree::check_mask(Index i) const {
    Workspace ws;
    Workspace::Frame frame(ws);
    const std::vector<double> zeros(num_slots(i), 0.0);
    std::vector<Index> heads(length(i));
    if (!best_heads(length(i), arc_scores(i, zeros.data(), 1.0, frame), heads.data(), ws)) nothing_left(i);
}

void Tree::nothing_left(Index i) const { throw InputError("the mask of sentence ", i, " allows no tree"); }

}  // namespace partwise
