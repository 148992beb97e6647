#include <nanobind/stl/set.h>

#include "bindings/checks.h"
#include "bindings/labellings.h"
#include "bindings/python_structure.h"
#include "structures/chain.h"
#include "structures/history_chain.h"
#include "structures/multiclass.h"
#include "structures/second_order_chain.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

void check_scores(const Structure& s, Index i, const Floats& scores) {
    check_index(i, s.num_examples());
    check_size(scores, s.num_slots(i), "scores");
    check_finite(scores, "scores");
}

void check_alike(const std::vector<Index>& examples, const std::vector<Floats>& scores) {
    if (examples.size() != scores.size()) {
        throw InputError(std::to_string(examples.size()) + " examples with scores for " +
                         std::to_string(scores.size()));
    }
}

void check_positive_temperature(double temperature) {
    check_temperature(temperature);
    if (temperature == 0.0) throw InputError("temperature must be above 0 here");
}

// Calls f(workspace) with the GIL released; Ctrl-C is looked for inside (one example can take long).
template <class F>
auto without_gil(F&& f) {
    Interrupt interrupt = python_interrupt();
    const nb::gil_scoped_release release;
    Workspace ws;
    return f(ws);
}

nb::tuple pack(const SlotCounts& labelling) { return nb::make_tuple(numpy(labelling.slots), numpy(labelling.counts)); }

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

// A clique vector's length, checked against the array given.
Index clique_size(const Structure& s, Index i) {
    check_index(i, s.num_examples());
    return s.clique_offsets(i).back();
}

void check_cliques(const Structure& s, Index i, const Floats& cliques) {
    check_size(cliques, clique_size(s, i), "marginals");
    check_finite(cliques, "marginals");
}

void check_label(Index label, Index n_labels, Index example) {
    if (label < 0 || label >= n_labels) {
        throw InputError("example " + std::to_string(example) + ": label " + std::to_string(label) + " is not in [0, " +
                         std::to_string(n_labels) + ")");
    }
}

// What all structures over sequences of labels have.
template <class S>
void bind_sequences(nb::class_<S, Structure>& cls) {
    cls.def_prop_ro("n_labels", &S::n_labels)
        .def_prop_ro("width", &S::width)
        .def_prop_ro(
            "lengths", [](const S& s) { return numpy(s.lengths()); }, nb::rv_policy::automatic)
        .def(
            "set_follow",
            [](S& s, const std::optional<Bytes>& pairs, const std::optional<Bytes>& first,
               const std::optional<Bytes>& last) {
                const auto bytes = [](const std::optional<Bytes>& given) {
                    return given ? vector_of<std::uint8_t>(*given) : std::vector<std::uint8_t>{};
                };
                s.set_follow({bytes(pairs), bytes(first), bytes(last)});
            },
            "pairs"_a.none(), "first"_a.none() = nb::none(), "last"_a.none() = nb::none())
        .def(
            "encode",
            [](const S& s, const Ints& labels) {
                Index total = 0;
                for (const Index length : s.lengths()) total += length;
                check_size(labels, total, "labels");
                const Index* next = labels.data();
                return encode_all(s.num_examples(), [&](Index i, SlotCounts& out) {
                    const Index length = s.lengths()[idx(i)];
                    for (Index t = 0; t < length; ++t) check_label(next[t], s.n_labels(), i);
                    s.labelling_of(i, next, out);
                    next += length;
                });
            },
            "labels"_a.noconvert())
        .def(
            "decode",
            [](const S& s, const Ints& indptr, const Ints& slots, const Floats& counts) {
                std::vector<Index> labels;
                decode_all(s, indptr, slots, counts, [&](Index i, SlotView one) {
                    const std::size_t begin = labels.size();
                    labels.resize(begin + idx(s.lengths()[idx(i)]));
                    s.labels_of(i, one, labels.data() + begin);
                });
                return numpy(std::move(labels));
            },
            "indptr"_a.noconvert(), "slots"_a.noconvert(), "counts"_a);
}

}  // namespace

