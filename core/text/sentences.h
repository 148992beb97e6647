// A table of sentences x tokens x string columns. All cells lie in one text. Tables made from this one share the text;
// select() shares the cells, too.
#pragma once

#include <string_view>

#include "support/types.h"

namespace partwise {

class Sentences {
   public:
    struct Cell {
        Index start;
        Index length;
    };

    struct Text {
        std::string_view view;
        std::shared_ptr<const void> owner;
    };

    static Text own(std::string text) {
        auto kept = std::make_shared<const std::string>(std::move(text));
        return {*kept, kept};
    }

    // Cells are row by row; checks that they lie inside the text and that there are as many as the lengths say.
    Sentences(Text text, std::vector<Index> sentence_ptr, Index n_columns, std::vector<Cell> cells);

    // A file of columns. separator 0: runs of spaces and tabs; else that character, and no field may be empty.
    // n_columns 0: as many as the first line has. Throws ParseError.
    static Sentences parse(Text text, char separator, Index n_columns = 0);

    Index size() const { return len(sentence_ptr_.size()) - 1; }
    Index n_tokens() const { return sentence_ptr_.back(); }
    Index n_columns() const { return len(columns_.size()); }
    const std::vector<Index>& sentence_ptr() const { return sentence_ptr_; }
    std::string_view cell(Index token, Index column) const {
        const Cell& cell = (*cells_)[token * stride_ + columns_[column]];
        return text_.view.substr(cell.start, cell.length);
    }

    Sentences take(const std::vector<Index>& indices) const;
    // Some of the columns, in this order.
    Sentences select(const std::vector<Index>& columns) const;

   private:
    Text text_;
    std::vector<Index> sentence_ptr_;
    std::shared_ptr<const std::vector<Cell>> cells_;
    Index stride_;                // cells of a token
    std::vector<Index> columns_;  // which of them are columns of this table
};

}  // namespace partwise
