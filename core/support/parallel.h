// Work on threads. Threads live as long as one call: starting them costs tens of microseconds, an epoch costs
// milliseconds, and a pool that outlives a call would be broken by fork().
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "support/workspace.h"

namespace partwise {

// Asks at intervals whether to stop (Ctrl-C). `poll` is only called on the thread that made the Interrupt; the other
// threads that work for the same call stop as soon as that one has been told to.
//
// While it lives, it is also the one that check_current() asks on that thread, so that code far below (a structure's
// work on one long example) can look for Ctrl-C without being handed an Interrupt.
class Interrupt {
   public:
    explicit Interrupt(std::function<bool()> poll = {});
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    // Cheap: looks at the clock, and polls if a tenth of a second has passed. Throws Interrupted.
    void check();

    // The same for the call that this thread works for; nothing if there is none.
    static void check_current() {
        if (current_) current_->check();
    }

    // Makes a worker thread one that works for the interrupt's call.
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
// The first exception is thrown again here. Where the system refuses more threads, those there are do the work.
void parallel_for(Index n_tasks, int n_jobs, Interrupt& interrupt, const std::function<void(Index, int)>& task);

// The same with a Workspace of the worker's own: task(k, workspace).
template <class F>
void parallel_with_scratch(Index n_tasks, int n_jobs, Interrupt& interrupt, F&& task) {
    std::vector<Workspace> scratch(std::max(n_jobs, 1));
    parallel_for(n_tasks, n_jobs, interrupt, [&](Index k, int worker) { task(k, scratch[worker]); });
}

// Calls work(k) for k in [0, n_workers), each on its own thread and all at the same time, so that they may wait
// for each other. If the system refuses a thread nothing is called, and ThreadError is thrown. The calling thread looks
// for Ctrl-C. The work's exceptions are its own business: it must not throw.
void run_together(int n_workers, Interrupt& interrupt, const std::function<void(int)>& work);

// The system refuses to start a thread.
struct ThreadError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Before threads are started: std::bad_alloc unless there is memory for n of them.
void reserve_for_threads(int n);
// First of all in a thread: the memory that it needs to throw an exception. Without it the process would end.
void prepare_to_throw();

}  // namespace partwise
