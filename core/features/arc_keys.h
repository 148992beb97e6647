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
#include <vector>

#include "features/arc_tokens.h"
#include "support/types.h"

namespace partwise {

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
    Index num_pairs() const { return n * (n + 1); }
    Index size() const { return (n + 1) * (n + 1 + ArcDistance::kBins) + n * ArcDistance::kBins; }
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
    // The keys of all rows that one arc has.
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
