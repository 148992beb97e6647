// A chart's best derivations one by one (Huang and Chiang 2005, algorithm 3): a cell's next derivation is computed when
// it is asked for. Every labelling has exactly one derivation, so no labelling comes twice.
#pragma once

#include <deque>
#include <utility>

#include "structures/chart.h"

namespace partwise::chart {

// Chart, Scores: arrays, or classes whose operator[] computes the values.
template <class Program, class Chart = const double*, class Scores = const double*>
class KBest {
   public:
    // chart: best values of all cells.
    KBest(const Program& program, Chart chart, Scores scores)
        : program_(program), chart_(chart), scores_(scores), place_(program.cells(), kNone) {}

    // Calls use(slot) for each slot of the derivation of this rank (0: the best); false if fewer exist. Ranks ascend.
    template <class Use>
    bool derivation(Index rank, Use&& use) {
        if (!find(part_of(program_.root()), rank)) return false;
        todo_.assign(1, {program_.root(), rank});
        Walk<Use> walk{*this, use, 0};
        while (!todo_.empty()) {
            const auto [cell, at] = todo_.back();
            todo_.pop_back();
            walk.rank = at;
            program_.visit(cell, walk);
        }
        return true;
    }

   private:
    // Which edge a derivation begins with, and which derivations of its tails.
    struct Derivation {
        double value;
        Index edge;
        Index rank[2];
    };
    struct List {
        Ways ways;
        std::vector<Derivation> found;
        std::vector<Derivation> heap;
        std::size_t extended = 0;  // how many of those found had their neighbours put on the heap
    };
    // A tail, followed down to a sum or a unit: the list of the sum (null for a unit), the score of slots passed.
    struct Part {
        List* list;
        double score;
    };
    struct Wanted {
        List* list;
        Index rank;
    };

    static bool worse(const Derivation& p, const Derivation& q) { return p.value < q.value; }

    // Visitor, one cell: goes down to a sum or a unit.
    struct Resolve {
        KBest& lists;
        Index cell;
        Part part{nullptr, 0.0};
        bool done = false;

        void unit(Index, Index) { done = true; }
        void score(Index, Index tail, Index slot) {
            part.score += lists.scores_[slot];
            cell = tail;
        }
        template <class Edges>
        void sum(Index own, Index, const Edges& e) {
            part.list = lists.list_of(own, e);
            done = true;
        }
    };
    Part part_of(Index cell) {
        Resolve resolve{*this, cell};
        while (!resolve.done) program_.visit(resolve.cell, resolve);
        return resolve.part;
    }

    // Visitor, one cell: the slots and tails of its derivation of this rank.
    template <class Use>
    struct Walk {
        KBest& lists;
        Use& use;
        Index rank;

        void unit(Index, Index) {}
        void score(Index, Index tail, Index slot) {
            use(slot);
            lists.todo_.emplace_back(tail, rank);
        }
        template <class Edges>
        void sum(Index own, Index, const Edges& e) {
            List& list = *lists.list_of(own, e);
            lists.find({&list, 0.0}, rank);  // so far a best derivation may be known by its value alone
            const Ways& ways = list.ways;
            const Derivation d = list.found[rank];
            ways.each_slot(d.edge, use);
            lists.todo_.emplace_back(ways.a + d.edge, d.rank[0]);
            if (ways.b != kNone) lists.todo_.emplace_back(ways.b + d.edge, d.rank[1]);
        }
    };

    template <class Edges>
    List* list_of(Index cell, const Edges& e) {
        Index& place = place_[cell];
        if (place == kNone) {
            place = len(lists_.size());
            List& list = lists_.emplace_back();
            list.ways = ways_of(e);
            list.heap.reserve(e.count());
            const auto x = edge_scores(e, chart_, scores_);
            for (Index k = 0; k < e.count(); ++k) {
                if (x(k) != -kInfinity) list.heap.push_back({x(k), k, {0, 0}});
            }
            std::make_heap(list.heap.begin(), list.heap.end(), worse);
        }
        return &lists_[place];
    }

    // Whether there is a derivation of this rank; finds those up to it.
    bool find(const Part& part, Index rank) {
        if (!part.list) return rank == 0;
        if (len(part.list->found.size()) > rank) return true;
        // A stack of the derivations that wait for others. Recursion would be as deep as a sentence is long.
        waiting_.assign(1, {part.list, rank});
        while (!waiting_.empty()) {
            Interrupt::check_current();
            const Wanted wanted = waiting_.back();
            List& list = *wanted.list;
            if (len(list.found.size()) <= wanted.rank && list.extended < list.found.size()) {
                if (!extend(list, list.found[list.extended])) continue;
                ++list.extended;
            }
            if (len(list.found.size()) > wanted.rank || list.heap.empty()) {
                waiting_.pop_back();
                continue;
            }
            std::pop_heap(list.heap.begin(), list.heap.end(), worse);
            list.found.push_back(list.heap.back());
            list.heap.pop_back();
        }
        return len(part.list->found.size()) > rank;
    }

    static bool has(const Part& part, Index rank) {
        return part.list ? len(part.list->found.size()) > rank : rank == 0;
    }
    // Whether this derivation has not been found yet but may exist.
    static bool is_unknown(const Part& part, Index rank) {
        if (!part.list || has(part, rank)) return false;
        return !part.list->heap.empty() || part.list->extended < part.list->found.size();
    }
    // The score of a derivation that was found. The best one's is in the chart: no list may exist for it yet.
    double value(Index cell, Index rank) {
        if (rank == 0) return chart_[cell];
        const Part part = part_of(cell);
        return part.list->found[rank].value + part.score;
    }

    // Puts the neighbours of a found derivation on the heap. With ranks (i, j) of its tails these are (i, j + 1), and,
    // if j is 0, (i + 1, j): so each pair is reached once. If a tail's derivation must be found first, puts that one on
    // the stack and returns false.
    bool extend(List& list, const Derivation taken) {
        const Ways& ways = list.ways;
        const Index tails[2] = {ways.a + taken.edge, ways.b + taken.edge};
        const int first = taken.rank[1] == 0 ? 0 : 1;
        const int end = ways.b == kNone ? 1 : 2;
        for (int side = first; side < end; ++side) {
            const Part part = part_of(tails[side]);
            if (!is_unknown(part, taken.rank[side] + 1)) continue;
            waiting_.push_back({part.list, taken.rank[side] + 1});
            return false;
        }
        for (int side = first; side < end; ++side) {
            Derivation next = taken;
            ++next.rank[side];
            if (!has(part_of(tails[side]), next.rank[side])) continue;
            next.value = value(tails[0], next.rank[0]);
            if (ways.b != kNone) next.value += value(tails[1], next.rank[1]);
            ways.each_slot(taken.edge, [&](Index slot) { next.value += scores_[slot]; });
            list.heap.push_back(next);
            std::push_heap(list.heap.begin(), list.heap.end(), worse);
        }
        return true;
    }

    const Program& program_;
    Chart chart_;
    Scores scores_;
    std::vector<Index> place_;  // of each cell's list, or kNone
    std::deque<List> lists_;    // a deque, because pointers to its elements stay valid while it grows
    std::vector<Wanted> waiting_;
    std::vector<std::pair<Index, Index>> todo_;  // cells and ranks
};

}  // namespace partwise::chart
