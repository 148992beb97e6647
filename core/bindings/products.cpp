#include <algorithm>

#include "bindings/common.h"
#include "support/multiply.h"
#include "support/vectors.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

using Stack = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Rows that are one task: a few microseconds of work for the smallest matrices.
constexpr Index kRows = 64;

}  // namespace

void bind_products(nb::module_& m) {
    m.def(
        "stacked_products",
        [](const Stack& left, const Stack& right, int n_jobs) {
            const Index rows = len(left.shape(0));
            const Index stack = len(left.shape(1));
            const Index inner = len(left.shape(2));
            const Index columns = len(right.shape(2));
            if (len(right.shape(0)) != stack || len(right.shape(1)) != inner) {
                throw InputError("matrices of shapes that do not fit");
            }
            std::vector<double> out(idx(rows * stack * columns));
            {
                Interrupt interrupt = python_interrupt();
                const nb::gil_scoped_release release;
                const Index blocks = (rows + kRows - 1) / kRows;
                parallel_for(stack * blocks, n_jobs, interrupt, [&](Index task, int) {
                    const Index a = task / blocks;
                    const Index first = task % blocks * kRows;
                    const double* x = left.data() + (first * stack + a) * inner;
                    multiply({x, stack * inner}, {right.data() + a * inner * columns, columns},
                             std::min(kRows, rows - first), inner, columns, out.data() + (first * stack + a) * columns,
                             stack * columns);
                });
            }
            auto* kept = new std::vector<double>(std::move(out));
            const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
            return nb::ndarray<nb::numpy, double, nb::ndim<3>, nb::c_contig>(
                kept->data(), {idx(rows), idx(stack), idx(columns)}, owner);
        },
        "left"_a.noconvert(), "right"_a.noconvert(), "n_jobs"_a = 1);

    m.def(
        "dot",
        [](const Floats& x, const Floats& y, int n_jobs) {
            check_size(y, len(x.size()), "y");
            double out = 0;
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            row_dots(x.data(), 1, y.data(), len(x.size()), &out, n_jobs, interrupt);
            return out;
        },
        "x"_a, "y"_a, "n_jobs"_a = 1);

    m.def(
        "row_dots",
        [](const FloatRows& rows, const Floats& v, int n_jobs) {
            check_size(v, len(rows.shape(1)), "v");
            std::vector<double> out(rows.shape(0));
            {
                Interrupt interrupt = python_interrupt();
                const nb::gil_scoped_release release;
                row_dots(rows.data(), len(out.size()), v.data(), len(v.size()), out.data(), n_jobs, interrupt);
            }
            return numpy(std::move(out));
        },
        "rows"_a.noconvert(), "v"_a, "n_jobs"_a = 1);

    m.def(
        "add_rows",
        [](const Floats& coefficients, const FloatRows& rows, const MutableFloats& out, int n_jobs) {
            check_size(coefficients, len(rows.shape(0)), "coefficients");
            check_size(out, len(rows.shape(1)), "out");
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            add_rows(coefficients.data(), rows.data(), len(rows.shape(0)), out.data(), len(out.size()), n_jobs,
                     interrupt);
        },
        "coefficients"_a, "rows"_a.noconvert(), "out"_a.noconvert(), "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
