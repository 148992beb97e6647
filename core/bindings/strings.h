// Strings of Python and of the core.
#pragma once

#include <string>
#include <string_view>

#include "bindings/common.h"

namespace partwise::bindings {

// The UTF-8 of a Python string, valid for as long as the string lives. InputError for other objects and for lone
// surrogates; `where` is called only then, to name the place.
template <class Where>
std::string_view utf8_of(nb::handle object, Where&& where) {
    if (!PyUnicode_Check(object.ptr())) {
        throw InputError(where() + ": expected a string, got " + nb::cast<std::string>(nb::repr(object.type())));
    }
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (data == nullptr) {
        PyErr_Clear();
        const std::string shown = nb::cast<std::string>(nb::repr(object));
        throw InputError(where() + ": " + shown + " holds a lone surrogate, which is not a character");
    }
    return {data, static_cast<std::size_t>(size)};
}

inline nb::object python_string(std::string_view text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
}

}  // namespace partwise::bindings
