// Fuzz driver of the core's readers of text: UTF-8, files of columns, svmlight.
#include <algorithm>
#include <memory>
#include <string>

#include "bytes.h"
#include "text/sentences.h"
#include "text/svmlight.h"
#include "text/utf8.h"

using namespace partwise;
using namespace partwise::fuzz;

namespace {

// Calls f, which parses text. If f refuses the text, the error must name a line and column that exist.
template <class F>
bool parsed(std::string_view text, F&& f) {
    try {
        f();
        return true;
    } catch (const ParseError& error) {
        const Index lines = 1 + std::count(text.begin(), text.end(), '\n');
        require(error.line >= 1 && error.line <= lines, "an error's line is one of the text");
        require(error.column >= 1 && error.column <= len(text.size()) + 1, "an error's column is one of the text");
        return false;
    }
}

void check_table(const Sentences& table) {
    require(table.sentence_ptr().front() == 0 && table.sentence_ptr().back() == table.n_tokens(), "tokens are counted");
    for (Index t = 0; t < table.n_tokens(); ++t) {
        for (Index j = 0; j < table.n_columns(); ++j) {
            const std::string_view cell = table.cell(t, j);
            require(!cell.empty() && cell.find('\n') == std::string_view::npos, "cells are parts of lines");
        }
    }
}

void columns(Bytes& in) {
    constexpr char kSeparators[] = {'\0', '\t', ' '};
    const char separator = kSeparators[in.below(0, 2)];
    const Index n_columns = in.flag() ? in.below(1, 4) : 0;
    const std::vector<Index> chosen = in.indices(in.below(0, 3), 0, 3);
    const std::string text(in.rest());
    std::unique_ptr<Sentences> table;
    if (!parsed(text, [&] {
            table = std::make_unique<Sentences>(Sentences::parse(Sentences::own(text), separator, n_columns));
        }))
        return;
    check_table(*table);
    accepted([&] { check_table(table->take(chosen)); });
    const bool there =
        std::all_of(chosen.begin(), chosen.end(), [&](Index j) { return j >= 0 && j < table->n_columns(); });
    if (there) check_table(table->select(chosen));

    // Written out and read again, the cells must be the same, unless the text has \r or a byte order mark.
    if (text.find('\r') != std::string::npos || text.find("\xEF\xBB\xBF") != std::string::npos) return;
    std::string again;
    for (Index i = 0; i < table->size(); ++i) {
        for (Index t = table->sentence_ptr()[i]; t < table->sentence_ptr()[i + 1]; ++t) {
            for (Index j = 0; j < table->n_columns(); ++j) {
                again.append(j == 0 ? "" : separator == ' ' ? " " : "\t").append(table->cell(t, j));
            }
            again.push_back('\n');
        }
        again.push_back('\n');
    }
    if (again.empty()) return;
    const Sentences other = Sentences::parse(Sentences::own(again), separator);
    require(other.sentence_ptr() == table->sentence_ptr(), "a table that is written and read has the same sentences");
    for (Index t = 0; t < table->n_tokens(); ++t) {
        for (Index j = 0; j < table->n_columns(); ++j) {
            require(other.cell(t, j) == table->cell(t, j), "a table that is written and read has the same cells");
        }
    }
}

void svmlight(Bytes& in) {
    const Index first = in.below(0, 1);
    const std::string text(in.rest());
    SvmlightRows rows;
    if (!parsed(text, [&] { rows = parse_svmlight(text, first); })) return;
    require(rows.row_ptr.size() == rows.labels.size() + 1 && rows.row_ptr.back() == len(rows.columns.size()),
            "rows are counted");
    require(rows.values.size() == rows.columns.size(), "columns have a value each");
    for (std::size_t row = 0; row < rows.labels.size(); ++row) {
        require(std::isfinite(rows.labels[row]), "labels are finite");
        for (Index k = rows.row_ptr[row]; k < rows.row_ptr[row + 1]; ++k) {
            require(std::isfinite(rows.values[k]), "values are finite");
            require(rows.columns[k] >= 0, "columns are not negative");
            require(k == rows.row_ptr[row] || rows.columns[k] > rows.columns[k - 1], "columns rise");
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    switch (in.below(0, 2)) {
        case 0:
            columns(in);
            break;
        case 1:
            svmlight(in);
            break;
        default: {
            const std::string text(in.rest());
            parsed(text, [&] { check_utf8(text); });
        }
    }
    return 0;
}
