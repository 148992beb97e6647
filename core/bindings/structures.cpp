// Structures: what all of them answer, and those over sequences of labels.
#include <nanobind/stl/set.h>

#include "bindings/labellings.h"
#include "bindings/python_structure.h"
#include "structures/chain.h"
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

// Calls f(workspace) without the GIL. Structures check for Ctrl-C themselves, because one example can take long.
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
    check_floats(cliques, checked(s, i).cliques().clique_offsets(i).back(), "marginals");
}

// (value, slots, counts) of the labelling that f(labelling, workspace) finds.
template <class F>
nb::tuple labelling_by(F&& f) {
    SlotCounts best;
    const double value = without_gil([&](Workspace& ws) { return f(best, ws); });
    return pack(value, best);
}

// The array of n numbers that f(numbers, workspace) fills.
template <class F>
NumPy<double> array_by(Index n, F&& f) {
    std::vector<double> out(n);
    without_gil([&](Workspace& ws) { f(out.data(), ws); });
    return numpy(std::move(out));
}

nb::tuple sums(const Structure& s, Index i, const Floats& scores, double temperature) {
    check_scores(s, i, scores);
    check_temperature(temperature);
    std::vector<double> marginals(scores.size());
    double entropy = 0;
    const double value = without_gil(
        [&](Workspace& ws) { return s.log_partition(i, scores.data(), temperature, marginals.data(), &entropy, ws); });
    return tuple_of(value, std::move(marginals), entropy);
}

template <class S>
void def_sequences(nb::class_<S, Structure>& cls) {
    cls.def_prop_ro("n_labels", &S::n_labels)
        .def_prop_ro("width", &S::width)
        .def_prop_ro("lengths", copied<S>(&S::lengths));
}

// Defines the members of structures whose labelling is one label per position.
template <class S>
void def_label_sequences(nb::class_<S, Structure>& cls) {
    def_sequences(cls);
    define(cls, "set_follow", args("pairs"_a.none(), "first"_or_none, "last"_or_none),
           [](S& s, OrNone<Bytes> pairs, OrNone<Bytes> first, OrNone<Bytes> last) {
               s.set_follow({vector_of(pairs), vector_of(first), vector_of(last)});
           });
    def_numbers(
        cls, "labels", [](const S& s) { return starts_of(s.lengths()); },
        [](const S& s, Index i, const Index* labels, SlotCounts& out) {
            for (Index t = 0; t < s.lengths()[i]; ++t) check_label(labels[t], s.n_labels(), i);
            s.labelling_of(i, labels, out);
        },
        [](const S& s, Index i, SlotView one, Index* labels) { s.labels_of(i, one, labels); });
}

