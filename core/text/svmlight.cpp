#include "text/svmlight.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "text/utf8.h"

namespace partwise {

namespace {

// A finite number that takes up all of `field`; false if it is none.
bool read_number(std::string_view field, double& value) {
    if (field.starts_with('+')) {
        field.remove_prefix(1);
        if (field.starts_with('-')) return false;
    }
    const char* end = field.data() + field.size();
    const auto [stop, error] = std::from_chars(field.data(), end, value);
    if (stop != end || field.empty()) return false;
    // Too small for a double is 0, too large is not a number; from_chars does not say which.
    if (error == std::errc::result_out_of_range) value = std::strtod(std::string(field).c_str(), nullptr);
    return error != std::errc::invalid_argument && std::isfinite(value);
}

}  // namespace

SparseRows parse_svmlight(std::string_view text, Index first) {
    check_utf8(text);
    SparseRows rows;
    std::size_t line = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    while (line < text.size()) {
        const std::size_t newline = std::min(text.find('\n', line), text.size());
        const std::size_t comment = text.substr(line, newline - line).find('#');  // in the line: the text may be long
        const std::size_t stop = comment == std::string_view::npos ? newline : line + comment;
        const auto blank = [&](std::size_t k) {
            return text[k] == ' ' || text[k] == '\t' || (text[k] == '\r' && k + 1 == newline);
        };
        bool labelled = false;
        Index last = first - 1;
        for (std::size_t k = line; k < stop;) {
            if (blank(k)) {
                ++k;
                continue;
            }
            std::size_t end = k;
            while (end < stop && !blank(end)) ++end;
            const std::string_view field = text.substr(k, end - k);
            double value = 0.0;
            if (!labelled) {
                if (!read_number(field, value)) fail_at(text, k, "the label is not a number");
                rows.labels.push_back(value);
                labelled = true;
                k = end;
                continue;
            }
            const std::size_t colon = field.find(':');
            if (colon == std::string_view::npos) fail_at(text, k, "expected index:value");
            if (field.starts_with("qid:")) fail_at(text, k, "qid is for ranking, which is not supported");
            Index index = 0;
            const auto [at, error] = std::from_chars(field.data(), field.data() + colon, index);
            if (colon == 0 || error != std::errc() || at != field.data() + colon) {
                fail_at(text, k, "the index is not a whole number");
            }
            if (index < first) fail_at(text, k, "indices are counted from " + std::to_string(first));
            if (index > std::numeric_limits<std::int32_t>::max()) fail_at(text, k, "the index is too large");
            if (index <= last) fail_at(text, k, "indices must increase");
            if (!read_number(field.substr(colon + 1), value)) fail_at(text, k + colon + 1, "the value is not a number");
            last = index;
            rows.columns.push_back(index - first);
            rows.values.push_back(value);
            k = end;
        }
        if (labelled) rows.row_ptr.push_back(len(rows.columns.size()));
        line = newline + 1;
    }
    return rows;
}

}  // namespace partwise
