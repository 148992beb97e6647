// Which keys have a weight, and which one.
//
// Indexed: the keys seen in training, numbered by frequency, so that the weights asked for most lie together. The table
// keeps 32 bits of a key: an unknown key is taken for a known one with a chance of about 2^-30 per look-up.
// Hashed: a key's first `bits` bits are its weight (the hash kernel), and there is nothing to store.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "features/arc_keys.h"
#include "support/parallel.h"

namespace partwise {

class ArcIndex {
   public:
    static constexpr std::uint32_t kUnknown = 0xffffffffU;

    // Keys in the order of their weights.
    explicit ArcIndex(std::vector<Key> keys);
    static std::unique_ptr<ArcIndex> hashed(int bits);
    // Keys that occur at least min_count times on gold arcs (heads: one per word, sentences end to end), or, without
    // heads, on all arcs.
    static std::unique_ptr<ArcIndex> seen(const std::vector<ArcTemplate>& templates, const ArcTokens& tokens,
                                          std::span<const Index> heads, Index min_count, Interrupt& interrupt);

    // All keys on these arcs and how often each occurs, for an index of several sets of sentences.
    static std::pair<std::vector<Key>, std::vector<Index>> counted(const std::vector<ArcTemplate>& templates,
                                                                   const ArcTokens& tokens,
                                                                   std::span<const Index> heads, Interrupt& interrupt);

    Index num_weights() const { return bits_ > 0 ? Index{1} << bits_ : len(keys_.size()); }
    int bits() const { return bits_; }
    const std::vector<Key>& keys() const { return keys_; }
    // Which keys an index of the kept ones needs: a feature with direction and distance is looked up only if the one
    // without is known.
    std::vector<std::uint8_t> with_plain(std::span<const std::uint8_t> kept) const;
    void find(const Key* keys, std::size_t n, std::uint32_t* ids) const;

   private:
    // One cache line; a full one goes on in the next.
    struct alignas(64) Bucket {
        static constexpr int kSize = 8;
        std::uint32_t marks[kSize];
        std::uint32_t ids[kSize];
    };
    std::size_t bucket_of(Key key) const { return static_cast<std::size_t>(((key >> 32) * table_.size()) >> 32); }

    int bits_ = 0;
    std::vector<Key> keys_;
    std::vector<Bucket> table_;
};

}  // namespace partwise