void bind_structure(nb::module_& m) {
    nb::class_<Structure, PythonStructure> cls(m, "Structure");
    cls.def(nb::init<Index>(), "num_examples"_a)
        .def_prop_ro("num_examples", &Structure::num_examples)
        .def_prop_ro("linear", &Structure::linear)
        .def("capabilities", &capability_names);
    define(cls, "num_slots", args("i"_a), [](const Structure& s, Index i) { return checked(s, i).num_slots(i); });
    cls.def("slot_offsets", [](const Structure& s) { return numpy(s.slot_offsets()); });
    define(cls, "maximize", args("i"_a, "scores"_a), [](const Structure& s, Index i, const Floats& scores) {
        check_scores(s, i, scores);
        return labelling_by([&](SlotCounts& best, Workspace& ws) { return s.maximize(i, scores.data(), best, ws); });
    });
    define(cls, "maximize_many", args("examples"_a, "scores"_a),
           [](const Structure& s, const std::vector<Index>& examples, const std::vector<Floats>& scores) {
               check_alike(examples, scores);
               std::vector<const double*> own;
               for (std::size_t k = 0; k < examples.size(); ++k) {
                   check_scores(s, examples[k], scores[k]);
                   own.push_back(scores[k].data());
               }
               std::vector<double> values(examples.size());
               std::vector<SlotCounts> best(examples.size());
               without_gil([&](Workspace& ws) { s.maximize_of(examples, own.data(), values.data(), best.data(), ws); });
               nb::list out;
               for (std::size_t k = 0; k < best.size(); ++k) out.append(pack(values[k], best[k]));
               return out;
           });
    cls.def("log_partition", &sums, "i"_a, "scores"_a, "temperature"_a = 1.0);
    define(cls, "log_partition_many", args("examples"_a, "scores"_a, "temperature"_a = 1.0),
           [](const Structure& s, const std::vector<Index>& examples, const std::vector<Floats>& scores,
              double temperature) {
               check_alike(examples, scores);
               check_temperature(temperature);
               nb::list out;
               for (std::size_t k = 0; k < examples.size(); ++k)
                   out.append(sums(s, examples[k], scores[k], temperature));
               return out;
           });
    define(cls, "cost", args("i"_a, "slots"_same, "counts"_a),
           [](const Structure& s, Index i, const Ints& slots, const Floats& counts) {
               check_index(i, s.num_examples());
               const SlotView gold = view_of(slots, counts);
               for (const Index slot : gold.slots) {
                   if (slot < 0 || slot >= s.num_slots(i)) throw InputError("a gold slot is out of range");
               }
               std::vector<double> cost(s.num_slots(i), 0.0);
               s.add_cost(i, gold, 1.0, cost.data());
               return numpy(std::move(cost));
           });
    define(cls, "check_labelling", args("i"_a, "slots"_same, "counts"_a),
           [](const Structure& s, Index i, const Ints& slots, const Floats& counts) {
               check_index(i, s.num_examples());
               Workspace ws;
               s.check_labelling(i, view_of(slots, counts), ws);
           });
    define(cls, "set_mask", args("i"_a, "allowed"_a.none()), [](Structure& s, Index i, OrNone<Bytes> allowed) {
        check_size(allowed, checked(s, i).num_slots(i), "the mask");
        s.set_mask(i, vector_of(allowed));
    });
    define(cls, "mask", args("i"_a), [](const Structure& s, Index i) -> nb::object {
        if (!checked(s, i).mask(i)) return nb::none();
        return nb::cast(numpy(std::vector<std::uint8_t>(s.mask(i), s.mask(i) + s.num_slots(i))));
    });
    define(cls, "k_best", args("i"_a, "scores"_a, "k"_a),
           [](const Structure& s, Index i, const Floats& scores, Index k) {
               check_scores(s, i, scores);
               const std::vector<Scored> best =
                   without_gil([&](Workspace& ws) { return s.k_best(i, scores.data(), k, ws); });
               nb::list out;
               for (const Scored& x : best) out.append(pack(x.value, x.labelling));
               return out;
           });
    define(cls, "sample", args("i"_a, "scores"_a, "temperature"_a, "n"_a, "seed"_a),
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
           });
    define(cls, "covariance_product", args("i"_a, "scores"_a, "temperature"_a, "direction"_a),
           [](const Structure& s, Index i, const Floats& scores, double temperature, const Floats& direction) {
               check_scores(s, i, scores);
               check_positive_temperature(temperature);
               check_floats(direction, s.num_slots(i), "direction");
               return array_by(s.num_slots(i), [&](double* out, Workspace& ws) {
                   s.covariance_product(i, scores.data(), temperature, direction.data(), out, ws);
               });
           });
    define(cls, "clique_offsets", args("i"_a),
           [](const Structure& s, Index i) { return numpy(checked(s, i).cliques().clique_offsets(i)); });
    define(cls, "clique_marginals", args("i"_a, "scores"_a, "temperature"_a),
           [](const Structure& s, Index i, const Floats& scores, double temperature) {
               check_scores(s, i, scores);
               check_positive_temperature(temperature);
               const CliqueView& view = s.cliques();
               return array_by(view.clique_offsets(i).back(), [&](double* out, Workspace& ws) {
                   view.clique_marginals(i, scores.data(), temperature, out, ws);
               });
           });
    define(
        cls, "slots_from_cliques", args("i"_a, "marginals"_a), [](const Structure& s, Index i, const Floats& cliques) {
            check_cliques(s, i, cliques);
            return array_by(s.num_slots(i),
                            [&](double* out, Workspace&) { s.cliques().slots_from_cliques(i, cliques.data(), out); });
        });
    define(
        cls, "entropy_of_cliques", args("i"_a, "marginals"_a), [](const Structure& s, Index i, const Floats& cliques) {
            check_cliques(s, i, cliques);
            std::vector<double> gradient(cliques.size());
            const double entropy = without_gil(
                [&](Workspace& ws) { return s.cliques().entropy_of_cliques(i, cliques.data(), gradient.data(), ws); });
            return tuple_of(entropy, std::move(gradient));
        });
    define(
        cls, "scores_from_cliques", args("i"_a, "marginals"_a), [](const Structure& s, Index i, const Floats& cliques) {
            check_cliques(s, i, cliques);
            return array_by(len(cliques.size()),
                            [&](double* out, Workspace&) { s.cliques().scores_from_cliques(i, cliques.data(), out); });
        });
    define(cls, "slot_scores_from_cliques", args("i"_a, "marginals"_a),
           [](const Structure& s, Index i, const Floats& cliques) -> nb::object {
               check_cliques(s, i, cliques);
               std::vector<double> out(s.num_slots(i));
               if (!s.cliques().slot_scores_from_cliques(i, cliques.data(), out.data())) return nb::none();
               return nb::cast(numpy(std::move(out)));
           });
    define(cls, "clique_entries", args("i"_a, "slots"_same, "counts"_a),
           [](const Structure& s, Index i, const Ints& slots, const Floats& counts) {
               check_index(i, s.num_examples());
               const SlotView labelling = view_of(slots, counts);
               Workspace ws;
               s.check_labelling(i, labelling, ws);
               std::vector<Index> out(s.cliques().clique_offsets(i).size() - 1);
               s.cliques().clique_entries(i, labelling, out.data(), ws);
               return numpy(std::move(out));
           });
    define(cls, "maximize_in_support", args("i"_a, "scores"_a, "marginals"_a, "least"_a = 0.0),
           [](const Structure& s, Index i, const Floats& scores, const Floats& cliques, double least) {
               check_scores(s, i, scores);
               check_cliques(s, i, cliques);
               return labelling_by([&](SlotCounts& best, Workspace& ws) {
                   return s.cliques().maximize_in_support(i, scores.data(), cliques.data(), least, best, ws);
               });
           });
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
    define(chain, "__init__", args("lengths"_same, "n_labels"_a, "tied"_a = true, "ends"_a = false),
           [](Chain* self, const Ints& lengths, Index n_labels, bool tied, bool ends) {
               new (self) Chain(vector_of(lengths), n_labels, tied, ends);
           });
    chain.def_prop_ro("tied", &Chain::tied).def_prop_ro("ends", &Chain::ends);
    def_label_sequences(chain);

    nb::class_<SecondOrderChain, Structure> second_order_chain(m, "SecondOrderChain");
    define(second_order_chain, "__init__", args("lengths"_same, "n_labels"_a),
           [](SecondOrderChain* self, const Ints& lengths, Index n_labels) {
               new (self) SecondOrderChain(vector_of(lengths), n_labels);
           });
    def_label_sequences(second_order_chain);

    nb::class_<HistoryChain, Structure> history_chain(m, "HistoryChain");
    define(history_chain, "__init__",
           args("lengths"_same, "n_labels"_a, "history"_a, "first"_a, "pairs"_same, "second"_a, "beam_width"_a),
           [](HistoryChain* self, const Ints& lengths, Index n_labels, Index history, const Floats& first,
              const Ints& pairs, const Floats& second, Index beam_width) {
               check_finite(first, "first");
               check_finite(second, "second");
               new (self) HistoryChain(vector_of(lengths), n_labels, history, vector_of(first), vector_of(pairs),
                                       vector_of(second), beam_width);
           });
    history_chain.def_prop_ro("history", &HistoryChain::history).def_prop_ro("n_states", &HistoryChain::n_states);
    def_label_sequences(history_chain);
}

