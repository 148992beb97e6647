#include "text/sentences.h"

#include <numeric>

#include "text/utf8.h"

namespace partwise {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Adds the cells of the line [start, end) and returns their number.
Index split_line(std::string_view text, std::size_t start, std::size_t end, char separator,
                 std::vector<Sentences::Cell>& cells) {
    const std::size_t before = cells.size();
    const auto add = [&](std::size_t from, std::size_t to) { cells.push_back({len(from), len(to - from)}); };
    const auto blank = [&](std::size_t k) { return text[k] == ' ' || text[k] == '\t'; };
    if (separator == 0) {
        for (std::size_t k = start; k < end;) {
            if (blank(k)) {
                ++k;
                continue;
            }
            const std::size_t from = k;
            while (k < end && !blank(k)) ++k;
            add(from, k);
        }
        return len(cells.size() - before);
    }
    std::size_t first = start;
    while (first < end && blank(first)) ++first;
    if (first == end) return 0;  // a blank line, even if it has tabs
    for (std::size_t from = start;;) {
        std::size_t to = from;
        while (to < end && text[to] != separator) ++to;
        if (to == from) fail_at(text, from, "empty field");
        add(from, to);
        if (to == end) return len(cells.size() - before);
        from = to + 1;
    }
}

std::string plural(Index n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

}  // namespace

Sentences::Sentences(Text text, std::vector<Index> sentence_ptr, Index n_columns, std::vector<Cell> cells)
    : text_(std::move(text)),
      sentence_ptr_(std::move(sentence_ptr)),
      cells_(std::make_shared<const std::vector<Cell>>(std::move(cells))),
      stride_(n_columns) {
    if (n_columns < 0) throw InputError("the number of columns is negative");
    if (sentence_ptr_.empty() || sentence_ptr_.front() != 0 ||
        !std::is_sorted(sentence_ptr_.begin(), sentence_ptr_.end())) {
        throw InputError("sentence_ptr must start at 0 and not decrease");
    }
    if (len(cells_->size()) != n_tokens() * n_columns) throw InputError("there must be one cell per token and column");
    const Index size = len(text_.view.size());
    for (const Cell& cell : *cells_) {
        if (cell.start < 0 || cell.length < 0 || cell.start > size || cell.length > size - cell.start) {
            throw InputError("a cell lies outside the text");
        }
    }
    columns_.resize(n_columns);
    std::iota(columns_.begin(), columns_.end(), Index{0});
}

Sentences Sentences::parse(Text source, char separator, Index n_columns) {
    if (n_columns < 0) throw InputError("the number of columns is negative");
    const std::string_view text = source.view;
    check_utf8(text);
    std::vector<Index> sentence_ptr{0};
    std::vector<Cell> cells;
    Index n_tokens = 0;
    std::size_t k = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    while (k < text.size()) {
        const std::size_t newline = std::min(text.find('\n', k), text.size());
        const std::size_t end =
            newline > k && newline < text.size() && text[newline - 1] == '\r' ? newline - 1 : newline;
        const Index n = split_line(text, k, end, separator, cells);
        if (n == 0) {
            if (n_tokens > sentence_ptr.back()) sentence_ptr.push_back(n_tokens);
        } else {
            if (n_columns == 0) n_columns = n;
            if (n != n_columns) {
                // The place of the error: the first superfluous field, or the end of the line.
                const std::size_t at = n > n_columns ? cells[cells.size() - (n - n_columns)].start : end;
                fail_at(text, at, concat(plural(n, "column"), " where the lines before have ", n_columns));
            }
            ++n_tokens;
        }
        k = newline + 1;
    }
    if (n_tokens > sentence_ptr.back()) sentence_ptr.push_back(n_tokens);
    return {std::move(source), std::move(sentence_ptr), n_columns, std::move(cells)};
}

Sentences Sentences::take(const std::vector<Index>& indices) const {
    std::vector<Index> sentence_ptr{0};
    std::vector<Cell> cells;
    for (const Index i : indices) {
        if (i < 0 || i >= size()) throw InputError("no sentence ", i, " (there are ", size(), ")");
        for (Index t = sentence_ptr_[i]; t < sentence_ptr_[i + 1]; ++t) {
            for (const Index j : columns_) cells.push_back((*cells_)[t * stride_ + j]);
        }
        sentence_ptr.push_back(sentence_ptr.back() + sentence_ptr_[i + 1] - sentence_ptr_[i]);
    }
    return {text_, std::move(sentence_ptr), n_columns(), std::move(cells)};
}

Sentences Sentences::select(const std::vector<Index>& columns) const {
    Sentences out = *this;
    out.columns_.clear();
    for (const Index j : columns) out.columns_.push_back(columns_[j]);
    return out;
}

}  // namespace partwise
