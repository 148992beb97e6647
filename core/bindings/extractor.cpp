#include "text/extractor.h"

#include "bindings/keep_alive.h"
#include "bindings/strings.h"
#include "text/sentences.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

using Column = std::unique_ptr<CodedColumn>;

Column code_column(const Sentences& sentences, Index j) {
    if (j < 0 || j >= sentences.n_columns()) {
        throw InputError("no column " + std::to_string(j) + " (there are " + std::to_string(sentences.n_columns()) +
                         ")");
    }
    auto column = std::make_unique<CodedColumn>();
    column->codes.resize(idx(sentences.n_tokens()));
    for (Index t = 0; t < sentences.n_tokens(); ++t) {
        column->codes[idx(t)] = static_cast<std::int32_t>(column->names.add(sentences.cell(t, j)));
    }
    return column;
}

// Numbers of the names that are not None, -1 for None.
std::vector<std::int32_t> add_all(StringTable& table, const nb::list& names) {
    std::vector<std::int32_t> numbers;
    for (const nb::handle name : names) {
        const auto where = [&] { return "name " + std::to_string(numbers.size()); };
        numbers.push_back(name.is_none() ? -1 : static_cast<std::int32_t>(table.add(utf8_of(name, where))));
    }
    return numbers;
}

Column mapped(const CodedColumn& self, const nb::list& names) {
    if (len(names.size()) != self.names.size()) throw InputError("there must be one name per distinct string");
    auto column = std::make_unique<CodedColumn>();
    const std::vector<std::int32_t> numbers = add_all(column->names, names);
    column->codes.resize(self.codes.size());
    for (std::size_t t = 0; t < self.codes.size(); ++t) {
        column->codes[t] = self.codes[t] < 0 ? -1 : numbers[idx(self.codes[t])];
    }
    return column;
}

Column from_list(const nb::list& strings) {
    auto column = std::make_unique<CodedColumn>();
    column->codes = add_all(column->names, strings);
    return column;
}

// A piece is a string, or ("first",), ("last",), ("cell", column, row, what is past the ends): None, True for the
// boundary marks, or a string.
TemplatePiece piece_of(nb::handle object) {
    TemplatePiece piece;
    if (nb::isinstance<nb::str>(object)) {
        piece.text = std::string(utf8_of(object, [] { return std::string("template"); }));
        return piece;
    }
    const auto parts = nb::cast<nb::tuple>(object);
    const auto kind = nb::cast<std::string>(parts[0]);
    if (kind == "first" || kind == "last") {
        piece.kind = kind == "first" ? TemplatePiece::Kind::kFirst : TemplatePiece::Kind::kLast;
        return piece;
    }
    if (kind != "cell" || parts.size() != 4) throw InputError("a template has a piece of an unknown kind");
    piece.kind = TemplatePiece::Kind::kCell;
    piece.column = nb::cast<Index>(parts[1]);
    piece.row = nb::cast<Index>(parts[2]);
    if (nb::isinstance<nb::str>(parts[3])) {
        piece.outside = TemplatePiece::Outside::kText;
        piece.text = std::string(utf8_of(parts[3], [] { return std::string("template"); }));
    } else if (!parts[3].is_none()) {
        piece.outside = TemplatePiece::Outside::kBoundary;
    }
    return piece;
}

nb::tuple as_tuple(ExtractedRows rows) {
    return nb::make_tuple(numpy(std::move(rows.row_ptr)), numpy(std::move(rows.attributes)), rows.n_unknown);
}

}  // namespace

void bind_extractor(nb::module_& m) {
    nb::class_<CodedColumn>(m, "CodedColumn")
        .def_static("of", &code_column, "sentences"_a, "j"_a)
        .def_static("from_list", &from_list, "strings"_a)
        .def("names",
             [](const CodedColumn& self) {
                 nb::list out;
                 for (Index k = 0; k < self.names.size(); ++k) out.append(python_string(self.names.name(k)));
                 return out;
             })
        .def_prop_ro(
            "codes", [](const CodedColumn& self) { return numpy(std::vector(self.codes)); }, nb::rv_policy::automatic)
        .def("mapped", &mapped, "names"_a);

    nb::class_<Extractor>(m, "Extractor")
        .def(
            "__init__",
            [](Extractor* self, const nb::list& lines, const nb::sequence& columns, const Ints& lengths) {
                std::vector<TemplateLine> parsed;
                for (const nb::handle line : lines) {
                    const auto pair = nb::cast<nb::tuple>(line);
                    TemplateLine& added = parsed.emplace_back();
                    added.edge = nb::cast<bool>(pair[0]);
                    for (const nb::handle piece : pair[1]) added.pieces.push_back(piece_of(piece));
                }
                const std::vector<std::shared_ptr<CodedColumn>> shared = share_all<CodedColumn>(columns);
                new (self) Extractor(std::move(parsed), {shared.begin(), shared.end()}, vector_of<Index>(lengths));
            },
            "lines"_a, "columns"_a, "lengths"_a.noconvert())
        .def(
            "learn",
            [](const Extractor& self, Index min_count, int n_jobs) {
                Interrupt interrupt = python_interrupt();
                ExtractedRows rows;
                StringTable vocabulary;
                {
                    const nb::gil_scoped_release release;
                    vocabulary = self.learn(min_count, n_jobs, interrupt, rows);
                }
                return nb::make_tuple(std::move(vocabulary), as_tuple(std::move(rows)));
            },
            "min_count"_a = 1, "n_jobs"_a = 1)
        .def(
            "look_up",
            [](const Extractor& self, const StringTable& vocabulary, int n_jobs) {
                Interrupt interrupt = python_interrupt();
                ExtractedRows rows;
                {
                    const nb::gil_scoped_release release;
                    rows = self.look_up(vocabulary, n_jobs, interrupt);
                }
                return as_tuple(std::move(rows));
            },
            "vocabulary"_a, "n_jobs"_a = 1)
        .def(
            "attributes",
            [](const Extractor& self, Index token) {
                nb::list out;
                for (const std::string& text : self.attributes(token)) out.append(python_string(text));
                return out;
            },
            "token"_a);
}

}  // namespace partwise::bindings
