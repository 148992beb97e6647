// Distinct strings, numbered from 0 in the order they were added, with a hash table over them.
#pragma once

#include <cstring>
#include <string_view>

#include "support/types.h"

namespace partwise {

inline std::uint32_t hash_bytes(std::string_view text) {
    // Eight bytes at a time: a product carries low bits upwards, the shift brings high bits down again.
    const auto mix = [](std::uint64_t a) {
        a *= 0xD6E8FEB86659FD93ULL;
        return a ^ (a >> 32);
    };
    std::uint64_t state = 0x9E3779B97F4A7C15ULL ^ text.size();
    const char* p = text.data();
    std::size_t left = text.size();
    std::uint64_t word = 0;
    for (; left >= 8; left -= 8, p += 8) {
        std::memcpy(&word, p, 8);
        state = mix(state ^ word);
    }
    if (left > 0) {
        word = 0;
        std::memcpy(&word, p, left);
        state = mix(state ^ word);
    }
    return static_cast<std::uint32_t>(mix(state));
}

class StringTable {
   public:
    StringTable() : slots_(kSmallest) {}

    Index size() const { return len(offsets_.size()) - 1; }
    std::string_view name(Index id) const {
        const Index start = offsets_[id];
        return {bytes_.data() + start, idx(offsets_[id + 1] - start)};
    }

    Index find(std::string_view text) const;

    // The numbers of strings that lie end to end, string k at [offsets[k], offsets[k + 1]); -1 for unknown ones. Faster
    // than find() for each, because it prefetches the table's memory.
    void find_all(std::string_view text, const std::vector<Index>& offsets, std::int32_t* ids) const;

    Index add(std::string_view text);

    void reserve(Index n_strings, Index n_bytes);

    // Replaces all strings: string k is bytes[offsets[k], offsets[k + 1]). Returns the number of the first string that
    // repeats an earlier one, or -1.
    Index assign(std::string bytes, std::vector<Index> offsets);

    const std::string& bytes() const { return bytes_; }
    const std::vector<Index>& offsets() const { return offsets_; }

   private:
    struct Slot {
        std::uint32_t hash = 0;
        std::int32_t id = -1;  // -1: free
    };
    static constexpr std::size_t kSmallest = 16;
    static constexpr int kRegionBits = 9;  // of a large table: 512 regions, each small enough for a cache

    std::size_t place_of(std::string_view text, std::uint32_t hash) const;
    void grow(std::size_t n_slots);

    std::string bytes_;              // all strings end to end
    std::vector<Index> offsets_{0};  // string k is [offsets_[k], offsets_[k + 1])
    std::vector<Slot> slots_;        // a power of two of them, at most 5/8 used
};

}  // namespace partwise
