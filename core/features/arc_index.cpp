#include "features/arc_index.h"

#include <bit>

namespace partwise {

namespace {

// How many keys before its use a key's place in the table is prefetched (the table is larger than the caches).
constexpr std::size_t kAhead = 64;

// A hash table that counts keys. It doubles in size when it is 5/8 full.
class Counter {
   public:
    Counter() { resize(Index{1} << 16); }

    void add(Key key) {
        key |= key == 0;  // 0 marks an empty place
        std::size_t at = key >> shift_;
        while (keys_[at] != 0 && keys_[at] != key) at = (at + 1) & (keys_.size() - 1);
        if (keys_[at] == 0) {
            keys_[at] = key;
            ++used_;
        }
        ++counts_[at];
        if (used_ * 8 > keys_.size() * 5) grow();
    }
    void prefetch(Key key) const { __builtin_prefetch(keys_.data() + (key >> shift_), 1); }

    // All keys, in no particular order, and how often each was added.
    std::pair<std::vector<Key>, std::vector<Index>> all() const {
        std::pair<std::vector<Key>, std::vector<Index>> found;
        for (std::size_t k = 0; k < keys_.size(); ++k) {
            if (keys_[k] == 0) continue;
            found.first.push_back(keys_[k]);
            found.second.push_back(counts_[k]);
        }
        return found;
    }
    std::vector<Key> frequent(std::uint32_t min_count) const {
        std::vector<std::pair<std::uint32_t, Key>> found;
        for (std::size_t k = 0; k < keys_.size(); ++k) {
            if (keys_[k] != 0 && counts_[k] >= min_count) found.emplace_back(~counts_[k], keys_[k]);
        }
        std::sort(found.begin(), found.end());
        std::vector<Key> keys;
        keys.reserve(found.size());
        for (const auto& [count, key] : found) keys.push_back(key);
        return keys;
    }

   private:
    void resize(Index size) {
        keys_.assign(size, 0);
        counts_.assign(size, 0);
        shift_ = 64 - std::countr_zero(idx(size));
    }
    void grow() {
        const std::vector<Key> keys = std::move(keys_);
        const std::vector<std::uint32_t> counts = std::move(counts_);
        resize(len(2 * keys.size()));
        for (std::size_t k = 0; k < keys.size(); ++k) {
            if (keys[k] == 0) continue;
            std::size_t at = keys[k] >> shift_;
            while (keys_[at] != 0) at = (at + 1) & (keys_.size() - 1);
            keys_[at] = keys[k];
            counts_[at] = counts[k];
        }
    }

