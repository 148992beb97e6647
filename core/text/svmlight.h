// The svmlight format: rows of label index:value index:value ...
#pragma once

#include <string_view>

#include "support/types.h"

namespace partwise {

struct SvmlightRows {
    std::vector<double> labels;
    std::vector<Index> row_ptr{0};
    std::vector<Index> columns;  // from 0, rising in a row
    std::vector<double> values;
};

// Indices are counted from `first` (1 or 0) and rise in a row; # starts a comment. Throws ParseError.
SvmlightRows parse_svmlight(std::string_view text, Index first);

}  // namespace partwise
