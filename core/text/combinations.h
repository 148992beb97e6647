// Numbers for combinations of codes.
#pragma once

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "text/string_table.h"

namespace partwise {

// Numbers combinations of codes in the order they come.
class Combinations {
   public:
    // Starts again, with what it has of memory: codes of place k are below radices[k].
    void reset(std::vector<Index> radices, Index n_tokens) {
        radices_ = std::move(radices);
        size_ = 0;
        wide_ = false;
        direct_.clear();
        slots_.clear();
        std::uint64_t product = 1;
        for (const Index radix : radices_) {
            if (product > std::numeric_limits<std::uint64_t>::max() / 2 / static_cast<std::uint64_t>(radix)) {
                wide_ = true;
                strings_ = StringTable();
                return;
            }
            product *= static_cast<std::uint64_t>(radix);
        }
        if (product <= 1024 + 4 * static_cast<std::uint64_t>(n_tokens)) {
            direct_.assign(static_cast<std::size_t>(product), -1);
        } else {
            slots_.assign(1024, Slot{});
        }
    }

    std::int32_t number(const std::vector<Index>& codes) {
        if (wide_) {
            const std::string_view bytes(reinterpret_cast<const char*>(codes.data()), codes.size() * sizeof(Index));
            const auto found = static_cast<std::int32_t>(strings_.add(bytes));
            size_ = std::max(size_, found + 1);
            return found;
        }
        std::uint64_t key = 0;
        for (std::size_t k = 0; k < codes.size(); ++k) {
            key = key * static_cast<std::uint64_t>(radices_[k]) + static_cast<std::uint64_t>(codes[k]);
        }
        return number(key);
    }

    // Whether combinations do not fit into one number.
    bool wide() const { return wide_; }

    // The same for codes that were put together, the first one highest.
    std::int32_t number(std::uint64_t key) {
        if (!direct_.empty()) {
            std::int32_t& found = direct_[key];
            if (found < 0) found = size_++;
            return found;
        }
        if (idx(size_ + 1) * 2 > slots_.size()) grow();
        Slot& slot = slots_[place_of(key)];
        if (slot.number < 0) slot = {key, size_++};
        return slot.number;
    }

    // Asks for the memory that number(key) will look at.
    void expect(std::uint64_t key) const {
        if (!slots_.empty()) __builtin_prefetch(&slots_[hash(key) & (slots_.size() - 1)]);
    }

   private:
    struct Slot {
        std::uint64_t key = 0;
        std::int32_t number = -1;
    };

    static std::size_t hash(std::uint64_t key) {
        const std::uint64_t product = key * 0x9E3779B97F4A7C15ULL;
        return static_cast<std::size_t>(product ^ (product >> 32));
    }
    std::size_t place_of(std::uint64_t key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = hash(key) & mask;
        while (slots_[at].number >= 0 && slots_[at].key != key) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        slots_.swap(old_);
        slots_.assign(old_.size() * 4, Slot{});
        for (const Slot& slot : old_) {
            if (slot.number >= 0) slots_[place_of(slot.key)] = slot;
        }
    }

    std::vector<Index> radices_;
    bool wide_ = false;
    std::int32_t size_ = 0;
    std::vector<std::int32_t> direct_;  // few combinations: one entry each
    std::vector<Slot> slots_;           // more, if they fit into 64 bits: a hash table
    std::vector<Slot> old_;             // the table before it grew
    StringTable strings_;               // else
};

}  // namespace partwise
