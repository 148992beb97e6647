
#include "bindings/common.h"
#include "support/multiply.h"
#include "support/sizes.h"

namespace partwise::bindings {

namespace {

using Stack = Array<const double, 3>;

// The number of rows per task: a few microseconds of work for the smallest matrices.
constexpr Index kRows = 64;

[[noreturn]] void damaged() {
    throw InputError("X is a damaged sparse matrix: pointers or indices are out of range, or were changed meanwhile");
}

// The arrays belong to the caller and may change at any time: every pointer and index is read once, and looked at
// before it is followed. C: the number of columns, or 0 for any.
template <class Int, int C>
auto product_of_width(const Array<const Int>& indptr, const Array<const Int>& indices, const Floats& data,
                      const FloatRows& right) {
    if (indptr.size() == 0) damaged();
    const Index rows = len(indptr.size()) - 1;
    const Index columns = len(right.shape(1));
    const auto n_inputs = static_cast<std::uint64_t>(right.shape(0));
    const Index size = len(std::min(indices.size(), data.size()));
    std::vector<double> out(checked_product(rows, columns, "the product"), 0.0);
    run_kernel([&] {
        Index begin = Index{indptr.data()[0]};
        for (Index r = 0; r < rows; ++r) {
            const Index end = Index{indptr.data()[r + 1]};
            if (begin < 0 || end < begin || end > size) damaged();
            double* target = out.data() + r * columns;
            const auto input = [&](Index k) {
                const auto j = static_cast<std::uint64_t>(Index{indices.data()[k]});
                if (j >= n_inputs) damaged();
                return right.data() + static_cast<Index>(j) * columns;
            };
            if constexpr (C > 0) {
                double sums[C] = {};
                for (Index k = begin; k < end; ++k) {
                    const double x = data.data()[k];
                    const double* w = input(k);
                    for (int b = 0; b < C; ++b) sums[b] += x * w[b];
                }
                std::copy(sums, sums + C, target);
            } else {
                for (Index k = begin; k < end; ++k) axpy(data.data()[k], input(k), target, columns);
            }
            begin = end;
        }
    });
    return numpy<2>(std::move(out), {idx(rows), idx(columns)});
}

template <class Int>
auto sparse_product(const Array<const Int>& indptr, const Array<const Int>& indices, const Floats& data,
                    const FloatRows& right) {
    switch (right.shape(1)) {
        case 1:
            return product_of_width<Int, 1>(indptr, indices, data, right);
        case 3:
            return product_of_width<Int, 3>(indptr, indices, data, right);
        case 4:
            return product_of_width<Int, 4>(indptr, indices, data, right);
        default:
            return product_of_width<Int, 0>(indptr, indices, data, right);
    }
}

}  // namespace

void bind_products(nb::module_& m) {
    define(m, "stacked_products", args("left"_same, "right"_same, "n_jobs"_a = 1),
           [](const Stack& left, const Stack& right, int n_jobs) {
               const Index rows = len(left.shape(0));
               const Index stack = len(left.shape(1));
               const Index inner = len(left.shape(2));
               const Index columns = len(right.shape(2));
               if (len(right.shape(0)) != stack || len(right.shape(1)) != inner) {
                   throw InputError("the shapes of the matrices do not match");
               }
               std::vector<double> out(rows * stack * columns);
               run_kernel([&](auto& interrupt) {
                   const Index blocks = (rows + kRows - 1) / kRows;
                   parallel_for(stack * blocks, n_jobs, interrupt, [&](Index task, int) {
                       const Index a = task / blocks;
                       const Index first = task % blocks * kRows;
                       const double* x = left.data() + (first * stack + a) * inner;
                       multiply({x, stack * inner}, {right.data() + a * inner * columns, columns},
                                std::min(kRows, rows - first), inner, columns,
                                out.data() + (first * stack + a) * columns, stack * columns);
                   });
               });
               return numpy<3>(std::move(out), {idx(rows), idx(stack), idx(columns)});
           });

    define(m, "dot", args("x"_a, "y"_a, "n_jobs"_a = 1), [](const Floats& x, const Floats& y, int n_jobs) {
        check_size(y, len(x.size()), "y");
        double out = 0;
        run_kernel(row_dots, x.data(), 1, y.data(), len(x.size()), &out, n_jobs);
        return out;
    });

    define(m, "row_dots", args("rows"_same, "v"_a, "n_jobs"_a = 1),
           [](const FloatRows& rows, const Floats& v, int n_jobs) {
               check_size(v, len(rows.shape(1)), "v");
               const Index n = len(rows.shape(0));
               return fill_array(n, [&](double* out, Interrupt& interrupt) {
                   row_dots(rows.data(), n, v.data(), len(v.size()), out, n_jobs, interrupt);
               });
           });

    define(m, "add_rows", args("coefficients"_a, "rows"_same, "out"_same, "n_jobs"_a = 1),
           [](const Floats& coefficients, const FloatRows& rows, const MutableFloats& out, int n_jobs) {
               check_size(coefficients, len(rows.shape(0)), "coefficients");
               check_size(out, len(rows.shape(1)), "out");
               run_kernel(add_rows, coefficients.data(), rows.data(), len(rows.shape(0)), out.data(), len(out.size()),
                          n_jobs);
           });
    m.def("sparse_product", &sparse_product<std::int32_t>, "indptr"_same, "indices"_same, "data"_a, "right"_a);
    m.def("sparse_product", &sparse_product<Index>, "indptr"_same, "indices"_same, "data"_a, "right"_a);
}

}  // namespace partwise::bindings
