#include "structures/chain.h"

#include <algorithm>
#include <map>

#include "structures/chain_covariance.h"
#include "structures/chain_log_space.h"
#include "structures/width_dispatch.h"
#include "support/sizes.h"

namespace partwise {

using chain::Sums;
using chain::View;

Chain::Chain(std::vector<Index> lengths, Index n_labels, bool tied, bool ends)
    : Structure(len(lengths.size())),
      lengths_(std::move(lengths)),
      n_labels_(n_labels),
      width_(padded_width(n_labels)),
      tied_(tied),
      ends_(ends) {
    if (n_labels < 1) throw InputError("a chain needs at least one label");
    Index total = 0;
    for (Index i = 0; i < num_examples(); ++i) {
        if (lengths_[idx(i)] < 1) throw InputError("sequence " + std::to_string(i) + " is empty");
        // Edges count even if they share their slots: cliques are edges.
        const Index rows = checked_product(lengths_[idx(i)], n_labels_ + 1, "the number of a sequence's slots");
        total = checked_sum(total, checked_product(rows, width_, "the number of a sequence's slots"),
                            "the number of slots");
    }
}

Index Chain::edge_slots(Index i) const { return (tied_ ? 1 : lengths_[idx(i)] - 1) * n_labels_ * width_; }
Index Chain::num_slots(Index i) const { return ends_begin(i) + (ends_ ? 2 * width_ : 0); }

View Chain::prepare(Index i, const double* scores, double temperature, Workspace::Frame& frame,
                    bool& edges_masked) const {
    const Index T = lengths_[idx(i)];
    const std::uint8_t* allowed = mask(i);
    View view{T, n_labels_, width_, scores, scores + edge_begin(i), tied_ ? 0 : n_labels_ * width_};
    edges_masked = false;
    if (!allowed && !ends_ && temperature == 1.0) return view;

    const Index n_edge = edge_slots(i);
    const double scale = 1.0 / temperature;
    double* node = frame.take(T * width_);
    double* edge = frame.take(n_edge);
    for (Index r = 0; r < T * width_; ++r) node[r] = scores[r] * scale;
    for (Index r = 0; r < n_edge; ++r) edge[r] = view.edge[r] * scale;
    if (ends_) {
        axpy(scale, scores + ends_begin(i), node, width_);
        axpy(scale, scores + ends_begin(i) + width_, node + (T - 1) * width_, width_);
    }
    if (allowed) {
        for (Index t = 0; t < T; ++t) {
            for (Index a = 0; a < n_labels_; ++a) {
                bool cut = !allowed[t * width_ + a];
                if (ends_ && t == 0) cut = cut || !allowed[ends_begin(i) + a];
                if (ends_ && t == T - 1) cut = cut || !allowed[ends_begin(i) + width_ + a];
                if (cut) node[t * width_ + a] = -kInfinity;
            }
        }
        for (Index row = 0; row < n_edge / width_; ++row) {
            for (Index b = 0; b < n_labels_; ++b) {
                if (!allowed[edge_begin(i) + row * width_ + b]) {
                    edge[row * width_ + b] = -kInfinity;
                    edges_masked = true;
                }
            }
        }
    }
    view.node = node;
    view.edge = edge;
    return view;
}

bool Chain::is_safe(const View& view) const {
    const Index T = view.length;
    const double edges = T > 1 ? chain::spread(view.edge, (tied_ ? 1 : T - 1) * n_labels_, n_labels_, width_) : 0.0;
    double nodes = 0;
    for (Index t = 0; t < T; ++t) {
        nodes = std::max(nodes, chain::spread(view.node + t * width_, 1, n_labels_, width_));
    }
    return nodes + edges <= chain::kSafeSpread;
}

double Chain::weight_of(Index i, const double* scores, const Index* labels) const {
    const Index T = lengths_[idx(i)];
    double value = 0;
    for (Index t = 0; t < T; ++t) value += scores[t * width_ + labels[t]];
    for (Index t = 1; t < T; ++t) {
        const Index block = tied_ ? 0 : (t - 1) * n_labels_ * width_;
        value += scores[edge_begin(i) + block + labels[t - 1] * width_ + labels[t]];
    }
    if (ends_) value += scores[ends_begin(i) + labels[0]] + scores[ends_begin(i) + width_ + labels[T - 1]];
    return value;
}

double Chain::maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const {
    const Index T = lengths_[idx(i)];
    Workspace::Frame frame(ws);
    bool edges_masked = false;
    const View view = prepare(i, scores, 1.0, frame, edges_masked);
    double* values = frame.take(T * width_);
    with_width(width_, [&](auto w) { chain::best_prefixes<w()>(view, values); });
    std::vector<Index> labels(idx(T));
    chain::backtrack(view, values, labels.data());
    labelling_of(i, labels.data(), best);
    return weight_of(i, scores, labels.data());
}

double Chain::log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                            Workspace& ws) const {
    if (temperature == 0.0) {
        SlotCounts best;
        const double value = maximize(i, scores, best, ws);
        if (marginals) {
            fill(marginals, num_slots(i), 0.0);
            for (std::size_t k = 0; k < best.slots.size(); ++k) marginals[best.slots[k]] = best.counts[k];
        }
        if (entropy) *entropy = 0.0;
        return value;
    }
    Workspace::Frame frame(ws);
    bool edges_masked = false;
    const View view = prepare(i, scores, temperature, frame, edges_masked);
    if (entropy && !marginals) marginals = frame.take(num_slots(i));
    Sums sums;
    sums.node = marginals;
    sums.edge = marginals ? marginals + edge_begin(i) : nullptr;
    const bool safe = !edges_masked && is_safe(view);
    with_width(width_, [&](auto w) {
        if (safe) {
            chain::scaled_sums<w()>(view, sums, ws);
        } else {
            chain::log_sums<w()>(view, sums, ws);
        }
    });
    if (marginals) add_ends(i, marginals, marginals);
    if (entropy && safe) {
        // H = log Z - <mu, scores / temperature>: no large numbers here, so little cancels.
        sums.entropy = std::max(0.0, sums.log_partition - dot(marginals, scores, num_slots(i)) / temperature);
    }
    if (entropy) *entropy = sums.entropy;
    return temperature * sums.log_partition;
}

