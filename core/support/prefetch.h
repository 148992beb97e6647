// Memory asked for ahead of its use.
#pragma once

#include <algorithm>
#include <vector>

namespace partwise {

constexpr std::size_t kCacheLine = 64;

inline void prefetch_bytes(const void* memory, std::size_t size) {
    const char* first = static_cast<const char*>(memory);
    for (std::size_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(first + at);
}

// An object itself, not what it points to.
template <class T>
void prefetch_object(const T& object) {
    prefetch_bytes(&object, sizeof(T));
}

// The beginning of a vector: what lies further on, the processor foresees itself.
template <class T>
void prefetch_begin(const std::vector<T>& values) {
    constexpr std::size_t kMost = 64 * kCacheLine;
    prefetch_bytes(values.data(), std::min(values.size() * sizeof(T), kMost));
}

}  // namespace partwise
