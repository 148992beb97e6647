#include "text/vocabulary.h"

#include "text/utf8.h"

namespace partwise {

void PackedStrings::check() const {
    if (offsets.empty() || offsets.front() != 0) throw InputError("offsets must start at 0");
    if (!std::is_sorted(offsets.begin(), offsets.end())) throw InputError("offsets must not decrease");
    if (offsets.back() != len(bytes.size())) throw InputError("offsets must end at the number of bytes");
}

namespace {

// Throws InputError for the first name that is not UTF-8.
void check_names(const PackedStrings& names) {
    const auto ascii = [](std::span<const std::uint8_t> bytes) {
        std::uint8_t all = 0;
        for (const std::uint8_t byte : bytes) all |= byte;
        return all < 0x80;
    };
    constexpr Index kBlock = 1024;
    for (Index begin = 0; begin < names.size(); begin += kBlock) {
        const Index end = std::min(names.size(), begin + kBlock);
        const std::size_t start = names.offsets[begin], stop = names.offsets[end];
        if (ascii(names.bytes.subspan(start, stop - start))) continue;
        for (Index k = begin; k < end; ++k) {
            try {
                check_utf8(names[k]);
            } catch (const ParseError& error) {
                throw InputError("name ", k, ": ", error.what());
            }
        }
    }
}

}  // namespace

StringTable make_vocabulary(const PackedStrings& names) {
    // Copied before the checks, because the names may lie in a mapped file that changes meanwhile.
    std::vector<Index> offsets(names.offsets.begin(), names.offsets.end());
    std::string bytes(reinterpret_cast<const char*>(names.bytes.data()), names.bytes.size());
    const PackedStrings own{{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, offsets};
    own.check();
    check_names(own);
    StringTable table;
    const Index twice = table.assign(std::move(bytes), std::move(offsets));
    if (twice >= 0) throw InputError("name ", twice, " occurs twice");
    return table;
}

std::vector<Index> look_up(const StringTable& table, const PackedStrings& names, int n_jobs, Interrupt& interrupt) {
    names.check();
    std::vector<Index> out(names.size());
    constexpr Index kBlock = 1 << 14;
    parallel_for((names.size() + kBlock - 1) / kBlock, n_jobs, interrupt, [&](Index block, int) {
        const Index end = std::min(names.size(), (block + 1) * kBlock);
        for (Index k = block * kBlock; k < end; ++k) out[k] = table.find(names[k]);
    });
    return out;
}

StringTable by_frequency(const StringTable& table, std::span<const Index> counts, std::span<const Index> first,
                         Index min_count, std::vector<Index>& rank) {
    std::vector<Index> order;
    Index n_bytes = 0;
    for (Index k = 0; k < table.size(); ++k) {
        if (counts[k] < min_count) continue;
        order.push_back(k);
        n_bytes += len(table.name(k).size());
    }
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
        if (counts[a] != counts[b]) return counts[a] > counts[b];
        return !first.empty() && first[a] < first[b];
    });
    rank.assign(table.size(), -1);
    StringTable out;
    out.reserve(len(order.size()), n_bytes);
    for (const Index k : order) rank[k] = out.add(table.name(k));
    return out;
}

void NameCounts::add(const StringTable& block, std::span<const Index> ids) {
    std::vector<Index> number(block.size(), -1);  // here, of the block's names; new ones in the text's order
    for (const Index id : ids) {
        if (id < -1 || id >= block.size()) throw InputError("name ", id, " is out of range");
        if (id < 0) continue;
        Index& own = number[id];
        if (own < 0) {
            own = seen_.add(block.name(id));
            if (own == len(counts_.size())) counts_.push_back(0);
        }
        ++counts_[own];
    }
}

StringTable NameCounts::vocabulary(Index min_count) const {
    std::vector<Index> rank;
    return by_frequency(seen_, counts_, {}, min_count, rank);
}

}  // namespace partwise
