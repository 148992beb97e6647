#include "bindings/common.h"
#include "bindings/keep_alive.h"
#include "features/segments.h"
#include "support/sizes.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

using ShortInts = nb::ndarray<const std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Rows>
void dense_segment(DenseSegment* self, const Rows& rows, const Ints& example_ptr, Index n_columns, Index width) {
    new (self) DenseSegment({rows.data(), len(rows.shape(0)), len(rows.shape(1)), keep_alive(rows)},
                            vector_of<Index>(example_ptr), n_columns, width);
}

}  // namespace

void bind_features(nb::module_& m) {
    nb::class_<SparseVector>(m, "SparseVector")
        .def_prop_ro(
            "indices",
            [](const SparseVector& v) {
                std::vector<Index> out;
                for (const auto& run : v.runs()) {
                    for (Index k = 0; k < run.length; ++k) out.push_back(run.start + k);
                }
                return numpy(std::move(out));
            },
            nb::rv_policy::automatic)
        .def_prop_ro(
            "values",
            [](const SparseVector& v) {
                std::vector<double> out;
                for (const auto& run : v.runs()) out.insert(out.end(), v.values(run), v.values(run) + run.length);
                return numpy(std::move(out));
            },
            nb::rv_policy::automatic)
        .def("norm2", &SparseVector::norm2)
        .def(
            "dot", [](const SparseVector& v, const SparseVector& other) { return v.dot(other); }, "other"_a)
        .def(
            "dot",
            [](const SparseVector& v, const Floats& weights) {
                if (!v.runs().empty()) {
                    const auto& last = v.runs().back();
                    if (last.start + last.length > len(weights.size())) throw InputError("weights are too short");
                }
                return v.dot(weights.data());
            },
            "other"_a)
        .def(
            "axpy",
            [](const SparseVector& v, double scale, const MutableFloats& weights) {
                if (!v.runs().empty()) {
                    const auto& last = v.runs().back();
                    if (last.start + last.length > len(weights.size())) throw InputError("weights are too short");
                }
                v.axpy(scale, weights.data());
            },
            "scale"_a, "weights"_a.noconvert());

    nb::class_<RowLayout>(m, "RowLayout")
        .def_static(
            "dense", [](Index n, Index n_columns, Index width) { return RowLayout::dense(n, n_columns, width); },
            "num_attributes"_a, "n_columns"_a, "width"_a)
        .def_static(
            "from_pairs",
            [](Index n, Index n_columns, Index width, const Ints& indptr, const Ints& columns) {
                const nb::gil_scoped_release release;
                return RowLayout::from_pairs(n, n_columns, width, span_of(indptr), span_of(columns));
            },
            "num_attributes"_a, "n_columns"_a, "width"_a, "indptr"_a.noconvert(), "columns"_a.noconvert())
        .def_static(
            "from_pairs",
            [](Index n, Index n_columns, Index width, const Ints& indptr, const ShortInts& columns) {
                const nb::gil_scoped_release release;
                return RowLayout::from_pairs(n, n_columns, width, span_of(indptr), span_of(columns));
            },
            "num_attributes"_a, "n_columns"_a, "width"_a, "indptr"_a.noconvert(), "columns"_a.noconvert())
        .def_static(
            "observed",
            [](Index n, Index n_columns, Index width, const Ints& row_ptr, const Ints& attributes, const Ints& labels,
               Index min_count) {
                return RowLayout::observed(n, n_columns, width, span_of(row_ptr), span_of(attributes), span_of(labels),
                                           min_count);
            },
            "num_attributes"_a, "n_columns"_a, "width"_a, "row_ptr"_a.noconvert(), "attributes"_a.noconvert(),
            "labels"_a.noconvert(), "min_count"_a = 1)
        .def_prop_ro("num_attributes", &RowLayout::num_attributes)
        .def_prop_ro("n_columns", &RowLayout::n_columns)
        .def_prop_ro("width", &RowLayout::width)
        .def_prop_ro("num_weights", &RowLayout::num_weights)
        .def_prop_ro("num_pairs", &RowLayout::num_pairs)
        .def("pairs",
             [](const RowLayout& layout) {
                 std::vector<Index> indptr;
                 std::vector<Index> columns;
                 layout.pairs(indptr, columns);
                 return nb::make_tuple(numpy(std::move(indptr)), numpy(std::move(columns)));
             })
        .def(
            "pack",
            [](const RowLayout& layout, const Floats& pair_values, Index room) {
                check_size(pair_values, layout.num_pairs(), "pair_values");
                if (room < 0) throw InputError("room must not be negative");
                std::vector<double> out(idx(checked_sum(layout.num_weights(), room, "room")));
                {
                    const nb::gil_scoped_release release;
                    layout.pack(pair_values.data(), out.data());
                }
                return numpy(std::move(out));
            },
            "pair_values"_a, "room"_a = 0)
        .def(
            "unpack",
            [](const RowLayout& layout, const Floats& weights) {
                check_size(weights, layout.num_weights(), "weights");
                std::vector<double> out(idx(layout.num_pairs()));
                layout.unpack(weights.data(), out.data());
                return numpy(std::move(out));
            },
            "weights"_a);

    nb::class_<Segment>(m, "Segment")
        .def_prop_ro("num_weights", &Segment::num_weights)
        .def_prop_ro("num_examples", &Segment::num_examples);

    nb::class_<AttributeSegment, Segment>(m, "AttributeSegment")
        .def(
            "__init__",
            [](AttributeSegment* self, RowLayout& layout, const Ints& example_ptr, const Ints& row_ptr,
               const Ints& attributes, const std::optional<Floats>& values, bool once, Index uses,
               const std::optional<Ints>& parts) {
                if (values) check_size(*values, len(attributes.size()), "values");
                std::shared_ptr<RowLayout> shared = share(layout);
                const nb::gil_scoped_release release;
                new (self) AttributeSegment(std::move(shared),
                                            {span_of(example_ptr), span_of(row_ptr), span_of(attributes),
                                             values ? span_of(*values) : std::span<const double>{}},
                                            once, {uses, parts ? vector_of<Index>(*parts) : std::vector<Index>{}});
            },
            "layout"_a, "example_ptr"_a.noconvert(), "row_ptr"_a.noconvert(), "attributes"_a.noconvert(),
            "values"_a.none() = nb::none(), "once"_a = false, "uses"_a = 1, "parts"_a.none() = nb::none());

    nb::class_<DenseSegment, Segment>(m, "DenseSegment")
        .def("__init__", &dense_segment<ShortFloatRows>, "rows"_a.noconvert(), "example_ptr"_a.noconvert(),
             "n_columns"_a, "width"_a)
        .def("__init__", &dense_segment<FloatRows>, "rows"_a, "example_ptr"_a.noconvert(), "n_columns"_a, "width"_a);

    nb::class_<SharedSegment, Segment>(m, "SharedSegment")
        .def(
            "__init__",
            [](SharedSegment* self, Index size, const Ints& uses, const std::optional<Bytes>& mask) {
                if (mask) check_size(*mask, size, "mask");
                new (self) SharedSegment(size, vector_of<Index>(uses),
                                         mask ? vector_of<std::uint8_t>(*mask) : std::vector<std::uint8_t>{});
            },
            "size"_a, "uses"_a.noconvert(), "mask"_a.none() = nb::none());

    nb::class_<SlotSegment, Segment>(m, "SlotSegment")
        .def(
            "__init__",
            [](SlotSegment* self, Index num_weights, const Ints& slot_ptr, const Ints& row_ptr, const Ints& features,
               const std::optional<Floats>& values, Index uses, std::optional<Index> parts) {
                if (values) check_size(*values, len(features.size()), "values");
                const nb::gil_scoped_release release;
                new (self) SlotSegment({span_of(slot_ptr), span_of(row_ptr), span_of(features),
                                        values ? span_of(*values) : std::span<const double>{}},
                                       num_weights, uses, parts.value_or(SlotSegment::kAnyNumber));
            },
            "num_weights"_a, "slot_ptr"_a.noconvert(), "row_ptr"_a.noconvert(), "features"_a.noconvert(),
            "values"_a.none() = nb::none(), "uses"_a = 1, "parts"_a.none() = nb::none());

    nb::class_<FeatureMap>(m, "FeatureMap")
        .def_prop_ro("num_examples", &FeatureMap::num_examples)
        .def_prop_ro("num_weights", &FeatureMap::num_weights)
        .def("capabilities",
             [](const FeatureMap& f) {
                 nb::list names;
                 if (f.explicit_weights()) names.append("explicit weights");
                 if (f.columns()) names.append("column access");
                 if (f.columns() && f.columns()->negative() < 0) names.append("non-negative features");
                 if (f.columns() && f.columns()->binary()) names.append("binary features");
                 return nb::frozenset(names);
             })
        .def(
            "lacks",
            [](const FeatureMap& f, const std::string& capability) {
                const Index negative = f.columns() ? f.columns()->negative() : -1;
                if (capability != "non-negative features" || negative < 0) return std::string();
                return f.columns()->describe(negative) + " has a negative value";
            },
            "capability"_a)
        .def(
            "describe",
            [](const FeatureMap& f, Index weight) {
                if (weight < 0 || weight >= f.num_weights()) throw InputError("no weight " + std::to_string(weight));
                return f.columns() ? f.columns()->describe(weight) : "weight " + std::to_string(weight);
            },
            "weight"_a)
        .def(
            "dot",
            [](const FeatureMap& f, const Floats& weights, const Floats& other, int n_jobs) {
                check_size(weights, f.num_weights(), "weights");
                check_size(other, f.num_weights(), "other");
                Interrupt interrupt = python_interrupt();
                const nb::gil_scoped_release release;
                return f.dot(weights.data(), other.data(), n_jobs, interrupt);
            },
            "weights"_a, "other"_a, "n_jobs"_a = 1)
        .def(
            "num_slots",
            [](const FeatureMap& f, Index i) {
                check_index(i, f.num_examples());
                return f.num_slots(i);
            },
            "i"_a)
        .def(
            "scores",
            [](const FeatureMap& f, Index i, const Floats& weights, double scale) {
                check_index(i, f.num_examples());
                check_size(weights, f.num_weights(), "weights");
                std::vector<double> out(idx(f.num_slots(i)));
                f.scores(i, weights.data(), scale, out.data());
                return numpy(std::move(out));
            },
            "i"_a, "weights"_a, "scale"_a = 1.0)
        .def(
            "add_transpose",
            [](const FeatureMap& f, Index i, const Floats& slots, double scale, const MutableFloats& weights) {
                check_index(i, f.num_examples());
                check_size(slots, f.num_slots(i), "slots");
                check_size(weights, f.num_weights(), "weights");
                f.add_transpose(i, slots.data(), scale, weights.data());
            },
            "i"_a, "slots"_a, "scale"_a, "weights"_a.noconvert())
        .def(
            "add_transpose_shrunk",
            [](const FeatureMap& f, Index i, const Floats& slots, double scale, double l1, double l2,
               const MutableFloats& plane, const MutableFloats& weights) {
                check_index(i, f.num_examples());
                check_size(slots, f.num_slots(i), "slots");
                check_size(plane, f.num_weights(), "plane");
                check_size(weights, f.num_weights(), "weights");
                const Added added =
                    f.add_transpose_shrunk(i, slots.data(), scale, {l1, l2, plane.data(), weights.data()});
                return nb::make_tuple(added.norm2, added.dot);
            },
            "i"_a, "slots"_a, "scale"_a, "l1"_a, "l2"_a, "plane"_a.noconvert(), "weights"_a.noconvert())
        .def(
            "project",
            [](const FeatureMap& f, Index i, const Floats& slots) {
                check_index(i, f.num_examples());
                check_size(slots, f.num_slots(i), "slots");
                SparseVector out;
                f.project(i, slots.data(), out);
                return out;
            },
            "i"_a, "slots"_a)
        .def(
            "slot_rows",
            [](const FeatureMap& f, Index i, const Ints& slots) {
                check_index(i, f.num_examples());
                const auto all = span_of(slots);
                for (std::size_t k = 0; k < all.size(); ++k) {
                    if (all[k] < 0 || all[k] >= f.num_slots(i))
                        throw InputError("no slot " + std::to_string(all[k]) + " in example " + std::to_string(i));
                    if (k > 0 && all[k] <= all[k - 1]) throw InputError("slots must ascend");
                }
                PackedRows rows;
                f.slot_rows(i, all, rows);
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
            },
            "i"_a, "slots"_a)
        .def(
            "transpose_norm2",
            [](const FeatureMap& f, Index i, const Floats& slots) {
                check_index(i, f.num_examples());
                check_size(slots, f.num_slots(i), "slots");
                return f.transpose_norm2(i, slots.data());
            },
            "i"_a, "slots"_a)
        .def(
            "psi2_bound",
            [](const FeatureMap& f, Index i) {
                check_index(i, f.num_examples());
                return f.psi2_bound(i);
            },
            "i"_a)
        .def(
            "reach",
            [](const FeatureMap& f, Index i) {
                check_index(i, f.num_examples());
                return f.reach(i);
            },
            "i"_a)
        .def_prop_ro("row_length", &FeatureMap::row_length);

    nb::class_<LinearMap, FeatureMap>(m, "LinearMap")
        .def(
            "__init__",
            [](LinearMap* self, const nb::sequence& segments) {
                const std::vector<std::shared_ptr<Segment>> shared = share_all<Segment>(segments);
                new (self) LinearMap({shared.begin(), shared.end()});
            },
            "segments"_a)
        .def_prop_ro("segments", [](const LinearMap& f) {
            nb::list out;
            for (const auto& segment : f.segments()) out.append(nb::find(*segment));
            return out;
        });
}

}  // namespace partwise::bindings
