#include "features/arc_keys.h"

#include "support/sizes.h"

namespace partwise {

Key hash_to_key(std::string_view bytes) {
    Key h = mix(bytes.size());
    std::size_t k = 0;
    for (; k + 8 <= bytes.size(); k += 8) {
        // The bytes are read as little-endian on every machine, since model files store features by their hashes.
        Key word = 0;
        for (std::size_t b = 8; b-- > 0;) word = (word << 8) | static_cast<unsigned char>(bytes[k + b]);
        h = mix(h ^ word);
    }
    Key last = 0;
    for (; k < bytes.size(); ++k) last = (last << 8) | static_cast<unsigned char>(bytes[k]);
    return mix(h ^ last);
}

ArcTokens::ArcTokens(std::vector<Index> lengths, const std::vector<std::string_view>& columns)
    : lengths_(std::move(lengths)) {
    offsets_.push_back(0);
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
        if (lengths_[i] < 1) throw InputError("sentence ", i, " has no words");
        if (lengths_[i] > kMostValues) too_large("the number of words");
        checked_product(lengths_[i], lengths_[i] + 1, "the number of a sentence's arcs");
        offsets_.push_back(checked_sum(offsets_.back(), lengths_[i], "the number of words"));
    }
    for (const std::string_view text : columns) {
        std::vector<Key>& values = columns_.emplace_back();
        values.reserve(num_words());
        std::size_t begin = 0;
        while (begin < text.size()) {
            const std::size_t end = text.find('\0', begin);
            if (end == std::string_view::npos) throw InputError("a column must end with a zero byte");
            values.push_back(hash_to_key(text.substr(begin, end - begin)));
            begin = end + 1;
        }
        if (len(values.size()) != num_words()) {
            throw InputError("a column has ", values.size(), " values, there are ", num_words(), " words");
        }
    }
}

Index ArcTokens::checked_head(std::span<const Index> heads, Index i, Index m) const {
    const Index h = heads[offsets_[i] + m - 1];
    if (h < 0 || h > lengths_[i] || h == m) throw InputError("sentence ", i, ": word ", m, " cannot have the head ", h);
    return h;
}

bool ArcTokens::varies(Index column) const {
    const std::vector<Key>& values = columns_[column];
    return std::any_of(values.begin(), values.end(), [&](Key value) { return value != values.front(); });
}

namespace {

// The side, columns and offsets are part of the hash, so templates need no numbers to keep their keys apart.
Key side_hash(const std::vector<ArcTemplate::Atom>& atoms, const ArcTokens& tokens, Index i, Index position, Key side) {
    Key h = side;
    for (const ArcTemplate::Atom& atom : atoms) {
        const Key place = mix(static_cast<Key>(atom.column * 64 + atom.offset + 32));
        h = mix(h ^ (tokens.value(i, atom.column, position + atom.offset) + place));
    }
    return mix(h);
}

// Appends the keys of a word's n templates, each with `with` added.
void append_side(const std::vector<Key>& sides, std::size_t n, Index word, Key with, std::vector<Key>& out) {
    for (std::size_t t = 0; t < n; ++t) out.push_back(sides[word * n + t] + with);
}

constexpr Key kHeadSide = 0x68656164ULL;
constexpr Key kModifierSide = 0x6d6f64ULL;
constexpr Key kBetween = 0x627477ULL;
constexpr Key kDistance = 0x64697374ULL;

}  // namespace

Key distance_key(Index bin) { return mix(mix(kDistance + static_cast<Key>(bin))); }

void check_templates(const std::vector<ArcTemplate>& templates, Index n_columns) {
    if (templates.empty()) throw InputError("there must be at least one template");
    for (const ArcTemplate& t : templates) {
        if (t.head.empty() && t.modifier.empty()) throw InputError("a template must look at a word");
        for (const auto* side : {&t.head, &t.modifier}) {
            for (const ArcTemplate::Atom& atom : *side) {
                if (atom.column < 0 || atom.column >= n_columns)
                    throw InputError("a template looks at column ", atom.column, " of ", n_columns);
                if (atom.offset < -16 || atom.offset > 16) throw InputError("templates look at most 16 words away");
            }
        }
        if (t.between >= n_columns) throw InputError("a template refers to a column that does not exist");
        if (t.between >= 0 && (t.head.empty() || t.modifier.empty()))
            throw InputError("a template for words in between needs a head and a modifier");
    }
}

ArcKeys::ArcKeys(const std::vector<ArcTemplate>& templates, const ArcTokens& tokens)
    : templates_(templates), tokens_(tokens) {
    check_templates(templates, tokens.num_columns());
    for (Index t = 0; t < len(templates.size()); ++t) {
        const ArcTemplate& each = templates[t];
        if (each.between >= 0) {
            betweens_.push_back(t);
            const auto same = std::find(columns_.begin(), columns_.end(), each.between);
            same_column_.push_back(same - columns_.begin());
            if (same == columns_.end()) columns_.push_back(each.between);
        } else if (each.modifier.empty()) {
            heads_.push_back(t);
        } else if (each.head.empty()) {
            modifiers_.push_back(t);
        } else {
            pairs_.push_back(t);
        }
    }
    for (std::size_t b = 0; b < bins_.size(); ++b) bins_[b] = distance_key(static_cast<Index>(b));
}

