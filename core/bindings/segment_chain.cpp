#include "structures/segment_chain.h"

#include "bindings/checks.h"
#include "bindings/labellings.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

void check_positions(const SegmentChain& s, std::size_t labels, std::size_t begins) {
    Index total = 0;
    for (const Index length : s.lengths()) total += length;
    if (len(labels) != total || len(begins) != total) {
        throw InputError("labels and begins have " + std::to_string(labels) + " and " + std::to_string(begins) +
                         " values, the sequences " + std::to_string(total) + " positions");
    }
}

}  // namespace

void bind_segment_chain(nb::module_& m) {
    nb::class_<SegmentChain, Structure>(m, "SegmentChain")
        .def(
            "__init__",
            [](SegmentChain* self, const Ints& lengths, Index n_labels, Index max_length,
               const std::optional<Ints>& max_lengths, const std::optional<std::tuple<Ints, Ints, Ints>>& listed,
               bool segment_cost) {
                SegmentList list;
                if (listed) {
                    list = {vector_of<Index>(std::get<0>(*listed)), vector_of<Index>(std::get<1>(*listed)),
                            vector_of<Index>(std::get<2>(*listed))};
                }
                new (self) SegmentChain(vector_of<Index>(lengths), n_labels, max_length,
                                        max_lengths ? vector_of<Index>(*max_lengths) : std::vector<Index>{},
                                        std::move(list), segment_cost);
            },
            "lengths"_a.noconvert(), "n_labels"_a, "max_length"_a, "max_lengths"_a.none() = nb::none(),
            "listed"_a.none() = nb::none(), "segment_cost"_a = false)
        .def_prop_ro("n_labels", &SegmentChain::n_labels)
        .def_prop_ro("width", &SegmentChain::width)
        .def_prop_ro("max_length", &SegmentChain::max_length)
        .def_prop_ro("segment_cost", &SegmentChain::segment_cost)
        .def_prop_ro(
            "max_lengths", [](const SegmentChain& s) { return numpy(s.max_lengths()); }, nb::rv_policy::automatic)
        .def_prop_ro(
            "lengths", [](const SegmentChain& s) { return numpy(s.lengths()); }, nb::rv_policy::automatic)
        .def_prop_ro("listed",
                     [](const SegmentChain& s) {
                         const SegmentList& all = s.listed();
                         return nb::make_tuple(numpy(all.ptr), numpy(all.begins), numpy(all.ends));
                     })
        .def(
            "encode",
            [](const SegmentChain& s, const Ints& labels, const Bytes& begins) {
                check_positions(s, labels.size(), begins.size());
                Index at = 0;
                return encode_all(s.num_examples(), [&](Index i, SlotCounts& out) {
                    for (Index t = 0; t < s.lengths()[idx(i)]; ++t) {
                        const Index label = labels.data()[at + t];
                        if (label < 0 || label >= s.n_labels()) {
                            throw InputError("sequence " + std::to_string(i) + ": label " + std::to_string(label) +
                                             " is not in [0, " + std::to_string(s.n_labels()) + ")");
                        }
                    }
                    s.labelling_of(i, labels.data() + at, begins.data() + at, out);
                    at += s.lengths()[idx(i)];
                });
            },
            "labels"_a.noconvert(), "begins"_a.noconvert())
        .def(
            "decode",
            [](const SegmentChain& s, const Ints& indptr, const Ints& slots, const Floats& counts) {
                std::vector<Index> labels;
                std::vector<std::uint8_t> begins;
                decode_all(s, indptr, slots, counts, [&](Index i, SlotView one) {
                    const std::size_t at = labels.size();
                    labels.resize(at + idx(s.lengths()[idx(i)]));
                    begins.resize(labels.size());
                    s.positions_of(i, one, labels.data() + at, begins.data() + at);
                });
                return nb::make_tuple(numpy(std::move(labels)), numpy(std::move(begins)));
            },
            "indptr"_a.noconvert(), "slots"_a.noconvert(), "counts"_a)
        .def(
            "set_continuation",
            [](SegmentChain& s, Index i, const std::optional<Bytes>& allowed) {
                check_index(i, s.num_examples());
                if (allowed) check_size(*allowed, s.lengths()[idx(i)] * s.width(), "the continuation mask");
                s.set_continuation(i, allowed ? vector_of<std::uint8_t>(*allowed) : std::vector<std::uint8_t>{});
            },
            "i"_a, "allowed"_a.none())
        .def(
            "segment_probabilities",
            [](const SegmentChain& s, Index i, const Floats& scores, const Ints& begins, const Ints& ends,
               const Ints& labels, double temperature) {
                check_index(i, s.num_examples());
                check_size(scores, s.num_slots(i), "scores");
                check_finite(scores, "scores");
                check_temperature(temperature);
                if (temperature == 0.0) throw InputError("temperature must be above 0 here");
                check_size(ends, len(begins.size()), "ends");
                check_size(labels, len(begins.size()), "labels");
                std::vector<double> out(begins.size());
                {
                    Interrupt interrupt = python_interrupt();
                    const nb::gil_scoped_release release;
                    Workspace ws;
                    s.segment_probabilities(i, scores.data(), temperature, span_of(begins), span_of(ends),
                                            span_of(labels), out.data(), ws);
                }
                return numpy(std::move(out));
            },
            "i"_a, "scores"_a, "begins"_a.noconvert(), "ends"_a.noconvert(), "labels"_a.noconvert(),
            "temperature"_a = 1.0);
}

}  // namespace partwise::bindings
