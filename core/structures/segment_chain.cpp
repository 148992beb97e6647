#include "structures/segment_chain.h"

#include "structures/chart_inference.h"
#include "structures/segment_program.h"
#include "structures/segment_scaled.h"
#include "support/sizes.h"

namespace partwise {

using segments::Prefixes;
using segments::Segment;
using segments::Tables;
using segments::View;

SegmentChain::SegmentChain(std::vector<Index> lengths, Index n_labels, Index max_length, std::vector<Index> max_lengths,
                           SegmentList listed, bool segment_cost)
    : Sequences(std::move(lengths), n_labels),
      max_length_(max_length),
      max_lengths_(std::move(max_lengths)),
      listed_(std::move(listed)),
      segment_cost_(segment_cost) {
    if (max_length < 1) throw InputError("max_length must be at least 1");
    if (max_lengths_.empty()) max_lengths_.assign(n_labels, max_length);
    if (len(max_lengths_.size()) != n_labels) {
        throw InputError("max_lengths has ", max_lengths_.size(), " values for ", n_labels, " labels");
    }
    for (Index b = 0; b < n_labels; ++b) {
        if (max_lengths_[b] < 1 || max_lengths_[b] > max_length) {
            throw InputError("the maximum length of label ", b, " is ", max_lengths_[b],
                             ", it must be from 1 to max_length = ", max_length);
        }
    }
    if (listed_.ptr.empty()) listed_.ptr.assign(num_examples() + 1, 0);
    const auto n = len(listed_.begins.size());
    if (!std::is_sorted(listed_.ptr.begin(), listed_.ptr.end()) || len(listed_.ptr.size()) != num_examples() + 1 ||
        listed_.ptr.front() != 0 || listed_.ptr.back() != n || len(listed_.ends.size()) != n) {
        throw InputError("the list of segments does not fit the sequences");
    }
    Index total = 0;
    for (Index i = 0; i < num_examples(); ++i) {
        const char* what = "the number of a sequence's slots";
        Index rows = checked_sum(checked_product(length(i), 3, what), max_length, what);
        rows = checked_sum(checked_sum(rows, n_labels, what), n_listed(i), what);
        total = checked_sum(total, checked_product(rows, width(), what), "the number of slots");
        for (Index k = listed_.ptr[i]; k < listed_.ptr[i + 1]; ++k) {
            const Index begin = listed_.begins[k];
            const Index end = listed_.ends[k];
            if (begin < 0 || end <= begin || end > length(i)) {
                refuse(i, begin, end, " is listed, but the sequence has ", length(i), " positions");
            }
            if (end - begin > max_length) {
                refuse(i, begin, end, " is listed, but the maximum length is ", max_length);
            }
            if (k > listed_.ptr[i] && std::pair(end, begin) <= std::pair(listed_.ends[k - 1], listed_.begins[k - 1])) {
                refuse(i, begin, end,
                       " is listed too late: listed segments must be in the order of (end, begin), each once");
            }
        }
    }
}

Index SegmentChain::num_slots(Index i) const { return (whole_row(i) + n_listed(i)) * width(); }

template <class T>
segments::TablesOf<T> SegmentChain::tables_of(Index i, T* slots) const {
    const auto table = [&](Index first_row) { return slots + first_row * width(); };
    return {slots,
            table(first_row(i)),
            table(last_row(i)),
            table(lengths_row(i)),
            table(edges_row(i)),
            table(whole_row(i))};
}

View SegmentChain::view_of(Index i, const double* slots) const {
    const auto listed = [&](const std::vector<Index>& all) {
        return std::span(all).subspan(idx(listed_.ptr[i]), idx(n_listed(i)));
    };
    return {tables_of(i, slots),    length(i),           n_labels(), width(), max_length_, nullptr,
            listed(listed_.begins), listed(listed_.ends)};
}

View SegmentChain::prepare(Index i, const double* scores, double temperature, Workspace::Frame& frame) const {
    double* out = masked_scores(i, scores, 1.0 / temperature, frame);
    for (double* row = out; row < out + num_slots(i); row += width()) {
        fill(row + n_labels(), width() - n_labels(), -kInfinity);
    }
    for (Index b = 0; b < n_labels(); ++b) {
        for (Index d = max_lengths_[b]; d < max_length_; ++d) out[(lengths_row(i) + d) * width() + b] = -kInfinity;
    }
    View view = view_of(i, out);
    if (const std::uint8_t* joins = continuation(i)) {
        double* joined = frame.take(length(i) * width());
        for (Index r = 0; r < length(i) * width(); ++r) joined[r] = joins[r] ? out[r] : -kInfinity;
        view.joined = joined;
    }
    return view;
}

// Computes maxima or sums over prefixes and calls f(program, chart of these values, view, prefixes).
template <segments::Mode mode, class F>
void SegmentChain::with_chart(Index i, const double* scores, double temperature, Workspace& ws, F&& f) const {
    Workspace::Frame frame(ws);
    const View view = prepare(i, scores, temperature, frame);
    const Prefixes prefixes =
        with_width(width(), [&](auto w) { return segments::Forward<w(), mode>(view, view, frame).run(); });
    const segments::Program program{length(i), n_labels(), max_length_};
    f(program, segments::Chart(program, view, prefixes), view, prefixes);
}

double SegmentChain::maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const {
    std::vector<Segment> found;
    const auto read_off = [&](const auto&, const auto& chart, const View& view, const Prefixes& prefixes) {
        const double* last = prefixes.end + length(i) * width();
        Index b = chart::first_best(n_labels(), [&](Index a) { return last[a]; });
        for (Index t = length(i), s = 0; t > 0; t = s) {
            const double* own = chart.segment_scores(t, b) + t - 1 - view.first_begin(t);
            const double* open = prefixes.open + (t - 1) * width() + b;
            // Of tied segments the shortest is taken.
            s = t - 1 -
                chart::first_best(t - view.first_begin(t), [&](Index k) { return own[-k] + open[-k * width()]; });
            found.push_back({s, t, b});
            const double* end = prefixes.end + s * width();
            const double* edge = view.edge + b;
            if (s > 0) b = chart::first_best(n_labels(), [&](Index a) { return end[a] + edge[a * width()]; });
        }
    };
    with_chart<segments::kBest>(i, scores, 1.0, ws, read_off);
    labelling_of(i, found, best);
    return value_of(i, scores, best.view());
}

double SegmentChain::log_partition(Index i, const double* scores, double temperature, double* marginals,
                                   double* entropy, Workspace& ws) const {
    if (temperature == 0.0) return maximum_as_sums(i, scores, marginals, entropy, ws);
    Workspace::Frame frame(ws);
    const View view = prepare(i, scores, temperature, frame);
    double* slots = marginals || !entropy ? marginals : frame.take(num_slots(i));
    if (slots) fill(slots, num_slots(i), 0.0);
    const Tables tables = slots ? tables_of(i, slots) : Tables{};
    if (!cuts_more_than_labels(i) && segments::is_safe(view)) {
        const double log_z = with_width(width(), [&](auto w) {
            segments::Scaled<w()> sums(view, slots != nullptr, frame);
            const double value = sums.forward();
            if (slots) sums.backward(tables);
            return value;
        });
        // H = log Z - <mu, scores / temperature>
        if (entropy) *entropy = std::max(0.0, log_z - dot(slots, scores, num_slots(i)) / temperature);
        return temperature * log_z;
    }
    return with_width(width(), [&](auto w) {
        const Prefixes prefixes = segments::Forward<w(), segments::kSum>(view, view, frame).run();
        if (slots) {
            const double found = segments::Backward<w(), false>(view, view, prefixes, tables, tables, frame).run({});
            if (entropy) *entropy = found;
        }
        return temperature * prefixes.log_partition;
    });
}

bool SegmentChain::cuts_more_than_labels(Index i) const {
    if (continuation(i)) return true;
    const std::uint8_t* allowed = mask(i);
    for (Index r = first_row(i) * width(); allowed && r < num_slots(i); ++r) {
        if (!allowed[r] && r % width() < n_labels()) return true;
    }
    return false;
}

void SegmentChain::covariance_product(Index i, const double* scores, double temperature, const double* direction,
                                      double* out, Workspace& ws) const {
    Workspace::Frame frame(ws);
    const View view = prepare(i, scores, temperature, frame);
    double* own = frame.take(num_slots(i));
    for (Index r = 0; r < num_slots(i); ++r) own[r] = r % width() < n_labels() ? direction[r] : 0.0;
    const View along = view_of(i, own);
    double* marginals = frame.zeros(num_slots(i));
    fill(out, num_slots(i), 0.0);
    with_width(width(), [&](auto w) {
        const Prefixes prefixes = segments::Forward<w(), segments::kTangent>(view, along, frame).run();
        segments::Backward<w(), true>(view, along, prefixes, tables_of(i, marginals), tables_of(i, out), frame).run({});
    });
}

void SegmentChain::segment_probabilities(Index i, const double* scores, double temperature,
                                         std::span<const Index> begins, std::span<const Index> ends,
                                         std::span<const Index> labels, double* out, Workspace& ws) const {
    for (std::size_t k = 0; k < ends.size(); ++k) {
        if (begins[k] < 0 || ends[k] <= begins[k] || ends[k] > length(i) || (k > 0 && ends[k] < ends[k - 1])) {
            refuse(i, begins[k], ends[k], " is not in the sequence, or not in the order of ends");
        }
        if (labels[k] < 0 || labels[k] >= n_labels()) {
            throw InputError(name(i), ": label ", labels[k], " is not in [0, ", n_labels(), ")");
        }
        check_segment(i, begins[k], ends[k], labels[k]);
    }
    Workspace::Frame frame(ws);
    const View view = prepare(i, scores, temperature, frame);
    double* slots = frame.zeros(num_slots(i));
    const Tables tables = tables_of(i, slots);
    with_width(width(), [&](auto w) {
        const Prefixes prefixes = segments::Forward<w(), segments::kSum>(view, view, frame).run();
        segments::Backward<w(), false>(view, view, prefixes, tables, tables, frame).run({begins, ends, labels, out});
    });
}

std::vector<Scored> SegmentChain::k_best(Index i, const double* scores, Index k, Workspace& ws) const {
    if (k < 1) throw InputError("k must be at least 1");
    std::vector<Scored> out;
    with_chart<segments::kBest>(i, scores, 1.0, ws, [&](const auto& program, const auto& chart, auto&&...) {
        chart::KBest<segments::Program, const segments::Chart&, segments::Scores> lists(program, chart, {chart});
        std::vector<Segment> found;
        const auto use = [&](Index slot) {
            if (slot < program.first_label_slot()) found.push_back(program.segment(slot));
        };
        while (len(out.size()) < k && lists.derivation(len(out.size()), use)) {
            Scored& next = out.emplace_back();
            labelling_of(i, found, next.labelling);
            next.value = value_of(i, scores, next.labelling.view());
            found.clear();
        }
    });
    return out;
}

std::vector<SlotCounts> SegmentChain::sample(Index i, const double* scores, double temperature, Index n,
                                             std::mt19937_64& rng, Workspace& ws) const {
    std::vector<SlotCounts> out(n);
    with_chart<segments::kSum>(i, scores, temperature, ws, [&](const auto& program, const auto& chart, auto&&...) {
        std::vector<double> weights(program.most_edges());
        const auto draw = [&](const auto& e) {
            const auto x = edge_scores(e, chart, segments::Scores{chart});
            double high = -kInfinity;
            for (Index k = 0; k < e.count(); ++k) high = std::max(high, x(k));
            return chart::draw_edge(e.count(), x, high, weights.data(), rng);
        };
        std::vector<Segment> found;
        std::vector<Index> stack;
        for (SlotCounts& one : out) {
            chart::derive(program, stack, draw, [&](Index slot) {
                if (slot < program.first_label_slot()) found.push_back(program.segment(slot));
            });
            labelling_of(i, found, one);
            found.clear();
        }
    });
    return out;
}

void SegmentChain::set_continuation(Index i, std::vector<std::uint8_t> allowed) {
    if (continuation_.empty()) continuation_.resize(num_examples());
    std::swap(continuation_[i], allowed);
    try {
        check_mask(i);
    } catch (...) {
        std::swap(continuation_[i], allowed);
        throw;
    }
}

void SegmentChain::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    const Index rows = segment_cost_ ? lengths_row(i) : first_row(i);
    const auto amount = [&](Index row) { return row < first_row(i) ? scale : 0.5 * scale; };
    for (Index row = 0; row < rows; ++row) {
        for (Index b = 0; b < n_labels(); ++b) scores[row * width() + b] += amount(row);
    }
    for (const Index slot : gold.slots) {
        if (slot < rows * width()) scores[slot] -= amount(slot / width());
    }
}

