#include "text/vocabulary.h"

#include "bindings/common.h"
#include "bindings/strings.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

PackedStrings packed(const Bytes& bytes, const Ints& offsets) { return {span_of(bytes), span_of(offsets)}; }

// Calls f(k, UTF-8) for the strings of a list; checks for Ctrl-C at intervals.
template <class F>
void for_each_name(const nb::list& names, F&& f) {
    Interrupt interrupt = python_interrupt();
    const Index n = len(names.size());
    for (Index k = 0; k < n; ++k) {
        if ((k & 0x3FFF) == 0) interrupt.check();
        f(k, utf8_of(names[idx(k)], [&] { return "name " + std::to_string(k); }));
    }
}

std::pair<StringTable, NumPy<Index>> learn(const nb::list& names, Index min_count) {
    StringTable seen;
    std::vector<Index> ids(names.size());
    std::vector<Index> counts;
    for_each_name(names, [&](Index k, std::string_view name) {
        const Index id = seen.add(name);
        if (id == len(counts.size())) counts.push_back(0);
        ++counts[idx(id)];
        ids[idx(k)] = id;
    });
    std::vector<Index> rank;
    StringTable table = by_frequency(seen, counts, {}, min_count, rank);
    for (Index& id : ids) id = rank[idx(id)];
    return {std::move(table), numpy(std::move(ids))};
}

nb::list names_of(const StringTable& self) {
    nb::list out;
    for (Index k = 0; k < self.size(); ++k) out.append(python_string(self.name(k)));
    return out;
}

NumPy<std::uint8_t> bytes_of(const StringTable& self) {
    return numpy(std::vector<std::uint8_t>(self.bytes().begin(), self.bytes().end()));
}

}  // namespace

void bind_vocabulary(nb::module_& m) {
    const auto automatic = nb::rv_policy::automatic;
    nb::class_<StringTable>(m, "Vocabulary")
        .def(
            "__init__",
            [](StringTable* self, const Bytes& bytes, const Ints& offsets) {
                const nb::gil_scoped_release release;
                new (self) StringTable(make_vocabulary(packed(bytes, offsets)));
            },
            "bytes"_a.noconvert(), "offsets"_a.noconvert())
        .def_static("learn", &learn, "names"_a, "min_count"_a = 1)
        .def("__len__", &StringTable::size)
        .def(
            "__contains__",
            [](const StringTable& self, nb::handle name) {
                return PyUnicode_Check(name.ptr()) && self.find(utf8_of(name, [] { return std::string("name"); })) >= 0;
            },
            "name"_a)
        .def(
            "__getitem__",
            [](const StringTable& self, Index k) {
                if (k < 0 || k >= self.size()) throw nb::index_error("no such name");
                return python_string(self.name(k));
            },
            "k"_a)
        .def("__getstate__",
             [](const StringTable& self) { return std::make_pair(bytes_of(self), numpy(std::vector(self.offsets()))); })
        .def("__setstate__",
             [](StringTable& self, const std::pair<Bytes, Ints>& state) {
                 new (&self) StringTable(make_vocabulary(packed(state.first, state.second)));
             })
        .def_prop_ro("bytes", &bytes_of, automatic)
        .def_prop_ro(
            "offsets", [](const StringTable& self) { return numpy(std::vector(self.offsets())); }, automatic)
        .def("names", &names_of)
        .def(
            "ids",
            [](const StringTable& self, const nb::list& names) {
                std::vector<Index> out(names.size());
                for_each_name(names, [&](Index k, std::string_view name) { out[idx(k)] = self.find(name); });
                return numpy(std::move(out));
            },
            "names"_a)
        .def(
            "packed_ids",
            [](const StringTable& self, const Bytes& bytes, const Ints& offsets, int n_jobs) {
                Interrupt interrupt = python_interrupt();
                std::vector<Index> out;
                {
                    const nb::gil_scoped_release release;
                    out = look_up(self, packed(bytes, offsets), n_jobs, interrupt);
                }
                return numpy(std::move(out));
            },
            "bytes"_a.noconvert(), "offsets"_a.noconvert(), "n_jobs"_a = 1)
        .def(
            "starts_with",
            [](const StringTable& self, const std::vector<std::string>& prefixes) {
                std::vector<std::uint8_t> out(idx(self.size()), 0);
                for (Index k = 0; k < self.size(); ++k) {
                    for (const std::string& prefix : prefixes) {
                        if (self.name(k).starts_with(prefix)) out[idx(k)] = 1;
                    }
                }
                return numpy(std::move(out));
            },
            "prefixes"_a);

    nb::class_<NameCounts>(m, "NameCounts")
        .def(nb::init<>())
        .def("__len__", &NameCounts::size)
        .def(
            "add", [](NameCounts& self, const StringTable& block, const Ints& ids) { self.add(block, span_of(ids)); },
            "block"_a, "ids"_a.noconvert())
        .def("vocabulary", &NameCounts::vocabulary, "min_count"_a = 1);
}

}  // namespace partwise::bindings