void bind_structures(nb::module_& m) {
    nb::class_<Structure, PythonStructure>(m, "Structure")
        .def(nb::init<Index>(), "num_examples"_a)
        .def_prop_ro("num_examples", &Structure::num_examples)
        .def_prop_ro("linear", &Structure::linear)
        .def("capabilities", &capability_names)
        .def(
            "num_slots",
            [](const Structure& s, Index i) {
                check_index(i, s.num_examples());
                return s.num_slots(i);
            },
            "i"_a)
        .def("slot_offsets", [](const Structure& s) { return numpy(s.slot_offsets()); })
        .def(
            "maximize",
            [](const Structure& s, Index i, const Floats& scores) {
                check_scores(s, i, scores);
                SlotCounts best;
                const double value = without_gil([&](Workspace& ws) { return s.maximize(i, scores.data(), best, ws); });
                return nb::make_tuple(value, numpy(best.slots), numpy(best.counts));
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
                for (std::size_t k = 0; k < best.size(); ++k) {
                    out.append(nb::make_tuple(values[k], numpy(best[k].slots), numpy(best[k].counts)));
                }
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
                return nb::make_tuple(value, numpy(std::move(marginals)), entropy);
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
                    out.append(nb::make_tuple(value, numpy(std::move(marginals)), entropy));
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
                std::vector<double> cost(idx(s.num_slots(i)), 0.0);
                s.add_cost(i, gold, 1.0, cost.data());
                return numpy(std::move(cost));
            },
            "i"_a, "slots"_a.noconvert(), "counts"_a)
        .def(
            "check_labelling",
            [](const Structure& s, Index i, const Ints& slots, const Floats& counts) {
                check_index(i, s.num_examples());
                Workspace ws;
                s.check_labelling(i, view_of(slots, counts), ws);
            },
            "i"_a, "slots"_a.noconvert(), "counts"_a)
        .def(
            "set_mask",
            [](Structure& s, Index i, const std::optional<Bytes>& allowed) {
                check_index(i, s.num_examples());
                if (allowed) check_size(*allowed, s.num_slots(i), "the mask");
                s.set_mask(i, allowed ? vector_of<std::uint8_t>(*allowed) : std::vector<std::uint8_t>{});
            },
            "i"_a, "allowed"_a.none())
        .def(
            "mask",
            [](const Structure& s, Index i) -> nb::object {
                check_index(i, s.num_examples());
                if (!s.mask(i)) return nb::none();
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
                for (const Scored& x : best) {
                    out.append(nb::make_tuple(x.value, numpy(x.labelling.slots), numpy(x.labelling.counts)));
                }
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
            "clique_offsets",
            [](const Structure& s, Index i) {
                check_index(i, s.num_examples());
                return numpy(s.clique_offsets(i));
            },
            "i"_a)
        .def(
            "clique_marginals",
            [](const Structure& s, Index i, const Floats& scores, double temperature) {
                check_scores(s, i, scores);
                check_positive_temperature(temperature);
                std::vector<double> out(idx(clique_size(s, i)));
                without_gil([&](Workspace& ws) { s.clique_marginals(i, scores.data(), temperature, out.data(), ws); });
                return numpy(std::move(out));
            },
            "i"_a, "scores"_a, "temperature"_a)
        .def(
            "slots_from_cliques",
            [](const Structure& s, Index i, const Floats& cliques) {
                check_cliques(s, i, cliques);
                std::vector<double> out(idx(s.num_slots(i)));
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
                return nb::make_tuple(entropy, numpy(std::move(gradient)));
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
                std::vector<double> out(idx(s.num_slots(i)));
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
            "i"_a, "slots"_a.noconvert(), "counts"_a)
        .def(
            "maximize_in_support",
            [](const Structure& s, Index i, const Floats& scores, const Floats& cliques, double least) {
                check_scores(s, i, scores);
                check_cliques(s, i, cliques);
                SlotCounts best;
                const double value = without_gil([&](Workspace& ws) {
                    return s.maximize_in_support(i, scores.data(), cliques.data(), least, best, ws);
                });
                return nb::make_tuple(value, numpy(best.slots), numpy(best.counts));
            },
            "i"_a, "scores"_a, "marginals"_a, "least"_a = 0.0);

    nb::class_<Multiclass, Structure>(m, "Multiclass")
        .def(nb::init<Index, Index>(), "num_examples"_a, "n_labels"_a)
        .def_prop_ro("n_labels", &Multiclass::n_labels)
        .def_prop_ro("width", &Multiclass::width)
        .def(
            "encode",
            [](const Multiclass& s, const Ints& labels) {
                check_size(labels, s.num_examples(), "labels");
                return encode_all(s.num_examples(), [&](Index i, SlotCounts& out) {
                    check_label(labels.data()[i], s.n_labels(), i);
                    out.add(labels.data()[i], 1.0);
                });
            },
            "labels"_a.noconvert())
        .def(
            "decode",
            [](const Multiclass& s, const Ints& indptr, const Ints& slots, const Floats& counts) {
                std::vector<Index> labels;
                Workspace ws;
                decode_all(s, indptr, slots, counts, [&](Index i, SlotView one) {
                    s.check_labelling(i, one, ws);
                    labels.push_back(one.slots[0]);
                });
                return numpy(std::move(labels));
            },
            "indptr"_a.noconvert(), "slots"_a.noconvert(), "counts"_a);

    nb::class_<Chain, Structure> chain(m, "Chain");
    chain
        .def(
            "__init__",
            [](Chain* self, const Ints& lengths, Index n_labels, bool tied, bool ends) {
                new (self) Chain(vector_of<Index>(lengths), n_labels, tied, ends);
            },
            "lengths"_a.noconvert(), "n_labels"_a, "tied"_a = true, "ends"_a = false)
        .def_prop_ro("tied", &Chain::tied)
        .def_prop_ro("ends", &Chain::ends);
    bind_sequences(chain);

    nb::class_<SecondOrderChain, Structure> second_order_chain(m, "SecondOrderChain");
    second_order_chain.def(
        "__init__",
        [](SecondOrderChain* self, const Ints& lengths, Index n_labels) {
            new (self) SecondOrderChain(vector_of<Index>(lengths), n_labels);
        },
        "lengths"_a.noconvert(), "n_labels"_a);
    bind_sequences(second_order_chain);

    nb::class_<HistoryChain, Structure> history_chain(m, "HistoryChain");
    history_chain
        .def(
            "__init__",
            [](HistoryChain* self, const Ints& lengths, Index n_labels, Index history, const Floats& first,
               const Ints& pairs, const Floats& second, Index beam_width) {
                check_finite(first, "first");
                check_finite(second, "second");
                new (self) HistoryChain(vector_of<Index>(lengths), n_labels, history, vector_of<double>(first),
                                        vector_of<Index>(pairs), vector_of<double>(second), beam_width);
            },
            "lengths"_a.noconvert(), "n_labels"_a, "history"_a, "first"_a, "pairs"_a.noconvert(), "second"_a,
            "beam_width"_a)
        .def_prop_ro("history", &HistoryChain::history)
        .def_prop_ro("n_states", &HistoryChain::n_states);
    bind_sequences(history_chain);
}

}  // namespace partwise::bindings
