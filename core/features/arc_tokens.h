// Sentences as arc features see them: every column of every word as a 64-bit hash.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "support/types.h"

namespace partwise {

using Key = std::uint64_t;

// A bijection of 64-bit numbers whose output bits look independent (the finaliser of SplitMix64).
inline Key mix(Key x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

Key hash_to_key(std::string_view bytes);

class ArcTokens {
   public:
    // The places around a sentence's words have values too.
    static constexpr Key kRoot = 0x524f4f54ULL;
    static constexpr Key kOutside = 0x4f5554ULL;

    // columns[c]: the values of all words end to end, each ended by a zero byte.
    ArcTokens(std::vector<Index> lengths, const std::vector<std::string_view>& columns);

    Index num_sentences() const { return len(lengths_.size()); }
    Index num_columns() const { return len(columns_.size()); }
    Index length(Index i) const { return lengths_[i]; }
    Index num_words() const { return offsets_.back(); }
    Index offset(Index i) const { return offsets_[i]; }
    // The value at a position: words are 1..n, the root is 0, all else is outside.
    Key value(Index i, Index column, Index position) const {
        if (position == 0) return kRoot;
        if (position < 0 || position > lengths_[i]) return kOutside;
        return columns_[column][offsets_[i] + position - 1];
    }
    // Whether a column has more than one value.
    bool varies(Index column) const;

   private:
    std::vector<Index> lengths_;
    std::vector<Index> offsets_;
    std::vector<std::vector<Key>> columns_;
};

}  // namespace partwise
