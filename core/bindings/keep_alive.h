// Arrays of Python that the core reads in place.
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

}  // namespace partwise::bindings
