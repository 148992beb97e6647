// Files as tables: sentences of columns, and rows of features.
#include "text/sentences.h"

#include "bindings/text.h"
#include "text/svmlight.h"
#include "text/utf8.h"

namespace partwise::bindings {

namespace {

PyObject* parse_error = nullptr;

std::string place(Index sentence, Index token) {
    return "sentence " + std::to_string(sentence) + ", token " + std::to_string(token);
}

Sentences from_lists(const nb::iterable& sentences) {
    std::string text;
    std::vector<Index> sentence_ptr{0};
    std::vector<Sentences::Cell> cells;
    Index n_columns = -1;
    for (const nb::handle sentence : sentences) {
        const Index number = len(sentence_ptr.size()) - 1;
        if (PyUnicode_Check(sentence.ptr()) || !PyIter_Check(nb::iter(sentence).ptr())) {
            throw InputError("sentence ", number, " must be a list of tokens");
        }
        Index t = 0;
        for (const nb::handle token : sentence) {
            const auto add = [&](nb::handle field) {
                const std::string_view cell = utf8_of(field, [&] { return place(number, t); });
                cells.push_back({len(text.size()), len(cell.size())});
                text.append(cell);
            };
            Index n = 1;
            if (PyTuple_Check(token.ptr()) || PyList_Check(token.ptr())) {
                n = len(nb::len(token));
                for (const nb::handle field : token) add(field);
            } else {
                add(token);
            }
            if (n_columns < 0) n_columns = n;
            if (n != n_columns || n == 0) {
                throw InputError(place(number, t), " has ", n, " columns, expected ",
                                 (n == 0 ? "at least one" : std::to_string(n_columns)));
            }
            ++t;
        }
        sentence_ptr.push_back(sentence_ptr.back() + t);
    }
    return {Sentences::own(std::move(text)), std::move(sentence_ptr), std::max<Index>(n_columns, 0), std::move(cells)};
}

// Columns as Arrow has them: the strings of each end to end, string t from offsets[t] to offsets[t + 1].
Sentences from_packed(const std::vector<std::pair<Bytes, Ints>>& columns, const Ints& lengths) {
    std::vector<Index> sentence_ptr{0};
    for (const Index n : span_of(lengths)) {
        if (n < 0 || n > std::numeric_limits<Index>::max() - sentence_ptr.back()) throw InputError("invalid lengths");
        sentence_ptr.push_back(sentence_ptr.back() + n);
    }
    const Index n_tokens = sentence_ptr.back();
    const Index n_columns = len(columns.size());
    if (n_columns == 0) throw InputError("there must be at least one column");
    std::string text;
    for (const auto& [bytes, offsets] : columns) {
        if (len(offsets.size()) - 1 != n_tokens) {
            throw InputError("a column has ", len(offsets.size()) - 1, " strings, the lengths say ", n_tokens);
        }
        const auto view = span_of(bytes);
        text.append(reinterpret_cast<const char*>(view.data()), view.size());
    }
    std::vector<Sentences::Cell> cells(n_tokens * n_columns);
    Index base = 0;
    for (Index j = 0; j < n_columns; ++j) {
        const auto offsets = span_of(columns[j].second);
        const Index size = len(columns[j].first.size());
        for (Index t = 0; t < n_tokens; ++t) {
            const Index begin = offsets[t];
            const Index end = offsets[t + 1];
            if (begin < 0 || end < begin || end > size) throw InputError("offsets must rise within the bytes");
            // A cell that begins or ends inside a character would be no text.
            const auto inside = [&](Index at) {
                return at < size && (static_cast<unsigned char>(text[base + at]) & 0xC0U) == 0x80U;
            };
            if (inside(begin) || inside(end)) throw InputError("an offset lies inside a character");
            cells[t * n_columns + j] = {base + begin, end - begin};
        }
        base += size;
    }
    check_utf8(text);
    return {Sentences::own(std::move(text)), std::move(sentence_ptr), n_columns, std::move(cells)};
}

Index checked_column(const Sentences& self, Index j) {
    const Index n = self.n_columns();
    if (j < -n || j >= n) throw InputError("no column ", j, " (there are ", n, ")");
    return j < 0 ? j + n : j;
}

nb::list column(const Sentences& self, Index j) {
    const CodedColumn coded = coded_column(self, checked_column(self, j));
    const nb::list names = python_strings(coded.names);
    nb::list out;
    for (Index i = 0; i < self.size(); ++i) {
        const Index start = self.sentence_ptr()[i];
        out.append(list_of(self.sentence_ptr()[i + 1] - start, [&](Index t) {
            return PyList_GET_ITEM(names.ptr(), static_cast<Py_ssize_t>(coded.codes[start + t]));
        }));
    }
    return out;
}

void check_sentence(const Sentences& self, Index i) {
    if (i < 0 || i >= self.size()) throw nb::index_error("no such sentence");
}

nb::list sentence(const Sentences& self, Index i) {
    if (i < 0) i += self.size();
    check_sentence(self, i);
    nb::list out;
    for (Index t = self.sentence_ptr()[i]; t < self.sentence_ptr()[i + 1]; ++t) {
        if (self.n_columns() == 1) {
            out.append(python_string(self.cell(t, 0)));
            continue;
        }
        nb::list fields;
        for (Index j = 0; j < self.n_columns(); ++j) fields.append(python_string(self.cell(t, j)));
        out.append(nb::tuple(fields));
    }
    return out;
}

// The lines of sentence i, with a text after each token's cells and a blank line at the end.
nb::object lines(const Sentences& self, Index i, const nb::list& ends) {
    check_sentence(self, i);
    const Index start = self.sentence_ptr()[i];
    const Index n = self.sentence_ptr()[i + 1] - start;
    if (len(ends.size()) != n) throw InputError("sentence ", i, " has ", n, " tokens but ", ends.size(), " texts");
    std::string out;
    for (Index t = 0; t < n; ++t) {
        for (Index j = 0; j < self.n_columns(); ++j) {
            out.append(self.cell(start + t, j));
            out.push_back('\t');
        }
        out.append(utf8_of(ends[t], [&] { return place(i, t); }));
        out.push_back('\n');
    }
    out.push_back('\n');
    return python_string(out);
}

Sentences select(const Sentences& self, std::vector<Index> columns) {
    for (Index& j : columns) j = checked_column(self, j);
    return self.select(columns);
}

Sentences without(const Sentences& self, Index j) {
    std::vector<Index> rest;
    const Index gone = checked_column(self, j);
    for (Index k = 0; k < self.n_columns(); ++k) {
        if (k != gone) rest.push_back(k);
    }
    return self.select(rest);
}

using State = std::tuple<nb::bytes, std::vector<Index>, std::vector<Index>, Index>;

State state_of(const Sentences& self) {
    std::string text;
    std::vector<Index> lengths;
    for (Index t = 0; t < self.n_tokens(); ++t) {
        for (Index j = 0; j < self.n_columns(); ++j) {
            text.append(self.cell(t, j));
            lengths.push_back(len(self.cell(t, j).size()));
        }
    }
    return {nb::bytes(text.data(), text.size()), std::move(lengths), self.sentence_ptr(), self.n_columns()};
}

void restore(Sentences& self, const State& state) {
    const auto& [bytes, lengths, sentence_ptr, n_columns] = state;
    std::vector<Sentences::Cell> cells;
    Index start = 0;
    for (const Index length : lengths) {
        cells.push_back({start, length});
        start += length;
    }
    Sentences::Text text = Sentences::own(std::string(bytes.c_str(), bytes.size()));
    check_utf8(text.view);
    new (&self) Sentences(std::move(text), sentence_ptr, n_columns, std::move(cells));
}

}  // namespace

void bind_sentences(nb::module_& m) {
    parse_error = PyErr_NewException("partwise._core.ParseError", PyExc_ValueError, nullptr);
    if (parse_error == nullptr) throw nb::python_error();
    m.attr("ParseError") = nb::borrow(parse_error);
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const ParseError& e) {
            const nb::object arguments = nb::make_tuple(e.line, e.column, std::string(e.what()));
            PyErr_SetObject(parse_error, arguments.ptr());
        }
    });

    nb::class_<Sentences> cls(m, "Sentences");
    define_static(cls, "parse", args("data"_a, "separator"_a = "", "n_columns"_a = 0),
                  [](const nb::bytes& data, const std::string& separator, Index n_columns) {
                      if (!separator.empty() && separator != "\t" && separator != " ") {
                          throw InputError("separator must be a tab or a space");
                      }
                      Sentences::Text text{{data.c_str(), data.size()}, keep_alive(data)};
                      return run_kernel([&] {
                          return Sentences::parse(std::move(text), separator.empty() ? '\0' : separator[0], n_columns);
                      });
                  });
    cls.def_static("from_lists", &from_lists, "sentences"_a)
        .def_static("from_packed", &from_packed, "columns"_a, "lengths"_a)
        .def("__len__", &Sentences::size)
        .def("__getitem__", &sentence, "i"_a)
        .def("__getstate__", &state_of)
        .def("__setstate__", &restore)
        .def_prop_ro("n_columns", &Sentences::n_columns)
        .def_prop_ro("n_tokens", &Sentences::n_tokens)
        .def_prop_ro("lengths",
                     [](const Sentences& self) {
                         std::vector<Index> out;
                         for (Index i = 0; i < self.size(); ++i) {
                             out.push_back(self.sentence_ptr()[i + 1] - self.sentence_ptr()[i]);
                         }
                         return nb::cast(numpy(std::move(out)));
                     })
        .def("column", &column, "j"_a);
    define(cls, "take", args("indices"_a),
           [](const Sentences& self, const Ints& indices) { return self.take(vector_of(indices)); });
    cls.def("lines", &lines, "i"_a, "ends"_a).def("select", &select, "columns"_a).def("without", &without, "j"_a);

    define(m, "parse_svmlight", args("data"_a, "first"_a = 1), [](const nb::bytes& data, Index first) {
        SvmlightRows rows = run_kernel([&] { return parse_svmlight({data.c_str(), data.size()}, first); });
        return tuple_of(std::move(rows.labels), std::move(rows.row_ptr), std::move(rows.columns),
                        std::move(rows.values));
    });
}

}  // namespace partwise::bindings
