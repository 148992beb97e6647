#include "bindings/common.h"
#include "features/kernel.h"

namespace partwise::bindings {

namespace {

KernelFunction::Kind kind_of(const std::string& name) {
    if (name == "linear") return KernelFunction::Kind::kLinear;
    if (name == "polynomial") return KernelFunction::Kind::kPolynomial;
    if (name == "rbf") return KernelFunction::Kind::kRbf;
    throw InputError("a kernel function is 'linear', 'polynomial' or 'rbf', not '", name, "'");
}

DenseRows dense_rows(const FloatRows& rows) {
    return {rows.data(), len(rows.shape(0)), len(rows.shape(1)), keep_alive(rows)};
}

}  // namespace

void bind_kernels(nb::module_& m) {
    nb::class_<KernelFunction> kernel_function(m, "KernelFunction");
    define(kernel_function, "__init__",
           args("kind"_a, "gamma"_a = 1.0, "coef0"_a = 0.0, "degree"_a = 1, "bias"_a = 0.0),
           [](KernelFunction* self, const std::string& kind, double gamma, double coef0, int degree, double bias) {
               const KernelFunction function{kind_of(kind), gamma, coef0, degree, bias};
               function.check();
               new (self) KernelFunction(function);
           });

    nb::class_<Kernel> kernel(m, "Kernel");
    kernel.def_prop_ro("num_queries", &Kernel::num_queries)
        .def_prop_ro("num_support", &Kernel::num_support)
        .def_prop_ro("square", &Kernel::square);
    define(kernel, "values", args("first"_a, "last"_a, "begin"_a, "end"_a),
           [](const Kernel& kernel, Index first, Index last, Index begin, Index end) {
               if (first < 0 || last < first || last > kernel.num_queries() || begin < 0 || end < begin ||
                   end > kernel.num_support())
                   throw InputError("no such rows of the kernel matrix");
               return fill_array((last - first) * (end - begin),
                                 [&](double* out, Interrupt&) { kernel.values(first, last, begin, end, out); });
           });

    nb::class_<DenseKernel, Kernel> dense_kernel(m, "DenseKernel");
    define(dense_kernel, "__init__", args("function"_a, "queries"_a, "support"_or_none),
           [](DenseKernel* self, const KernelFunction& function, const FloatRows& queries, OrNone<FloatRows> support) {
               new (self) DenseKernel(function, dense_rows(queries), support ? dense_rows(*support) : DenseRows{});
           });

    nb::class_<SparseRows> sparse_rows(m, "SparseRows");
    define(
        sparse_rows, "__init__", args("num_attributes"_a, "row_ptr"_same, "attributes"_same, "values"_or_none),
        [](SparseRows* self, Index num_attributes, const Ints& row_ptr, const Ints& attributes, OrNone<Floats> values) {
            check_size(values, len(attributes.size()), "values");
            run_kernel(
                [&] { new (self) SparseRows(num_attributes, span_of(row_ptr), span_of(attributes), span_of(values)); });
        });
    sparse_rows.def_prop_ro("num_rows", &SparseRows::num_rows)
        .def_prop_ro("num_attributes", &SparseRows::num_attributes);

    nb::class_<SparseKernel, Kernel> sparse_kernel(m, "SparseKernel");
    define(sparse_kernel, "__init__", args("function"_a, "queries"_a, "support"_or_none),
           [](SparseKernel* self, const KernelFunction& function, SparseRows& queries, SparseRows* support) {
               std::shared_ptr<SparseRows> own = share(queries);
               std::shared_ptr<SparseRows> other = support ? share(*support) : nullptr;
               run_kernel([&] { new (self) SparseKernel(function, std::move(own), std::move(other)); });
           });

    nb::class_<StoredKernel, Kernel> stored_kernel(m, "StoredKernel");
    define(stored_kernel, "__init__", args("matrix"_a, "square"_a),
           [](StoredKernel* self, const FloatRows& matrix, bool square) {
               new (self) StoredKernel(dense_rows(matrix), square);
           });

    nb::class_<PlacedKernel, Kernel> placed_kernel(m, "PlacedKernel");
    define(placed_kernel, "__init__", args("kernel"_a, "query_places"_same, "support_places"_same),
           [](PlacedKernel* self, Kernel& kernel, const Ints& query_places, const Ints& support_places) {
               new (self) PlacedKernel(share(kernel), vector_of(query_places), vector_of(support_places));
           });

    nb::class_<KernelSegment, Segment> kernel_segment(m, "KernelSegment");
    define(kernel_segment, "__init__",
           args("kernel"_a, "example_ptr"_same, "n_columns"_a, "width"_a, "memory_limit"_a, "recompute"_a = false),
           [](KernelSegment* self, Kernel& kernel, const Ints& example_ptr, Index n_columns, Index width,
              double memory_limit, bool recompute) {
               std::shared_ptr<Kernel> shared = share(kernel);
               run_kernel([&] {
                   new (self) KernelSegment(std::move(shared), vector_of(example_ptr), n_columns, width, memory_limit,
                                            recompute);
               });
           });
    kernel_segment.def_prop_ro("kept_bytes", &KernelSegment::kept_bytes);
}

}  // namespace partwise::bindings
