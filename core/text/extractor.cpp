#include "text/extractor.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "text/vocabulary.h"

namespace partwise {

namespace {

// Numbers combinations of codes in the order they come.
class Combinations {
   public:
    // radices: codes of place k are below radices[k].
    Combinations(const std::vector<Index>& radices, Index n_tokens) : radices_(radices) {
        std::uint64_t product = 1;
        for (const Index radix : radices_) {
            if (product > std::numeric_limits<std::uint64_t>::max() / 2 / static_cast<std::uint64_t>(radix)) {
                wide_ = true;
                return;
            }
            product *= static_cast<std::uint64_t>(radix);
        }
        if (product <= 1024 + 4 * static_cast<std::uint64_t>(n_tokens)) {
            direct_.assign(static_cast<std::size_t>(product), -1);
        } else {
            slots_.resize(1024);
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

    // Whether combinations do not fit into one number.
    bool wide() const { return wide_; }

    // The same for codes that were put together, the first one highest.
    std::int32_t number(std::uint64_t key) {
        if (!direct_.empty()) {
            std::int32_t& found = direct_[static_cast<std::size_t>(key)];
            if (found < 0) found = size_++;
            return found;
        }
        if (idx(size_ + 1) * 2 > slots_.size()) grow();
        Slot& slot = slots_[place_of(key)];
        if (slot.number < 0) slot = {key, size_++};
        return slot.number;
    }

    std::int32_t size() const { return size_; }

   private:
    struct Slot {
        std::uint64_t key = 0;
        std::int32_t number = -1;
    };

    std::size_t place_of(std::uint64_t key) const {
        const std::size_t mask = slots_.size() - 1;
        std::uint64_t hash = key * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 32;
        std::size_t at = static_cast<std::size_t>(hash) & mask;
        while (slots_[at].number >= 0 && slots_[at].key != key) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        const std::vector<Slot> old = std::move(slots_);
        slots_.assign(old.size() * 2, Slot{});
        for (const Slot& slot : old) {
            if (slot.number >= 0) slots_[place_of(slot.key)] = slot;
        }
    }

    const std::vector<Index>& radices_;
    bool wide_ = false;
    std::int32_t size_ = 0;
    std::vector<std::int32_t> direct_;  // few combinations: one entry each
    std::vector<Slot> slots_;           // more, if they fit into 64 bits: a hash table
    StringTable strings_;               // else
};

}  // namespace

struct Extractor::LineResult {
    std::vector<std::int32_t> number;  // of what the line gives at each token, -1: nothing
    std::vector<Index> first;          // token where each number came first
    std::vector<Index> count;
    std::string text;  // the attributes end to end
    std::vector<Index> offsets{0};
    std::vector<Index> id;  // in the vocabulary
};

Extractor::Extractor(std::vector<TemplateLine> lines, std::vector<std::shared_ptr<const CodedColumn>> columns,
                     std::vector<Index> lengths)
    : lines_(std::move(lines)), columns_(std::move(columns)) {
    for (const Index length : lengths) {
        if (length < 0) throw InputError("a length is negative");
        const Index from = len(start_.size());
        start_.insert(start_.end(), idx(length), from);
        stop_.insert(stop_.end(), idx(length), from + length);
    }
    for (const auto& column : columns_) {
        if (column->codes.size() != start_.size()) throw InputError("a column must have one code a token");
    }
    for (const TemplateLine& line : lines_) {
        for (const TemplatePiece& piece : line.pieces) {
            if (piece.kind != TemplatePiece::Kind::kCell) continue;
            if (piece.column < 0 || piece.column >= len(columns_.size())) {
                throw InputError("a template refers to column " + std::to_string(piece.column) + " of " +
                                 std::to_string(columns_.size()));
            }
            if (piece.row < -1000000 || piece.row > 1000000) throw InputError("a template reaches too far");
        }
    }
}

Index Extractor::radix(const TemplatePiece& piece) const {
    // The column's strings, then what lies past the ends: _B-1, ..., or _B+1, ...; or one text.
    const Index strings = columns_[idx(piece.column)]->names.size();
    return strings + std::max<Index>(1, std::abs(piece.row));
}

// Numbers of the strings a line refers to; false if the line gives nothing here.
bool Extractor::codes_at(const TemplateLine& line, Index token, std::vector<Index>& codes) const {
    const Index start = start_[idx(token)];
    const Index stop = stop_[idx(token)];
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
                const CodedColumn& column = *columns_[idx(piece.column)];
                const Index at = token + piece.row;
                if (at >= start && at < stop) {
                    const Index code = column.codes[idx(at)];
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
            const StringTable& names = columns_[idx(piece.column)]->names;
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

std::vector<Extractor::Cell> Extractor::cells_of(const TemplateLine& line) const {
    std::vector<Cell> cells;
    for (const TemplatePiece& piece : line.pieces) {
        if (piece.kind != TemplatePiece::Kind::kCell) continue;
        cells.push_back(
            {columns_[idx(piece.column)]->codes.data(), piece.row, static_cast<std::uint64_t>(radix(piece))});
    }
    return cells;
}

Extractor::LineResult Extractor::run_line(const TemplateLine& line) const {
    const Index n_tokens = len(start_.size());
    std::vector<Index> radices;
    for (const TemplatePiece& piece : line.pieces) {
        if (piece.kind == TemplatePiece::Kind::kCell) radices.push_back(radix(piece));
    }
    Combinations combinations(radices, n_tokens);
    LineResult result;
    result.number.assign(idx(n_tokens), -1);
    std::vector<Index> codes;
    const auto found = [&](Index token, std::int32_t number, bool codes_known) {
        if (number == len(result.first.size())) {
            if (!codes_known) codes_at(line, token, codes);
            result.first.push_back(token);
            result.count.push_back(0);
            write(line, codes, result.text);
            result.offsets.push_back(len(result.text.size()));
        }
        ++result.count[idx(number)];
        result.number[idx(token)] = number;
    };
    const std::vector<Cell> cells = cells_of(line);
    // Where all cells lie inside the sentence their codes alone decide.
    Index low = line.edge ? -1 : 0;
    Index high = 0;
    for (const Cell& cell : cells) {
        low = std::min(low, cell.row);
        high = std::max(high, cell.row);
    }
    const bool simple = !combinations.wide() && !cells.empty() &&
                        std::all_of(line.pieces.begin(), line.pieces.end(), [](const TemplatePiece& piece) {
                            return piece.kind == TemplatePiece::Kind::kText || piece.kind == TemplatePiece::Kind::kCell;
                        });
    for (Index token = 0; token < n_tokens; ++token) {
        if (simple && token + low >= start_[idx(token)] && token + high < stop_[idx(token)]) {
            std::uint64_t key = 0;
            std::int32_t least = 0;
            for (const Cell& cell : cells) {
                const std::int32_t code = cell.codes[token + cell.row];
                least = std::min(least, code);
                key = key * cell.radix + static_cast<std::uint64_t>(code);
            }
            if (least >= 0) found(token, combinations.number(key), false);
        } else if (codes_at(line, token, codes)) {
            found(token, combinations.number(codes), true);
        }
    }
    return result;
}

std::vector<Extractor::LineResult> Extractor::run_lines(const StringTable* vocabulary, int n_jobs,
                                                        Interrupt& interrupt) const {
    std::vector<LineResult> results(lines_.size());
    parallel_for(len(lines_.size()), n_jobs, interrupt, [&](Index k, int) {
        LineResult& result = results[idx(k)];
        result = run_line(lines_[idx(k)]);
        result.id.resize(result.first.size());
        if (vocabulary == nullptr) return;
        vocabulary->find_all(result.text, result.offsets, result.id.data());
    });
    return results;
}

StringTable Extractor::learn(Index min_count, int n_jobs, Interrupt& interrupt, ExtractedRows& rows) const {
    std::vector<LineResult> results = run_lines(nullptr, n_jobs, interrupt);
    const Index n_lines = len(lines_.size());
    StringTable seen;
    std::vector<Index> counts;
    std::vector<Index> first;  // where a string came first, as token * n_lines + line
    for (Index k = 0; k < n_lines; ++k) {
        LineResult& result = results[idx(k)];
        interrupt.check();
        for (std::size_t j = 0; j < result.id.size(); ++j) {
            const Index from = result.offsets[j];
            const Index id = seen.add({result.text.data() + from, idx(result.offsets[j + 1] - from)});
            const Index place = result.first[j] * n_lines + k;
            if (id == len(counts.size())) {
                counts.push_back(0);
                first.push_back(place);
            }
            counts[idx(id)] += result.count[j];
            first[idx(id)] = std::min(first[idx(id)], place);
            result.id[j] = id;
        }
    }
    std::vector<Index> rank;
    StringTable vocabulary = by_frequency(seen, counts, first, min_count, rank);
    for (LineResult& result : results) {
        for (Index& id : result.id) id = rank[idx(id)];
    }
    rows = assemble(results, n_jobs, interrupt);
    return vocabulary;
}

ExtractedRows Extractor::look_up(const StringTable& vocabulary, int n_jobs, Interrupt& interrupt) const {
    return assemble(run_lines(&vocabulary, n_jobs, interrupt), n_jobs, interrupt);
}

ExtractedRows Extractor::assemble(const std::vector<LineResult>& results, int n_jobs, Interrupt& interrupt) const {
    const Index n_tokens = len(start_.size());
    ExtractedRows rows;
    rows.row_ptr.assign(idx(n_tokens) + 1, 0);
    for (const LineResult& result : results) {
        for (std::size_t t = 0; t < idx(n_tokens); ++t) rows.row_ptr[t + 1] += result.number[t] >= 0 ? 1 : 0;
    }
    std::partial_sum(rows.row_ptr.begin(), rows.row_ptr.end(), rows.row_ptr.begin());
    rows.attributes.resize(idx(rows.row_ptr.back()));
    constexpr Index kBlock = 1 << 13;
    parallel_for((n_tokens + kBlock - 1) / kBlock, n_jobs, interrupt, [&](Index block, int) {
        const Index end = std::min(n_tokens, (block + 1) * kBlock);
        for (Index t = block * kBlock; t < end; ++t) {
            Index at = rows.row_ptr[idx(t)];
            for (const LineResult& result : results) {
                const std::int32_t number = result.number[idx(t)];
                if (number >= 0) rows.attributes[idx(at++)] = result.id[idx(number)];
            }
        }
    });
    rows.n_unknown = std::count(rows.attributes.begin(), rows.attributes.end(), Index{-1});
    return rows;
}

std::vector<std::string> Extractor::attributes(Index token) const {
    if (token < 0 || token >= len(start_.size())) throw InputError("no token " + std::to_string(token));
    std::vector<std::string> out;
    std::vector<Index> codes;
    for (const TemplateLine& line : lines_) {
        if (codes_at(line, token, codes)) write(line, codes, out.emplace_back());
    }
    return out;
}

}  // namespace partwise