void ArcKeys::load(Index i) {
    n_ = tokens_.length(i);
    const auto fill = [&](const std::vector<Index>& which, bool head, std::vector<Key>& out) {
        out.clear();
        for (Index p = 0; p <= n_; ++p) {
            for (const Index t : which) {
                const ArcTemplate& each = templates_[t];
                out.push_back(head ? side_hash(each.head, tokens_, i, p, kHeadSide)
                                   : side_hash(each.modifier, tokens_, i, p, kModifierSide));
            }
        }
    };
    fill(pairs_, true, pair_heads_);
    fill(pairs_, false, pair_modifiers_);
    fill(betweens_, true, between_heads_);
    fill(betweens_, false, between_modifiers_);
    fill(heads_, true, head_sides_);
    fill(modifiers_, false, modifier_sides_);
    between_.resize(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) load_between(i, columns_[c], between_[c]);
}

void ArcKeys::load_between(Index i, Index column, std::vector<Between>& out) {
    out.resize(n_ + 1);
    const auto add = [&](std::vector<Key>& values, Index position) {
        const Key value = mix(mix(tokens_.value(i, column, position) + kBetween));
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    };
    for (Index m = 1; m <= n_; ++m) {
        Between& between = out[m];
        between.left.clear();
        between.right.clear();
        between.seen.assign(n_ + 1, 0);
        for (Index h = m - 2; h >= 0; --h) {
            add(between.left, h + 1);
            between.seen[h] = static_cast<std::uint32_t>(between.left.size());
        }
        for (Index h = m + 2; h <= n_; ++h) {
            add(between.right, h - 1);
            between.seen[h] = static_cast<std::uint32_t>(between.right.size());
        }
    }
}

void ArcKeys::pair(Index h, Index m, std::vector<Key>& out) const {
    const std::size_t n = pairs_.size();
    const Key* __restrict heads = pair_heads_.data() + h * n;
    const Key* __restrict modifiers = pair_modifiers_.data() + m * n;
    const std::size_t first = out.size();
    out.resize(first + n);
    Key* __restrict keys = out.data() + first;
    for (std::size_t t = 0; t < n; ++t) keys[t] = heads[t] + modifiers[t];
    const std::size_t nb = betweens_.size();
    for (std::size_t b = 0; b < nb; ++b) {
        const Between& between = between_[same_column_[b]][m];
        const std::vector<Key>& values = h < m ? between.left : between.right;
        const Key sides = between_heads_[h * nb + b] + between_modifiers_[m * nb + b];
        for (std::uint32_t k = 0; k < between.seen[h]; ++k) out.push_back(sides + values[k]);
    }
}

void ArcKeys::head(Index h, std::vector<Key>& out) const { append_side(head_sides_, heads_.size(), h, 0, out); }

void ArcKeys::head(Index h, Index bin, std::vector<Key>& out) const {
    append_side(head_sides_, heads_.size(), h, bins_[bin], out);
}

void ArcKeys::modifier(Index m, Index bin, std::vector<Key>& out) const {
    append_side(modifier_sides_, modifiers_.size(), m, bins_[bin], out);
}

void ArcKeys::arc(Index h, Index m, std::vector<Key>& out) const {
    const Index bin = ArcDistance::bin(h, m);
    const std::size_t first = out.size();
    pair(h, m, out);
    const std::size_t plain = out.size();
    for (std::size_t k = first; k < plain; ++k) out.push_back(out[k] + bins_[bin]);
    head(h, out);
    head(h, bin, out);
    modifier(m, bin, out);
}

void ArcKeys::all_pairs(Index m, std::vector<Key>& out, std::vector<std::uint32_t>& ends) const {
    out.clear();
    ends.clear();
    for (Index h = 0; h <= n_; ++h) {
        if (h != m) pair(h, m, out);
        ends.push_back(static_cast<std::uint32_t>(out.size()));
    }
}

void ArcKeys::all_others(std::vector<Key>& out, std::vector<std::uint32_t>& ends) const {
    out.clear();
    ends.clear();
    const auto end = [&] { ends.push_back(static_cast<std::uint32_t>(out.size())); };
    for (Index h = 0; h <= n_; ++h) {
        head(h, out);
        end();
    }
    constexpr Index kHalf = ArcDistance::kBins / 2;
    // Rows (word, direction and distance) that no arc of the sentence uses stay empty.
    const auto each_bin = [&](Index word, bool is_head) {
        for (Index bin = 0; bin < ArcDistance::kBins; ++bin) {
            const Index distance = ArcDistance::kLowest[bin % kHalf];
            const Index other = (bin < kHalf) == is_head ? word + distance : word - distance;
            if (other >= (is_head ? 1 : 0) && other <= n_) {
                is_head ? head(word, bin, out) : modifier(word, bin, out);
            }
            end();
        }
    };
    for (Index h = 0; h <= n_; ++h) each_bin(h, true);
    for (Index m = 1; m <= n_; ++m) each_bin(m, false);
}

}  // namespace partwise
