#include "support/parallel.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace partwise {

namespace {
double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

// Addresses, not memory of the heap: a new thread may not find its way to what is left there.
void reserve_for_threads(int n) {
#if defined(__unix__) || defined(__APPLE__)
    constexpr std::size_t kReserve = std::size_t{1} << 24;  // a stack, and more than a thread needs before it can throw
    const std::size_t size = kReserve * static_cast<std::size_t>(std::max(n, 1));
    void* reserve = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserve == MAP_FAILED) throw std::bad_alloc();
    ::munmap(reserve, size);
#else
    static_cast<void>(n);
#endif
}

void prepare_to_throw() {
    // volatile: or the call, whose answer nobody needs, is optimised away.
    [[maybe_unused]] const volatile int found = std::uncaught_exceptions();
}

void Interrupt::check() {
    // The clock costs about 20 ns; examples cost microseconds. Still, look only every fourth time.
    if (!poll_ || (calls_++ & 3) != 0) return;
    const double now = seconds_now();
    if (now < next_) return;
    next_ = now + 0.1;
    if (poll_()) throw Interrupted();
}

void parallel_for(Index n_tasks, int n_jobs, Interrupt& interrupt, const std::function<void(Index, int)>& task) {
    const int workers = static_cast<int>(std::min<Index>(std::max(n_jobs, 1), n_tasks));
    if (workers <= 1) {
        for (Index k = 0; k < n_tasks; ++k) {
            interrupt.check();
            task(k, 0);
        }
        return;
    }
    std::atomic<Index> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr error;
    std::mutex error_mutex;
    auto work = [&](int worker) {
        prepare_to_throw();
        try {
            for (;;) {
                const Index k = next.fetch_add(1);
                if (k >= n_tasks || failed.load()) return;
                if (worker == 0) interrupt.check();
                task(k, worker);
            }
        } catch (...) {
            const std::lock_guard lock(error_mutex);
            if (!error) error = std::current_exception();
            failed.store(true);
        }
    };
    reserve_for_threads(workers - 1);
    {
        std::vector<std::jthread> threads;
        threads.reserve(static_cast<std::size_t>(workers) - 1);
        for (int worker = 1; worker < workers; ++worker) threads.emplace_back(work, worker);
        work(0);
    }
    if (error) std::rethrow_exception(error);
}

int effective_jobs(int n_jobs) {
    if (n_jobs > 0) return n_jobs;
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    return n_jobs == 0 ? 1 : std::max(1, cores + 1 + n_jobs);
}

}  // namespace partwise
