// A table of sentences x tokens x string columns. All cells lie in one text; tables made from it share it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/types.h"

namespace partwise {

class Sentences {
   public:
    struct Cell {
        Index start;
        Index length;
    };

    // Cells are row by row; checks that they lie inside the text and that there are as many as the lengths say.
    Sentences(std::shared_ptr<const std::string> text, std::vector<Index> sentence_ptr, Index n_columns,
              std::vector<Cell> cells);

    // A file of columns. separator 0: runs of spaces and tabs; else that character, and no field may be empty.
    // n_columns 0: as many as the first line has. Throws ParseError.
    static Sentences parse(std::string text, char separator, Index n_columns = 0);

    Index size() const { return len(sentence_ptr_.size()) - 1; }
    Index n_tokens() const { return sentence_ptr_.back(); }
    Index n_columns() const { return n_columns_; }
    const std::vector<Index>& sentence_ptr() const { return sentence_ptr_; }
    std::string_view cell(Index token, Index column) const {
        const Cell& cell = cells_[idx(token * n_columns_ + column)];
        return {text_->data() + cell.start, idx(cell.length)};
    }

    Sentences take(const std::vector<Index>& indices) const;
    Sentences without(Index column) const;

   private:
    std::shared_ptr<const std::string> text_;
    std::vector<Index> sentence_ptr_;
    Index n_columns_;
    std::vector<Cell> cells_;
};

}  // namespace partwise
