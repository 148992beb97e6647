// The best spanning tree of arcs from head to modifier (Chu and Liu 1965, Edmonds 1967) in O(n^2), by growing a path
// against the arcs and contracting the cycles that it closes (Tarjan 1977, for dense graphs).

#include "structures/spanning_tree.h"

namespace partwise {

namespace {

// An arc into a node, compared by faults, then score, then heads. Arcs into cycles hold differences (see contract).
struct Arc {
    double faults;
    double score;
    Index heads;
    Index modifier;  // the word that it enters

    bool better_than(const Arc& other) const {
        if (faults != other.faults) return faults < other.faults;
        if (score != other.score) return score > other.score;
        return heads < other.heads;
    }
};

// Nodes 0..n are the root and the words, further ones are contracted cycles.
class Contraction {
   public:
    Contraction(Index n, const double* arcs, bool single_root)
        : n_(n), nodes_(2 * n), arcs_(nodes_ * (n + 1)), group_(n + 1), above_(nodes_, -1), entry_(nodes_) {
        for (Index m = 1; m <= n; ++m) {
            for (Index h = 0; h <= n; ++h) {
                const double x = arcs[(m - 1) * (n + 1) + h];
                const bool none = x == -kInfinity;
                // An arc that does not exist is worse than any number of roots.
                const double faults = none ? static_cast<double>(n + 2) : single_root && h == 0 ? 1.0 : 0.0;
                into(m)[h] = {faults, none ? 0.0 : x, h, m};
            }
        }
        for (Index v = 0; v <= n; ++v) group_[v] = v;
    }

    void run() {
        std::vector<Index> path;
        std::vector<bool> on_path(nodes_, false);
        std::vector<bool> done(nodes_, false);
        done[0] = true;
        for (Index start = 1; start <= n_; ++start) {
            if (done[group_[start]]) continue;
            path.assign(1, start);
            on_path[start] = true;
            while (true) {
                const Index from = group_[choose_entry(path.back())];
                if (done[from]) break;
                if (!on_path[from]) {
                    path.push_back(from);
                } else {
                    path.resize(contract(path, from, on_path));
                    path.push_back(made_++);
                }
                on_path[path.back()] = true;
            }
            for (const Index v : path) done[v] = true;
        }
    }

    // Every cycle keeps its own arcs but one: that into the word where the arc from outside enters.
    void expand(Index* heads) const {
        std::vector<bool> settled(nodes_, false);
        for (Index v = made_ - 1; v >= 1; --v) {
            if (settled[v]) continue;
            const Entry& e = entry_[v];
            heads[e.arc.modifier - 1] = e.head;
            for (Index at = e.arc.modifier; at != v; at = above_[at]) settled[at] = true;
            settled[v] = true;
        }
    }

   private:
    // The arc chosen to enter a node, and the word (or root) that it comes from.
    struct Entry {
        Index head;
        Arc arc;
    };

    Arc* into(Index node) { return arcs_.data() + node * (n_ + 1); }

    Index choose_entry(Index v) {
        const Arc* arcs = into(v);
        Index best = -1;
        for (Index h = 0; h <= n_; ++h) {
            if (group_[h] != v && (best < 0 || arcs[h].better_than(arcs[best]))) best = h;
        }
        entry_[v] = {best, arcs[best]};
        return best;
    }

    // Makes one node, made_, of the path from `from` on; returns how much of the path is left. An arc into the cycle
    // takes the place of its member's own one, so it counts as the difference; for each head the best is kept.
    std::size_t contract(const std::vector<Index>& path, Index from, std::vector<bool>& on_path) {
        const std::size_t begin = static_cast<std::size_t>(std::find(path.begin(), path.end(), from) - path.begin());
        Arc* merged = into(made_);
        for (std::size_t k = begin; k < path.size(); ++k) {
            const Index member = path[k];
            const Arc& own = entry_[member].arc;
            const Arc* arcs = into(member);
            for (Index h = 0; h <= n_; ++h) {
                Arc arc = arcs[h];
                arc.faults -= own.faults;
                arc.score -= own.score;
                arc.heads -= own.heads;
                if (k == begin || arc.better_than(merged[h])) merged[h] = arc;
            }
            on_path[member] = false;
            above_[member] = made_;
        }
        for (Index u = 1; u <= n_; ++u) {
            if (above_[group_[u]] == made_) group_[u] = made_;
        }
        return begin;
    }

    Index n_;
    Index nodes_;
    std::vector<Arc> arcs_;     // by node and head
    std::vector<Index> group_;  // the outermost cycle a word is in
    std::vector<Index> above_;  // the cycle that a node is directly in
    std::vector<Entry> entry_;
    Index made_ = n_ + 1;
};

}  // namespace

bool best_arborescence(Index n, const double* arcs, bool single_root, Index* heads) {
    Contraction contraction(n, arcs, single_root);
    contraction.run();
    contraction.expand(heads);
    Index roots = 0;
    for (Index m = 0; m < n; ++m) {
        if (arcs[m * (n + 1) + heads[m]] == -kInfinity) return false;
        roots += heads[m] == 0;
    }
    return !single_root || roots == 1;
}

}  // namespace partwise
