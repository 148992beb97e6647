// Breaks ties: of a chart's best derivations it finds one with the smallest sum of a second score. That sum is computed
// only if a choice is tied.
#pragma once

#include "structures/chart.h"

namespace partwise::chart {

// Visitor, up: the least sum of second scores among the best derivations of each cell. second(slot) >= 0.
template <class Second>
struct LeastAmongBest {
    const double* chart;  // of Best
    const double* scores;
    const Second& second;
    double* least;

    template <class Edges>
    double of_edge(const Edges& e, Index k) const {
        const Ways ways = ways_of(e);
        double sum = least[ways.a + k];
        if constexpr (requires { e.b; }) sum += least[ways.b + k];
        ways.each_slot(k, [&](Index slot) { sum += second(slot); });
        return sum;
    }

    void unit(Index cell, Index twin) { least[cell] = least[twin] = 0.0; }
    void score(Index cell, Index tail, Index slot) { least[cell] = least[tail] + second(slot); }
    template <class Edges>
    void sum(Index cell, Index twin, const Edges& e) {
        const auto x = edge_scores(e, chart, scores);
        const double best = best_edge(e, chart, scores);
        const Index n = e.count();
        double found = kInfinity;
        PARTWISE_SIMD_MIN(found)
        for (Index k = 0; k < n; ++k) {
            const double sum = x(k) == best ? of_edge(e, k) : kInfinity;
            found = sum < found ? sum : found;
        }
        least[cell] = least[twin] = found;
    }
    void cut(Index, Index) {}
};

template <class Program, class Second>
class Ties {
   public:
    // chart: best values of all cells.
    Ties(const Program& program, const double* chart, const double* scores, Second second, Workspace::Frame& frame)
        : program_(program), chart_(chart), scores_(scores), second_(second), frame_(frame) {}

    // The best edge; of tied edges the one with the smallest second score.
    template <class Edges>
    Index choose(const Edges& e) {
        const double best = best_edge(e, chart_, scores_);
        const auto x = edge_scores(e, chart_, scores_);
        const auto attains = [&](Index k) { return x(k) == best; };
        Index chosen = 0;
        while (chosen + 1 < e.count() && !attains(chosen)) ++chosen;  // scores that are NaN attain nothing
        for (Index k = chosen + 1; k < e.count(); ++k) {
            if (attains(k) && least().of_edge(e, k) < least().of_edge(e, chosen)) chosen = k;
        }
        return chosen;
    }

   private:
    using Least = LeastAmongBest<Second>;
    Least least() {
        if (!least_) {
            least_ = frame_.take(program_.cells());
            program_.up(Least{chart_, scores_, second_, least_});
        }
        return {chart_, scores_, second_, least_};
    }

    const Program& program_;
    const double* chart_;
    const double* scores_;
    Second second_;
    Workspace::Frame& frame_;
    double* least_ = nullptr;
};

}  // namespace partwise::chart
