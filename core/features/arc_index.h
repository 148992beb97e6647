// The numbering of arc features: which keys (hashes of features) have a weight, and at which index.
//
// Indexed: the keys seen in training, numbered by falling frequency, so that frequent weights are close in memory. The
// table stores 32 bits of a key: an unknown key passes for a known one with probability about 2^-30 per look-up.
// Hashed: a key's first `bits` bits are the index of its weight (hashing trick), and nothing is stored.
#pragma once

#include <utility>

#include "features/arc_keys.h"
#include "support/parallel.h"

namespace partwise {

class ArcIndex {
   public:
    static constexpr std::uint32_t kUnknown = 0xffffffffU;

    // Weight k belongs to keys[k].
    explicit ArcIndex(std::vector<Key> keys);
    static std::unique_ptr<ArcIndex> hashed(int bits);
    // Keys that occur at least min_count times: on the gold arcs if `heads` is given (the head of each word, all
    // sentences concatenated), otherwise on all possible arcs.
    static std::unique_ptr<ArcIndex> seen(const std::vector<ArcTemplate>& templates, const ArcTokens& tokens,
                                          std::span<const Index> heads, Index min_count, Interrupt& interrupt);

    // All keys on these arcs and their frequencies, which can be summed over several sets of sentences.
    static std::pair<std::vector<Key>, std::vector<Index>> counted(const std::vector<ArcTemplate>& templates,
                                                                   const ArcTokens& tokens,
                                                                   std::span<const Index> heads, Interrupt& interrupt);

    Index num_weights() const { return bits_ > 0 ? Index{1} << bits_ : len(keys_.size()); }
    int bits() const { return bits_; }
    const std::vector<Key>& keys() const { return keys_; }
    // Which keys an index restricted to the `kept` ones still needs. A feature's key with direction and distance is
    // looked up only if its key without them is known, so the latter must stay too.
    std::vector<std::uint8_t> with_plain(std::span<const std::uint8_t> kept) const;
    void find(const Key* keys, std::size_t n, std::uint32_t* ids) const;

   private:
    // One cache line of the table. A key whose bucket is full is stored in the next bucket.
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