void SegmentChain::check_segment(Index i, Index begin, Index end, Index label) const {
    if (end - begin <= max_lengths_[label]) return;
    refuse(i, begin, end, " with label ", label, " has ", end - begin, " positions, the maximum is ",
           max_lengths_[label]);
}

void SegmentChain::labelling_of(Index i, const std::vector<Segment>& found, SlotCounts& out) const {
    out.clear();
    std::vector<Index> tied;
    for (std::size_t k = found.size(); k-- > 0;) {
        const auto [s, t, b] = found[k];
        for (Index u = s; u < t; ++u) out.add(u * width() + b, 1.0);
        tied.push_back((lengths_row(i) + t - s - 1) * width() + b);
        if (k + 1 < found.size()) tied.push_back((edges_row(i) + found[k + 1].label) * width() + b);
    }
    for (std::size_t k = found.size(); k-- > 0;)
        out.add((first_row(i) + found[k].begin) * width() + found[k].label, 1.0);
    for (std::size_t k = found.size(); k-- > 0;)
        out.add((last_row(i) + found[k].end - 1) * width() + found[k].label, 1.0);
    add_counted(tied, out);
    const Index first = listed_.ptr[i];
    for (std::size_t k = found.size(); k-- > 0;) {
        const auto [s, t, b] = found[k];
        const auto ends = listed_.ends.begin();
        const auto [low, high] = std::equal_range(ends + first, ends + listed_.ptr[i + 1], t);
        const auto begins = listed_.begins.begin();
        const auto at = std::lower_bound(begins + (low - ends), begins + (high - ends), s);
        if (at != begins + (high - ends) && *at == s)
            out.add((whole_row(i) + (at - begins) - first) * width() + b, 1.0);
    }
}

