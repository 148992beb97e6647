// UTF-8 text: checking it, and naming a place in it.
#pragma once

#include <string_view>

#include "support/types.h"

namespace partwise {

// A text that is not in its format; line and column are counted from 1, columns in characters.
struct ParseError : std::runtime_error {
    ParseError(Index line_, Index column_, const std::string& message)
        : std::runtime_error(message), line(line_), column(column_) {}
    Index line;
    Index column;
};

// Throws ParseError for the byte at `offset`.
[[noreturn]] void fail_at(std::string_view text, std::size_t offset, const std::string& message);

// Throws ParseError at the first byte that is not UTF-8 (surrogates and overlong forms are not).
void check_utf8(std::string_view text);

}  // namespace partwise
