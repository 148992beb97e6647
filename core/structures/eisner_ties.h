// Of projective trees with equal scores, one with the smallest sum of heads. Looked for only if a choice is tied.
#pragma once

#include "structures/eisner.h"
#include "support/workspace.h"

namespace partwise::eisner {

// The least sum of heads among the best derivations of each span.
struct LeastHeads {
    const Layout& layout;
    const double* chart;  // best values
    double* heads;

    double least(const Pairs& p) const {
        const double* __restrict a = chart + p.a;
        const double* __restrict b = chart + p.b;
        const double* __restrict heads_a = heads + p.a;
        const double* __restrict heads_b = heads + p.b;
        const double best = best_pair(a, b, p.count);
        double found = kInfinity;
#pragma omp simd reduction(min : found)
        for (Index k = 0; k < p.count; ++k) {
            const double sum = a[k] + b[k] == best ? heads_a[k] + heads_b[k] : kInfinity;
            found = sum < found ? sum : found;
        }
        return found;
    }
    double head(Index arc) const { return static_cast<double>(arc % (layout.n + 1)); }

    void unit(Index out, Index out2) { heads[out] = heads[out2] = 0.0; }
    void sum(Index out, Index out2, const Pairs& p) { heads[out] = heads[out2] = least(p); }
    void link(Index out, Index arc, Index out2, Index arc2, const Pairs& p) {
        const double x = least(p);
        heads[out] = x + head(arc);
        heads[out2] = x + head(arc2);
    }
    void root_link(Index out, Index, const Pairs& p) { heads[out] = least(p); }
    void attach(Index out, Index in, Index) { heads[out] = heads[in]; }
    void top(const Pairs&) {}
};

class Ties {
   public:
    // chart: best values of all spans.
    Ties(const Layout& layout, const double* chart, Workspace::Frame& frame)
        : layout_(layout), chart_(chart), frame_(frame) {}

    // Which of the best pairs to take.
    Index choose(const Pairs& p) {
        const double best = best_pair(chart_ + p.a, chart_ + p.b, p.count);
        const auto attains = [&](Index k) { return chart_[p.a + k] + chart_[p.b + k] == best; };
        Index chosen = 0;
        while (chosen + 1 < p.count && !attains(chosen)) ++chosen;  // scores that are no numbers attain nothing
        for (Index k = chosen + 1; k < p.count; ++k) {
            if (attains(k) && heads(p, k) < heads(p, chosen)) chosen = k;
        }
        return chosen;
    }

   private:
    double heads(const Pairs& p, Index k) {
        if (!heads_) {
            heads_ = frame_.take(layout_.size());
            upward(layout_, LeastHeads{layout_, chart_, heads_});
        }
        return heads_[p.a + k] + heads_[p.b + k];
    }

    Layout layout_;
    const double* chart_;
    Workspace::Frame& frame_;
    double* heads_ = nullptr;
};

}  // namespace partwise::eisner
