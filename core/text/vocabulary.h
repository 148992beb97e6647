// Vocabularies: the names of a model's attributes and their numbers.
#pragma once

#include "support/parallel.h"
#include "text/string_table.h"

namespace partwise {

// Concatenated strings: string k is bytes[offsets[k], offsets[k + 1]).
struct PackedStrings {
    std::span<const std::uint8_t> bytes;
    std::span<const Index> offsets;

    Index size() const { return len(offsets.size()) - 1; }
    std::string_view operator[](Index k) const {
        const Index start = offsets[k];
        return {reinterpret_cast<const char*>(bytes.data()) + start, idx(offsets[k + 1] - start)};
    }
    // Throws InputError unless the offsets rise from 0 to the number of bytes.
    void check() const;
};

// The strings as a table under the same numbers; InputError if they are not UTF-8 or not distinct.
StringTable make_vocabulary(const PackedStrings& names);

// Numbers of strings, -1 for those not in the table.
std::vector<Index> look_up(const StringTable& table, const PackedStrings& names, int n_jobs, Interrupt& interrupt);

// The table's strings counted at least min_count times, the most frequent first (equal counts: as `first` rises, then
// as they were numbered), and the new number of each old one, -1 for those left out.
StringTable by_frequency(const StringTable& table, std::span<const Index> counts, std::span<const Index> first,
                         Index min_count, std::vector<Index>& rank);

// Counts names over blocks of text, each of which has a vocabulary of its own.
class NameCounts {
   public:
    // ids: the block's names in the order of the text, as numbers of its vocabulary; -1 is none.
    void add(const StringTable& block, std::span<const Index> ids);

    // The names counted at least min_count times, the most frequent first (ties: as seen), as if learnt at once.
    StringTable vocabulary(Index min_count) const;

    Index size() const { return seen_.size(); }

   private:
    StringTable seen_;
    std::vector<Index> counts_;
};

}  // namespace partwise
