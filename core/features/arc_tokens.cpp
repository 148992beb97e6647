#include "features/arc_tokens.h"

#include <algorithm>

#include "support/sizes.h"

namespace partwise {

Key hash_to_key(std::string_view bytes) {
    Key h = mix(bytes.size());
    std::size_t k = 0;
    for (; k + 8 <= bytes.size(); k += 8) {
        // little-endian on every machine, since model files keep features under their hashes
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

bool ArcTokens::varies(Index column) const {
    const std::vector<Key>& values = columns_[column];
    return std::any_of(values.begin(), values.end(), [&](Key value) { return value != values.front(); });
}

}  // namespace partwise