void bind_segment_chain(nb::module_& m) {
    nb::class_<SegmentChain, Structure> cls(m, "SegmentChain");
    def_sequences(cls);
    define(cls, "__init__",
           args("lengths"_same, "n_labels"_a, "max_length"_a, "max_lengths"_or_none, "listed"_or_none,
                "segment_cost"_a = false),
           [](SegmentChain* self, const Ints& lengths, Index n_labels, Index max_length, OrNone<Ints> max_lengths,
              const std::optional<std::tuple<Ints, Ints, Ints>>& listed, bool segment_cost) {
               SegmentList list;
               if (listed) {
                   const auto& [ptr, begins, ends] = *listed;
                   list = {vector_of(ptr), vector_of(begins), vector_of(ends)};
               }
               new (self) SegmentChain(vector_of(lengths), n_labels, max_length, vector_of(max_lengths),
                                       std::move(list), segment_cost);
           });
    cls.def_prop_ro("max_length", &SegmentChain::max_length)
        .def_prop_ro("segment_cost", &SegmentChain::segment_cost)
        .def_prop_ro("max_lengths", copied<SegmentChain>(&SegmentChain::max_lengths))
        .def_prop_ro("listed", [](const SegmentChain& s) {
            const SegmentList& all = s.listed();
            return tuple_of(all.ptr, all.begins, all.ends);
        });
    define(cls, "encode", args("labels"_same, "begins"_same),
           [](const SegmentChain& s, const Ints& labels, const Bytes& begins) {
               const std::vector<Index> starts = starts_of(s.lengths());
               if (len(labels.size()) != starts.back() || len(begins.size()) != starts.back()) {
                   throw InputError("labels and begins have ", labels.size(), " and ", begins.size(),
                                    " values, the sequences ", starts.back(), " positions");
               }
               return encode_all(s.num_examples(), [&](Index i, SlotCounts& out) {
                   for (Index t = starts[i]; t < starts[i + 1]; ++t) {
                       check_label(labels.data()[t], s.n_labels(), i, "sequence ");
                   }
                   s.labelling_of(i, labels.data() + starts[i], begins.data() + starts[i], out);
               });
           });
    define(cls, "decode", args("indptr"_same, "slots"_same, "counts"_a),
           [](const SegmentChain& s, const Ints& indptr, const Ints& slots, const Floats& counts) {
               const std::vector<Index> starts = starts_of(s.lengths());
               std::vector<Index> labels(starts.back());
               std::vector<std::uint8_t> begins(starts.back());
               decode_all(s, indptr, slots, counts, [&](Index i, SlotView one) {
                   s.positions_of(i, one, labels.data() + starts[i], begins.data() + starts[i]);
               });
               return tuple_of(std::move(labels), std::move(begins));
           });
    define(cls, "set_continuation", args("i"_a, "allowed"_a.none()),
           [](SegmentChain& s, Index i, OrNone<Bytes> allowed) {
               check_size(allowed, checked(s, i).lengths()[i] * s.width(), "the continuation mask");
               s.set_continuation(i, vector_of(allowed));
           });
    define(cls, "segment_probabilities",
           args("i"_a, "scores"_a, "begins"_same, "ends"_same, "labels"_same, "temperature"_a = 1.0),
           [](const SegmentChain& s, Index i, const Floats& scores, const Ints& begins, const Ints& ends,
              const Ints& labels, double temperature) {
               check_scores(s, i, scores);
               check_positive_temperature(temperature);
               check_size(ends, len(begins.size()), "ends");
               check_size(labels, len(begins.size()), "labels");
               return array_by(len(begins.size()), [&](double* out, Workspace& ws) {
                   s.segment_probabilities(i, scores.data(), temperature, span_of(begins), span_of(ends),
                                           span_of(labels), out, ws);
               });
           });
}

}  // namespace

void bind_structures(nb::module_& m) {
    bind_structure(m);
    bind_sequences(m);
    bind_segment_chain(m);
}

}  // namespace partwise::bindings
