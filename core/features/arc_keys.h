// The features of an arc from head h to modifier m, f(x, h, m), as 64-bit keys.
//
// A template names what it looks at on the head's side, on the modifier's side, and in between. A side's value is
// hashed once per word, a feature's key is the sum of its parts' hashes: an arc costs one addition per feature. Each
// template makes two features, one by itself and one with the arc's direction and distance.
//
// Features that look at one side alone are the same for all arcs of that word in the same direction and distance, so
// that an arc's features come in rows which arcs share:
//
//     pair(h, m)              both sides, and what is in between
//     head(h)                 the head's side alone
//     head(h, distance)       the same with direction and distance
//     modifier(m, distance)   the modifier's side alone; without direction and distance it would be the same for all
//                             heads of m, and cancel in every difference of two trees
#pragma once

#include <array>
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

// Sentences as arc features see them: every column of every word as a 64-bit hash.
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
    // The head of word m in a list of one per word, sentences end to end. Throws InputError if it cannot be.
    Index checked_head(std::span<const Index> heads, Index i, Index m) const;
    bool varies(Index column) const;

   private:
    std::vector<Index> lengths_;
    std::vector<Index> offsets_;
    std::vector<std::vector<Key>> columns_;
};

struct ArcTemplate {
    struct Atom {
        Index column;
        Index offset;  // the word itself: 0, its right neighbour: 1
    };
    std::vector<Atom> head;
    std::vector<Atom> modifier;
    Index between = -1;  // a column: one feature for each of its values between the two words
};

// Direction and distance: 1, 2, 3, 4, 5-6, 7-10, 11 and more, to the right and to the left.
class ArcDistance {
   public:
    static constexpr std::array<Index, 7> kLowest = {1, 2, 3, 4, 5, 7, 11};
    static constexpr Index kBins = 14;

    static Index bin(Index h, Index m) {
        constexpr std::array<std::uint8_t, 12> kBinOf = {0, 0, 1, 2, 3, 4, 4, 5, 5, 5, 5, 6};
        const Index distance = h < m ? m - h : h - m;
        return kBinOf[distance < 11 ? distance : 11] + (h < m ? 0 : 7);
    }
};

// Where a sentence's rows lie when they are counted through. Pairs come first, in the order of slots:
// (m - 1)(n + 1) + h.
struct ArcRows {
    Index n;

    Index pair(Index h, Index m) const { return (m - 1) * (n + 1) + h; }
    Index head(Index h) const { return n * (n + 1) + h; }
    Index head(Index h, Index bin) const { return (n + 1) * (n + 1) + h * ArcDistance::kBins + bin; }
    Index modifier(Index m, Index bin) const {
        return (n + 1) * (n + 1 + ArcDistance::kBins) + (m - 1) * ArcDistance::kBins + bin;
    }
    Index size() const { return (n + 1) * (n + 1 + ArcDistance::kBins) + n * ArcDistance::kBins; }
    std::array<Index, 4> of_arc(Index h, Index m) const {
        const Index bin = ArcDistance::bin(h, m);
        return {pair(h, m), head(h), head(h, bin), modifier(m, bin)};
    }
};

// What direction and distance add to a key.
Key distance_key(Index bin);

// Makes the keys of one sentence after another; one object per thread.
class ArcKeys {
   public:
    ArcKeys(const std::vector<ArcTemplate>& templates, const ArcTokens& tokens);

    void load(Index i);
    Index length() const { return n_; }

    Key with_bin(Index bin) const { return bins_[bin]; }

    // Each appends a row's keys; pair() without those that have direction and distance.
    void pair(Index h, Index m, std::vector<Key>& out) const;
    void head(Index h, std::vector<Key>& out) const;
    void head(Index h, Index bin, std::vector<Key>& out) const;
    void modifier(Index m, Index bin, std::vector<Key>& out) const;
    void arc(Index h, Index m, std::vector<Key>& out) const;
    // All pairs of a modifier, or all other rows, in the order of ArcRows; ends: of each row.
    void all_pairs(Index m, std::vector<Key>& out, std::vector<std::uint32_t>& ends) const;
    void all_others(std::vector<Key>& out, std::vector<std::uint32_t>& ends) const;

   private:
    struct Between {  // distinct values between m and the words to its left and right, nearest first
        std::vector<Key> left, right;
        std::vector<std::uint32_t> seen;  // an h: how many lie between h and m
    };
    void load_between(Index i, Index column, std::vector<Between>& out);

    const std::vector<ArcTemplate>& templates_;
    const ArcTokens& tokens_;
    std::vector<Index> pairs_, heads_, modifiers_, betweens_;  // templates of each kind
    std::vector<Index> columns_;                               // looked at in between
    std::vector<std::size_t> same_column_;                     // of each template of that kind, in columns_
    Index n_ = 0;
    std::vector<Key> pair_heads_, pair_modifiers_;        // words x pair templates
    std::vector<Key> between_heads_, between_modifiers_;  // words x between templates
    std::vector<Key> head_sides_, modifier_sides_;        // words x one-sided templates
    std::vector<std::vector<Between>> between_;           // words of each of columns_
    std::array<Key, ArcDistance::kBins> bins_;
};

// Throws InputError unless every template looks at an existing column and at one word at least.
void check_templates(const std::vector<ArcTemplate>& templates, Index n_columns);

}  // namespace partwise
