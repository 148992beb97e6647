// Memory asked for ahead of its use.
#pragma once

#include <algorithm>
#include <vector>

namespace partwise {

// The beginning of a vector: what lies further on, the processor foresees itself.
template <class T>
void prefetch_begin(const std::vector<T>& values) {
    constexpr std::size_t kLine = 64;
    constexpr std::size_t kMost = 64 * kLine;
    const char* first = reinterpret_cast<const char*>(values.data());
    const std::size_t size = std::min(values.size() * sizeof(T), kMost);
    for (std::size_t at = 0; at < size; at += kLine) __builtin_prefetch(first + at);
}

}  // namespace partwise
