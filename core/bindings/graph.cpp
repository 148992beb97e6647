#include "structures/graph.h"

#include "bindings/common.h"
#include "bindings/labellings.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

constexpr double kDefaultMemoryLimit = 1 << 30;

std::vector<Index> given(const std::optional<Ints>& values) {
    return values ? vector_of<Index>(*values) : std::vector<Index>{};
}

const Graph& checked(const Graph& g, Index i) {
    check_index(i, g.num_examples());
    return g;
}

}  // namespace

void bind_graph(nb::module_& m) {
    nb::class_<Graph, Structure>(m, "Graph")
        .def(
            "__init__",
            [](Graph* self, const Ints& vertex_ptr, const Ints& n_labels, const Ints& clique_ptr,
               const Ints& member_ptr, const Ints& members, const Ints& tables, double memory_limit,
               const std::optional<Ints>& common_ptr, const std::optional<Ints>& common_labels) {
                new (self) Graph({vector_of<Index>(vertex_ptr), vector_of<Index>(n_labels),
                                  vector_of<Index>(clique_ptr), vector_of<Index>(member_ptr), vector_of<Index>(members),
                                  vector_of<Index>(tables), given(common_ptr), given(common_labels)},
                                 memory_limit);
            },
            "vertex_ptr"_a.noconvert(), "n_labels"_a.noconvert(), "clique_ptr"_a.noconvert(),
            "member_ptr"_a.noconvert(), "members"_a.noconvert(), "tables"_a.noconvert(),
            "memory_limit"_a = kDefaultMemoryLimit, "common_ptr"_a.noconvert() = nb::none(),
            "common_labels"_a.noconvert() = nb::none())
        .def_prop_ro("memory_limit", &Graph::memory_limit)
        .def_prop_ro(
            "vertex_ptr", [](const Graph& g) { return numpy(g.layout().vertex_ptr); }, nb::rv_policy::automatic)
        .def_prop_ro(
            "n_labels", [](const Graph& g) { return numpy(g.layout().n_labels); }, nb::rv_policy::automatic)
        .def_prop_ro(
            "clique_ptr", [](const Graph& g) { return numpy(g.layout().clique_ptr); }, nb::rv_policy::automatic)
        .def_prop_ro(
            "member_ptr", [](const Graph& g) { return numpy(g.layout().member_ptr); }, nb::rv_policy::automatic)
        .def_prop_ro(
            "members", [](const Graph& g) { return numpy(g.layout().members); }, nb::rv_policy::automatic)
        .def_prop_ro(
            "tables", [](const Graph& g) { return numpy(g.layout().tables); }, nb::rv_policy::automatic)
        .def(
            "table_offsets", [](const Graph& g, Index i) { return numpy(checked(g, i).table_offsets(i)); }, "i"_a)
        .def(
            "width", [](const Graph& g, Index i) { return checked(g, i).width(i); }, "i"_a)
        .def(
            "bytes", [](const Graph& g, Index i) { return checked(g, i).bytes(i); }, "i"_a)
        .def(
            "encode",
            [](const Graph& g, const Ints& labels) {
                check_size(labels, g.layout().vertex_ptr.back(), "labels");
                return encode_all(g.num_examples(), [&](Index i, SlotCounts& out) {
                    g.labelling_of(i, labels.data() + g.layout().vertex_ptr[idx(i)], out);
                });
            },
            "labels"_a.noconvert())
        .def(
            "decode",
            [](const Graph& g, const Ints& indptr, const Ints& slots, const Floats& counts) {
                std::vector<Index> labels(idx(g.layout().vertex_ptr.back()));
                decode_all(g, indptr, slots, counts, [&](Index i, SlotView one) {
                    g.labels_of(i, one, labels.data() + g.layout().vertex_ptr[idx(i)]);
                });
                return numpy(std::move(labels));
            },
            "indptr"_a.noconvert(), "slots"_a.noconvert(), "counts"_a)
        .def(
            "decode_of",
            [](const Graph& g, Index i, const Ints& slots, const Floats& counts) {
                std::vector<Index> labels(idx(checked(g, i).num_vertices(i)));
                g.labels_of(i, view_of(slots, counts), labels.data());
                return numpy(std::move(labels));
            },
            "i"_a, "slots"_a.noconvert(), "counts"_a);
}

}  // namespace partwise::bindings
