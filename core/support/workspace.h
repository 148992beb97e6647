// Scratch memory of one thread: a stack of aligned doubles that is grown once and then reused for every example.
#pragma once

#include <new>

#include "support/types.h"

namespace partwise {

class Workspace {
   public:
    Workspace() = default;
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    // A Frame's destructor gives back all memory taken since the Frame was made.
    class Frame {
       public:
        explicit Frame(Workspace& ws) : ws_(ws), block_(ws.block_), used_(ws.used_) {}
        ~Frame() {
            ws_.block_ = block_;
            ws_.used_ = used_;
        }
        Frame(const Frame&) = delete;
        Frame& operator=(const Frame&) = delete;
        double* take(Index n) { return ws_.take(n); }
        double* zeros(Index n) {
            double* out = take(n);
            std::fill_n(out, n, 0.0);
            return out;
        }

       private:
        Workspace& ws_;
        std::size_t block_;
        std::size_t used_;
    };

   private:
    static constexpr std::size_t kAlignment = 64;
    static constexpr std::size_t kDoublesPerLine = kAlignment / sizeof(double);
    static constexpr std::size_t kFirstBlock = std::size_t{1} << 15;

    struct Free {
        void operator()(double* p) const { ::operator delete[](p, std::align_val_t{kAlignment}); }
    };
    struct Block {
        std::unique_ptr<double[], Free> data;
        std::size_t size;
    };

    // Blocks never move, so pointers stay valid while inner frames take more.
    double* take(Index n) {
        const std::size_t need =
            (static_cast<std::size_t>(n) + kDoublesPerLine - 1) / kDoublesPerLine * kDoublesPerLine;
        while (block_ < blocks_.size() && used_ + need > blocks_[block_].size) {
            ++block_;
            used_ = 0;
        }
        if (block_ == blocks_.size()) {
            const std::size_t previous = blocks_.empty() ? kFirstBlock / 2 : blocks_.back().size;
            const std::size_t size = std::max(need, 2 * previous);
            auto* p = static_cast<double*>(::operator new[](size * sizeof(double), std::align_val_t{kAlignment}));
            blocks_.push_back({std::unique_ptr<double[], Free>(p), size});
            used_ = 0;
        }
        double* out = blocks_[block_].data.get() + used_;
        used_ += need;
        return out;
    }

    std::vector<Block> blocks_;
    std::size_t block_ = 0;
    std::size_t used_ = 0;
};

}  // namespace partwise
