#include "text/extractor.h"

#include <numeric>

#include "support/sizes.h"
#include "text/vocabulary.h"

namespace partwise {

namespace {

constexpr std::int32_t kUnknown = -1;  // an attribute that is not in the vocabulary
constexpr std::int32_t kNothing = -2;  // no attribute

// Gives combinations of codes numbers, in the order in which they are first seen.
class Combinations {
   public:
    // Forgets all combinations but keeps the memory. Codes at place k are below radices[k].
    void reset(std::vector<Index> radices, Index n_tokens) {
        radices_ = std::move(radices);
        size_ = 0;
        wide_ = false;
        direct_.clear();
        slots_.clear();
        std::uint64_t product = 1;
        for (const Index radix : radices_) {
            if (product > std::numeric_limits<std::uint64_t>::max() / 2 / static_cast<std::uint64_t>(radix)) {
                wide_ = true;
                strings_ = StringTable();
                return;
            }
            product *= static_cast<std::uint64_t>(radix);
        }
        if (product <= 1024 + 4 * static_cast<std::uint64_t>(n_tokens)) {
            direct_.assign(static_cast<std::size_t>(product), -1);
        } else {
            slots_.assign(1024, Slot{});
        }
    }

    std::int32_t number(const std::vector<Index>& codes) {
        if (wide_) {
            const std::string_view bytes(reinterpret_cast<const char*>(codes.data()), codes.size() * sizeof(Index));
            const auto found = static_cast<std::int32_t>(strings_.add(bytes));
            size_ = std::max(size_, found + 1);
            return found;
        }
        std::uint64_t key = 0;
        for (std::size_t k = 0; k < codes.size(); ++k) {
            key = key * static_cast<std::uint64_t>(radices_[k]) + static_cast<std::uint64_t>(codes[k]);
        }
        return number(key);
    }

    // Whether combinations do not fit into 64 bits.
    bool wide() const { return wide_; }

    // The same for codes that the caller has combined to one number, the first code in the highest digit.
    std::int32_t number(std::uint64_t key) {
        if (!direct_.empty()) {
            std::int32_t& found = direct_[key];
            if (found < 0) found = size_++;
            return found;
        }
        if (idx(size_ + 1) * 2 > slots_.size()) grow();
        Slot& slot = slots_[place_of(key)];
        if (slot.number < 0) slot = {key, size_++};
        return slot.number;
    }

    // Prefetches the memory that number(key) will read.
    void expect(std::uint64_t key) const {
        if (!slots_.empty()) __builtin_prefetch(&slots_[hash(key) & (slots_.size() - 1)]);
    }

   private:
    struct Slot {
        std::uint64_t key = 0;
        std::int32_t number = -1;
    };

    static std::size_t hash(std::uint64_t key) {
        const std::uint64_t product = key * 0x9E3779B97F4A7C15ULL;
        return static_cast<std::size_t>(product ^ (product >> 32));
    }
    std::size_t place_of(std::uint64_t key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = hash(key) & mask;
        while (slots_[at].number >= 0 && slots_[at].key != key) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        slots_.swap(old_);
        slots_.assign(old_.size() * 4, Slot{});
        for (const Slot& slot : old_) {
            if (slot.number >= 0) slots_[place_of(slot.key)] = slot;
        }
    }

    std::vector<Index> radices_;
    bool wide_ = false;
    std::int32_t size_ = 0;
    std::vector<std::int32_t> direct_;  // few combinations: one entry each
    std::vector<Slot> slots_;           // more, if they fit into 64 bits: a hash table
    std::vector<Slot> old_;             // the table before it grew
    StringTable strings_;               // for combinations that do not fit into 64 bits
};

}  // namespace

// The attributes of one template line at all tokens.
struct Extractor::LineResult {
    std::vector<std::int32_t> numbers;  // of the line's string at each token, or kNothing
    std::string text;                   // the strings with these numbers, concatenated
    std::vector<Index> offsets;

