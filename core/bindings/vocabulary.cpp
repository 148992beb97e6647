// Vocabularies, and how they are learnt: from Python's items and from templates over columns of text.
#include "text/vocabulary.h"

#include <optional>

#include "bindings/text.h"

namespace partwise::bindings {

namespace {

PackedStrings packed(const Bytes& bytes, const Ints& offsets) { return {span_of(bytes), span_of(offsets)}; }

// Calls f(k, UTF-8) for the strings of a list; checks for Ctrl-C at intervals.
template <class F>
void for_each_name(const nb::list& names, F&& f) {
    Interrupt interrupt = python_interrupt();
    const Index n = len(names.size());
    for (Index k = 0; k < n; ++k) {
        if ((k & 0x3FFF) == 0) interrupt.check();
        f(k, utf8_of(names[k], [&] { return "name " + std::to_string(k); }));
    }
}

// How many attributes each item has, and their values, empty if all are 1.
struct Items {
    std::vector<Index> counts;
    std::vector<double> values;
    bool joined = false;  // whether the separator joined anything

    // Calls f(name) for every attribute of every item; false if an item is not of the forms of `ItemReader`.
    template <class F>
    bool read(const nb::list& items, std::string_view separator, F&& f) {
        Interrupt interrupt = python_interrupt();
        ItemReader reader(separator);
        counts.reserve(items.size());
        bool ones = true;
        for (std::size_t k = 0; k < items.size(); ++k) {
            if ((k & 0x3FF) == 0) interrupt.check();
            const std::size_t before = values.size();
            const bool good = reader.read(items[k].ptr(), [&](std::string_view name, double value) {
                f(name);
                values.push_back(value);
                ones = ones && value == 1.0;
            });
            if (!good) return false;
            counts.push_back(len(values.size() - before));
        }
        if (ones) values.clear();
        joined = reader.joined();
        return true;
    }

    using Arrays = std::tuple<NumPy<Index>, NumPy<Index>, std::optional<NumPy<double>>>;

    // counts, ids, values or None
    Arrays arrays(std::vector<Index> ids) && {
        std::optional<NumPy<double>> given;
        if (!values.empty()) given = numpy(std::move(values));
        return {numpy(std::move(counts)), numpy(std::move(ids)), std::move(given)};
    }
};

std::optional<Items::Arrays> read_items(const StringTable& self, const nb::list& items, const std::string& separator) {
    Items found;
    std::vector<Index> ids;
    if (!found.read(items, separator, [&](std::string_view name) { ids.push_back(self.find(name)); })) return {};
    return std::move(found).arrays(std::move(ids));
}

// Counts names; in the end numbers them by frequency.
class Learner {
   public:
    void add(std::string_view name) {
        const Index id = seen_.add(name);
        if (id == len(counts_.size())) counts_.push_back(0);
        ++counts_[id];
        ids_.push_back(id);
    }

    // The vocabulary of names counted at least min_count times, and the numbers of all names added.
    std::pair<StringTable, std::vector<Index>> finish(Index min_count) {
        std::vector<Index> rank;
        StringTable table = by_frequency(seen_, counts_, {}, min_count, rank);
        for (Index& id : ids_) id = rank[id];
        return {std::move(table), std::move(ids_)};
    }

