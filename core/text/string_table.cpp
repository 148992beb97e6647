#include "text/string_table.h"

#include <bit>
#include <numeric>

namespace partwise {

std::size_t StringTable::place_of(std::string_view text, std::uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
        const Slot& slot = slots_[at];
        if (slot.id < 0 || (slot.hash == hash && name(slot.id) == text)) return at;
    }
}

Index StringTable::find(std::string_view text) const { return slots_[place_of(text, hash_bytes(text))].id; }

void StringTable::find_all(std::string_view text, const std::vector<Index>& offsets, std::int32_t* ids) const {
    constexpr std::size_t kBlock = 64;
    const std::size_t mask = slots_.size() - 1;
    const std::size_t n = offsets.size() - 1;
    const auto string = [&](std::size_t k) { return text.substr(offsets[k], offsets[k + 1] - offsets[k]); };
    std::uint32_t hashes[kBlock];
    for (std::size_t first = 0; first < n; first += kBlock) {
        const std::size_t size = std::min(kBlock, n - first);
        for (std::size_t j = 0; j < size; ++j) {
            hashes[j] = hash_bytes(string(first + j));
            __builtin_prefetch(&slots_[hashes[j] & mask]);
        }
        // Each prefetch needs the result of the one before: the slot, its string's offset, the string.
        for (std::size_t j = 0; j < size; ++j) {
            const Slot& slot = slots_[hashes[j] & mask];
            if (slot.id >= 0) __builtin_prefetch(&offsets_[slot.id]);
        }
        for (std::size_t j = 0; j < size; ++j) {
            const Slot& slot = slots_[hashes[j] & mask];
            if (slot.id >= 0 && slot.hash == hashes[j]) __builtin_prefetch(bytes_.data() + offsets_[slot.id]);
        }
        for (std::size_t j = 0; j < size; ++j) ids[first + j] = slots_[place_of(string(first + j), hashes[j])].id;
    }
}

Index StringTable::add(std::string_view text) {
    const std::uint32_t hash = hash_bytes(text);
    std::size_t at = place_of(text, hash);
    if (slots_[at].id >= 0) return slots_[at].id;
    if (size() >= std::numeric_limits<std::int32_t>::max()) throw InputError("more than two billion strings");
    if (idx(size() + 1) * 8 > slots_.size() * 5) {
        grow(slots_.size() * 2);
        at = place_of(text, hash);
    }
    const Index id = size();
    slots_[at] = {hash, static_cast<std::int32_t>(id)};
    bytes_.append(text);
    offsets_.push_back(len(bytes_.size()));
    return id;
}

void StringTable::reserve(Index n_strings, Index n_bytes) {
    bytes_.reserve(n_bytes);
    offsets_.reserve(n_strings + 1);
    const std::size_t wanted = std::bit_ceil(idx(n_strings) * 8 / 5 + 1);
    if (wanted > slots_.size()) grow(wanted);
}

Index StringTable::assign(std::string bytes, std::vector<Index> offsets) {
    bytes_ = std::move(bytes);
    offsets_ = std::move(offsets);
    if (size() >= std::numeric_limits<std::int32_t>::max()) throw InputError("more than two billion strings");
    slots_.assign(std::bit_ceil(std::max(kSmallest, idx(size()) * 8 / 5 + 1)), Slot{});
    // A large table does not fit into a cache, so strings are inserted region by region of the table.
    const int shift = std::max(0, std::countr_zero(slots_.size()) - kRegionBits);
    const std::size_t mask = slots_.size() - 1;
    std::vector<std::uint32_t> hashes(size());
    std::vector<Index> begin((slots_.size() >> shift) + 1, 0);
    for (Index k = 0; k < size(); ++k) {
        hashes[k] = hash_bytes(name(k));
        ++begin[((hashes[k] & mask) >> shift) + 1];
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<Slot> ordered(size());
    for (Index k = 0; k < size(); ++k) {
        const std::uint32_t hash = hashes[k];
        ordered[begin[(hash & mask) >> shift]++] = {hash, static_cast<std::int32_t>(k)};
    }
    Index twice = size();
    for (const Slot& next : ordered) {
        Slot& slot = slots_[place_of(name(next.id), next.hash)];
        // Equal strings are in the same region, in their order.
        if (slot.id >= 0)
            twice = std::min<Index>(twice, next.id);
        else
            slot = next;
    }
    return twice < size() ? twice : -1;
}

void StringTable::grow(std::size_t n_slots) {
    const std::vector<Slot> old = std::move(slots_);
    slots_.assign(n_slots, Slot{});
    const std::size_t mask = n_slots - 1;
    for (const Slot& slot : old) {
        if (slot.id < 0) continue;
        std::size_t at = slot.hash & mask;
        while (slots_[at].id >= 0) at = (at + 1) & mask;
        slots_[at] = slot;
    }
}

}  // namespace partwise
