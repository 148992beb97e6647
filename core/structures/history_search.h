// The search for the best labellings of a HistoryChain.
//
// At each position the search keeps the `beam_width` histories whose best labellings have the highest probability. Of
// the labellings that end in the same history only the best is kept: if all histories are kept, this is Viterbi's
// algorithm. The k best labellings are found one by one from the end, among the histories that were kept.
//
// This is not a chart program (chart.h): which histories are kept depends on the values of the histories before them,
// and a step's score depends on all scores of its position.
#pragma once

#include "structures/history_sums.h"

namespace partwise::histories {

inline double product_sum(const double* __restrict x, const double* __restrict y, const double* __restrict z, Index n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < n; ++k) sum += x[k] * y[k] * z[k];
    return sum;
}

// Scores of labels at a position of a HistoryChain after a history, and their log partition.
//
//   Z_t(s) = sum_c E_t(c) F_s(c),   E = exp(scores),   F = exp(after) = exp(first) exp(second)
//
// each divided by its largest value: one exponential per label of a position, none per history. Where the products are
// too small for doubles the sum is taken over exp of the sums.
class HistoryRows {
   public:
    explicit HistoryRows(const HistoryChain::View& view)
        : view_(view), row_(view.width), emissions_(view.length * view.width), highs_(view.length) {
        const Index width = view.width;
        for (Index t = 0; t < view.length; ++t) {
            const double* __restrict from = view.scores + t * width;
            double* __restrict to = emissions_.data() + t * width;
            const double high = highs_[t] = largest(from, view.n_labels);
            for (Index c = 0; c < width; ++c) to[c] = fast_exp(from[c] - high);
        }
    }

    const HistoryChain::View& view() const { return view_; }
    // scores[t] + after[state], a row of width; good until the next call.
    double* scores(Index t, Index state) {
        view_.add_after(state, view_.scores + t * view_.width, row_.data());
        return row_.data();
    }
    // log Z_t(state), after scores(t, state).
    double log_partition(Index t, Index state) const {
        const Index width = view_.width;
        const double* emissions = emissions_.data() + t * width;
        const Index last = view_.last(state);
        const Index pair = view_.place(state);
        const double* first = view_.first.factors.data() + last * width;
        const double sum = pair < 0 ? dot(emissions, first, width)
                                    : product_sum(emissions, first, view_.second.factors.data() + pair * width, width);
        if (sum >= kLeastPartition) {
            const double shift = highs_[t] + view_.first.highs[last] + (pair < 0 ? 0.0 : view_.second.highs[pair]);
            return shift + std::log(sum);
        }
        const double high = largest(row_.data(), width);
        double slow = 0;
#pragma omp simd reduction(+ : slow)
        for (Index c = 0; c < width; ++c) slow += fast_exp(row_[c] - high);
        return high + std::log(slow);
    }

   private:
    HistoryChain::View view_;
    std::vector<double> row_;
    std::vector<double> emissions_;  // E, rows of width
    std::vector<double> highs_;      // what each row was divided by, as a logarithm
};

// Orders heaps of ways (`HistorySearch::Way`) by value, the best way on top. Among ways of equal value the one from the
// lowest node `before` comes first, and among those the one of the lowest rank.
constexpr auto worse_way = [](const auto& a, const auto& b) {
    if (a.value != b.value) return a.value < b.value;
    return a.before != b.before ? a.before > b.before : a.rank > b.rank;
};

// Orders candidates by value, the best one first; those of equal value by group, then by label.
constexpr auto better_candidate = [](const auto& a, const auto& b) {
    if (a.value != b.value) return a.value > b.value;
    return a.group != b.group ? a.group < b.group : a.label < b.label;
};

