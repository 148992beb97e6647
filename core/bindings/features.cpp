// Feature maps, their segments and the layout of weights.
#include "bindings/common.h"
#include "features/maxent_map.h"
#include "support/sizes.h"

namespace partwise::bindings {

namespace {

using ShortInts = Array<const std::uint16_t>;
using ShortFloatRows = Array<const float, 2>;

template <class Rows>
void dense_segment(DenseSegment* self, const Rows& rows, const Ints& example_ptr, Index n_columns, Index width) {
    new (self) DenseSegment({rows.data(), len(rows.shape(0)), len(rows.shape(1)), keep_alive(rows)},
                            vector_of(example_ptr), n_columns, width);
}

template <class Columns>
auto layout_from_pairs(Index n, Index n_columns, Index width, const Ints& indptr, const Columns& columns) {
    return run_kernel([&] { return RowLayout::from_pairs(n, n_columns, width, span_of(indptr), span_of(columns)); });
}

template <class A>
void check_reaches(const SparseVector& v, const A& weights) {
    if (v.runs().empty()) return;
    const auto& last = v.runs().back();
    if (last.start + last.length > len(weights.size())) throw InputError("weights are too short");
}

const FeatureMap& checked(const FeatureMap& f, Index i) {
    check_index(i, f.num_examples());
    return f;
}

const FeatureMap& checked(const FeatureMap& f, Index i, const Floats& slots) {
    check_size(slots, checked(f, i).num_slots(i), "slots");
    return f;
}

// The rows of some slots of an example as sparse vectors.
nb::list slot_rows(const FeatureMap& f, Index i, const Ints& slots) {
    const auto all = span_of(slots);
    for (std::size_t k = 0; k < all.size(); ++k) {
        if (all[k] < 0 || all[k] >= checked(f, i).num_slots(i)) throw InputError("no slot ", all[k], " in example ", i);
        if (k > 0 && all[k] <= all[k - 1]) throw InputError("slots must ascend");
    }
    PackedRows rows;
    checked(f, i).slot_rows(i, all, 0, rows);
    nb::list out;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        SparseVector row;
        for (std::size_t j = rows.begin(k); j < rows.ends[k]; ++j) {
            row.append(Index{rows.indices[j]}, &rows.values[j], 1);
        }
        row.finish();
        out.append(row);
    }
    return out;
}

void bind_layout(nb::module_& m) {
    nb::class_<SparseVector> sparse_vector(m, "SparseVector");
    sparse_vector
        .def_prop_ro("indices",
                     [](const SparseVector& v) {
                         std::vector<Index> out;
                         for (const auto& run : v.runs()) {
                             for (Index k = 0; k < run.length; ++k) out.push_back(run.start + k);
                         }
                         return nb::cast(numpy(std::move(out)));
                     })
        .def_prop_ro("values",
                     [](const SparseVector& v) {
                         std::vector<double> out;
                         for (const auto& run : v.runs())
                             out.insert(out.end(), v.values(run), v.values(run) + run.length);
                         return nb::cast(numpy(std::move(out)));
                     })
        .def("norm2", &SparseVector::norm2);
    define(sparse_vector, "dot", args("other"_a),
           [](const SparseVector& v, const SparseVector& other) { return v.dot(other); });
    define(sparse_vector, "dot", args("other"_a), [](const SparseVector& v, const Floats& weights) {
        check_reaches(v, weights);
        return v.dot(weights.data());
    });
    define(sparse_vector, "axpy", args("scale"_a, "weights"_same),
           [](const SparseVector& v, double scale, const MutableFloats& weights) {
               check_reaches(v, weights);
               v.axpy(scale, weights.data());
           });

    nb::class_<RowLayout> row_layout(m, "RowLayout");
    row_layout.def_static("dense", &RowLayout::dense, "num_attributes"_a, "n_columns"_a, "width"_a)
        .def_static("from_pairs", &layout_from_pairs<Ints>, "num_attributes"_a, "n_columns"_a, "width"_a, "indptr"_same,
                    "columns"_same)
        .def_static("from_pairs", &layout_from_pairs<ShortInts>, "num_attributes"_a, "n_columns"_a, "width"_a,
                    "indptr"_same, "columns"_same);
    define_static(row_layout, "observed",
                  args("num_attributes"_a, "n_columns"_a, "width"_a, "row_ptr"_same, "attributes"_same, "labels"_same,
                       "min_count"_a = 1),
                  [](Index n, Index n_columns, Index width, const Ints& row_ptr, const Ints& attributes,
                     const Ints& labels, Index min_count) {
                      return RowLayout::observed(n, n_columns, width, span_of(row_ptr), span_of(attributes),
                                                 span_of(labels), min_count);
                  });
    row_layout.def_prop_ro("num_attributes", &RowLayout::num_attributes)
        .def_prop_ro("n_columns", &RowLayout::n_columns)
        .def_prop_ro("width", &RowLayout::width)
        .def_prop_ro("num_weights", &RowLayout::num_weights)
        .def_prop_ro("num_pairs", &RowLayout::num_pairs)
        .def("pairs", [](const RowLayout& layout) {
            std::vector<Index> indptr;
            std::vector<Index> columns;
            layout.pairs(indptr, columns);
            return tuple_of(std::move(indptr), std::move(columns));
        });
    define(row_layout, "pack", args("pair_values"_a, "room"_a = 0),
           [](const RowLayout& layout, const Floats& pair_values, Index room) {
               check_size(pair_values, layout.num_pairs(), "pair_values");
               if (room < 0) throw InputError("room must not be negative");
               return fill_array(checked_sum(layout.num_weights(), room, "room"),
                                 [&](double* out, Interrupt&) { layout.pack(pair_values.data(), out); });
           });
    define(row_layout, "unpack", args("weights"_a), [](const RowLayout& layout, const Floats& weights) {
        check_size(weights, layout.num_weights(), "weights");
        return fill_array(layout.num_pairs(), [&](double* out, Interrupt&) { layout.unpack(weights.data(), out); });
    });
}

void bind_segments(nb::module_& m) {
    nb::class_<Segment>(m, "Segment")
        .def_prop_ro("num_weights", &Segment::num_weights)
        .def_prop_ro("num_examples", &Segment::num_examples);

    nb::class_<AttributeSegment, Segment>(m, "AttributeSegment")
        .def(nb::new_([](RowLayout& layout, const Ints& example_ptr, const Ints& row_ptr, const Ints& attributes,
                         OrNone<Floats> values, bool once, Index uses, OrNone<Ints> parts) {
                 check_size(values, len(attributes.size()), "values");
                 const AttributeTable table{span_of(example_ptr), span_of(row_ptr), span_of(attributes),
                                            span_of(values)};
                 std::shared_ptr<RowLayout> shared = share(layout);
                 return run_kernel(
                     [&] { return AttributeSegment::make(std::move(shared), table, once, {uses, vector_of(parts)}); });
             }),
             "layout"_a, "example_ptr"_same, "row_ptr"_same, "attributes"_same, "values"_or_none, "once"_a = false,
             "uses"_a = 1, "parts"_or_none);

    nb::class_<DenseSegment, Segment>(m, "DenseSegment")
        .def("__init__", &dense_segment<ShortFloatRows>, "rows"_same, "example_ptr"_same, "n_columns"_a, "width"_a)
        .def("__init__", &dense_segment<FloatRows>, "rows"_a, "example_ptr"_same, "n_columns"_a, "width"_a);

    nb::class_<SharedSegment, Segment> shared_segment(m, "SharedSegment");
    define(shared_segment, "__init__", args("size"_a, "uses"_same, "mask"_or_none),
           [](SharedSegment* self, Index size, const Ints& uses, OrNone<Bytes> mask) {
               check_size(mask, size, "mask");
               new (self) SharedSegment(size, vector_of(uses), vector_of(mask));
           });

    nb::class_<SlotSegment, Segment> slot_segment(m, "SlotSegment");
    define(slot_segment, "__init__",
           args("num_weights"_a, "slot_ptr"_same, "row_ptr"_same, "features"_same, "values"_or_none, "uses"_a = 1,
                "parts"_or_none),
           [](SlotSegment* self, Index num_weights, const Ints& slot_ptr, const Ints& row_ptr, const Ints& features,
              OrNone<Floats> values, Index uses, std::optional<Index> parts) {
               check_size(values, len(features.size()), "values");
               run_kernel([&] {
                   new (self) SlotSegment({span_of(slot_ptr), span_of(row_ptr), span_of(features), span_of(values)},
                                          num_weights, uses, parts.value_or(SlotSegment::kAnyNumber));
               });
           });
}

void bind_feature_map(nb::module_& m) {
    nb::class_<FeatureMap> feature_map(m, "FeatureMap");
    feature_map.def_prop_ro("num_examples", &FeatureMap::num_examples)
        .def_prop_ro("num_weights", &FeatureMap::num_weights)
        .def_prop_ro("row_length", &FeatureMap::row_length)
        .def("capabilities", [](const FeatureMap& f) {
            nb::list names;
            if (f.explicit_weights()) names.append("explicit weights");
            if (f.columns()) names.append("column access");
            if (f.columns() && f.columns()->negative() < 0) names.append("non-negative features");
            if (f.columns() && f.columns()->binary()) names.append("binary features");
            return nb::frozenset(names);
        });
    define(feature_map, "lacks", args("capability"_a), [](const FeatureMap& f, const std::string& capability) {
        const Index negative = f.columns() ? f.columns()->negative() : -1;
        if (capability != "non-negative features" || negative < 0) return std::string();
        return f.columns()->describe(negative) + " has a negative value";
    });
    define(feature_map, "describe", args("weight"_a), [](const FeatureMap& f, Index weight) {
        if (weight < 0 || weight >= f.num_weights()) throw InputError("no weight ", weight);
        return f.columns() ? f.columns()->describe(weight) : "weight " + std::to_string(weight);
    });
    define(feature_map, "dot", args("weights"_a, "other"_a, "n_jobs"_a = 1),
           [](const FeatureMap& f, const Floats& weights, const Floats& other, int n_jobs) {
               check_size(weights, f.num_weights(), "weights");
               check_size(other, f.num_weights(), "other");
               return run_kernel(&FeatureMap::weights_dot, f, weights.data(), other.data(), n_jobs);
           });
    define(feature_map, "num_slots", args("i"_a),
           [](const FeatureMap& f, Index i) { return checked(f, i).num_slots(i); });
    define(feature_map, "scores", args("i"_a, "weights"_a, "scale"_a = 1.0),
           [](const FeatureMap& f, Index i, const Floats& weights, double scale) {
               std::vector<double> out(checked(f, i).num_slots(i));
               check_size(weights, f.num_weights(), "weights");
               f.scores(i, weights.data(), out.data());
               if (scale != 1.0) partwise::scale(scale, out.data(), len(out.size()));
               return numpy(std::move(out));
           });
    define(feature_map, "add_transpose", args("i"_a, "slots"_a, "scale"_a, "weights"_same),
           [](const FeatureMap& f, Index i, const Floats& slots, double scale, const MutableFloats& weights) {
               checked(f, i, slots);
               check_size(weights, f.num_weights(), "weights");
               f.add_transpose(i, slots.data(), scale, weights.data());
           });
    define(feature_map, "add_transpose_shrunk",
           args("i"_a, "slots"_a, "scale"_a, "l1"_a, "l2"_a, "plane"_same, "weights"_same),
           [](const FeatureMap& f, Index i, const Floats& slots, double scale, double l1, double l2,
              const MutableFloats& plane, const MutableFloats& weights) {
               checked(f, i, slots);
               check_size(plane, f.num_weights(), "plane");
               check_size(weights, f.num_weights(), "weights");
               const Added added =
                   f.add_transpose_shrunk(i, slots.data(), scale, {l1, l2, plane.data(), weights.data()});
               return nb::make_tuple(added.norm2, added.dot);
           });
    define(feature_map, "project", args("i"_a, "slots"_a), [](const FeatureMap& f, Index i, const Floats& slots) {
        SparseVector out;
        checked(f, i, slots).project(i, slots.data(), out);
        return out;
    });
    feature_map.def("slot_rows", &slot_rows, "i"_a, "slots"_a);
    define(feature_map, "transpose_norm2", args("i"_a, "slots"_a),
           [](const FeatureMap& f, Index i, const Floats& slots) {
               return checked(f, i, slots).transpose_norm2(i, slots.data());
           });
    define(feature_map, "psi2_bound", args("i"_a),
           [](const FeatureMap& f, Index i) { return checked(f, i).psi2_bound(i); });
    define(feature_map, "reach", args("i"_a), [](const FeatureMap& f, Index i) { return checked(f, i).reach(i); });

    nb::class_<LinearMap, FeatureMap> linear_map(m, "LinearMap");
    define(linear_map, "__init__", args("segments"_a),
           [](LinearMap* self, const nb::sequence& segments) { new (self) LinearMap(share_all<Segment>(segments)); });
    linear_map.def_prop_ro("segments", [](const LinearMap& f) {
        nb::list out;
        for (const auto& segment : f.segments()) out.append(nb::find(*segment));
        return out;
    });
}

void bind_maxent_map(nb::module_& m) {
    nb::class_<MaxentMap, FeatureMap> cls(m, "MaxentMap");
    define(cls, "__init__", args("layout"_a, "row_ptr"_same, "attributes"_same, "values"_or_none),
           [](MaxentMap* self, RowLayout& layout, const Ints& row_ptr, const Ints& attributes, OrNone<Floats> values) {
               check_size(values, len(attributes.size()), "values");
               std::shared_ptr<RowLayout> shared = share(layout);
               run_kernel([&] {
                   new (self) MaxentMap(std::move(shared), span_of(row_ptr), span_of(attributes), span_of(values));
               });
           });
    define_static(cls, "of_matrix",
                  args("n_labels"_a, "width"_a, "n_features"_a, "row_ptr"_same, "features"_same, "values"_or_none),
                  [](Index n_labels, Index width, Index n_features, const Ints& row_ptr, const Ints& features,
                     OrNone<Floats> values) {
                      check_size(values, len(features.size()), "values");
                      if (n_labels < 1 || (len(row_ptr.size()) - 1) % n_labels != 0)
                          throw InputError("row_ptr must have a row for every label of every example");
                      const Index n = (len(row_ptr.size()) - 1) / n_labels;
                      return run_kernel([&] {
                          return std::make_unique<MaxentMap>(n, n_labels, width, n_features, span_of(row_ptr),
                                                             span_of(features), span_of(values));
                      });
                  });
    cls.def_prop_ro("num_columns", &MaxentMap::num_columns)
        .def_prop_ro("num_cells", &MaxentMap::num_cells)
        .def_prop_ro("binary", &MaxentMap::binary);
    define(cls, "column", args("k"_a), [](const MaxentMap& f, Index k) {
        if (k < 0 || k >= f.num_columns()) throw InputError("no column ", k);
        const Column c = f.column(k);
        std::vector<Index> examples;
        std::vector<Index> slots;
        std::vector<double> values;
        for (Index j = 0; j < c.size; ++j) {
            examples.push_back(c.examples[j]);
            slots.push_back(c.slots ? c.slots[j] : c.slot);
            values.push_back(c.values ? c.values[j] : 1.0);
        }
        return tuple_of(c.weight, std::move(examples), std::move(slots), std::move(values));
    });
}

}  // namespace

void bind_features(nb::module_& m) {
    bind_layout(m);
    bind_segments(m);
    bind_feature_map(m);
    bind_maxent_map(m);
}

}  // namespace partwise::bindings
