#include "support/parallel.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace partwise {

namespace {

// Counts finished workers; the calling thread waits for them and checks for Ctrl-C meanwhile.
class Finish {
   public:
    void done() {
        const std::lock_guard lock(mutex_);
        ++done_;
        changed_.notify_one();
    }

    // After Ctrl-C calls stop(exception) once, then waits for the remaining workers.
    template <class F>
    void wait(int workers, Interrupt& interrupt, F&& stop) {
        bool stopped = false;
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, std::chrono::milliseconds(25), [&] { return done_ >= workers; })) {
            if (stopped) continue;
            lock.unlock();
            try {
                interrupt.check();
            } catch (...) {
                stopped = true;
                stop(std::current_exception());
            }
            lock.lock();
        }
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int done_ = 0;
};

// Threads that the destructor joins, also after an exception. (libc++ lacks std::jthread before version 20.)
struct Threads {
    std::vector<std::thread> all;

    ~Threads() {
        for (std::thread& each : all) each.join();
    }
};

}  // namespace

constinit thread_local Interrupt* Interrupt::current_ = nullptr;

Interrupt::Interrupt(std::function<bool()> poll) : poll_(std::move(poll)), outer_(current_) { current_ = this; }

Interrupt::~Interrupt() { current_ = outer_; }

// Maps addresses and unmaps them again. malloc proves nothing: new threads may not reach the heap's free memory.
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
    // volatile, because the compiler would remove a call whose result is unused.
    [[maybe_unused]] const volatile int found = std::uncaught_exceptions();
}

void Interrupt::check() {
    if (std::this_thread::get_id() != owner_) {
        if (stopped_.load(std::memory_order_relaxed)) throw Interrupted();
        return;
    }
    // The clock costs about 20 ns; examples cost microseconds. Still, look only every fourth time.
    if (!poll_ || (calls_++ & 3) != 0) return;
    const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    if (now < next_) return;
    next_ = now + 0.1;
    if (poll_()) {
        stopped_.store(true);
        throw Interrupted();
    }
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
    const auto fail = [&](std::exception_ptr cause) {
        const std::lock_guard lock(error_mutex);
        if (!failed.exchange(true)) error = std::move(cause);
    };
    const auto work = [&](int worker) noexcept {
        try {
            for (;;) {
                const Index k = next.fetch_add(1);
                if (k >= n_tasks || failed.load()) return;
                interrupt.check();
                task(k, worker);
            }
        } catch (...) {
            fail(std::current_exception());
        }
    };
    Finish finish;
    reserve_for_threads(workers - 1);
    {
        Threads threads;
        threads.all.reserve(workers - 1);
        try {
            for (int worker = 1; worker < workers; ++worker) {
                threads.all.emplace_back([&, worker] {
                    prepare_to_throw();
                    const Interrupt::Worker here(interrupt);
                    work(worker);
                    finish.done();
                });
            }
        } catch (const std::system_error&) {
            // Fewer threads than asked for: these do all tasks.
        } catch (...) {
            fail(std::current_exception());
        }
        work(0);
        finish.wait(static_cast<int>(threads.all.size()), interrupt, fail);
    }
    if (error) std::rethrow_exception(error);
}

void run_together(int n_workers, Interrupt& interrupt, const std::function<void(int)>& work) {
    enum : int { kWait, kGo, kGoHome };
    std::atomic<int> gate{kWait};
    const auto open = [&](int way) {
        gate.store(way);
        gate.notify_all();
    };
    Finish finish;
    std::exception_ptr error;
    reserve_for_threads(n_workers);
    {
        Threads threads;
        threads.all.reserve(n_workers);
        try {
            for (int worker = 0; worker < n_workers; ++worker) {
                threads.all.emplace_back([&, worker] {
                    gate.wait(kWait);
                    if (gate.load() == kGoHome) return;
                    prepare_to_throw();
                    const Interrupt::Worker here(interrupt);
                    work(worker);
                    finish.done();
                });
            }
        } catch (const std::system_error& e) {
            open(kGoHome);
            throw ThreadError("only " + std::to_string(threads.all.size()) + " of " + std::to_string(n_workers) +
                              " threads could be started (" + e.code().message() + "): use a smaller n_jobs");
        } catch (...) {
            open(kGoHome);
            throw;
        }
        open(kGo);
        finish.wait(n_workers, interrupt, [&](std::exception_ptr cause) { error = std::move(cause); });
    }
    if (error) std::rethrow_exception(error);
}

}  // namespace partwise