class HistorySearch {
   public:
    // Histories whose best labellings are below `least` are not kept. `rows` must outlive the search. Throws InputError
    // if scores are infinite.
    HistorySearch(HistoryRows& rows, Index beam_width, double least = -kInfinity)
        : rows_(rows), view_(rows.view()), least_(least) {
        const HistoryChain::View& view = view_;
        layers_.reserve(view.length + 2);
        first_groups_.reserve(view.length + 2);
        const Index most = std::min(beam_width, view.n_states) * view.length + 1;
        nodes_.reserve(std::min<Index>(most, 1 << 16));
        order_.reserve(nodes_.capacity());
        layers_.push_back(0);
        first_groups_.push_back(0);
        nodes_.push_back({view.n_states - 1, view.n_labels, 0, 0, 0, 0.0, std::numeric_limits<double>::quiet_NaN()});
        end_layer();
        for (Index t = 0; t < view.length && succeeded(); ++t) {
            Interrupt::check_current();
            grow(t, beam_width);
        }
        // Every history has an allowed next label, so the search fails only if scores are not finite.
        if (!succeeded() && least == -kInfinity) throw InputError("scores of a sequence are beyond double precision");
    }

    // Whether a labelling of at least `least` was found.
    bool succeeded() const { return layers_[layers_.size() - 2] < layers_.back(); }
    // log p of the best labelling, and its labels.
    double best(Index* labels) const {
        Index node = layers_[view_.length];
        const double value = nodes_[node].value;
        for (Index t = view_.length; t > 0; --t) {
            labels[t - 1] = nodes_[node].last;
            node = nodes_[node].before;
        }
        return value;
    }

    struct Found {
        double value;
        std::vector<Index> labels;
    };
    // The k best labellings, best first; fewer if fewer were kept.
    std::vector<Found> k_best(Index k) {
        const Index T = view_.length;
        const Index end = len(nodes_.size());
        ways_.assign(nodes_.size() + 1, {});
        std::vector<Found> out;
        for (Index r = 0; r < k && find(T + 1, end, r); ++r) {
            Interrupt::check_current();
            Way way = ways_[end].found[r];
            Found found{way.value, std::vector<Index>(T)};
            for (Index t = T; t > 0; --t) {
                const Index node = way.before;
                found.labels[t - 1] = nodes_[node].last;
                find(t, node, way.rank);  // a node's best way is known by its value alone until it is asked for
                way = ways_[node].found[way.rank];
            }
            out.push_back(std::move(found));
        }
        return out;
    }

   private:
    struct Node {
        Index state;
        Index last;            // its last tag
        Index group;           // the nodes of the layer before that lead here
        Index own_group;       // the nodes that lead where this one leads
        Index before;          // the best node before
        double value;          // log p of the best labelling that leads here
        double log_partition;  // log Z of the labels after this history; NaN until it is needed
    };
    // A new history on its way into a layer.
    struct Candidate {
        double value;
        Index group;
        Index label;
    };
    // A way to a node: the `rank`-th best way to the node `before`, and one step.
    struct Way {
        double value;
        Index before;
        Index rank;
    };
    struct Ways {
        std::vector<Way> found;  // best first
        std::vector<Way> next;   // a heap: one for each node before
        bool started = false;
        bool complete = false;  // whether the last one found has been followed up
    };