void Chain::add_ends(Index i, const double* node_marginals, double* slots) const {
    if (!ends_) return;
    copy(node_marginals, slots + ends_begin(i), width_);
    copy(node_marginals + (lengths_[idx(i)] - 1) * width_, slots + ends_begin(i) + width_, width_);
}

void Chain::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    const Index T = lengths_[idx(i)];
    for (Index t = 0; t < T; ++t) {
        for (Index a = 0; a < n_labels_; ++a) scores[t * width_ + a] += scale;
    }
    for (const Index slot : gold.slots) {
        if (slot < T * width_) scores[slot] -= scale;
    }
}

void Chain::labelling_of(Index i, const Index* labels, SlotCounts& out) const {
    const Index T = lengths_[idx(i)];
    out.clear();
    for (Index t = 0; t < T; ++t) out.add(t * width_ + labels[t], 1.0);
    if (tied_) {
        std::vector<Index> pairs(idx(T - 1));
        for (Index t = 1; t < T; ++t) pairs[idx(t - 1)] = edge_begin(i) + labels[t - 1] * width_ + labels[t];
        std::sort(pairs.begin(), pairs.end());
        for (std::size_t k = 0; k < pairs.size(); ++k) {
            if (k > 0 && pairs[k] == pairs[k - 1]) {
                out.counts.back() += 1.0;
            } else {
                out.add(pairs[k], 1.0);
            }
        }
    } else {
        for (Index t = 1; t < T; ++t) {
            out.add(edge_begin(i) + ((t - 1) * n_labels_ + labels[t - 1]) * width_ + labels[t], 1.0);
        }
    }
    if (ends_) {
        out.add(ends_begin(i) + labels[0], 1.0);
        out.add(ends_begin(i) + width_ + labels[T - 1], 1.0);
    }
}

