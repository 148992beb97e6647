// The best projective trees one by one, lazily (Huang and Chiang 2005, algorithm 3): a span's next derivation is looked
// for when somebody asks. Derivations and trees are one to one, so no tree comes twice.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "structures/eisner.h"

namespace partwise::eisner {

class KBest {
   public:
    // chart: best values of all spans.
    KBest(const Layout& layout, const double* chart, const double* arcs) : c_(layout), chart_(chart), arcs_(arcs) {}

    // Heads of the tree of this rank (0: the best); false if there are fewer. Ranks are asked for in order.
    bool heads_of_rank(Index rank, Index* heads) {
        const Span top{kPrefix, 0, c_.n};
        if (!derivation(top, rank)) return false;
        std::vector<std::pair<Span, Index>> todo{{top, rank}};
        while (!todo.empty()) {
            const auto [span, at] = todo.back();
            todo.pop_back();
            if (is_unit(span)) continue;
            const Derivation d = *derivation(span, at);
            const Part parts[2] = {part(span, d.choice, 0), part(span, d.choice, 1)};
            for (int side = 0; side < 2; ++side) {
                const Index arc = parts[side].arc;
                if (arc >= 0) heads[arc / (c_.n + 1)] = arc % (c_.n + 1);
                todo.emplace_back(parts[side].span, d.rank[side]);
            }
        }
        return true;
    }

   private:
    enum Kind : Index { kRight, kLeft, kLink, kRooted, kPrefix };
    // kRooted: (0, t); kPrefix: (0, j).
    struct Span {
        Kind kind;
        Index s;
        Index t;
    };
    // A span inside a derivation, and the arc that comes with it (-1: none).
    struct Part {
        Span span;
        Index arc;
    };
    // Which pair a span is made of, and which derivations of its two parts.
    struct Derivation {
        double value;
        Index choice;
        Index rank[2];
    };
    struct List {
        std::vector<Derivation> found;
        std::vector<Derivation> heap;
        std::size_t extended = 0;  // how many of those found had their neighbours put on the heap
        bool started = false;
    };

    static bool worse(const Derivation& p, const Derivation& q) { return p.value < q.value; }

    bool is_unit(const Span& x) const { return x.kind == kPrefix ? x.t == 0 : x.kind != kRooted && x.s == x.t; }
    Pairs pairs(const Span& x) const {
        switch (x.kind) {
            case kRight:
                return right_pairs(c_, x.s, x.t);
            case kLeft:
                return left_pairs(c_, x.s, x.t);
            case kLink:
                return link_pairs(c_, x.s, x.t);
            case kRooted:
                return rooted_pairs(c_, x.t);
            default:
                return prefix_pairs(c_, x.t);
        }
    }
    Part part(const Span& x, Index choice, int side) const {
        const Index q = x.s + choice;
        switch (x.kind) {
            case kRight:
                return side == 0 ? Part{{kLink, x.s, q + 1}, c_.arc(x.s, q + 1)} : Part{{kRight, q + 1, x.t}, -1};
            case kLeft:
                return side == 0 ? Part{{kLeft, x.s, q}, -1} : Part{{kLink, q, x.t}, c_.arc(x.t, q)};
            case kLink:
                return side == 0 ? Part{{kRight, x.s, q}, -1} : Part{{kLeft, q + 1, x.t}, -1};
            case kRooted:
                return side == 0 ? Part{{kPrefix, 0, q}, -1} : Part{{kLeft, q, x.t}, -1};
            default: {
                const Span rooted = c_.single_root ? Span{kLeft, 0, q} : Span{kRooted, 0, q};
                return side == 0 ? Part{rooted, c_.root_arc(q)} : Part{{kRight, q, x.t - 1}, -1};
            }
        }
    }
    double value(const Part& p, Index rank) {
        return derivation(p.span, rank)->value + (p.arc >= 0 ? arcs_[p.arc] : 0.0);
    }

    List& list_of(const Span& x) {
        List& list = lists_[(x.kind * (c_.n + 1) + x.s) * (c_.n + 1) + x.t];
        if (!list.started) {
            list.started = true;
            const Pairs p = pairs(x);
            for (Index k = 0; k < p.count; ++k) {
                const double total = chart_[p.a + k] + chart_[p.b + k];
                if (total != -kInfinity) list.heap.push_back({total, k, {0, 0}});
            }
            std::make_heap(list.heap.begin(), list.heap.end(), worse);
        }
        return list;
    }

    const Derivation* derivation(const Span& x, Index rank) {
        static constexpr Derivation kUnit{0.0, 0, {0, 0}};
        if (is_unit(x)) return rank == 0 ? &kUnit : nullptr;
        List& own = list_of(x);
        if (len(own.found.size()) > rank) return &own.found[idx(rank)];
        // What waits for what: spans are nested as deep as sentences are long, which is too deep for calls.
        std::vector<std::pair<Span, Index>> waiting{{x, rank}};
        while (!waiting.empty()) {
            Interrupt::check_current();
            const auto [span, wanted] = waiting.back();
            List& list = list_of(span);
            if (len(list.found.size()) <= wanted && list.extended < list.found.size()) {
                const Derivation taken = list.found[list.extended];
                if (waits_for(span, taken, waiting)) continue;
                ++list.extended;
                extend(span, list, taken);
            }
            if (len(list.found.size()) > wanted || list.heap.empty()) {
                waiting.pop_back();
                continue;
            }
            std::pop_heap(list.heap.begin(), list.heap.end(), worse);
            list.found.push_back(list.heap.back());
            list.heap.pop_back();
        }
        return len(own.found.size()) > rank ? &own.found[idx(rank)] : nullptr;
    }

    // Puts a derivation of a part that `extend` asks for and that was not looked for yet on the stack.
    bool waits_for(const Span& x, const Derivation& taken, std::vector<std::pair<Span, Index>>& waiting) {
        for (int side = 0; side < 2; ++side) {
            if (side == 0 && taken.rank[1] != 0) continue;
            const Span span = part(x, taken.choice, side).span;
            if (is_unit(span)) continue;
            const List& list = list_of(span);
            const Index wanted = taken.rank[side] + 1;
            const bool exhausted = list.heap.empty() && list.extended == list.found.size();
            if (exhausted || len(list.found.size()) > wanted) continue;
            waiting.emplace_back(span, wanted);
            return true;
        }
        return false;
    }

    // The neighbours of a derivation that was just taken: (i, j) leads to (i, j + 1), and to (i + 1, j) where j is 0,
    // so that each is reached once.
    void extend(const Span& x, List& list, const Derivation taken) {
        for (int side = 0; side < 2; ++side) {
            if (side == 0 && taken.rank[1] != 0) continue;
            Derivation next = taken;
            ++next.rank[side];
            const Part parts[2] = {part(x, taken.choice, 0), part(x, taken.choice, 1)};
            if (!derivation(parts[side].span, next.rank[side])) continue;
            next.value = value(parts[0], next.rank[0]) + value(parts[1], next.rank[1]);
            list.heap.push_back(next);
            std::push_heap(list.heap.begin(), list.heap.end(), worse);
        }
    }

    Layout c_;
    const double* chart_;
    const double* arcs_;
    // References into it stay good while it grows.
    std::unordered_map<Index, List> lists_;
};

}  // namespace partwise::eisner