   private:
    StringTable seen_;
    std::vector<Index> counts_, ids_;
};

std::pair<StringTable, NumPy<Index>> learn(const nb::list& names, Index min_count) {
    Learner learner;
    for_each_name(names, [&](Index, std::string_view name) { learner.add(name); });
    auto [table, ids] = learner.finish(min_count);
    return {std::move(table), numpy(std::move(ids))};
}

std::optional<std::tuple<StringTable, Items::Arrays, bool>> learn_items(const nb::list& items,
                                                                        const std::string& separator, Index min_count) {
    Items found;
    Learner learner;
    if (!found.read(items, separator, [&](std::string_view name) { learner.add(name); })) return {};
    auto [table, ids] = learner.finish(min_count);
    const bool joined = found.joined;
    return std::tuple(std::move(table), std::move(found).arrays(std::move(ids)), joined);
}

NumPy<std::uint8_t> bytes_of(const StringTable& self) {
    return numpy(std::vector<std::uint8_t>(self.bytes().begin(), self.bytes().end()));
}

void bind_string_table(nb::module_& m) {
    nb::class_<StringTable> vocabulary(m, "Vocabulary");
    define(vocabulary, "__init__", args("bytes"_same, "offsets"_same),
           [](StringTable* self, const Bytes& bytes, const Ints& offsets) {
               run_kernel([&] { new (self) StringTable(make_vocabulary(packed(bytes, offsets))); });
           });
    vocabulary.def_static("learn", &learn, "names"_a, "min_count"_a = 1)
        .def_static("learn_items", &learn_items, "items"_a, "separator"_a, "min_count"_a = 1)
        .def("__len__", &StringTable::size);
    define(vocabulary, "__contains__", args("name"_a), [](const StringTable& self, nb::handle name) {
        return PyUnicode_Check(name.ptr()) && self.find(utf8_of(name, [] { return std::string("name"); })) >= 0;
    });
    define(vocabulary, "__getitem__", args("k"_a), [](const StringTable& self, Index k) {
        if (k < 0 || k >= self.size()) throw nb::index_error("no such name");
        return python_string(self.name(k));
    });
    vocabulary
        .def("__getstate__",
             [](const StringTable& self) { return std::make_pair(bytes_of(self), numpy(std::vector(self.offsets()))); })
        .def("__setstate__",
             [](StringTable& self, const std::pair<Bytes, Ints>& state) {
                 new (&self) StringTable(make_vocabulary(packed(state.first, state.second)));
             })
        .def_prop_ro("bytes", [](const StringTable& self) { return nb::cast(bytes_of(self)); })
        .def_prop_ro("offsets", copied<StringTable>(&StringTable::offsets))
        .def("names", &python_strings<StringTable>);
    define(vocabulary, "ids", args("names"_a), [](const StringTable& self, const nb::list& names) {
        std::vector<Index> out(names.size());
        for_each_name(names, [&](Index k, std::string_view name) { out[k] = self.find(name); });
        return numpy(std::move(out));
    });
    vocabulary.def("read_items", &read_items, "items"_a, "separator"_a);
    define(vocabulary, "packed_ids", args("bytes"_same, "offsets"_same, "n_jobs"_a = 1),
           [](const StringTable& self, const Bytes& bytes, const Ints& offsets, int n_jobs) {
               return numpy(run_kernel(look_up, self, packed(bytes, offsets), n_jobs));
           });
    define(vocabulary, "starts_with", args("prefixes"_a),
           [](const StringTable& self, const std::vector<std::string>& prefixes) {
               std::vector<std::uint8_t> out(self.size(), 0);
               for (Index k = 0; k < self.size(); ++k) {
                   for (const std::string& prefix : prefixes) {
                       if (self.name(k).starts_with(prefix)) out[k] = 1;
                   }
               }
               return numpy(std::move(out));
           });

    nb::class_<NameCounts> name_counts(m, "NameCounts");
    name_counts.def(nb::init<>()).def("__len__", &NameCounts::size);
    define(name_counts, "add", args("block"_a, "ids"_same),
           [](NameCounts& self, const StringTable& block, const Ints& ids) { self.add(block, span_of(ids)); });
    name_counts.def("vocabulary", &NameCounts::vocabulary, "min_count"_a = 1);
}

using Column = std::unique_ptr<CodedColumn>;

Column code_column(const Sentences& sentences, Index j) {
    if (j < 0 || j >= sentences.n_columns()) {
        throw InputError("no column ", j, " (there are ", sentences.n_columns(), ")");
    }
    return std::make_unique<CodedColumn>(coded_column(sentences, j));
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
        column->codes[t] = self.codes[t] < 0 ? -1 : numbers[self.codes[t]];
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
    return tuple_of(std::move(rows.row_ptr), std::move(rows.attributes), rows.n_unknown);
}

void bind_extractor(nb::module_& m) {
    nb::class_<CodedColumn>(m, "CodedColumn")
        .def_static("of", &code_column, "sentences"_a, "j"_a)
        .def_static("from_list", &from_list, "strings"_a)
        .def("names", [](const CodedColumn& self) { return python_strings(self.names); })
        .def_prop_ro("codes", copied<CodedColumn>(&CodedColumn::codes))
        .def("mapped", &mapped, "names"_a);

    nb::class_<Extractor> extractor(m, "Extractor");
    define(extractor, "__init__", args("lines"_a, "columns"_a, "lengths"_same),
           [](Extractor* self, const nb::list& lines, const nb::sequence& columns, const Ints& lengths) {
               std::vector<TemplateLine> parsed;
               for (const nb::handle line : lines) {
                   const auto pair = nb::cast<nb::tuple>(line);
                   TemplateLine& added = parsed.emplace_back();
                   added.edge = nb::cast<bool>(pair[0]);
                   for (const nb::handle piece : pair[1]) added.pieces.push_back(piece_of(piece));
               }
               new (self) Extractor(std::move(parsed), share_all<CodedColumn>(columns), vector_of(lengths));
           });
    define(extractor, "learn", args("min_count"_a = 1, "n_jobs"_a = 1),
           [](const Extractor& self, Index min_count, int n_jobs) {
               ExtractedRows rows;
               StringTable vocabulary =
                   run_kernel([&](auto& interrupt) { return self.learn(min_count, n_jobs, interrupt, rows); });
               return nb::make_tuple(std::move(vocabulary), as_tuple(std::move(rows)));
           });
    define(extractor, "look_up", args("vocabulary"_a, "n_jobs"_a = 1),
           [](const Extractor& self, const StringTable& vocabulary, int n_jobs) {
               return as_tuple(run_kernel(&Extractor::look_up, self, vocabulary, n_jobs));
           });
    define(extractor, "attributes", args("token"_a), [](const Extractor& self, Index token) {
        nb::list out;
        for (const std::string& text : self.attributes(token)) out.append(python_string(text));
        return out;
    });
}

}  // namespace

void bind_vocabulary(nb::module_& m) {
    bind_string_table(m);
    bind_extractor(m);
}

}  // namespace partwise::bindings