void Chain::labels_of(Index i, SlotView labelling, Index* labels) const {
    const Index T = lengths_[idx(i)];
    std::fill(labels, labels + T, Index{-1});
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
        const Index slot = labelling.slots[k];
        if (slot < 0 || slot >= num_slots(i)) {
            throw InputError("sequence " + std::to_string(i) + ": no slot " + std::to_string(slot));
        }
        if (slot >= T * width_) continue;
        const Index t = slot / width_;
        if (labels[t] >= 0 || slot % width_ >= n_labels_ || labelling.counts[k] != 1.0) {
            throw InputError("sequence " + std::to_string(i) + ", position " + std::to_string(t) + ": not one label");
        }
        labels[t] = slot % width_;
    }
    for (Index t = 0; t < T; ++t) {
        if (labels[t] < 0) {
            throw InputError("sequence " + std::to_string(i) + ", position " + std::to_string(t) + ": no label");
        }
    }
}

void Chain::check_labelling(Index i, SlotView labelling, Workspace&) const {
    std::vector<Index> labels(idx(lengths_[idx(i)]));
    labels_of(i, labelling, labels.data());
    SlotCounts right;
    labelling_of(i, labels.data(), right);
    std::map<Index, double> difference;
    for (std::size_t k = 0; k < right.slots.size(); ++k) difference[right.slots[k]] += right.counts[k];
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) difference[labelling.slots[k]] -= labelling.counts[k];
    for (const auto& [slot, count] : difference) {
        if (count != 0.0) {
            throw InputError("sequence " + std::to_string(i) + ": slot " + std::to_string(slot) +
                             " does not have the count its labels give it");
        }
    }
    const std::uint8_t* allowed = mask(i);
    for (const Index slot : right.slots) {
        if (allowed && !allowed[slot]) {
            throw InputError("sequence " + std::to_string(i) + ": the labelling uses slot " + std::to_string(slot) +
                             ", which its mask forbids");
        }
    }
}

void Chain::check_mask(Index i) const {
    Workspace ws;
    Workspace::Frame frame(ws);
    double* zeros = frame.take(num_slots(i));
    fill(zeros, num_slots(i), 0.0);
    if (log_partition(i, zeros, 1.0, nullptr, nullptr, ws) == -kInfinity) {
        throw InputError("the mask of sequence " + std::to_string(i) + " allows no labelling");
    }
}

std::vector<Scored> Chain::k_best(Index i, const double* scores, Index k, Workspace& ws) const {
    const Index T = lengths_[idx(i)];
    const Index L = n_labels_;
    if (k < 1) throw InputError("k must be at least 1");
    Workspace::Frame frame(ws);
    bool edges_masked = false;
    const View view = prepare(i, scores, 1.0, frame, edges_masked);
    // list[t][b]: the best prefixes that end in b, best first, each pointing to (label, rank) of its own prefix.
    struct Entry {
        double value;
        Index label;
        Index rank;
    };
    std::vector<std::vector<Entry>> lists(idx(T * L));
    const auto better = [](const Entry& p, const Entry& q) { return p.value < q.value; };
    // Merges the sorted lists of all labels at t - 1, each shifted by add(label), up to k entries.
    const auto merge = [&](Index t, auto add, double shift) {
        std::vector<Entry> heap;
        std::vector<Entry> out;
        for (Index a = 0; a < L; ++a) {
            const auto& from = lists[idx(t * L + a)];
            if (!from.empty() && add(a) != -kInfinity) heap.push_back({from[0].value + add(a), a, 0});
        }
        std::make_heap(heap.begin(), heap.end(), better);
        while (!heap.empty() && len(out.size()) < k) {
            std::pop_heap(heap.begin(), heap.end(), better);
            const Entry top = heap.back();
            heap.pop_back();
            out.push_back({top.value + shift, top.label, top.rank});
            const auto& from = lists[idx(t * L + top.label)];
            if (top.rank + 1 < len(from.size())) {
                heap.push_back({from[idx(top.rank + 1)].value + add(top.label), top.label, top.rank + 1});
                std::push_heap(heap.begin(), heap.end(), better);
            }
        }
        return out;
    };
    for (Index t = 0; t < T; ++t) {
        for (Index b = 0; b < L; ++b) {
            Interrupt::check_current();
            const double node = view.node[t * width_ + b];
            if (node == -kInfinity) continue;
            if (t == 0) {
                lists[idx(b)].push_back({node, 0, 0});
            } else {
                const double* edge = view.edge_at(t);
                lists[idx(t * L + b)] = merge(t - 1, [&](Index a) { return edge[a * width_ + b]; }, node);
            }
        }
    }
    std::vector<Scored> out;
    std::vector<Index> labels(idx(T));
    for (const Entry& last : merge(T - 1, [](Index) { return 0.0; }, 0.0)) {
        Entry entry = last;
        for (Index t = T - 1; t >= 0; --t) {
            labels[idx(t)] = entry.label;
            entry = lists[idx(t * L + entry.label)][idx(entry.rank)];
        }
        Scored scored;
        scored.value = weight_of(i, scores, labels.data());
        labelling_of(i, labels.data(), scored.labelling);
        out.push_back(std::move(scored));
    }
    return out;
}

