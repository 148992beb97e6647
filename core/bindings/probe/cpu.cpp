// partwise._cpu: the x86-64 level of this processor, asked before any module compiled for a level is loaded.
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

PyMethodDef methods[] = {{"level", level, METH_NOARGS, "The x86-64 level (1 to 4) of this processor."},
                         {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_cpu", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModule_Create(&module); }
