// Makes attributes of tokens by templates. A template line consists of literal text and references to cells near the
// token. Cells hold their strings as numbers (CodedColumn). Tokens with the same numbers in these cells have the same
// attribute, so its string is made once for each distinct combination of numbers and not once per token.
#pragma once

#include "support/parallel.h"
#include "text/string_table.h"

namespace partwise {

// A column of strings: for each token the number of its string in a table of distinct strings, or -1 for no string.
struct CodedColumn {
    std::vector<std::int32_t> codes;
    StringTable names;
};

struct TemplatePiece {
    enum class Kind { kText, kCell, kFirst, kLast };
    // The result of a reference beyond the sentence: no attribute; the marks _B-1, _B-2, ..., _B+1, ...; or `text`.
    enum class Outside { kNothing, kBoundary, kText };

    Kind kind = Kind::kText;
    std::string text;
    Index column = 0;
    Index row = 0;
    Outside outside = Outside::kNothing;
};

struct TemplateLine {
    bool edge = false;  // describes the pair of a token and the token before: absent at the first token
    std::vector<TemplatePiece> pieces;
};

struct ExtractedRows {
    std::vector<Index> row_ptr;
    std::vector<Index> attributes;  // -1: not in the vocabulary
    Index n_unknown = 0;
};

class Extractor {
   public:
    // lengths: of the sentences. Every column has one code per token of all sentences.
    Extractor(std::vector<TemplateLine> lines, std::vector<std::shared_ptr<const CodedColumn>> columns,
              const std::vector<Index>& lengths);

    // The attributes seen at least min_count times, the most frequent first (ties: as seen), and every token's.
    StringTable learn(Index min_count, int n_jobs, Interrupt& interrupt, ExtractedRows& rows) const;

    ExtractedRows look_up(const StringTable& vocabulary, int n_jobs, Interrupt& interrupt) const;

    std::vector<std::string> attributes(Index token) const;

   private:
    struct LineResult;
    struct Scratch;

    void run_line(const TemplateLine& line, Scratch& scratch, LineResult& result) const;
    ExtractedRows assemble(const std::vector<std::vector<std::int32_t>>& lines, int n_jobs, Interrupt& interrupt) const;
    bool codes_at(const TemplateLine& line, Index token, Index start, Index stop, std::vector<Index>& codes) const;
    void write(const TemplateLine& line, const std::vector<Index>& codes, std::string& out) const;
    Index n_tokens() const { return sentence_ptr_.back(); }

    std::vector<TemplateLine> lines_;
    std::vector<std::shared_ptr<const CodedColumn>> columns_;
    std::vector<Index> sentence_ptr_;  // first token of each sentence, and the number of tokens
};

}  // namespace partwise
