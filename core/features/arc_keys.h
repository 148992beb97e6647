// The features of an arc from head h to modifier m, f(x, h, m), as 64-bit keys.
//
// A template names columns to read on the head's side, on the modifier's side, and between the two words. Each side's
// value is hashed once per word, and a feature's key is the sum of its parts' hashes: one addition per feature and arc.
// Each template makes two features of an arc, one alone and one combined with the arc's direction and distance.
//
// Features that read one side only are equal for all arcs of that word with the same direction and distance. The
// features of an arc are therefore stored in rows, most of which several arcs share:
//
//     pair(h, m)              both sides, and what is in between
//     head(h)                 the head's side alone
//     head(h, distance)       the same with direction and distance
//     modifier(m, distance)   the modifier's side with direction and distance; without them it would be the same
//                             for all heads of m, and cancel in every difference of two trees
#pragma once

#include <array>
#include <string_view>

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

// The sentences for which arc features are made: every column of every word as a 64-bit hash.
class ArcTokens {
   public:
    // Values of the positions outside a sentence: the root (position 0) and all others.
    static constexpr Key kRoot = 0x524f4f54ULL;
    static constexpr Key kOutside = 0x4f5554ULL;

    // columns[c]: the values of column c for all words of all sentences, each value terminated by a zero byte.
    ArcTokens(std::vector<Index> lengths, const std::vector<std::string_view>& columns);

    Index num_sentences() const { return len(lengths_.size()); }
    Index num_columns() const { return len(columns_.size()); }
    Index length(Index i) const { return lengths_[i]; }
    Index num_words() const { return offsets_.back(); }
    Index offset(Index i) const { return offsets_[i]; }
    // The hash of a column at a position: words are at 1..n, the root is at 0, all other positions are outside.
    Key value(Index i, Index column, Index position) const {
        if (position == 0) return kRoot;
        if (position < 0 || position > lengths_[i]) return kOutside;
        return columns_[column][offsets_[i] + position - 1];
    }
    // The head of word m of sentence i, from one head per word of all sentences. Throws InputError if it is invalid.
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
        Index offset;  // relative to the word: 0 is the word itself, 1 its right neighbour
    };
    std::vector<Atom> head;
    std::vector<Atom> modifier;
    Index between = -1;  // a column that gives one feature per distinct value between the two words; -1: none
};

// Bins of direction (right, left) and distance: 1, 2, 3, 4, 5-6, 7-10, at least 11.
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

// Indices of a sentence's rows (see above), all kinds in one numbering. Pairs come first, in the order of slots:
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

// The number that is added to a feature's key to combine it with direction and distance.
Key distance_key(Index bin);

// Makes the keys of one sentence at a time. Each thread needs its own object.
class ArcKeys {
   public:
    ArcKeys(const std::vector<ArcTemplate>& templates, const ArcTokens& tokens);

    void load(Index i);
    Index length() const { return n_; }

    Key with_bin(Index bin) const { return bins_[bin]; }

    // Each appends the keys of one row; pair() leaves out the keys with direction and distance.
    void pair(Index h, Index m, std::vector<Key>& out) const;
    void head(Index h, std::vector<Key>& out) const;
    void head(Index h, Index bin, std::vector<Key>& out) const;
    void modifier(Index m, Index bin, std::vector<Key>& out) const;
    void arc(Index h, Index m, std::vector<Key>& out) const;
    // The keys of all pairs of a modifier, or of all other rows, in the order of ArcRows; ends[r]: end of row r.
    void all_pairs(Index m, std::vector<Key>& out, std::vector<std::uint32_t>& ends) const;
    void all_others(std::vector<Key>& out, std::vector<std::uint32_t>& ends) const;

   private:
    struct Between {  // the distinct values between word m and the words to its left and right, nearest first
        std::vector<Key> left, right;
        std::vector<std::uint32_t> seen;  // seen[h]: how many of these values lie between h and m
    };
    void load_between(Index i, Index column, std::vector<Between>& out);

    const std::vector<ArcTemplate>& templates_;
    const ArcTokens& tokens_;
    std::vector<Index> pairs_, heads_, modifiers_, betweens_;  // indices of the templates of each kind
    std::vector<Index> columns_;                               // the columns that templates read between two words
    std::vector<std::size_t> same_column_;  // for each template of that kind, its column's place in columns_
    Index n_ = 0;
    std::vector<Key> pair_heads_, pair_modifiers_;        // words x pair templates
    std::vector<Key> between_heads_, between_modifiers_;  // words x between templates
    std::vector<Key> head_sides_, modifier_sides_;        // words x one-sided templates
    std::vector<std::vector<Between>> between_;           // for each of columns_, one entry per word
    std::array<Key, ArcDistance::kBins> bins_;
};

// Throws InputError unless every template reads existing columns and at least one word.
void check_templates(const std::vector<ArcTemplate>& templates, Index n_columns);

}  // namespace partwise
