#include "structures/history_search.h"

#include <algorithm>
#include <cmath>

#include "support/vector_math.h"

namespace partwise {

namespace {

// log sum of exp(x)
double log_sum(const double* x, Index n) {
    double high = -kInfinity;
#pragma omp simd reduction(max : high)
    for (Index k = 0; k < n; ++k) high = x[k] > high ? x[k] : high;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index k = 0; k < n; ++k) sum += fast_exp(x[k] - high);
    return high + std::log(sum);
}

// The first of a heap is its largest value; ties go to the way that comes first.
constexpr auto worse_way = [](const auto& a, const auto& b) {
    if (a.value != b.value) return a.value < b.value;
    return a.before != b.before ? a.before > b.before : a.rank > b.rank;
};

// The first of a heap is the worst: the smallest value, of equal ones the highest tags.
constexpr auto better_candidate = [](const auto& a, const auto& b) {
    return a.value != b.value ? a.value > b.value : a.candidate < b.candidate;
};

}  // namespace

HistorySearch::HistorySearch(const HistoryChain::View& view, Index beam_width) : view_(view) {
    layers_.reserve(idx(view.length) + 2);
    first_groups_.reserve(idx(view.length) + 2);
    const Index most = std::min(beam_width, view.n_states) * view.length + 1;
    nodes_.reserve(idx(std::min<Index>(most, 1 << 16)));
    order_.reserve(nodes_.capacity());
    row_.resize(idx(view.n_labels));
    layers_.push_back(0);
    first_groups_.push_back(0);
    nodes_.push_back({view.n_states - 1, 0, 0, 0.0, 0.0});
    end_layer();
    for (Index t = 0; t < view.length; ++t) grow(t, beam_width);
}

void HistorySearch::end_layer() {
    const Index begin = layers_.back();
    const Index end = len(nodes_.size());
    const auto rest = [&](Index node) { return view_.rest(nodes_[idx(node)].state); };
    for (Index node = begin; node < end; ++node) order_.push_back(node);
    if (view_.history == 2) {
        std::sort(order_.begin() + begin, order_.end(),
                  [&](Index a, Index b) { return rest(a) != rest(b) ? rest(a) < rest(b) : a < b; });
    }
    for (Index k = begin; k < end; ++k) {
        if (k == begin || rest(order_[idx(k)]) != rest(order_[idx(k) - 1])) groups_.push_back(k);
    }
    layers_.push_back(end);
    first_groups_.push_back(len(groups_.size()));
}

double HistorySearch::step_value(Index t, const Node& from, Index label) const {
    return view_.scores[t * view_.width + label] + view_.after[from.state * view_.n_labels + label] -
           from.log_partition;
}

void HistorySearch::grow(Index t, Index beam_width) {
    const Index L = view_.n_labels;
    const Index first_group = first_groups_[idx(t)];
    const Index n_groups = first_groups_[idx(t) + 1] - first_group;
    const auto group_end = [&](Index g) {
        return g + 1 < len(groups_.size()) ? groups_[idx(g) + 1] : len(order_.size());
    };
    const double* scores = view_.scores + t * view_.width;
    values_.assign(idx(n_groups * L), -kInfinity);
    before_.assign(values_.size(), 0);
    kept_.clear();
    for (Index g = 0; g < n_groups; ++g) {
        double* __restrict best = values_.data() + g * L;
        Index* __restrict which = before_.data() + g * L;
        for (Index k = groups_[idx(first_group + g)]; k < group_end(first_group + g); ++k) {
            const Index j = order_[idx(k)];
            Node& node = nodes_[idx(j)];
            const double* __restrict after = view_.after + node.state * L;
            double* __restrict row = row_.data();
            for (Index c = 0; c < L; ++c) row[c] = scores[c] + after[c];
            node.log_partition = log_sum(row, L);
            const double value = node.value;
            const double log_partition = node.log_partition;
            for (Index c = 0; c < L; ++c) row[c] = value + (row[c] - log_partition);
            if (view_.follow) {
                for (Index c = 0; c < L; ++c) row[c] = view_.may_follow(node.state, c) ? row[c] : -kInfinity;
            }
            for (Index c = 0; c < L; ++c) {
                which[c] = row[c] > best[c] ? j : which[c];
                best[c] = row[c] > best[c] ? row[c] : best[c];
            }
        }
        if (view_.open) {
            for (Index c = 0; c < L; ++c) best[c] = view_.open[t * L + c] ? best[c] : -kInfinity;
        }
        for (Index c = 0; c < L; ++c) {
            const Candidate candidate{best[c], g * L + c};
            if (len(kept_.size()) == beam_width) {
                if (!better_candidate(candidate, kept_.front())) continue;
                std::pop_heap(kept_.begin(), kept_.end(), better_candidate);
                kept_.back() = candidate;
            } else if (best[c] > -kInfinity) {
                kept_.push_back(candidate);
            } else {
                continue;
            }
            std::push_heap(kept_.begin(), kept_.end(), better_candidate);
        }
    }
    std::sort_heap(kept_.begin(), kept_.end(), better_candidate);
    for (const Candidate& each : kept_) {
        const Index group = first_group + each.candidate / L;
        const Index state = nodes_[idx(order_[idx(groups_[idx(group)])])].state;
        nodes_.push_back({view_.next(state, each.candidate % L), group, before_[idx(each.candidate)], each.value, 0.0});
    }
    end_layer();
}

