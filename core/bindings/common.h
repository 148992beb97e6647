// Helpers shared by the bindings: arrays in and out, range checks, Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "support/parallel.h"
#include "support/types.h"

namespace partwise::bindings {

namespace nb = nanobind;

using Floats = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatRows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ShortFloatRows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableFloats = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableInts = nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using NumPy = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

template <class Array>
auto span_of(const Array& array) {
    return std::span(array.data(), array.size());
}

template <class T, class Array>
std::vector<T> vector_of(const Array& array) {
    return std::vector<T>(array.data(), array.data() + array.size());
}

// Hands a vector to NumPy without copying it, as an array of N dimensions.
template <int N, class T>
nb::ndarray<nb::numpy, T, nb::ndim<N>, nb::c_contig> numpy(std::vector<T> values, std::initializer_list<size_t> shape) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    const nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {kept.release()->data(), shape, owner};
}

template <class T>
NumPy<T> numpy(std::vector<T> values) {
    const std::size_t n = values.size();
    return numpy<1>(std::move(values), {n});
}

template <class Array>
void check_size(const Array& array, Index expected, const char* name) {
    if (len(array.size()) != expected) {
        throw InputError(std::string(name) + " has " + std::to_string(array.size()) + " values, " +
                         std::to_string(expected) + " are needed");
    }
}

void check_finite(const Floats& array, const char* name);

inline void check_index(Index i, Index n) {
    if (i < 0 || i >= n) throw InputError("no example " + std::to_string(i) + " (there are " + std::to_string(n) + ")");
}

// Polls Python's signal handlers; made while the GIL is held, used while it is not.
Interrupt python_interrupt();

void bind_structures(nb::module_& m);
void bind_trees(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_grammar(nb::module_& m);
void bind_segment_chain(nb::module_& m);
void bind_toy_charts(nb::module_& m);
void bind_features(nb::module_& m);
void bind_kernels(nb::module_& m);
void bind_maxent_map(nb::module_& m);
void bind_arcs(nb::module_& m);
void bind_link(nb::module_& m);
void bind_objective(nb::module_& m);
void bind_eg(nb::module_& m);
void bind_eg_batch(nb::module_& m);
void bind_matching(nb::module_& m);
void bind_smo(nb::module_& m);
void bind_bcfw(nb::module_& m);
void bind_hessian(nb::module_& m);
void bind_sdca(nb::module_& m);
void bind_sdca_cliques(nb::module_& m);
void bind_cd_l1(nb::module_& m);
void bind_scaling(nb::module_& m);
void bind_working_sets(nb::module_& m);
void bind_dcd(nb::module_& m);
void bind_online(nb::module_& m);
void bind_bcfw_sets(nb::module_& m);
void bind_violators(nb::module_& m);
void bind_inference(nb::module_& m);
void bind_products(nb::module_& m);
void bind_sentences(nb::module_& m);
void bind_vocabulary(nb::module_& m);
void bind_extractor(nb::module_& m);
void bind_named_chain(nb::module_& m);
void bind_svmlight(nb::module_& m);

}  // namespace partwise::bindings
