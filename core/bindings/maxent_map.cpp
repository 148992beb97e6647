#include "features/maxent_map.h"

#include "bindings/keep_alive.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_maxent_map(nb::module_& m) {
    nb::class_<MaxentMap, FeatureMap>(m, "MaxentMap")
        .def(
            "__init__",
            [](MaxentMap* self, RowLayout& layout, const Ints& row_ptr, const Ints& attributes,
               const std::optional<Floats>& values) {
                if (values) check_size(*values, len(attributes.size()), "values");
                std::shared_ptr<RowLayout> shared = share(layout);
                const nb::gil_scoped_release release;
                new (self) MaxentMap(std::move(shared), span_of(row_ptr), span_of(attributes),
                                     values ? span_of(*values) : std::span<const double>{});
            },
            "layout"_a, "row_ptr"_a.noconvert(), "attributes"_a.noconvert(), "values"_a.none() = nb::none())
        .def_static(
            "of_matrix",
            [](Index n_labels, Index width, Index n_features, const Ints& row_ptr, const Ints& features,
               const std::optional<Floats>& values) {
                if (values) check_size(*values, len(features.size()), "values");
                if (n_labels < 1 || (len(row_ptr.size()) - 1) % n_labels != 0)
                    throw InputError("row_ptr must have a row for every label of every example");
                const Index n = (len(row_ptr.size()) - 1) / n_labels;
                const nb::gil_scoped_release release;
                return std::make_unique<MaxentMap>(n, n_labels, width, n_features, span_of(row_ptr), span_of(features),
                                                   values ? span_of(*values) : std::span<const double>{});
            },
            "n_labels"_a, "width"_a, "n_features"_a, "row_ptr"_a.noconvert(), "features"_a.noconvert(),
            "values"_a.none() = nb::none())
        .def_prop_ro("num_columns", &MaxentMap::num_columns)
        .def_prop_ro("num_cells", &MaxentMap::num_cells)
        .def_prop_ro("binary", &MaxentMap::binary)
        .def(
            "column",
            [](const MaxentMap& f, Index k) {
                if (k < 0 || k >= f.num_columns()) throw InputError("no column " + std::to_string(k));
                const Column c = f.column(k);
                std::vector<Index> examples;
                std::vector<Index> slots;
                std::vector<double> values;
                for (Index j = 0; j < c.size; ++j) {
                    examples.push_back(c.examples[j]);
                    slots.push_back(c.slots ? c.slots[j] : c.slot);
                    values.push_back(c.values ? c.values[j] : 1.0);
                }
                return nb::make_tuple(c.weight, numpy(std::move(examples)), numpy(std::move(slots)),
                                      numpy(std::move(values)));
            },
            "k"_a);
}

}  // namespace partwise::bindings
