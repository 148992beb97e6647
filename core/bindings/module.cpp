#include <chrono>
#include <optional>

#include "bindings/common.h"
#include "structures/structure.h"

namespace partwise::bindings {

namespace {

using Clock = std::chrono::steady_clock;

// When this thread's calls must stop.
thread_local Clock::time_point deadline = Clock::time_point::max();

bool out_of_time() { return deadline != Clock::time_point::max() && Clock::now() >= deadline; }

void set_deadline(std::optional<double> seconds) {
    if (seconds && std::isnan(*seconds)) throw InputError("a deadline must be a number");
    // More than a year counts as no deadline: the clock's numbers would overflow.
    const bool none = !seconds || *seconds > 3.2e7;
    const std::chrono::duration<double> wait(none ? 0.0 : std::max(*seconds, 0.0));
    deadline = none ? Clock::time_point::max() : Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
}

int cpu_level() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return 4;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return 3;
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")) return 2;
    return 1;
#else
    return 0;
#endif
}

}  // namespace

Interrupt python_interrupt() {
    return Interrupt([] {
        if (out_of_time()) return true;
        const nb::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0;
    });
}

// The functions that define the classes and functions of the module, one per file of this folder.
using Bind = void(nb::module_&);
Bind bind_structures, bind_parses, bind_features, bind_kernels, bind_arcs, bind_objective, bind_solvers, bind_columns,
    bind_inference, bind_products, bind_sentences, bind_vocabulary, bind_named_chain;

NB_MODULE(PARTWISE_MODULE, m) {
    m.doc() = "The compiled core of partwise: inference, features and one epoch of each solver.";
#ifdef NDEBUG
    // Objects may live until the interpreter ends; users need no message about that.
    nb::set_leak_warnings(false);
#endif
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const InputError& e) {
            PyErr_SetString(PyExc_ValueError, e.what());
        } catch (const NumberError& e) {
            PyErr_SetString(nb::module_::import_("partwise.problem.result").attr("DivergenceError").ptr(), e.what());
        } catch (const Interrupted&) {
            // The signal handler that ran inside the poll has usually set its exception already.
            if (PyErr_Occurred()) return;
            if (out_of_time()) {
                PyErr_SetString(nb::module_::import_("partwise.problem.deadline").attr("OutOfTime").ptr(),
                                "out of time");
            } else {
                PyErr_SetNone(PyExc_KeyboardInterrupt);
            }
        }
    });
    m.def("padded_width", &padded_width, "n_labels"_a);
    m.def("cpu_level", &cpu_level);
    m.def("set_deadline", &set_deadline, "seconds"_a.none());
    m.def("out_of_time", &out_of_time);
    for (const auto bind :
         {bind_structures, bind_parses, bind_features, bind_kernels, bind_arcs, bind_objective, bind_solvers,
          bind_columns, bind_inference, bind_products, bind_sentences, bind_vocabulary, bind_named_chain})
        bind(m);
}

}  // namespace partwise::bindings