std::vector<SlotCounts> Chain::sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                      Workspace& ws) const {
    const Index T = lengths_[idx(i)];
    Workspace::Frame frame(ws);
    bool edges_masked = false;
    const View view = prepare(i, scores, temperature, frame, edges_masked);
    double* alpha = frame.take(T * width_);
    double* p = frame.take(width_);
    with_width(width_, [&](auto w) { chain::log_forward<w()>(view, alpha, ws); });
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    // Draws a label with probability proportional to exp(logs[a]).
    const auto draw = [&](auto log_weight) {
        double high = -kInfinity;
        for (Index a = 0; a < n_labels_; ++a) high = std::max(high, p[a] = log_weight(a));
        double total = 0;
        for (Index a = 0; a < n_labels_; ++a) total += p[a] = fast_exp(p[a] - high);
        double left = uniform(rng) * total;
        Index label = -1;
        for (Index a = 0; a < n_labels_; ++a) {
            if (p[a] == 0.0) continue;
            label = a;
            left -= p[a];
            if (left < 0.0) break;
        }
        return label;
    };
    std::vector<SlotCounts> out(idx(n));
    std::vector<Index> labels(idx(T));
    for (SlotCounts& labelling : out) {
        labels[idx(T - 1)] = draw([&](Index a) { return alpha[(T - 1) * width_ + a]; });
        for (Index t = T - 1; t > 0; --t) {
            const Index b = labels[idx(t)];
            labels[idx(t - 1)] =
                draw([&](Index a) { return alpha[(t - 1) * width_ + a] + view.edge_at(t)[a * width_ + b]; });
        }
        labelling_of(i, labels.data(), labelling);
    }
    return out;
}

void Chain::covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                               Workspace& ws) const {
    const Index T = lengths_[idx(i)];
    Workspace::Frame frame(ws);
    bool edges_masked = false;
    const View view = prepare(i, scores, temperature, frame, edges_masked);
    double* node_d = frame.take(T * width_);
    copy(direction, node_d, T * width_);
    if (ends_) {
        axpy(1.0, direction + ends_begin(i), node_d, width_);
        axpy(1.0, direction + ends_begin(i) + width_, node_d + (T - 1) * width_, width_);
    }
    const double* edge_d = direction + edge_begin(i);
    const bool safe = !edges_masked && is_safe(view);
    with_width(width_, [&](auto w) {
        if (safe) {
            chain::scaled_covariance<w()>(view, node_d, edge_d, out, out + edge_begin(i), ws);
        } else {
            chain::covariance<w()>(view, node_d, edge_d, out, out + edge_begin(i), ws);
        }
    });
    add_ends(i, out, out);
}

}  // namespace partwise