void SegmentChain::labelling_of(Index i, const Index* labels, const std::uint8_t* begins, SlotCounts& out) const {
    std::vector<Segment> found;  // from the end
    if (!begins[0]) throw InputError(name(i), ": no segment begins at position 0");
    for (Index t = length(i); t > 0;) {
        Index s = t - 1;
        while (!begins[s]) --s;
        for (Index u = s; u < t; ++u) {
            if (labels[u] != labels[s]) {
                throw InputError(name(i), ", position ", u, ": its label is not that of the segment it lies in");
            }
        }
        check_segment(i, s, t, labels[s]);
        found.push_back({s, t, labels[s]});
        t = s;
    }
    labelling_of(i, found, out);
}

void SegmentChain::positions_of(Index i, SlotView labelling, Index* labels, std::uint8_t* begins) const {
    const Index T = length(i);
    labels_of(i, labelling, labels);
    std::fill(begins, begins + T, std::uint8_t{0});
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
        const Index row = labelling.slots[k] / width();
        if (row < first_row(i) || row >= last_row(i)) continue;
        const Index t = row - first_row(i);
        if (labelling.slots[k] % width() >= n_labels() || labelling.counts[k] != 1.0) {
            throw InputError(name(i), ", position ", t, ": expected exactly one label");
        }
        begins[t] = 1;
    }
}

void SegmentChain::check_labelling(Index i, SlotView labelling, Workspace&) const {
    std::vector<Index> labels(length(i));
    std::vector<std::uint8_t> begins(length(i));
    positions_of(i, labelling, labels.data(), begins.data());
    SlotCounts right;
    labelling_of(i, labels.data(), begins.data(), right);
    check_counts(name(i), right, labelling, mask(i));
    const std::uint8_t* joins = continuation(i);
    for (Index t = 0; joins && t < length(i); ++t) {
        if (!begins[t] && !joins[t * width() + labels[t]]) {
            throw InputError(name(i), ", position ", t, ": the mask wants a segment to begin here");
        }
    }
}

}  // namespace partwise