    // Ends the newest layer: puts its nodes into groups that lead to the same histories.
    void end_layer() {
        const Index begin = layers_.back();
        const Index end = len(nodes_.size());
        for (Index node = begin; node < end; ++node) order_.push_back(node);
        // All histories of one tag lead to the same histories.
        const auto key = [&](Index node) { return view_.history == 1 ? 0 : nodes_[node].last; };
        if (view_.history == 2) {
            std::sort(order_.begin() + begin, order_.end(),
                      [&](Index a, Index b) { return key(a) != key(b) ? key(a) < key(b) : a < b; });
        }
        for (Index k = begin; k < end; ++k) {
            if (k == begin || key(order_[k]) != key(order_[k - 1])) groups_.push_back(k);
            nodes_[order_[k]].own_group = len(groups_.size()) - 1;
        }
        layers_.push_back(end);
        first_groups_.push_back(len(groups_.size()));
    }
    void grow(Index t, Index beam_width) {
        const Index L = view_.n_labels;
        const Index width = view_.width;
        const Index first_group = first_groups_[t];
        place_.assign(first_groups_[t + 1] - first_group, -1);
        reached_.clear();
        for (Index j = layers_[t]; j < layers_[t + 1]; ++j) {  // best first
            Node& node = nodes_[j];
            const double value = node.value;
            if (is_hopeless(value, beam_width)) break;
            double* __restrict row = rows_.scores(t, node.state);
            const double log_partition = node.log_partition = rows_.log_partition(t, node.state);
            for (Index c = 0; c < width; ++c) row[c] = value + (row[c] - log_partition);
            if (view_.follow) {
                for (Index c = 0; c < L; ++c) row[c] = view_.may_follow(node.state, c) ? row[c] : -kInfinity;
            }
            if (view_.open) {
                for (Index c = 0; c < L; ++c) row[c] = view_.open[t * L + c] ? row[c] : -kInfinity;
            }
            Index& place = place_[node.own_group - first_group];
            if (place < 0) {
                place = len(reached_.size());
                reached_.push_back(node.own_group);
                values_.resize(std::max(values_.size(), idx((place + 1) * width)));
                before_.resize(values_.size());
                fill(values_.data() + place * width, width, -kInfinity);
            }
            double* __restrict best = values_.data() + place * width;
            Index* __restrict which = before_.data() + place * width;
            for (Index c = 0; c < width; ++c) {
                which[c] = row[c] > best[c] ? j : which[c];
                best[c] = row[c] > best[c] ? row[c] : best[c];
            }
        }
        keep_best(beam_width);
        for (const Candidate& each : kept_) {
            const Index from = before_[place_[each.group - first_group] * width + each.label];
            nodes_.push_back({view_.next(nodes_[from].state, each.label), each.label, each.group, 0, from, each.value,
                              std::numeric_limits<double>::quiet_NaN()});
        }
        end_layer();
    }
    // Values only fall from step to step, so a node with `beam_width` new histories above it adds none that is kept.
    bool is_hopeless(double value, Index beam_width) const {
        const Index n = len(reached_.size()) * view_.width;
        if (n <= beam_width) return false;
        const double* __restrict values = values_.data();
        double above = 0;
#pragma omp simd reduction(+ : above)
        for (Index k = 0; k < n; ++k) above += values[k] > value ? 1.0 : 0.0;
        return above >= static_cast<double>(beam_width);
    }
    // The best candidates, best first.
    void keep_best(Index beam_width) {
        kept_.clear();
        const bool all = len(reached_.size()) * view_.width <= beam_width;
        const double* values = values_.data();
        double least = least_;  // once there are enough, that of those kept
        for (const Index group : reached_) {
            for (Index c = 0; c < view_.n_labels; ++c) {
                const Candidate candidate{values[c], group, c};
                if (candidate.value < least || candidate.value == -kInfinity) continue;
                if (all) {
                    kept_.push_back(candidate);
                    continue;
                }
                // Beams are short, so insertion into a sorted vector is faster than a tree.
                kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), candidate, better_candidate), candidate);
                if (len(kept_.size()) > beam_width) kept_.pop_back();
                if (len(kept_.size()) == beam_width) least = kept_.back().value;
            }
            values += view_.width;
        }
        if (all) std::sort(kept_.begin(), kept_.end(), better_candidate);
    }
    double step_value(Index t, Node& from, Index label) {
        const double score = rows_.scores(t, from.state)[label];
        if (std::isnan(from.log_partition)) from.log_partition = rows_.log_partition(t, from.state);
        return score - from.log_partition;
    }
    // The nodes that lead to a node of layer t; past the last layer all nodes lead to the end.
    std::span<const Index> nodes_before(Index t, Index node) const {
        Index begin = layers_[t - 1];
        Index end = layers_[t];
        if (t <= view_.length) {
            const Index group = nodes_[node].group;
            begin = groups_[group];
            end = group + 1 < first_groups_[t] ? groups_[group + 1] : end;
        }
        return std::span(order_).subspan(begin, end - begin);
    }
    void start(Index t, Index node) {
        Ways& ways = ways_[node];
        ways.started = true;
        ways.complete = true;
        if (t == 0) {
            ways.found.push_back({0.0, 0, 0});
            return;
        }
        const bool at_end = t > view_.length;
        const Index label = at_end ? 0 : nodes_[node].last;
        for (const Index h : nodes_before(t, node)) {
            Node& from = nodes_[h];
            if (!at_end && !view_.may_follow(from.state, label)) continue;
            ways.next.push_back({from.value + (at_end ? 0.0 : step_value(t - 1, from, label)), h, 0});
        }
        std::make_heap(ways.next.begin(), ways.next.end(), worse_way);
    }
    // Finds ways to a node until there are more than `rank` of them; false if there are fewer.
    // Sequences can be long, so an explicit stack replaces recursion.
    bool find(Index t, Index node, Index rank) {
        struct Wanted {
            Index t, node, rank;
        };
        std::vector<Wanted> stack{{t, node, rank}};
        while (!stack.empty()) {
            const Wanted wanted = stack.back();
            Ways& ways = ways_[wanted.node];
            if (!ways.started) start(wanted.t, wanted.node);
            if (len(ways.found.size()) > wanted.rank) {
                stack.pop_back();
                continue;
            }
            if (!ways.complete) {  // the next best way that comes from the same node before
                const Way last = ways.found.back();
                const Ways& own = ways_[last.before];
                const bool has_next = len(own.found.size()) > last.rank + 1;
                if (!has_next && !(own.started && own.complete && own.next.empty())) {
                    stack.push_back({wanted.t - 1, last.before, last.rank + 1});
                    continue;
                }
                if (has_next) {
                    const bool at_end = wanted.t > view_.length;
                    const Index label = at_end ? 0 : nodes_[wanted.node].last;
                    const double step = at_end ? 0.0 : step_value(wanted.t - 1, nodes_[last.before], label);
                    ways.next.push_back({own.found[last.rank + 1].value + step, last.before, last.rank + 1});
                    std::push_heap(ways.next.begin(), ways.next.end(), worse_way);
                }
                ways.complete = true;
            }
            if (ways.next.empty()) {
                stack.pop_back();
                continue;
            }
            std::pop_heap(ways.next.begin(), ways.next.end(), worse_way);
            ways.found.push_back(ways.next.back());
            ways.next.pop_back();
            ways.complete = false;
        }
        return len(ways_[node].found.size()) > rank;
    }

    HistoryRows& rows_;
    const HistoryChain::View& view_;
    double least_;
    std::vector<Node> nodes_;    // layer t: the histories before position t, best first; the last one: after all
    std::vector<Index> layers_;  // first node of each layer, and the end
    std::vector<Index> order_;   // the nodes of each layer by their last tag (histories of one tag: as they are)
    std::vector<Index> groups_;  // first place in `order_` of each group: nodes that lead to the same ones; and the end
    std::vector<Index> first_groups_;  // of each layer, and the end
    std::vector<Ways> ways_;           // to each node, then to the end
    // Scratch of one step:
    std::vector<Index> reached_;  // groups that lead somewhere, those with the best nodes first
    std::vector<Index> place_;    // of each group among those, or -1
    std::vector<double> values_;  // of the best way to each (reached group, label), rows of `width`
    std::vector<Index> before_;   // the node before it
    std::vector<Candidate> kept_;
};

