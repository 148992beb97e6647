// Structures: what all of them answer, and those over sequences of labels.
#include <nanobind/stl/set.h>

#include "bindings/labellings.h"
#include "bindings/python_structure.h"
#include "structures/chain.h"
#include "structures/chart_structure.h"
#include "structures/history_chain.h"
#include "structures/multiclass.h"
#include "structures/second_order_chain.h"
#include "structures/segment_chain.h"

namespace partwise::bindings {

namespace {

void check_scores(const Structure& s, Index i, const Floats& scores) {
    check_floats(scores, checked(s, i).num_slots(i), "scores");
}

void check_alike(const std::vector<Index>& examples, const std::vector<Floats>& scores) {
    if (examples.size() != scores.size()) {
        throw InputError(examples.size(), " examples with scores for ", scores.size());
    }
}

// Calls f(workspace) without the GIL. Structures look for Ctrl-C themselves: one example can take long.
template <class F>
auto without_gil(F&& f) {
    return run_kernel([&] {
        Workspace ws;
        return f(ws);
    });
}

nb::object capability_names(const Structure& s) {
    nb::list names;
    const unsigned c = s.capabilities();
    if (c & kCliques) names.append("cliques");
    if (c & kSupport) names.append("clique support");
    if (c & kCovariance) names.append("covariance");
    if (c & kKBest) names.append("k_best");
    if (c & kSample) names.append("sample");
    if (c & kOnePart) names.append("one part");
    return nb::module_::import_("builtins").attr("frozenset")(names);
}

void check_cliques(const Structure& s, Index i, const Floats& cliques) {
    check_floats(cliques, checked(s, i).clique_offsets(i).back(), "marginals");
}

// What all structures over sequences of labels have.
template <class S>
void def_sequences(nb::class_<S, Structure>& cls) {
    cls.def_prop_ro("n_labels", &S::n_labels)
        .def_prop_ro("width", &S::width)
        .def_prop_ro("lengths", copied<S>(&S::lengths))
        .def(
            "set_follow",
            [](S& s, const std::optional<Bytes>& pairs, const std::optional<Bytes>& first,
               const std::optional<Bytes>& last) {
                s.set_follow({vector_of(pairs), vector_of(first), vector_of(last)});
            },
            "pairs"_a.none(), "first"_or_none, "last"_or_none);
    def_numbers(
        cls, "labels", [](const S& s) { return starts_of(s.lengths()); },
        [](const S& s, Index i, const Index* labels, SlotCounts& out) {
            for (Index t = 0; t < s.lengths()[i]; ++t) check_label(labels[t], s.n_labels(), i);
            s.labelling_of(i, labels, out);
        },
        [](const S& s, Index i, SlotView one, Index* labels) { s.labels_of(i, one, labels); });
}

void bind_structure(nb::module_& m) {
    nb::class_<Structure, PythonStructure>(m, "Structure")
        .def(nb::init<Index>(), "num_examples"_a)
        .def_prop_ro("num_examples", &Structure::num_examples)
        .def_prop_ro("linear", &Structure::linear)
        .def("capabilities", &capability_names)
        .def(
            "num_slots", [](const Structure& s, Index i) { return checked(s, i).num_slots(i); }, "i"_a)
        .def("slot_offsets", [](const Structure& s) { return numpy(s.slot_offsets()); })
        .def(
            "maximize",
            [](const Structure& s, Index i, const Floats& scores) {
                check_scores(s, i, scores);
                SlotCounts best;
                const double value = without_gil([&](Workspace& ws) { return s.maximize(i, scores.data(), best, ws); });
                return pack(value, best);
            },
            "i"_a, "scores"_a)
        .def(
            "maximize_many",
            [](const Structure& s, const std::vector<Index>& examples, const std::vector<Floats>& scores) {
                check_alike(examples, scores);
                std::vector<const double*> own;
                for (std::size_t k = 0; k < examples.size(); ++k) {
                    check_scores(s, examples[k], scores[k]);
                    own.push_back(scores[k].data());
                }
                std::vector<double> values(examples.size());
                std::vector<SlotCounts> best(examples.size());
                without_gil(
                    [&](Workspace& ws) { s.maximize_of(examples, own.data(), values.data(), best.data(), ws); });
                nb::list out;
                for (std::size_t k = 0; k < best.size(); ++k) out.append(pack(values[k], best[k]));
                return out;
            },
            "examples"_a, "scores"_a)
        .def(
            "log_partition",
            [](const Structure& s, Index i, const Floats& scores, double temperature) {
                check_scores(s, i, scores);
                check_temperature(temperature);
                std::vector<double> marginals(scores.size());
                double entropy = 0;
                const double value = without_gil([&](Workspace& ws) {
                    return s.log_partition(i, scores.data(), temperature, marginals.data(), &entropy, ws);
                });
                return tuple_of(value, std::move(marginals), entropy);
            },
            "i"_a, "scores"_a, "temperature"_a = 1.0)
        .def(
            "log_partition_many",
            [](const Structure& s, const std::vector<Index>& examples, const std::vector<Floats>& scores,
               double temperature) {
                check_alike(examples, scores);
                check_temperature(temperature);
                nb::list out;
                for (std::size_t k = 0; k < examples.size(); ++k) {
                    check_scores(s, examples[k], scores[k]);
                    std::vector<double> marginals(scores[k].size());
                    double entropy = 0;
                    const double value = without_gil([&](Workspace& ws) {
                        return s.log_partition(examples[k], scores[k].data(), temperature, marginals.data(), &entropy,
                                               ws);
                    });
                    out.append(tuple_of(value, std::move(marginals), entropy));
                }
                return out;
            },
            "examples"_a, "scores"_a, "temperature"_a = 1.0)
        .def(
            "cost",
            [](const Structure& s, Index i, const Ints& slots, const Floats& counts) {
                check_index(i, s.num_examples());
                const SlotView gold = view_of(slots, counts);
                for (const Index slot : gold.slots) {
                    if (slot < 0 || slot >= s.num_slots(i)) throw InputError("a gold slot is out of range");
                }
                std::vector<double> cost(s.num_slots(i), 0.0);
                s.add_cost(i, gold, 1.0, cost.data());
                return numpy(std::move(cost));
            },
            "i"_a, "slots"_same, "counts"_a)
        .def(
            "check_labelling",
            [](const Structure& s, Index i, const Ints& slots, const Floats& counts) {
                check_index(i, s.num_examples());
                Workspace ws;
                s.check_labelling(i, view_of(slots, counts), ws);
            },
            "i"_a, "slots"_same, "counts"_a)
        .def(
            "set_mask",
            [](Structure& s, Index i, const std::optional<Bytes>& allowed) {
                check_size(allowed, checked(s, i).num_slots(i), "the mask");
                s.set_mask(i, vector_of(allowed));
            },
            "i"_a, "allowed"_a.none())
        .def(
            "mask",
            [](const Structure& s, Index i) -> nb::object {
                if (!checked(s, i).mask(i)) return nb::none();
                return nb::cast(numpy(std::vector<std::uint8_t>(s.mask(i), s.mask(i) + s.num_slots(i))));
            },
            "i"_a)
        .def(
            "k_best",
            [](const Structure& s, Index i, const Floats& scores, Index k) {
                check_scores(s, i, scores);
                const std::vector<Scored> best =
                    without_gil([&](Workspace& ws) { return s.k_best(i, scores.data(), k, ws); });
                nb::list out;
                for (const Scored& x : best) out.append(pack(x.value, x.labelling));
                return out;
            },
            "i"_a, "scores"_a, "k"_a)
        .def(
            "sample",
            [](const Structure& s, Index i, const Floats& scores, double temperature, Index n, std::uint64_t seed) {
                check_scores(s, i, scores);
                check_positive_temperature(temperature);
                if (n < 0) throw InputError("the number of samples is negative");
                std::mt19937_64 rng(seed);
                const std::vector<SlotCounts> drawn =
                    without_gil([&](Workspace& ws) { return s.sample(i, scores.data(), temperature, n, rng, ws); });
                nb::list out;
                for (const SlotCounts& x : drawn) out.append(pack(x));
                return out;
            },
            "i"_a, "scores"_a, "temperature"_a, "n"_a, "seed"_a)
        .def(
            "covariance_product",
            [](const Structure& s, Index i, const Floats& scores, double temperature, const Floats& direction) {
                check_scores(s, i, scores);
                check_positive_temperature(temperature);
                check_size(direction, s.num_slots(i), "direction");
                check_finite(direction, "direction");
                std::vector<double> out(scores.size());
                without_gil([&](Workspace& ws) {
                    s.covariance_product(i, scores.data(), temperature, direction.data(), out.data(), ws);
                });
                return numpy(std::move(out));
            },
            "i"_a, "scores"_a, "temperature"_a, "direction"_a)
        .def(
            "clique_offsets", [](const Structure& s, Index i) { return numpy(checked(s, i).clique_offsets(i)); }, "i"_a)
        .def(
            "clique_marginals",
            [](const Structure& s, Index i, const Floats& scores, double temperature) {
                check_scores(s, i, scores);
                check_positive_temperature(temperature);
                std::vector<double> out(s.clique_offsets(i).back());
                without_gil([&](Workspace& ws) { s.clique_marginals(i, scores.data(), temperature, out.data(), ws); });
                return numpy(std::move(out));
            },
            "i"_a, "scores"_a, "temperature"_a)
        .def(
            "slots_from_cliques",
            [](const Structure& s, Index i, const Floats& cliques) {
                check_cliques(s, i, cliques);
                std::vector<double> out(s.num_slots(i));
                without_gil([&](Workspace&) { s.slots_from_cliques(i, cliques.data(), out.data()); });
                return numpy(std::move(out));
            },
            "i"_a, "marginals"_a)
        .def(
            "entropy_of_cliques",
            [](const Structure& s, Index i, const Floats& cliques) {
                check_cliques(s, i, cliques);
                std::vector<double> gradient(cliques.size());
                const double entropy = without_gil(
                    [&](Workspace& ws) { return s.entropy_of_cliques(i, cliques.data(), gradient.data(), ws); });
                return tuple_of(entropy, std::move(gradient));
            },
            "i"_a, "marginals"_a)
        .def(
            "scores_from_cliques",
            [](const Structure& s, Index i, const Floats& cliques) {
                check_cliques(s, i, cliques);
                std::vector<double> out(cliques.size());
                without_gil([&](Workspace&) { s.scores_from_cliques(i, cliques.data(), out.data()); });
                return numpy(std::move(out));
            },
            "i"_a, "marginals"_a)
        .def(
            "slot_scores_from_cliques",
            [](const Structure& s, Index i, const Floats& cliques) -> nb::object {
                check_cliques(s, i, cliques);
                std::vector<double> out(s.num_slots(i));
                if (!s.slot_scores_from_cliques(i, cliques.data(), out.data())) return nb::none();
                return nb::cast(numpy(std::move(out)));
            },
            "i"_a, "marginals"_a)
        .def(
            "clique_entries",
            [](const Structure& s, Index i, const Ints& slots, const Floats& counts) {
                check_index(i, s.num_examples());
                const SlotView labelling = view_of(slots, counts);
                Workspace ws;
                s.check_labelling(i, labelling, ws);
                std::vector<Index> out(s.clique_offsets(i).size() - 1);
                s.clique_entries(i, labelling, out.data(), ws);
                return numpy(std::move(out));
            },
            "i"_a, "slots"_same, "counts"_a)
        .def(
            "maximize_in_support",
            [](const Structure& s, Index i, const Floats& scores, const Floats& cliques, double least) {
                check_scores(s, i, scores);
                check_cliques(s, i, cliques);
                SlotCounts best;
                const double value = without_gil([&](Workspace& ws) {
                    return s.maximize_in_support(i, scores.data(), cliques.data(), least, best, ws);
                });
                return pack(value, best);
            },
            "i"_a, "scores"_a, "marginals"_a, "least"_a = 0.0);
}

void bind_sequences(nb::module_& m) {
    nb::class_<Multiclass, Structure> multiclass(m, "Multiclass");
    multiclass.def(nb::init<Index, Index>(), "num_examples"_a, "n_labels"_a)
        .def_prop_ro("n_labels", &Multiclass::n_labels)
        .def_prop_ro("width", &Multiclass::width);
    def_numbers(
        multiclass, "labels", [](const Multiclass& s) { return starts_of(std::vector<Index>(s.num_examples(), 1)); },
        [](const Multiclass& s, Index i, const Index* label, SlotCounts& out) {
            check_label(*label, s.n_labels(), i);
            out.add(*label, 1.0);
        },
        [](const Multiclass& s, Index i, SlotView one, Index* label) {
            Workspace ws;
            s.check_labelling(i, one, ws);
            *label = one.slots[0];
        });

    nb::class_<Chain, Structure> chain(m, "Chain");
    chain
        .def(
            "__init__",
            [](Chain* self, const Ints& lengths, Index n_labels, bool tied, bool ends) {
                new (self) Chain(vector_of(lengths), n_labels, tied, ends);
            },
            "lengths"_same, "n_labels"_a, "tied"_a = true, "ends"_a = false)
        .def_prop_ro("tied", &Chain::tied)
        .def_prop_ro("ends", &Chain::ends);
    def_sequences(chain);

    nb::class_<SecondOrderChain, Structure> second_order_chain(m, "SecondOrderChain");
    second_order_chain.def(
        "__init__",
        [](SecondOrderChain* self, const Ints& lengths, Index n_labels) {
            new (self) SecondOrderChain(vector_of(lengths), n_labels);
        },
        "lengths"_same, "n_labels"_a);
    def_sequences(second_order_chain);

    nb::class_<HistoryChain, Structure> history_chain(m, "HistoryChain");
    history_chain
        .def(
            "__init__",
            [](HistoryChain* self, const Ints& lengths, Index n_labels, Index history, const Floats& first,
               const Ints& pairs, const Floats& second, Index beam_width) {
                check_finite(first, "first");
                check_finite(second, "second");
                new (self) HistoryChain(vector_of(lengths), n_labels, history, vector_of(first), vector_of(pairs),
                                        vector_of(second), beam_width);
            },
            "lengths"_same, "n_labels"_a, "history"_a, "first"_a, "pairs"_same, "second"_a, "beam_width"_a)
        .def_prop_ro("history", &HistoryChain::history)
        .def_prop_ro("n_states", &HistoryChain::n_states);
    def_sequences(history_chain);
}

void check_positions(const SegmentChain& s, std::size_t labels, std::size_t begins) {
    Index total = 0;
    for (const Index length : s.lengths()) total += length;
    if (len(labels) != total || len(begins) != total) {
        throw InputError("labels and begins have ", labels, " and ", begins, " values, the sequences ", total,
                         " positions");
    }
}

void bind_segment_chain(nb::module_& m) {
    nb::class_<SegmentChain, Structure>(m, "SegmentChain")
        .def(
            "__init__",
            [](SegmentChain* self, const Ints& lengths, Index n_labels, Index max_length,
               const std::optional<Ints>& max_lengths, const std::optional<std::tuple<Ints, Ints, Ints>>& listed,
               bool segment_cost) {
                SegmentList list;
                if (listed) {
                    const auto& [ptr, begins, ends] = *listed;
                    list = {vector_of(ptr), vector_of(begins), vector_of(ends)};
                }
                new (self) SegmentChain(vector_of(lengths), n_labels, max_length, vector_of(max_lengths),
                                        std::move(list), segment_cost);
            },
            "lengths"_same, "n_labels"_a, "max_length"_a, "max_lengths"_or_none, "listed"_or_none,
            "segment_cost"_a = false)
        .def_prop_ro("n_labels", &SegmentChain::n_labels)
        .def_prop_ro("width", &SegmentChain::width)
        .def_prop_ro("max_length", &SegmentChain::max_length)
        .def_prop_ro("segment_cost", &SegmentChain::segment_cost)
        .def_prop_ro("max_lengths", copied<SegmentChain>(&SegmentChain::max_lengths))
        .def_prop_ro("lengths", copied<SegmentChain>(&SegmentChain::lengths))
        .def_prop_ro("listed",
                     [](const SegmentChain& s) {
                         const SegmentList& all = s.listed();
                         return tuple_of(all.ptr, all.begins, all.ends);
                     })
        .def(
            "encode",
            [](const SegmentChain& s, const Ints& labels, const Bytes& begins) {
                check_positions(s, labels.size(), begins.size());
                Index at = 0;
                return encode_all(s.num_examples(), [&](Index i, SlotCounts& out) {
                    for (Index t = 0; t < s.lengths()[i]; ++t) {
                        check_label(labels.data()[at + t], s.n_labels(), i, "sequence ");
                    }
                    s.labelling_of(i, labels.data() + at, begins.data() + at, out);
                    at += s.lengths()[i];
                });
            },
            "labels"_same, "begins"_same)
        .def(
            "decode",
            [](const SegmentChain& s, const Ints& indptr, const Ints& slots, const Floats& counts) {
                std::vector<Index> labels;
                std::vector<std::uint8_t> begins;
                decode_all(s, indptr, slots, counts, [&](Index i, SlotView one) {
                    const std::size_t at = labels.size();
                    labels.resize(at + s.lengths()[i]);
                    begins.resize(labels.size());
                    s.positions_of(i, one, labels.data() + at, begins.data() + at);
                });
                return tuple_of(std::move(labels), std::move(begins));
            },
            "indptr"_same, "slots"_same, "counts"_a)
        .def(
            "set_continuation",
            [](SegmentChain& s, Index i, const std::optional<Bytes>& allowed) {
                check_size(allowed, checked(s, i).lengths()[i] * s.width(), "the continuation mask");
                s.set_continuation(i, vector_of(allowed));
            },
            "i"_a, "allowed"_a.none())
        .def(
            "segment_probabilities",
            [](const SegmentChain& s, Index i, const Floats& scores, const Ints& begins, const Ints& ends,
               const Ints& labels, double temperature) {
                check_scores(s, i, scores);
                check_positive_temperature(temperature);
                check_size(ends, len(begins.size()), "ends");
                check_size(labels, len(begins.size()), "labels");
                std::vector<double> out(begins.size());
                without_gil([&](Workspace& ws) {
                    s.segment_probabilities(i, scores.data(), temperature, span_of(begins), span_of(ends),
                                            span_of(labels), out.data(), ws);
                });
                return numpy(std::move(out));
            },
            "i"_a, "scores"_a, "begins"_same, "ends"_same, "labels"_same, "temperature"_a = 1.0);
}

// A small structure for the tests, which shows that chart programs carry more than chains, trees and grammars: a segment
// chain (docs/charts.md explains it).
//
// Segments of at most `longest` positions, each with a label. Slots: (end, label, begin) of segments, a row of
// `longest` per end and label; then (label, label before it).
//   end(t, b)   = sum over s in [t - longest, t) of begin(s, b) with the segment [s, t)
//   begin(t, b) = sum over a of end(t, a) with (b, a);   begin(0, b) is the empty one
struct SegmentProgram {
    Index length;
    Index n_labels;
    Index longest;

