#include "structures/junction_tree.h"

#include <set>
#include <tuple>

#include "support/parallel.h"

namespace partwise::junction {

namespace {

enum class Rule { kLeastFill, kSmallestTable, kGiven };

// A clique of more variables has a table too large for any machine, and is refused at once.
constexpr Index kMostVariables = 60;
// If the order of least fill needs at most so many entries, no other order is tried.
constexpr double kLittle = 1 << 16;
// More than any machine has; smaller numbers of entries fit an Index.
constexpr double kMostBytes = 1e18;
// An order beyond the memory limit is abandoned after so many steps (a fraction of a second).
constexpr Index kMostSteps = 1 << 24;

using Neighbours = std::vector<std::vector<Index>>;  // ascending

struct Elimination {
    std::vector<Index> order;
    Neighbours separators;  // of each place in the order, in the caller's numbers
    double entries = 0;
    Index width = 0;
    bool complete = true;
};

class Eliminator {
   public:
    Eliminator(const std::vector<Index>& sizes, Neighbours near, Rule rule, double most_entries)
        : sizes_(sizes),
          near_(std::move(near)),
          rule_(rule),
          most_entries_(most_entries),
          fill_(sizes.size(), 0),
          mark_(sizes.size(), -1) {}

    Elimination run() {
        const Index n = len(sizes_.size());
        Elimination out;
        std::set<Key> queue;
        std::vector<Key> keys(n);
        for (Index v = 0; v < n; ++v) {
            Interrupt::check_current();
            fill_[v] = fill_of(v);
            queue.insert(keys[v] = key(v));
        }
        while (!queue.empty()) {
            Interrupt::check_current();
            const Index v = std::get<2>(*queue.begin());
            queue.erase(queue.begin());
            const std::vector<Index> around = std::move(near_[v]);
            const Index degree = len(around.size());
            double entries = static_cast<double>(sizes_[v]);
            for (const Index u : around) entries *= static_cast<double>(sizes_[u]);
            out.entries += entries;
            out.width = std::max(out.width, degree);
            if (degree >= kMostVariables || (out.entries > most_entries_ && steps_ > kMostSteps)) {
                out.complete = false;
                return out;
            }
            for (const Index u : changed_by(v, around)) {
                queue.erase(keys[u]);
                queue.insert(keys[u] = key(u));
            }
            out.order.push_back(v);
            out.separators.push_back(around);
        }
        return out;
    }

   private:
    using Key = std::tuple<double, Index, Index>;

    Key key(Index v) const {
        const Index degree = len(near_[v].size());
        if (rule_ == Rule::kLeastFill) return {static_cast<double>(fill_[v]), degree, v};
        if (rule_ == Rule::kGiven) return {0.0, 0, v};
        double entries = std::log(static_cast<double>(sizes_[v]));
        for (const Index u : near_[v]) entries += std::log(static_cast<double>(sizes_[u]));
        return {entries, degree, v};
    }

    bool joined(Index u, Index v) const { return std::binary_search(near_[u].begin(), near_[u].end(), v); }

    // The number of pairs of neighbours of v that are not joined by an edge.
    Index fill_of(Index v) {
        if (rule_ != Rule::kLeastFill) return 0;
        const std::vector<Index>& around = near_[v];
        const Index degree = len(around.size());
        Index edges = 0;
        if (degree <= 32) {
            steps_ += degree * degree;
            for (Index a = 0; a < degree; ++a) {
                for (Index b = 0; b < a; ++b) edges += joined(around[a], around[b]);
            }
        } else {
            for (const Index u : around) mark_[u] = v;
            for (const Index u : around) {
                steps_ += len(near_[u].size());
                for (const Index x : near_[u]) edges += mark_[x] == v;
            }
            edges /= 2;
            for (const Index u : around) mark_[u] = -1;
        }
        return degree * (degree - 1) / 2 - edges;
    }