    std::size_t n_strings() const { return offsets.size() - 1; }
    std::string_view string(std::size_t k) const {
        return {text.data() + offsets[k], idx(offsets[k + 1] - offsets[k])};
    }
};

// Scratch memory of a thread, used again for each line.
struct Extractor::Scratch {
    Combinations combinations;
    std::vector<Index> codes;
    std::vector<std::uint64_t> keys;
    std::vector<std::int32_t> ids;
};

Extractor::Extractor(std::vector<TemplateLine> lines, std::vector<std::shared_ptr<const CodedColumn>> columns,
                     const std::vector<Index>& lengths)
    : lines_(std::move(lines)), columns_(std::move(columns)), sentence_ptr_{0} {
    for (const Index length : lengths) {
        if (length < 0) throw InputError("a length is negative");
        sentence_ptr_.push_back(checked_sum(sentence_ptr_.back(), length, "the number of tokens"));
    }
    for (const auto& column : columns_) {
        if (len(column->codes.size()) != n_tokens()) throw InputError("a column must have one code per token");
    }
    for (const TemplateLine& line : lines_) {
        for (const TemplatePiece& piece : line.pieces) {
            if (piece.kind != TemplatePiece::Kind::kCell) continue;
            if (piece.column < 0 || piece.column >= len(columns_.size())) {
                throw InputError("a template refers to column ", piece.column, " of ", columns_.size());
            }
            if (piece.row < -1000000 || piece.row > 1000000) throw InputError("a template reaches too far");
        }
    }
}

// Finds the codes of the cells that a line refers to; returns false if the line has no attribute at this token.
bool Extractor::codes_at(const TemplateLine& line, Index token, Index start, Index stop,
                         std::vector<Index>& codes) const {
    if (line.edge && token == start) return false;
    codes.clear();
    for (const TemplatePiece& piece : line.pieces) {
        switch (piece.kind) {
            case TemplatePiece::Kind::kText:
                break;
            case TemplatePiece::Kind::kFirst:
                if (token != start) return false;
                break;
            case TemplatePiece::Kind::kLast:
                if (token + 1 != stop) return false;
                break;
            case TemplatePiece::Kind::kCell: {
                const CodedColumn& column = *columns_[piece.column];
                const Index at = token + piece.row;
                if (at >= start && at < stop) {
                    const Index code = column.codes[at];
                    if (code < 0) return false;
                    codes.push_back(code);
                } else if (piece.outside == TemplatePiece::Outside::kNothing) {
                    return false;
                } else {
                    const Index distance = at < start ? start - at : at - stop + 1;
                    const bool one = piece.outside == TemplatePiece::Outside::kText;
                    codes.push_back(column.names.size() + (one ? 0 : distance - 1));
                }
            }
        }
    }
    return true;
}

void Extractor::write(const TemplateLine& line, const std::vector<Index>& codes, std::string& out) const {
    auto code = codes.begin();
    for (const TemplatePiece& piece : line.pieces) {
        if (piece.kind == TemplatePiece::Kind::kText) {
            out += piece.text;
        } else if (piece.kind == TemplatePiece::Kind::kCell) {
            const StringTable& names = columns_[piece.column]->names;
            if (*code < names.size()) {
                out += names.name(*code);
            } else if (piece.outside == TemplatePiece::Outside::kText) {
                out += piece.text;
            } else {
                out += piece.row < 0 ? "_B-" : "_B+";
                out += std::to_string(*code - names.size() + 1);
            }
            ++code;
        }
    }
}

void Extractor::run_line(const TemplateLine& line, Scratch& scratch, LineResult& result) const {
    result.numbers.assign(n_tokens(), kNothing);
    result.text.clear();
    result.offsets.assign(1, 0);
    struct Cell {
        const std::int32_t* codes;
        Index row;
        Index radix;
    };
    std::vector<Cell> cells;
    for (const TemplatePiece& piece : line.pieces) {
        if (piece.kind != TemplatePiece::Kind::kCell) continue;
        const CodedColumn& column = *columns_[piece.column];
        // Codes: the column's strings, then the marks beyond the sentence (_B-1, ..., or _B+1, ...) or one text.
        cells.push_back(
            {column.codes.data(), piece.row, column.names.size() + std::max<Index>(1, std::abs(piece.row))});
    }
    std::vector<Index>& codes = scratch.codes;
    const auto add_string = [&] {
        write(line, codes, result.text);
        result.offsets.push_back(len(result.text.size()));
    };
    // If a line has one cell, the cell's codes serve as numbers.
    const bool one = cells.size() == 1;
    Combinations& combinations = scratch.combinations;
    if (one) {
        for (Index code = 0; code < cells[0].radix; ++code) {
            codes.assign(1, code);
            add_string();
        }
    } else {
        std::vector<Index> radices;
        for (const Cell& cell : cells) radices.push_back(cell.radix);
        combinations.reset(std::move(radices), n_tokens());
    }
    const auto anywhere = [&](Index token, Index start, Index stop) {
        if (!codes_at(line, token, start, stop, codes)) return;
        const std::int32_t number = one ? static_cast<std::int32_t>(codes[0]) : combinations.number(codes);
        result.numbers[token] = number;
        if (idx(number) == result.n_strings()) add_string();
    };
    // At tokens whose cells all lie inside the sentence, the cells' codes determine the attribute.
    const auto inside = [&](Index first, Index last) {
        if (one) {
            const std::int32_t* own = cells[0].codes + cells[0].row;
            for (Index t = first; t < last; ++t) result.numbers[t] = own[t] < 0 ? kNothing : own[t];
            return;
        }
        constexpr std::uint64_t kNoKey = std::numeric_limits<std::uint64_t>::max();
        scratch.keys.resize(last - first);
        for (Index t = first; t < last; ++t) {
            std::uint64_t key = 0;
            std::int32_t least = 0;
            for (const Cell& cell : cells) {
                const std::int32_t code = cell.codes[t + cell.row];
                least = std::min(least, code);
                key = key * static_cast<std::uint64_t>(cell.radix) + static_cast<std::uint64_t>(code);
            }
            scratch.keys[t - first] = least < 0 ? kNoKey : key;
            if (least >= 0) combinations.expect(key);
        }
        for (Index t = first; t < last; ++t) {
            const std::uint64_t key = scratch.keys[t - first];
            if (key == kNoKey) continue;
            const std::int32_t number = combinations.number(key);
            result.numbers[t] = number;
            if (idx(number) < result.n_strings()) continue;
            codes.clear();
            for (const Cell& cell : cells) codes.push_back(cell.codes[t + cell.row]);
            add_string();
        }
    };
    Index low = line.edge ? -1 : 0;
    Index high = 0;
    for (const Cell& cell : cells) {
        low = std::min(low, cell.row);
        high = std::max(high, cell.row);
    }
    const bool simple = !cells.empty() && (one || !combinations.wide()) &&
                        std::all_of(line.pieces.begin(), line.pieces.end(), [](const TemplatePiece& piece) {
                            return piece.kind == TemplatePiece::Kind::kText || piece.kind == TemplatePiece::Kind::kCell;
                        });
    for (std::size_t i = 0; i + 1 < sentence_ptr_.size(); ++i) {
        const Index start = sentence_ptr_[i];
        const Index stop = sentence_ptr_[i + 1];
        const Index first = simple ? std::min(stop, start - low) : stop;
        const Index last = std::max(first, stop - high);
        for (Index t = start; t < first; ++t) anywhere(t, start, stop);
        if (first < last) inside(first, last);
        for (Index t = last; t < stop; ++t) anywhere(t, start, stop);
    }
}

StringTable Extractor::learn(Index min_count, int n_jobs, Interrupt& interrupt, ExtractedRows& rows) const {
    const Index n_lines = len(lines_.size());
    std::vector<LineResult> results(n_lines);
    std::vector<Scratch> scratch(std::max(1, n_jobs));
    parallel_for(n_lines, n_jobs, interrupt,
                 [&](Index k, int worker) { run_line(lines_[k], scratch[worker], results[k]); });
    StringTable seen;
    std::vector<Index> counts;
    std::vector<Index> first;  // where a string came first, as token * n_lines + line
    std::vector<std::int32_t> ids;
    for (Index k = 0; k < n_lines; ++k) {
        LineResult& result = results[k];
        interrupt.check();
        ids.assign(result.n_strings(), -1);
        for (Index t = 0; t < n_tokens(); ++t) {
            std::int32_t& number = result.numbers[t];
            if (number < 0) continue;
            std::int32_t& id = ids[number];
            const Index place = t * n_lines + k;
            if (id < 0) {
                id = static_cast<std::int32_t>(seen.add(result.string(number)));
                if (id == len(counts.size())) {
                    counts.push_back(0);
                    first.push_back(place);
                }
                first[id] = std::min(first[id], place);
            }
            ++counts[id];
            number = id;
        }
        result.text = {};
        result.offsets = {};
    }
    std::vector<Index> rank;
    StringTable vocabulary = by_frequency(seen, counts, first, min_count, rank);
    std::vector<std::vector<std::int32_t>> lines(results.size());
    parallel_for(n_lines, n_jobs, interrupt, [&](Index k, int) {
        lines[k] = std::move(results[k].numbers);
        for (std::int32_t& id : lines[k]) {
            if (id >= 0) id = static_cast<std::int32_t>(rank[id]);
        }
    });
    rows = assemble(lines, n_jobs, interrupt);
    return vocabulary;
}

ExtractedRows Extractor::look_up(const StringTable& vocabulary, int n_jobs, Interrupt& interrupt) const {
    std::vector<std::vector<std::int32_t>> lines(lines_.size());
    std::vector<LineResult> results(std::max(1, n_jobs));
    std::vector<Scratch> scratch(results.size());
    parallel_for(len(lines_.size()), n_jobs, interrupt, [&](Index k, int worker) {
        LineResult& result = results[worker];
        std::vector<std::int32_t>& ids = scratch[worker].ids;
        run_line(lines_[k], scratch[worker], result);
        ids.resize(result.n_strings());
        vocabulary.find_all(result.text, result.offsets, ids.data());
        for (std::int32_t& number : result.numbers) {
            if (number >= 0) number = ids[number];
        }
        lines[k] = std::move(result.numbers);
    });
    return assemble(lines, n_jobs, interrupt);
}

// Makes rows of attributes per token from the ids (or kUnknown, kNothing) of each line at all tokens.
ExtractedRows Extractor::assemble(const std::vector<std::vector<std::int32_t>>& lines, int n_jobs,
                                  Interrupt& interrupt) const {
    ExtractedRows rows;
    rows.row_ptr.assign(n_tokens() + 1, 0);
    for (const auto& ids : lines) {
        for (std::size_t t = 0; t < ids.size(); ++t) {
            rows.row_ptr[t + 1] += ids[t] != kNothing ? 1 : 0;
            rows.n_unknown += ids[t] == kUnknown ? 1 : 0;
        }
    }
    std::partial_sum(rows.row_ptr.begin(), rows.row_ptr.end(), rows.row_ptr.begin());
    rows.attributes.resize(rows.row_ptr.back());
    constexpr Index kBlock = 1 << 13;
    parallel_for((n_tokens() + kBlock - 1) / kBlock, n_jobs, interrupt, [&](Index block, int) {
        const Index end = std::min(n_tokens(), (block + 1) * kBlock);
        for (Index t = block * kBlock; t < end; ++t) {
            Index at = rows.row_ptr[t];
            for (const auto& ids : lines) {
                if (ids[t] != kNothing) rows.attributes[at++] = ids[t];
            }
        }
    });
    return rows;
}

std::vector<std::string> Extractor::attributes(Index token) const {
    if (token < 0 || token >= n_tokens()) throw InputError("no token ", token);
    const auto after = std::upper_bound(sentence_ptr_.begin(), sentence_ptr_.end(), token);
    std::vector<std::string> out;
    std::vector<Index> codes;
    for (const TemplateLine& line : lines_) {
        if (codes_at(line, token, after[-1], after[0], codes)) write(line, codes, out.emplace_back());
    }
    return out;
}

}  // namespace partwise
