// partwise._cpu: what this processor can do, asked before any module compiled for a level or for one machine is loaded.
// Plain Python API: it must run anywhere and costs nothing to import.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace {

// The features each level adds; the compiler's run-time support also checks that the system saves the wide registers.
int x86_level() {
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
          __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))) {
        return 1;
    }
    if (!(__builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
          __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"))) {
        return 2;
    }
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl"))) {
        return 3;
    }
    return 4;
}

PyObject* level(PyObject*, PyObject*) { return PyLong_FromLong(x86_level()); }

// What the module beside this one was compiled with and this processor lacks. CMake writes the list: NEEDS("avx2") ...
PyObject* missing(PyObject*, PyObject*) {
    __builtin_cpu_init();
    PyObject* names = PyList_New(0);
    if (!names) return nullptr;
    const auto need = [names](const char* name, int there) {
        if (there) return true;
        PyObject* text = PyUnicode_FromString(name);
        const bool added = text && PyList_Append(names, text) == 0;
        Py_XDECREF(text);
        return added;
    };
    bool all = true;
#define NEEDS(name) all = all && need(name, __builtin_cpu_supports(name));
#if __has_include("needs.inc")
#include "needs.inc"
#endif
#undef NEEDS
    static_cast<void>(need);  // the list may be empty
    if (all) return names;
    Py_DECREF(names);
    return nullptr;
}

PyMethodDef methods[] = {{"level", level, METH_NOARGS, "The x86-64 level (1 to 4) of this processor."},
                         {"missing", missing, METH_NOARGS, "What `_core` was compiled with and this processor lacks."},
                         {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_cpu", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModule_Create(&module); }
