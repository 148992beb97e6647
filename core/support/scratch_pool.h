// Scratch memory for methods that several threads call without a Workspace. thread_local variables would end the
// process without an exception if a new thread had no memory for them.
#pragma once

#include <exception>
#include <memory>
#include <mutex>

namespace partwise {

template <class T>
class ScratchPool {
    struct Node {
        T value;
        std::unique_ptr<Node> next;
    };

   public:
    // Lends one T, which no other thread uses meanwhile. The destructor returns it to the pool, or deletes it if an
    // exception ended its use.
    class Lease {
       public:
        explicit Lease(ScratchPool& pool) : pool_(pool), node_(pool.take()), exceptions_(std::uncaught_exceptions()) {}
        ~Lease() {
            if (std::uncaught_exceptions() == exceptions_) pool_.give(std::move(node_));
        }
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        T& operator*() { return node_->value; }

       private:
        ScratchPool& pool_;
        std::unique_ptr<Node> node_;
        int exceptions_;
    };

   private:
    std::unique_ptr<Node> take() {
        {
            const std::lock_guard lock(mutex_);
            if (free_) {
                std::unique_ptr<Node> node = std::move(free_);
                free_ = std::move(node->next);
                return node;
            }
        }
        return std::make_unique<Node>();
    }
    void give(std::unique_ptr<Node> node) {
        const std::lock_guard lock(mutex_);
        node->next = std::move(free_);
        free_ = std::move(node);
    }

    std::mutex mutex_;
    std::unique_ptr<Node> free_;
};

}  // namespace partwise