// More than the rounding error of a labelling's value.
constexpr double kRounding = 1e-9;

// log p of the labelling that takes the best label at each position.
inline double greedy_value(HistoryRows& rows) {
    const HistoryChain::View& view = rows.view();
    double total = 0;
    Index state = view.n_states - 1;
    for (Index t = 0; t < view.length; ++t) {
        const double* row = rows.scores(t, state);
        Index best = -1;
        for (Index c = 0; c < view.n_labels; ++c) {
            if (view.open && !(view.open[t * view.n_labels + c] && view.may_follow(state, c))) continue;
            if (best < 0 || row[c] > row[best]) best = c;
        }
        total += row[best] - rows.log_partition(t, state);
        state = view.next(state, best);
    }
    return total;
}

// Writes the labels of the best labelling that a search finds; returns its log p. Probabilities only fall along a
// labelling, so histories below the value of a known labelling are not followed. A greedy search finds that labelling.
//
// Whether a node of at least `least` is kept depends on the nodes above it alone, so leaving out the others changes no
// result. A narrow beam may lose the greedy labelling: then the search is repeated without a bound.
inline double best_labelling(const HistoryChain::View& view, Index beam_width, Index* labels) {
    HistoryRows rows(view);
    const HistorySearch search(rows, beam_width, greedy_value(rows) - kRounding);
    return search.succeeded() ? search.best(labels) : HistorySearch(rows, beam_width).best(labels);
}

}  // namespace partwise::histories
