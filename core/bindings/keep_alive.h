// Memory of Python objects that the core uses in place.
#pragma once

#include "bindings/common.h"

namespace partwise::bindings {

// Keeps a Python object alive for as long as the core uses its memory.
template <class Array>
std::shared_ptr<const void> keep_alive(const Array& array) {
    return std::shared_ptr<const void>(new Array(array), [](const void* p) {
        const nb::gil_scoped_acquire gil;
        delete static_cast<const Array*>(p);
    });
}

// The same for an object of the core that Python owns. nanobind's own conversion to a shared_ptr is noexcept: it ends
// the process where there is no memory for it.
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

// For all objects of a sequence.
template <class T>
std::vector<std::shared_ptr<T>> share_all(const nb::sequence& objects) {
    std::vector<std::shared_ptr<T>> out;
    for (const nb::handle object : objects) {
        T* found = nullptr;
        if (!nb::try_cast(object, found) || !found) throw nb::type_error("an object of another class in a list");
        out.push_back(share(*found));
    }
    return out;
}

}  // namespace partwise::bindings
