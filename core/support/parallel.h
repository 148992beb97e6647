// Work on threads. Threads live as long as one call: starting them costs tens of microseconds, an epoch costs
// milliseconds, and a pool that outlives a call would be broken by fork().
#pragma once

#include <atomic>
#include <functional>

#include "support/types.h"

namespace partwise {

// Asks now and then whether to stop (Ctrl-C). `poll` may only be called from the thread that made the call.
class Interrupt {
   public:
    explicit Interrupt(std::function<bool()> poll = {}) : poll_(std::move(poll)) {}

    // Cheap: looks at the clock, and polls if a tenth of a second has passed. Throws Interrupted.
    void check();

   private:
    std::function<bool()> poll_;
    Index calls_ = 0;
    double next_ = 0;
};

// Calls task(k, worker) for k in [0, n_tasks) on up to n_jobs threads; worker < n_jobs. Tasks are handed out in order.
// The first exception is thrown again here; Ctrl-C is looked for between the calling thread's tasks.
void parallel_for(Index n_tasks, int n_jobs, Interrupt& interrupt, const std::function<void(Index, int)>& task);

// Before threads are started: std::bad_alloc unless there is memory for n of them.
void reserve_for_threads(int n);
// First of all in a thread: the memory that it needs to throw an exception. Without it the process would end.
void prepare_to_throw();

// n_jobs as users give it: 0 or less means every core (-1), every core but one (-2), and so on.
int effective_jobs(int n_jobs);

}  // namespace partwise
