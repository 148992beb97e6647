// Reads Python's strings, and items (dicts and lists of names and values).
#pragma once

#include "bindings/common.h"
#include "text/extractor.h"
#include "text/sentences.h"

namespace partwise::bindings {

// The UTF-8 of a Python string, valid while the string lives. False for other objects and for lone surrogates.
inline bool read_utf8(PyObject* object, std::string_view& out) {
    if (!PyUnicode_Check(object)) return false;
    Py_ssize_t size = 0;
    const char* const data = PyUnicode_AsUTF8AndSize(object, &size);
    if (data == nullptr) {
        PyErr_Clear();
        return false;
    }
    out = {data, static_cast<std::size_t>(size)};
    return true;
}

// The same with an InputError in place of false; `where` is called only for the error, to name the place.
template <class Where>
std::string_view utf8_of(nb::handle object, Where&& where) {
    std::string_view out;
    if (read_utf8(object.ptr(), out)) return out;
    if (!PyUnicode_Check(object.ptr())) {
        throw InputError(where(), ": expected a string, got ", nb::cast<std::string>(nb::repr(object.type())));
    }
    const std::string shown = nb::cast<std::string>(nb::repr(object));
    throw InputError(where(), ": ", shown, " holds a lone surrogate, which is not a character");
}

inline nb::object python_string(std::string_view text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
}

// The strings of a table, in their order.
template <class Table>
nb::list python_strings(const Table& table) {
    nb::list out;
    for (Index k = 0; k < table.size(); ++k) out.append(python_string(table.name(k)));
    return out;
}

// A list of n objects; item(k) returns a borrowed reference.
template <class Item>
nb::object list_of(Index n, Item&& item) {
    nb::object out = nb::steal(PyList_New(static_cast<Py_ssize_t>(n)));
    if (!out) throw nb::python_error();
    for (Index k = 0; k < n; ++k) {
        PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(k), nb::borrow(item(k)).release().ptr());
    }
    return out;
}

// The objects of a list or a tuple, nothing for other objects. Without the GIL, other threads may change a list.
inline std::optional<std::span<PyObject* const>> members_of(PyObject* sequence) {
    if (!PyList_CheckExact(sequence) && !PyTuple_CheckExact(sequence)) return {};
    return std::span<PyObject* const>(PySequence_Fast_ITEMS(sequence),
                                      static_cast<std::size_t>(PySequence_Fast_GET_SIZE(sequence)));
}

// The distinct strings of a column, and the number of each token's string.
inline CodedColumn coded_column(const Sentences& sentences, Index j) {
    CodedColumn out;
    out.codes.resize(sentences.n_tokens());
    for (Index t = 0; t < sentences.n_tokens(); ++t) {
        out.codes[t] = static_cast<std::int32_t>(out.names.add(sentences.cell(t, j)));
    }
    return out;
}

// Reads items one by one: lists or tuples of strings, and dicts from strings to strings (joined to the name by the
// separator), finite numbers, bools, and lists, tuples or dicts of the same, for which the name is a prefix. Values of
// 0 are left out unless they are to be kept. An item of any other form is not read: Python reads it slowly, or has
// words for what is wrong.
class ItemReader {
   public:
    explicit ItemReader(std::string_view separator, bool keep_zeros = false)
        : separator_(separator), keep_zeros_(keep_zeros) {}

    // Whether the separator has joined a name to anything so far.
    bool joined() const { return joined_; }

    // Calls emit(name, value) for each attribute; false if the item is not read, maybe after some calls.
    template <class Emit>
    bool read(PyObject* item, Emit&& emit) {
        name_.clear();
        return add(item, emit, 0);
    }

   private:
    static constexpr int kDeepest = 16;

    template <class Emit>
    bool add(PyObject* item, Emit&& emit, int depth) {
        if (PyDict_CheckExact(item)) return depth < kDeepest && add_entries(item, emit, depth);
        const auto names = members_of(item);
        return names && add_names(*names, emit);
    }

    template <class Emit>
    bool add_names(std::span<PyObject* const> names, Emit&& emit) {
        for (PyObject* const each : names) {
            std::string_view name;
            if (!read_utf8(each, name)) return false;
            if (name_.empty()) {
                emit(name, 1.0);
            } else {
                with(name, [&] { emit(std::string_view(name_), 1.0); });
            }
        }
        return true;
    }

    template <class Emit>
    bool add_entries(PyObject* entries, Emit&& emit, int depth) {
        Py_ssize_t place = 0;
        PyObject *key = nullptr, *value = nullptr;
        while (PyDict_Next(entries, &place, &key, &value)) {
            std::string_view name, joined;
            if (!read_utf8(key, name)) return false;
            bool good = true;
            if (read_utf8(value, joined)) {
                joined_ = true;
                with(name, separator_, joined, [&] { emit(std::string_view(name_), 1.0); });
            } else if (double number = 0.0; numeric(value, number)) {
                if (number != 0.0 || keep_zeros_) with(name, [&] { emit(std::string_view(name_), number); });
            } else {
                joined_ = true;
                with(name, separator_, [&] { good = add(value, emit, depth + 1); });
            }
            if (!good) return false;
        }
        return true;
    }

    // Calls f while the name is longer by these parts.
    template <class... Parts>
    void with(Parts&&... parts) {
        const std::size_t before = name_.size();
        extend(parts...);
        name_.resize(before);
    }
    template <class F>
    void extend(F& f) {
        f();
    }
    template <class... Rest>
    void extend(std::string_view part, Rest&... rest) {
        name_ += part;
        extend(rest...);
    }

    // Reads floats, ints and bools without a call of Python code, which could change the dict that is being read.
    static bool numeric(PyObject* object, double& out) {
        if (PyFloat_Check(object)) {
            out = PyFloat_AS_DOUBLE(object);
        } else if (PyLong_Check(object)) {
            out = PyLong_AsDouble(object);
            if (out == -1.0 && PyErr_Occurred() != nullptr) {
                PyErr_Clear();
                return false;
            }
        } else {
            return false;
        }
        return std::isfinite(out);
    }

    std::string_view separator_;
    bool keep_zeros_;
    std::string name_;
    bool joined_ = false;
};

}  // namespace partwise::bindings