    Index cells() const { return 2 * (length + 1) * n_labels + 1; }
    Index slots() const { return (length * longest + n_labels) * n_labels; }
    Index root() const { return cells() - 1; }
    Index most_edges() const { return std::max(longest, n_labels); }

    Index end(Index t, Index b) const { return t * n_labels + b; }
    Index begin(Index t, Index b) const { return ((length + 1) * n_labels) + b * (length + 1) + t; }

    template <class V>
    void up(V&& v) const {
        for (Index t = 0; t <= length; ++t) {
            for (Index b = 0; t > 0 && b < n_labels; ++b) visit_end(t, b, v);
            for (Index b = 0; t < length && b < n_labels; ++b) visit_begin(t, b, v);
        }
        visit(root(), v);
    }
    template <class V>
    void down(V&& v) const {
        visit(root(), v);
        for (Index t = length; t >= 0; --t) {
            for (Index b = 0; t < length && b < n_labels; ++b) visit_begin(t, b, v);
            for (Index b = 0; t > 0 && b < n_labels; ++b) visit_end(t, b, v);
        }
    }
    template <class V>
    void visit(Index cell, V&& v) const {
        if (cell == root()) return v.sum(cell, cell, chart::Tails{end(length, 0), n_labels});
        const Index other = cell - begin(0, 0);
        if (other < 0) return visit_end(cell / n_labels, cell % n_labels, v);
        visit_begin(other % (length + 1), other / (length + 1), v);
    }