    // Removes v and joins its neighbours; returns the variables whose keys have changed.
    std::vector<Index> changed_by(Index v, const std::vector<Index>& around) {
        const bool joins = rule_ != Rule::kLeastFill || fill_[v] > 0;
        std::vector<Index> changed = around;
        for (const Index u : around) {
            std::vector<Index>& near = near_[u];
            // Where v adds no edge, u's other neighbours were not joined to v, and those pairs are gone with it.
            if (!joins) fill_[u] -= len(near.size()) - len(around.size());
            near.erase(std::lower_bound(near.begin(), near.end(), v));
            if (!joins) continue;
            std::vector<Index> merged;
            std::set_union(near.begin(), near.end(), around.begin(), around.end(), std::back_inserter(merged));
            merged.erase(std::lower_bound(merged.begin(), merged.end(), u));
            near = std::move(merged);
            steps_ += len(near.size());
        }
        if (!joins || rule_ != Rule::kLeastFill) return changed;
        // An edge changes the fill of its ends and of those that are joined to both.
        for (const Index u : around) changed.insert(changed.end(), near_[u].begin(), near_[u].end());
        std::sort(changed.begin(), changed.end());
        changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
        for (const Index u : changed) fill_[u] = fill_of(u);
        return changed;
    }

    const std::vector<Index>& sizes_;
    Neighbours near_;
    Rule rule_;
    double most_entries_;
    Index steps_ = 0;
    std::vector<Index> fill_;
    std::vector<Index> mark_;
};

Neighbours neighbours_of(Index n, const std::vector<std::vector<Index>>& scopes) {
    Neighbours near(n);
    for (const std::vector<Index>& scope : scopes) {
        for (const Index u : scope) {
            for (const Index v : scope) {
                if (u != v) near[u].push_back(v);
            }
        }
    }
    for (std::vector<Index>& each : near) {
        std::sort(each.begin(), each.end());
        each.erase(std::unique(each.begin(), each.end()), each.end());
    }
    return near;
}

Elimination best_elimination(const std::vector<Index>& sizes, const std::vector<std::vector<Index>>& scopes,
                             double most_entries) {
    const Neighbours near = neighbours_of(len(sizes.size()), scopes);
    // The first variable to be eliminated has at least this many neighbours.
    Index degree = sizes.empty() ? 0 : len(sizes.size());
    for (const std::vector<Index>& each : near) degree = std::min(degree, len(each.size()));
    if (degree >= kMostVariables) return {{}, {}, std::pow(2.0, static_cast<double>(degree) + 1.0), degree, false};
    Elimination best = Eliminator(sizes, near, Rule::kLeastFill, most_entries).run();
    if (best.complete && (best.entries <= kLittle || best.width <= 2)) return best;
    for (const Rule rule : {Rule::kSmallestTable, Rule::kGiven}) {
        Elimination other = Eliminator(sizes, near, rule, most_entries).run();
        if (other.complete && (!best.complete || other.entries < best.entries)) best = std::move(other);
    }
    return best;
}

// Variables of both tables are ascending, `small` is a subset of `large`.
Inside place_of(const std::vector<Index>& small, const std::vector<Index>& large, const std::vector<Index>& sizes) {
    std::vector<Index> steps(large.size(), 0);
    Index step = 1;
    for (std::size_t k = small.size(); k > 0; --k) {
        const auto at = std::lower_bound(large.begin(), large.end(), small[k - 1]) - large.begin();
        steps[at] = step;
        step *= sizes[small[k - 1]];
    }
    // Joined from the last axis on: an axis joins the one after it if going round that one is one step of its own.
    std::vector<std::pair<Index, Index>> axes;  // size, step; innermost first
    for (std::size_t k = large.size(); k > 0; --k) {
        const Index size = sizes[large[k - 1]];
        if (!axes.empty() && steps[k - 1] == axes.back().first * axes.back().second) {
            axes.back().first *= size;
        } else {
            axes.emplace_back(size, steps[k - 1]);
        }
    }
    Inside in;
    if (!axes.empty()) {
        in.run = axes[0].first;
        in.moves = axes[0].second == 1;
    }
    if (axes.size() > 1) {
        in.rows = axes[1].first;
        in.row_step = axes[1].second;
    }
    for (std::size_t k = axes.size(); k > 2; --k) {
        in.sizes.push_back(axes[k - 1].first);
        in.steps.push_back(axes[k - 1].second);
    }
    return in;
}

std::vector<Index> without_first(const std::vector<Index>& variables) {
    return {variables.begin() + 1, variables.end()};
}

Index entries_of(const std::vector<Index>& variables, const std::vector<Index>& sizes) {
    Index entries = 1;
    for (const Index v : variables) entries *= sizes[v];
    return entries;
}

}  // namespace

Tree make_tree(const std::vector<Index>& sizes, const std::vector<std::vector<Index>>& scopes, double most_bytes) {
    constexpr double kDouble = sizeof(double);
    most_bytes = std::min(most_bytes, kMostBytes);
    const Elimination found = best_elimination(sizes, scopes, most_bytes / kDouble);
    if (!found.complete || found.entries * kDouble > most_bytes) {
        throw TooWide{found.width, found.entries * kDouble, most_bytes, !found.complete};
    }
    Tree tree;
    tree.order = found.order;
    tree.width = found.width;
    const Index n = len(sizes.size());
    std::vector<Index> place(n);
    std::vector<Index> own(n);  // sizes in the order of elimination
    for (Index p = 0; p < n; ++p) {
        place[found.order[p]] = p;
        own[p] = sizes[found.order[p]];
    }
    std::vector<std::vector<Index>> members(n);
    for (Index p = 0; p < n; ++p) {
        Clique& c = tree.cliques.emplace_back();
        for (const Index v : found.separators[p]) c.separator.push_back(place[v]);
        std::sort(c.separator.begin(), c.separator.end());
        members[p] = {p};
        members[p].insert(members[p].end(), c.separator.begin(), c.separator.end());
        c.rows = own[p];
        c.columns = entries_of(c.separator, own);
        c.steps.resize(c.separator.size());
        Index step = 1;
        for (std::size_t k = c.separator.size(); k > 0; --k) {
            c.steps[k - 1] = step;
            step *= own[c.separator[k - 1]];
        }
        c.table = tree.table_size;
        c.separated = tree.separated_size;
        tree.table_size += c.rows * c.columns;
        tree.separated_size += c.columns;
        c.parent = c.separator.empty() ? -1 : c.separator.front();
    }
    for (Index p = 0; p < n; ++p) {
        Clique& c = tree.cliques[p];
        if (c.parent < 0) continue;
        c.in_parent = place_of(without_first(c.separator), without_first(members[c.parent]), own);
        c.row = c.columns / own[c.parent];
        tree.cliques[c.parent].children.push_back(p);
    }

    std::vector<std::vector<Index>> placed(scopes.size());  // scopes by place in the order
    std::vector<std::vector<std::size_t>> of_clique(n);
    for (std::size_t f = 0; f < scopes.size(); ++f) {
        for (const Index v : scopes[f]) placed[f].push_back(place[v]);
        std::sort(placed[f].begin(), placed[f].end());
        of_clique[placed[f].front()].push_back(f);
    }
    std::vector<Index> begins(scopes.size());
    for (std::size_t f = 0; f < scopes.size(); ++f) {
        begins[f] = tree.factor_size;
        tree.factor_size += entries_of(placed[f], own);
    }
    for (Index p = 0; p < n; ++p) {
        Clique& c = tree.cliques[p];
        std::set<Index> together;
        for (const std::size_t f : of_clique[p]) together.insert(placed[f].begin(), placed[f].end());
        const std::vector<Index> local(together.begin(), together.end());
        c.local = local == members[p] ? 0 : entries_of(local, own);
        if (c.local > 0) c.local_place = place_of(without_first(local), without_first(members[p]), own);
        tree.local_size = std::max(tree.local_size, c.local);
        for (const std::size_t f : of_clique[p]) {
            c.factors.push_back({begins[f], entries_of(placed[f], own), place_of(placed[f], local, own)});
        }
    }
    if (static_cast<double>(tree.doubles()) * kDouble > most_bytes) {
        throw TooWide{tree.width, static_cast<double>(tree.doubles()) * kDouble, most_bytes, false};
    }
    return tree;
}

}  // namespace partwise::junction
