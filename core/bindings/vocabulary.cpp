#include "text/vocabulary.h"

#include <optional>

#include "bindings/common.h"
#include "bindings/items.h"
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

// Counts names as they come, and numbers them by frequency in the end.
class Learner {
   public:
    void add(std::string_view name) {
        const Index id = seen_.add(name);
        if (id == len(counts_.size())) counts_.push_back(0);
        ++counts_[idx(id)];
        ids_.push_back(id);
    }

    // The names counted at least min_count times, and the numbers of all that came.
    std::pair<StringTable, std::vector<Index>> finish(Index min_count) {
        std::vector<Index> rank;
        StringTable table = by_frequency(seen_, counts_, {}, min_count, rank);
        for (Index& id : ids_) id = rank[idx(id)];
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
        .def_static("learn_items", &learn_items, "items"_a, "separator"_a, "min_count"_a = 1)
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
        .def("read_items", &read_items, "items"_a, "separator"_a)
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