   private:
    template <class V>
    void visit_end(Index t, Index b, V&& v) const {
        const Index s = std::max<Index>(0, t - longest);
        const Index slot = ((t - 1) * n_labels + b) * longest + s - (t - longest);
        v.sum(end(t, b), end(t, b), chart::ScoredTails<>{begin(s, b), slot, t - s});
    }
    template <class V>
    void visit_begin(Index t, Index b, V&& v) const {
        if (t == 0) return v.unit(begin(0, b), begin(0, b));
        const Index slot = (length * longest + b) * n_labels;
        v.sum(begin(t, b), begin(t, b), chart::ScoredTails<>{end(t, 0), slot, n_labels});
    }
};

class ToySegments final : public ChartStructure<SegmentProgram> {
   public:
    ToySegments(std::vector<Index> lengths, Index n_labels, Index longest)
        : ChartStructure(len(lengths.size())), lengths_(std::move(lengths)), n_labels_(n_labels), longest_(longest) {}
    void add_cost(Index, SlotView, double, double*) const override {}

   protected:
    SegmentProgram program(Index i) const override { return {lengths_[i], n_labels_, longest_}; }

   private:
    std::vector<Index> lengths_;
    Index n_labels_;
    Index longest_;
};

void bind_toy_charts(nb::module_& m) {
    nb::class_<ToySegments, Structure>(m, "_ToySegments")
        .def(
            "__init__",
            [](ToySegments* self, const Ints& lengths, Index n_labels, Index longest) {
                new (self) ToySegments(vector_of(lengths), n_labels, longest);
            },
            "lengths"_a, "n_labels"_a, "longest"_a);
}

}  // namespace

void bind_structures(nb::module_& m) {
    bind_structure(m);
    bind_sequences(m);
    bind_segment_chain(m);
    bind_toy_charts(m);
}

}  // namespace partwise::bindings