double HistorySearch::best(Index* labels) const {
    Index node = layers_[idx(view_.length)];
    const double value = nodes_[idx(node)].value;
    for (Index t = view_.length; t > 0; --t) {
        labels[t - 1] = view_.last(nodes_[idx(node)].state);
        node = nodes_[idx(node)].before;
    }
    return value;
}

std::span<const Index> HistorySearch::nodes_before(Index t, Index node) const {
    Index begin = layers_[idx(t) - 1];
    Index end = layers_[idx(t)];
    if (t <= view_.length) {
        const Index group = nodes_[idx(node)].group;
        begin = groups_[idx(group)];
        end = group + 1 < first_groups_[idx(t)] ? groups_[idx(group) + 1] : end;
    }
    return std::span(order_).subspan(idx(begin), idx(end - begin));
}

void HistorySearch::start(Index t, Index node) {
    Ways& ways = ways_[idx(node)];
    ways.started = true;
    ways.complete = true;
    if (t == 0) {
        ways.found.push_back({0.0, 0, 0});
        return;
    }
    const bool at_end = t > view_.length;
    const Index label = at_end ? 0 : view_.last(nodes_[idx(node)].state);
    for (const Index h : nodes_before(t, node)) {
        const Node& from = nodes_[idx(h)];
        if (!at_end && !view_.may_follow(from.state, label)) continue;
        ways.next.push_back({from.value + (at_end ? 0.0 : step_value(t - 1, from, label)), h, 0});
    }
    std::make_heap(ways.next.begin(), ways.next.end(), worse_way);
}

// Sequences can be long, so that there is a stack of our own instead of recursion.
bool HistorySearch::find(Index t, Index node, Index rank) {
    struct Wanted {
        Index t, node, rank;
    };
    std::vector<Wanted> stack{{t, node, rank}};
    while (!stack.empty()) {
        const Wanted wanted = stack.back();
        Ways& ways = ways_[idx(wanted.node)];
        if (!ways.started) start(wanted.t, wanted.node);
        if (len(ways.found.size()) > wanted.rank) {
            stack.pop_back();
            continue;
        }
        if (!ways.complete) {  // the next best way that comes from the same node before
            const Way last = ways.found.back();
            const Ways& own = ways_[idx(last.before)];
            const bool has_next = len(own.found.size()) > last.rank + 1;
            if (!has_next && !(own.started && own.complete && own.next.empty())) {
                stack.push_back({wanted.t - 1, last.before, last.rank + 1});
                continue;
            }
            if (has_next) {
                const bool at_end = wanted.t > view_.length;
                const Index label = at_end ? 0 : view_.last(nodes_[idx(wanted.node)].state);
                const double step = at_end ? 0.0 : step_value(wanted.t - 1, nodes_[idx(last.before)], label);
                ways.next.push_back({own.found[idx(last.rank) + 1].value + step, last.before, last.rank + 1});
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
    return len(ways_[idx(node)].found.size()) > rank;
}

std::vector<HistorySearch::Found> HistorySearch::k_best(Index k) {
    const Index T = view_.length;
    const Index end = len(nodes_.size());
    ways_.assign(nodes_.size() + 1, {});
    std::vector<Found> out;
    for (Index r = 0; r < k && find(T + 1, end, r); ++r) {
        Way way = ways_[idx(end)].found[idx(r)];
        Found found{way.value, std::vector<Index>(idx(T))};
        for (Index t = T; t > 0; --t) {
            const Index node = way.before;
            found.labels[idx(t) - 1] = view_.last(nodes_[idx(node)].state);
            find(t, node, way.rank);  // a node's best way is known by its value alone until it is asked for
            way = ways_[idx(node)].found[idx(way.rank)];
        }
        out.push_back(std::move(found));
    }
    return out;
}

}  // namespace partwise
