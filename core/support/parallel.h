// Work on threads. Threads live as long as one call: starting them costs tens of microseconds, an epoch costs
// milliseconds, and a pool that outlives a call would be broken by fork().
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "support/workspace.h"

namespace partwise {

// Asks at intervals whether to stop (Ctrl-C). `poll` is called only on the thread that made the Interrupt; other
// threads of the same call stop once `poll` has returned true.
//
// While an Interrupt exists, check_current() on its thread uses it, so that inner functions (a structure's work on one
// long example) can check for Ctrl-C without an Interrupt among their arguments.
class Interrupt {
   public:
    explicit Interrupt(std::function<bool()> poll = {});
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    // Cheap: looks at the clock, and polls if a tenth of a second has passed. Throws Interrupted.
    void check();

    // check() of the Interrupt that this thread works for; does nothing if there is none.
    static void check_current() {
        if (current_) current_->check();
    }

    // While it exists, check_current() on this worker thread uses `interrupt`.
    class Worker {
       public:
        explicit Worker(Interrupt& interrupt) { current_ = &interrupt; }
        ~Worker() { current_ = nullptr; }
        Worker(const Worker&) = delete;
        Worker& operator=(const Worker&) = delete;
    };

   private:
    static constinit thread_local Interrupt* current_;

    std::function<bool()> poll_;
    Interrupt* outer_;
    std::thread::id owner_ = std::this_thread::get_id();
    std::atomic<bool> stopped_{false};
    Index calls_ = 0;
    double next_ = 0;
};

// Calls task(k, worker) for k in [0, n_tasks) on up to n_jobs threads; worker < n_jobs. Tasks are handed out in order.
// The first exception is rethrown here. If the system refuses a thread, the threads already started do all the work.
void parallel_for(Index n_tasks, int n_jobs, Interrupt& interrupt, const std::function<void(Index, int)>& task);

// The same with a Workspace of the worker's own: task(k, workspace).
template <class F>
void parallel_with_scratch(Index n_tasks, int n_jobs, Interrupt& interrupt, F&& task) {
    std::vector<Workspace> scratch(std::max(n_jobs, 1));
    parallel_for(n_tasks, n_jobs, interrupt, [&](Index k, int worker) { task(k, scratch[worker]); });
}

// Calls work(k) for k in [0, n_workers), each on its own thread and all at the same time, so that they may wait
// for each other. If the system refuses a thread, throws ThreadError and calls nothing. The calling thread checks for
// Ctrl-C. `work` must not throw.
void run_together(int n_workers, Interrupt& interrupt, const std::function<void(int)>& work);

// The system refuses to start a thread.
struct ThreadError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Throws std::bad_alloc unless there is memory for n threads. Called before threads are started.
void reserve_for_threads(int n);
// Allocates what a thread needs to throw exceptions; called first in each thread. If this memory were missing at the
// first throw, the process would end.
void prepare_to_throw();

}  // namespace partwise
