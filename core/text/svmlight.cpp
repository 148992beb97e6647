#include "text/svmlight.h"

#include <locale.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include <charconv>
#include <new>

#include "text/utf8.h"

namespace partwise {

namespace {

// strtod with the C locale, whatever the process's locale. `size` becomes the number of characters read.
double strtod_c(std::string_view field, std::size_t& size) {
    static const locale_t c_locale = ::newlocale(LC_NUMERIC_MASK, "C", locale_t{});
    if (!c_locale) throw std::bad_alloc();
    const std::string text(field);  // which ends with a zero byte
    char* stop = nullptr;
    const double value = ::strtod_l(text.c_str(), &stop, c_locale);
    size = static_cast<std::size_t>(stop - text.c_str());
    return value;
}

// Reads a number; returns false unless all of `field` is one. May refuse numbers that are not finite.
bool parse_number(std::string_view field, double& value) {
    std::size_t size = 0;
#if defined(__cpp_lib_to_chars)
    const char* end = field.data() + field.size();
    const auto [stop, error] = std::from_chars(field.data(), end, value);
    if (stop != end || error == std::errc::invalid_argument) return false;
    // Too small for a double is 0, too large is not a number; from_chars does not say which.
    if (error == std::errc::result_out_of_range) value = strtod_c(field, size);
    return true;
#else
    // libc++ has no from_chars for floating point before 20. strtod knows hexadecimal numbers and leading blanks, too.
    if (field.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return false;
    value = strtod_c(field, size);
    return size == field.size();
#endif
}

// Reads a finite number; returns false unless all of `field` is one.
bool read_number(std::string_view field, double& value) {
    if (field.starts_with('+')) {
        field.remove_prefix(1);
        if (field.starts_with('-') || field.starts_with('+')) return false;
    }
    return !field.empty() && parse_number(field, value) && std::isfinite(value);
}

}  // namespace

SvmlightRows parse_svmlight(std::string_view text, Index first) {
    check_utf8(text);
    SvmlightRows rows;
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
            if (index < first) fail_at(text, k, concat("indices are counted from ", first));
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
