#include "bindings/common.h"
#include "bindings/keep_alive.h"
#include "features/kernel_segment.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

KernelFunction::Kind kind_of(const std::string& name) {
    if (name == "linear") return KernelFunction::Kind::kLinear;
    if (name == "polynomial") return KernelFunction::Kind::kPolynomial;
    if (name == "rbf") return KernelFunction::Kind::kRbf;
    throw InputError("a kernel function is 'linear', 'polynomial' or 'rbf', not '" + name + "'");
}

DenseRows dense_rows(const FloatRows& rows) {
    return {rows.data(), len(rows.shape(0)), len(rows.shape(1)), keep_alive(rows)};
}

}  // namespace

void bind_kernels(nb::module_& m) {
    nb::class_<KernelFunction>(m, "KernelFunction")
        .def(
            "__init__",
            [](KernelFunction* self, const std::string& kind, double gamma, double coef0, int degree, double bias) {
                const KernelFunction function{kind_of(kind), gamma, coef0, degree, bias};
                function.check();
                new (self) KernelFunction(function);
            },
            "kind"_a, "gamma"_a = 1.0, "coef0"_a = 0.0, "degree"_a = 1, "bias"_a = 0.0);

    nb::class_<Kernel>(m, "Kernel")
        .def_prop_ro("num_queries", &Kernel::num_queries)
        .def_prop_ro("num_support", &Kernel::num_support)
        .def_prop_ro("square", &Kernel::square)
        .def(
            "values",
            [](const Kernel& kernel, Index first, Index last, Index begin, Index end) {
                if (first < 0 || last < first || last > kernel.num_queries() || begin < 0 || end < begin ||
                    end > kernel.num_support())
                    throw InputError("no such rows of the kernel matrix");
                std::vector<double> out(idx((last - first) * (end - begin)));
                {
                    const nb::gil_scoped_release release;
                    kernel.values(first, last, begin, end, out.data());
                }
                return numpy(std::move(out));
            },
            "first"_a, "last"_a, "begin"_a, "end"_a);

    nb::class_<DenseKernel, Kernel>(m, "DenseKernel")
        .def(
            "__init__",
            [](DenseKernel* self, const KernelFunction& function, const FloatRows& queries,
               const std::optional<FloatRows>& support) {
                new (self) DenseKernel(function, dense_rows(queries), support ? dense_rows(*support) : DenseRows{});
            },
            "function"_a, "queries"_a, "support"_a.none() = nb::none());

    nb::class_<SparseRows>(m, "SparseRows")
        .def(
            "__init__",
            [](SparseRows* self, Index num_attributes, const Ints& row_ptr, const Ints& attributes,
               const std::optional<Floats>& values) {
                if (values) check_size(*values, len(attributes.size()), "values");
                const nb::gil_scoped_release release;
                new (self) SparseRows(num_attributes, span_of(row_ptr), span_of(attributes),
                                      values ? span_of(*values) : std::span<const double>{});
            },
            "num_attributes"_a, "row_ptr"_a.noconvert(), "attributes"_a.noconvert(), "values"_a.none() = nb::none())
        .def_prop_ro("num_rows", &SparseRows::num_rows)
        .def_prop_ro("num_attributes", &SparseRows::num_attributes);

    nb::class_<SparseKernel, Kernel>(m, "SparseKernel")
        .def(
            "__init__",
            [](SparseKernel* self, const KernelFunction& function, SparseRows& queries, SparseRows* support) {
                std::shared_ptr<SparseRows> own = share(queries);
                std::shared_ptr<SparseRows> other = support ? share(*support) : nullptr;
                const nb::gil_scoped_release release;
                new (self) SparseKernel(function, std::move(own), std::move(other));
            },
            "function"_a, "queries"_a, "support"_a.none() = nb::none());

    nb::class_<StoredKernel, Kernel>(m, "StoredKernel")
        .def(
            "__init__",
            [](StoredKernel* self, const FloatRows& matrix, bool square) {
                new (self) StoredKernel(dense_rows(matrix), square);
            },
            "matrix"_a, "square"_a);

    nb::class_<PlacedKernel, Kernel>(m, "PlacedKernel")
        .def(
            "__init__",
            [](PlacedKernel* self, Kernel& kernel, const Ints& query_places, const Ints& support_places) {
                new (self)
                    PlacedKernel(share(kernel), vector_of<Index>(query_places), vector_of<Index>(support_places));
            },
            "kernel"_a, "query_places"_a.noconvert(), "support_places"_a.noconvert());

    nb::class_<KernelSegment, Segment>(m, "KernelSegment")
        .def(
            "__init__",
            [](KernelSegment* self, Kernel& kernel, const Ints& example_ptr, Index n_columns, Index width,
               double memory_limit, bool recompute) {
                std::shared_ptr<Kernel> shared = share(kernel);
                const nb::gil_scoped_release release;
                new (self) KernelSegment(std::move(shared), vector_of<Index>(example_ptr), n_columns, width,
                                         memory_limit, recompute);
            },
            "kernel"_a, "example_ptr"_a.noconvert(), "n_columns"_a, "width"_a, "memory_limit"_a, "recompute"_a = false)
        .def_prop_ro("kept_bytes", &KernelSegment::kept_bytes);
}

}  // namespace partwise::bindings
