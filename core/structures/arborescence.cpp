#include "structures/arborescence.h"

#include <vector>

namespace partwise {

namespace {

// Nodes 0..n are the root and the words, further ones are contracted cycles.
class Contraction {
   public:
    Contraction(Index n, const double* arcs, bool single_root, Workspace::Frame& frame)
        : n_(n), nodes_(2 * n), group_(idx(n) + 1), above_(idx(nodes_), -1), entry_(idx(nodes_)) {
        faults_ = frame.take(nodes_ * (n + 1));
        scores_ = frame.take(nodes_ * (n + 1));
        modifiers_ = std::vector<Index>(idx(nodes_ * (n + 1)));
        for (Index m = 1; m <= n; ++m) {
            for (Index h = 0; h <= n; ++h) {
                const double x = arcs[(m - 1) * (n + 1) + h];
                const bool none = x == -kInfinity;
                // An arc that does not exist is worse than any number of roots.
                faults_[m * (n + 1) + h] = none ? static_cast<double>(n + 2) : single_root && h == 0 ? 1.0 : 0.0;
                scores_[m * (n + 1) + h] = none ? 0.0 : x;
                modifiers_[idx(m * (n + 1) + h)] = m;
            }
        }
        for (Index v = 0; v <= n; ++v) group_[idx(v)] = v;
    }

    void run() {
        std::vector<Index> path;
        std::vector<bool> done(idx(nodes_), false);
        std::vector<bool> on_path(idx(nodes_), false);
        done[0] = true;
        Index made = n_ + 1;
        for (Index start = 1; start <= n_; ++start) {
            if (done[idx(group_[idx(start)])]) continue;
            path.assign(1, start);
            on_path[idx(start)] = true;
            while (true) {
                const Index v = path.back();
                choose_entry(v);
                const Index from = group_[idx(entry_[idx(v)].head)];
                if (done[idx(from)]) break;
                if (!on_path[idx(from)]) {
                    path.push_back(from);
                    on_path[idx(from)] = true;
                    continue;
                }
                const Index cycle = made++;
                while (true) {
                    const Index member = path.back();
                    path.pop_back();
                    on_path[idx(member)] = false;
                    merge(member, cycle, member == v);
                    above_[idx(member)] = cycle;
                    if (member == from) break;
                }
                for (Index u = 1; u <= n_; ++u) {
                    const Index g = group_[idx(u)];
                    if (above_[idx(g)] == cycle) group_[idx(u)] = cycle;
                }
                path.push_back(cycle);
                on_path[idx(cycle)] = true;
            }
            for (const Index v : path) done[idx(v)] = true;
        }
        made_ = made;
    }

    // Every cycle keeps its own arcs but one: that into the word where the arc from outside enters.
    void expand(Index* heads) const {
        std::vector<bool> settled(idx(nodes_), false);
        for (Index v = made_ - 1; v >= 1; --v) {
            if (settled[idx(v)]) continue;
            const Entry& e = entry_[idx(v)];
            heads[e.modifier - 1] = e.head;
            for (Index at = e.modifier; at >= 0 && !settled[idx(at)]; at = above_[idx(at)]) {
                settled[idx(at)] = true;
                if (at == v) break;
            }
        }
    }

   private:
    // The arc chosen to enter a node: between which words, and what it costs in the node's own (adjusted) terms.
    struct Entry {
        Index head;
        Index modifier;
        double faults;
        double score;
    };

    void choose_entry(Index v) {
        const double* faults = faults_ + v * (n_ + 1);
        const double* scores = scores_ + v * (n_ + 1);
        Index best = -1;
        for (Index h = 0; h <= n_; ++h) {
            if (group_[idx(h)] == v) continue;
            if (best < 0 || faults[h] < faults[best] || (faults[h] == faults[best] && scores[h] > scores[best]))
                best = h;
        }
        entry_[idx(v)] = {best, modifiers_[idx(v * (n_ + 1) + best)], faults[best], scores[best]};
    }

    // Arcs into a cycle's member, less the one that it would replace; the best for each head.
    void merge(Index member, Index cycle, bool first) {
        const Entry& own = entry_[idx(member)];
        const Index from = member * (n_ + 1);
        const Index to = cycle * (n_ + 1);
        for (Index h = 0; h <= n_; ++h) {
            const double faults = faults_[from + h] - own.faults;
            const double score = scores_[from + h] - own.score;
            if (first || faults < faults_[to + h] || (faults == faults_[to + h] && score > scores_[to + h])) {
                faults_[to + h] = faults;
                scores_[to + h] = score;
                modifiers_[idx(to + h)] = modifiers_[idx(from + h)];
            }
        }
    }

    Index n_;
    Index nodes_;
    // By node and head: what is wrong with the arc, its score, the word that it enters.
    double* faults_;
    double* scores_;
    std::vector<Index> modifiers_;
    std::vector<Index> group_;  // the outermost cycle a word is in
    std::vector<Index> above_;  // the cycle that a node is directly in
    std::vector<Entry> entry_;
    Index made_ = 0;
};

}  // namespace

bool best_arborescence(Index n, const double* arcs, bool single_root, Index* heads, Workspace& ws) {
    Workspace::Frame frame(ws);
    Contraction contraction(n, arcs, single_root, frame);
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
