// What all bindings share: arrays and their checks, objects kept alive, kernels that run without the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "support/parallel.h"
#include "support/vector_math.h"

namespace partwise::bindings {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, int N = 1>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Floats = Array<const double>;
using FloatRows = Array<const double, 2>;
using Ints = Array<const Index>;
using Bytes = Array<const std::uint8_t>;
using MutableFloats = Array<double>;
using MutableInts = Array<Index>;
template <class T, int N = 1>
using NumPy = nb::ndarray<nb::numpy, T, nb::ndim<N>, nb::c_contig>;

// The type of an argument that is an array or None.
template <class A>
using OrNone = const std::optional<A>&;

// Arguments. "x"_same: the array must have the right type and is used without a copy. "x"_or_none: may be left out.
inline auto operator""_same(const char* name, std::size_t) { return nb::arg(name).noconvert(); }
inline auto operator""_or_none(const char* name, std::size_t) { return nb::arg(name) = nb::none(); }

// Defines a function of a module or class: its name, its arguments, and its body f.
template <class... Arguments>
auto args(const Arguments&... arguments) {
    return std::tuple(arguments...);
}
template <class Scope, class... Arguments, class F>
void define(Scope& scope, const char* name, const std::tuple<Arguments...>& arguments, F&& f) {
    std::apply([&](const auto&... each) { scope.def(name, std::forward<F>(f), each...); }, arguments);
}
template <class Scope, class... Arguments, class F>
void define_static(Scope& scope, const char* name, const std::tuple<Arguments...>& arguments, F&& f) {
    std::apply([&](const auto&... each) { scope.def_static(name, std::forward<F>(f), each...); }, arguments);
}

template <class A>
auto span_of(const A& array) {
    return std::span(array.data(), array.size());
}

// Empty where the array is not given.
template <class A>
auto span_of(const std::optional<A>& array) {
    return array ? span_of(*array) : decltype(span_of(*array)){};
}

// A copy of an array, empty where it is not given.
template <class A>
auto vector_of(const A& array) {
    const auto values = span_of(array);
    return std::vector<typename decltype(values)::value_type>(values.begin(), values.end());
}

template <class A>
auto* data_or_null(const std::optional<A>& array) {
    return array ? array->data() : nullptr;
}

// Hands a vector to NumPy without copying it, as an array of N dimensions.
template <int N, class T>
NumPy<T, N> numpy(std::vector<T> values, std::initializer_list<size_t> shape) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    const nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {kept.release()->data(), shape, owner};
}

template <class T>
NumPy<T> numpy(std::vector<T> values) {
    const std::size_t n = values.size();
    return numpy<1>(std::move(values), {n});
}

// A tuple for Python, in which vectors are arrays.
template <class T>
T to_python(T value) {
    return value;
}
template <class T>
NumPy<T> to_python(std::vector<T> values) {
    return numpy(std::move(values));
}
template <class... Values>
nb::tuple tuple_of(Values... values) {
    return nb::make_tuple(to_python(std::move(values))...);
}

// A property's getter that returns a copy of a vector as an array.
template <class Class, class F>
auto copied(F get) {
    return [get](const Class& self) { return nb::cast(numpy(std::vector(std::invoke(get, self)))); };
}

// Makes members readable under these names: (class, "name", &Class::name, ...).
template <class Class>
void def_readable(Class&) {}
template <class Class, class Member, class... Rest>
void def_readable(Class& cls, const char* name, Member member, Rest... rest) {
    cls.def_ro(name, member);
    def_readable(cls, rest...);
}

template <class A>
void check_size(const A& array, Index expected, const char* name) {
    if (len(array.size()) != expected) {
        throw InputError(name, " has ", array.size(), " values, ", expected, " are needed");
    }
}
template <class A>
void check_size(const std::optional<A>& array, Index expected, const char* name) {
    if (array) check_size(*array, expected, name);
}

inline void check_finite(const Floats& array, const char* name) {
    if (!all_finite(array.data(), len(array.size()))) throw InputError(name, " holds NaN or infinity");
}

// Throws InputError unless the array has this many values and all are finite.
inline void check_floats(const Floats& array, Index expected, const char* name) {
    check_size(array, expected, name);
    check_finite(array, name);
}

inline void check_index(Index i, Index n) {
    if (i < 0 || i >= n) throw InputError("no example ", i, " (there are ", n, ")");
}

inline void check_temperature(double temperature) {
    if (!(temperature >= 0.0) || temperature == kInfinity) throw InputError("temperature must be 0 or more and finite");
}

inline void check_positive_temperature(double temperature) {
    check_temperature(temperature);
    if (temperature == 0.0) throw InputError("temperature must be above 0 here");
}

// Makes an Interrupt that polls Python's signal handlers: called with the GIL, used without it.
Interrupt python_interrupt();

// Calls kernel(arguments..., interrupt) without the GIL; Ctrl-C stops it. Kernels may do without the Interrupt.
template <class F, class... Arguments>
auto run_kernel(F&& kernel, Arguments&&... arguments) {
    Interrupt interrupt = python_interrupt();
    const nb::gil_scoped_release release;
    if constexpr (std::is_invocable_v<F, Arguments..., Interrupt&>) {
        return std::invoke(kernel, std::forward<Arguments>(arguments)..., interrupt);
    } else {
        return std::invoke(kernel, std::forward<Arguments>(arguments)...);
    }
}

// Calls kernel(numbers, interrupt), which fills n numbers; returns these as an array.
template <class F>
NumPy<double> fill_array(Index n, F&& kernel) {
    std::vector<double> out(n);
    run_kernel(kernel, out.data());
    return numpy(std::move(out));
}

// Keeps a Python object alive for as long as the core uses its memory.
template <class A>
std::shared_ptr<const void> keep_alive(const A& array) {
    return std::shared_ptr<const void>(new A(array), [](const void* p) {
        const nb::gil_scoped_acquire gil;
        delete static_cast<const A*>(p);
    });
}

// The same for an object of the core that Python owns. nanobind's own conversion to a shared_ptr is noexcept, so it
// would end the process when memory is short.
template <class T>
std::shared_ptr<T> share(T& object) {
    nb::object found = nb::find(object);
    if (!found) throw InputError("an object that Python does not own");
    return std::shared_ptr<T>(&object, [owner = std::move(found)](const T*) mutable {
        if (!nb::is_alive()) {
            owner.release();
            return;
        }
        const nb::gil_scoped_acquire gil;
        owner.reset();
    });
}

// The same for all objects of a sequence.
template <class T>
std::vector<std::shared_ptr<const T>> share_all(const nb::sequence& objects) {
    std::vector<std::shared_ptr<const T>> out;
    for (const nb::handle object : objects) {
        T* found = nullptr;
        if (!nb::try_cast(object, found) || !found) throw nb::type_error("an object of another class in a list");
        out.push_back(share(*found));
    }
    return out;
}

}  // namespace partwise::bindings