    std::vector<Key> keys_;
    std::vector<std::uint32_t> counts_;
    std::size_t used_ = 0;
    int shift_ = 0;
};

Counter count_keys(const std::vector<ArcTemplate>& templates, const ArcTokens& tokens, std::span<const Index> heads,
                   Interrupt& interrupt) {
    if (!heads.empty() && len(heads.size()) != tokens.num_words()) throw InputError("one head per word is needed");
    ArcKeys keys(templates, tokens);
    Counter counter;
    std::vector<Key> found;
    for (Index i = 0; i < tokens.num_sentences(); ++i) {
        interrupt.check();
        keys.load(i);
        found.clear();
        const Index n = tokens.length(i);
        for (Index m = 1; m <= n; ++m) {
            if (!heads.empty()) {
                keys.arc(tokens.checked_head(heads, i, m), m, found);
                continue;
            }
            for (Index h = 0; h <= n; ++h) {
                if (h != m) keys.arc(h, m, found);
            }
        }
        for (std::size_t k = 0; k < found.size(); ++k) {
            if (k + kAhead < found.size()) counter.prefetch(found[k + kAhead]);
            counter.add(found[k]);
        }
    }
    return counter;
}

}  // namespace

ArcIndex::ArcIndex(std::vector<Key> keys) : keys_(std::move(keys)) {
    if (keys_.size() >= kUnknown) throw InputError("too many features");
    Bucket empty;
    std::fill(std::begin(empty.marks), std::end(empty.marks), 0U);
    std::fill(std::begin(empty.ids), std::end(empty.ids), kUnknown);
    table_.assign(keys_.size() / 4 + 1, empty);
    for (std::size_t k = 0; k < keys_.size(); ++k) {
        std::size_t at = bucket_of(keys_[k]);
        while (table_[at].ids[Bucket::kSize - 1] != kUnknown) at = at + 1 < table_.size() ? at + 1 : 0;
        const auto free = std::find(std::begin(table_[at].ids), std::end(table_[at].ids), kUnknown);
        *free = static_cast<std::uint32_t>(k);
        table_[at].marks[free - std::begin(table_[at].ids)] = static_cast<std::uint32_t>(keys_[k]);
    }
}

std::unique_ptr<ArcIndex> ArcIndex::hashed(int bits) {
    if (bits < 1 || bits > 31) throw InputError("features are hashed to between 1 and 31 bits");
    auto index = std::make_unique<ArcIndex>(std::vector<Key>());
    index->bits_ = bits;
    return index;
}

std::unique_ptr<ArcIndex> ArcIndex::seen(const std::vector<ArcTemplate>& templates, const ArcTokens& tokens,
                                         std::span<const Index> heads, Index min_count, Interrupt& interrupt) {
    const auto least = static_cast<std::uint32_t>(std::clamp<Index>(min_count, 1, 0x7fffffff));
    return std::make_unique<ArcIndex>(count_keys(templates, tokens, heads, interrupt).frequent(least));
}

std::pair<std::vector<Key>, std::vector<Index>> ArcIndex::counted(const std::vector<ArcTemplate>& templates,
                                                                  const ArcTokens& tokens, std::span<const Index> heads,
                                                                  Interrupt& interrupt) {
    return count_keys(templates, tokens, heads, interrupt).all();
}

std::vector<std::uint8_t> ArcIndex::with_plain(std::span<const std::uint8_t> kept) const {
    if (bits_ > 0 || kept.size() != keys_.size()) throw InputError("one byte per key of an index with keys is needed");
    std::vector<std::uint8_t> needed(kept.begin(), kept.end());
    std::array<Key, ArcDistance::kBins> plain;
    std::array<std::uint32_t, ArcDistance::kBins> ids;
    for (std::size_t k = 0; k < keys_.size(); ++k) {
        if (kept[k] == 0) continue;
        for (Index bin = 0; bin < ArcDistance::kBins; ++bin) plain[bin] = keys_[k] - distance_key(bin);
        find(plain.data(), plain.size(), ids.data());
        for (const std::uint32_t id : ids) {
            if (id != kUnknown) needed[id] = 1;
        }
    }
    return needed;
}

void ArcIndex::find(const Key* keys, std::size_t n, std::uint32_t* ids) const {
    if (bits_ > 0) {
        for (std::size_t k = 0; k < n; ++k) ids[k] = static_cast<std::uint32_t>(keys[k] >> (64 - bits_));
        return;
    }
    for (std::size_t k = 0; k < n; ++k) {
        if (k + kAhead < n) __builtin_prefetch(table_.data() + bucket_of(keys[k + kAhead]));
        const auto mark = static_cast<std::uint32_t>(keys[k]);
        std::size_t at = bucket_of(keys[k]);
        for (;;) {
            const Bucket& bucket = table_[at];
            std::uint32_t found = kUnknown;
            // No early exit: a loop without unpredictable branches compiles to a few vector instructions.
            for (int j = 0; j < Bucket::kSize; ++j) {
                found = std::min(found, bucket.marks[j] == mark ? bucket.ids[j] : kUnknown);
            }
            ids[k] = found;
            if (found != kUnknown || bucket.ids[Bucket::kSize - 1] == kUnknown) break;
            at = at + 1 < table_.size() ? at + 1 : 0;
        }
    }
}

}  // namespace partwise
