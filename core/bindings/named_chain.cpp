// Chains over named attributes, asked in one call: items of Python in, labels out.
//
// What a call makes is what a batch is made of, the same structure and the same feature map, so that answers are the
// same bits; what it saves is the way through Python and NumPy, which for one sentence takes longer than the work.
#include <algorithm>
#include <numeric>
#include <optional>

#include "bindings/states.h"
#include "bindings/text.h"
#include "features/segments.h"
#include "solvers/inference.h"
#include "structures/chain.h"
#include "text/string_table.h"

namespace partwise::bindings {

namespace {

// Attributes as they are read: names end to end, name k at [offsets[k], offsets[k + 1]), and their values.
struct Names {
    std::string text;
    std::vector<Index> offsets{0};
    std::vector<double> values;

    void add(std::string_view name, double value) {
        text.append(name);
        offsets.push_back(len(text.size()));
        values.push_back(value);
    }
    std::size_t size() const { return values.size(); }
    std::string_view name(std::size_t k) const {
        return std::string_view(text).substr(offsets[k], offsets[k + 1] - offsets[k]);
    }
    void clear() {
        text.clear();
        offsets.assign(1, 0);
        values.clear();
    }
};

// The items of one sequence, kept for several calls.
struct PackedItems {
    Names names;
    std::vector<Index> counts;  // attributes of each item
};

std::optional<PackedItems> pack(const nb::handle& sequence, const std::string& separator) {
    PyObject* const items = sequence.ptr();
    if (!PyList_CheckExact(items) && !PyTuple_CheckExact(items)) return {};
    PackedItems out;
    ItemReader reader(separator, true);
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items); ++k) {
        const std::size_t before = out.names.size();
        const auto add = [&](std::string_view name, double value) { out.names.add(name, value); };
        if (!reader.read(PySequence_Fast_GET_ITEM(items, k), add)) return {};
        out.counts.push_back(len(out.names.size() - before));
    }
    return out;
}

PackedItems pack_lists(const std::vector<std::pair<nb::list, std::vector<double>>>& items) {
    PackedItems out;
    for (const auto& [names, values] : items) {
        if (names.size() != values.size()) throw InputError("an item has as many values as names");
        for (std::size_t k = 0; k < values.size(); ++k) {
            out.names.add(utf8_of(names[k], [&] { return "item " + std::to_string(out.counts.size()); }), values[k]);
        }
        out.counts.push_back(len(values.size()));
    }
    return out;
}

nb::list unpack(const PackedItems& self) {
    nb::list out;
    std::size_t k = 0;
    for (const Index n : self.counts) {
        nb::list names, values;
        for (const std::size_t end = k + n; k < end; ++k) {
            names.append(python_string(self.names.name(k)));
            values.append(self.names.values[k]);
        }
        out.append(nb::make_tuple(names, values));
    }
    return out;
}

// Sequences as a chain sees them: rows of attributes, all sequences end to end.
struct ItemRows {
    std::vector<Index> lengths;  // of all sequences; some may be 0
    std::vector<Index> row_ptr{0};
    std::vector<Index> attributes;  // -1: unknown
    std::vector<double> values;     // empty: all 1
    Index unknown = 0;
};

// Reads sequences: names are collected with the GIL, and looked up without it where they are many.
class RowsReader {
   public:
    RowsReader(const StringTable& vocabulary, const std::string& separator)
        : vocabulary_(vocabulary), reader_(separator) {}

    // Empty if something is not a list or tuple of lists, tuples or `PackedItems` of items that `ItemReader` reads.
    std::optional<ItemRows> read(const nb::handle& sequences) {
        PyObject* const all = sequences.ptr();
        if (!PyList_CheckExact(all) && !PyTuple_CheckExact(all)) return {};
        Interrupt interrupt = python_interrupt();
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(all); ++k) {
            // others may change the list while the GIL is released
            const nb::object sequence = nb::borrow(PySequence_Fast_GET_ITEM(all, k));
            const PackedItems* packed = nullptr;
            if (nb::try_cast(sequence, packed, false) && packed != nullptr ? !add(*packed) : !add(sequence.ptr())) {
                return {};
            }
            if (names_.text.size() > kBlock) {
                interrupt.check();
                look_up(names_);
                names_.clear();
            }
        }
        look_up(names_);
        if (ones_) rows_.values.clear();
        return std::move(rows_);
    }

   private:
    static constexpr std::size_t kBlock = std::size_t{1} << 18;
    static constexpr std::size_t kMany = 4096;

    bool add(PyObject* items) {
        if (!PyList_CheckExact(items) && !PyTuple_CheckExact(items)) return false;
        const Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
        for (Py_ssize_t t = 0; t < n; ++t) {
            const std::size_t before = names_.size();
            const auto emit = [&](std::string_view name, double value) { names_.add(name, value); };
            if (!reader_.read(PySequence_Fast_GET_ITEM(items, t), emit)) return false;
            rows_.row_ptr.push_back(rows_.row_ptr.back() + len(names_.size() - before));
        }
        rows_.lengths.push_back(len(n));
        return true;
    }

    bool add(const PackedItems& items) {
        look_up(names_);
        names_.clear();
        for (const Index n : items.counts) rows_.row_ptr.push_back(rows_.row_ptr.back() + n);
        rows_.lengths.push_back(len(items.counts.size()));
        if (!std::all_of(items.names.values.begin(), items.names.values.end(),
                         [](double value) { return std::isfinite(value); })) {
            return false;
        }
        look_up(items.names);
        return true;
    }

    void look_up(const Names& names) {
        if (names.size() == 0) return;
        // For a sentence's names, handing the GIL over and back takes about as long as looking them up.
        std::optional<nb::gil_scoped_release> release;
        if (names.size() > kMany) release.emplace();
        ids_.resize(names.size());
        vocabulary_.find_all(names.text, names.offsets, ids_.data());
        rows_.attributes.insert(rows_.attributes.end(), ids_.begin(), ids_.end());
        rows_.values.insert(rows_.values.end(), names.values.begin(), names.values.end());
        rows_.unknown += std::count(ids_.begin(), ids_.end(), -1);
        ones_ = ones_ && std::all_of(names.values.begin(), names.values.end(), [](double x) { return x == 1.0; });
    }

    const StringTable& vocabulary_;
    ItemReader reader_;
    Names names_;
    std::vector<std::int32_t> ids_;
    ItemRows rows_;
    bool ones_ = true;
};

// A tied chain with its vocabulary and its weights. Weights are those of the array that was given: what changes them
// changes the answers.
class NamedChain {
   public:
    NamedChain(std::shared_ptr<const StringTable> vocabulary, std::string separator,
               std::shared_ptr<const RowLayout> layout, nb::tuple labels, std::vector<std::uint8_t> transition_mask,
               bool ends, Follow follow, const Floats& weights)
        : vocabulary_(std::move(vocabulary)),
          separator_(std::move(separator)),
          layout_(std::move(layout)),
          labels_(std::move(labels)),
          mask_(std::move(transition_mask)),
          ends_(ends),
          follow_(std::move(follow)),
          weights_(weights) {
        if (vocabulary_->size() != layout_->num_attributes()) {
            throw InputError("a vocabulary of ", vocabulary_->size(), " names, a layout of ", layout_->num_attributes(),
                             " attributes");
        }
        const Prepared none(*this, {});  // checks the rest
        check_weights(none.features, weights_);
    }

    std::optional<ItemRows> read(const nb::handle& sequences) const {
        return RowsReader(*vocabulary_, separator_).read(sequences);
    }

    nb::list best(const ItemRows& rows, int n_jobs) const {
        Interrupt interrupt = python_interrupt();
        std::vector<Index> labels;
        {
            const nb::gil_scoped_release release;
            const Prepared made(*this, rows);
            std::vector<Index> all(made.chain.num_examples());
            std::iota(all.begin(), all.end(), Index{0});
            const Decoded found = decode(made.chain, made.features, weights_.data(), all, n_jobs, interrupt);
            labels.resize(rows.row_ptr.size() - 1);
            Index* next = labels.data();
            for (const Index i : all) {
                const std::size_t begin = found.indptr[i];
                const std::size_t size = found.indptr[i + 1] - begin;
                made.chain.labels_of(i, {{found.slots.data() + begin, size}, {found.counts.data() + begin, size}},
                                     next);
                next += made.chain.lengths()[i];
            }
        }
        nb::list out;
        const Index* next = labels.data();
        for (const Index length : rows.lengths) {
            nb::object own = nb::steal(PyList_New(static_cast<Py_ssize_t>(length)));
            if (!own) throw nb::python_error();
            for (Index t = 0; t < length; ++t, ++next) {
                PyObject* const label = PyTuple_GET_ITEM(labels_.ptr(), static_cast<Py_ssize_t>(*next));
                Py_INCREF(label);
                PyList_SET_ITEM(own.ptr(), static_cast<Py_ssize_t>(t), label);
            }
            out.append(own);
        }
        return out;
    }

    // Of every sequence the probabilities of its labels, (length, n_labels), and smax.
    nb::tuple sums(const ItemRows& rows, double temperature, int n_jobs) const {
        check_temperature(temperature);
        Interrupt interrupt = python_interrupt();
        std::vector<double> marginals, values;
        Index width = 0;
        std::vector<Index> offsets;
        {
            const nb::gil_scoped_release release;
            const Prepared made(*this, rows);
            offsets = made.chain.slot_offsets();
            width = made.chain.width();
            marginals.resize(offsets.back());
            values.resize(made.chain.num_examples());
            infer(made.chain, made.features, weights_.data(), temperature, n_jobs, interrupt, marginals.data(),
                  values.data(), nullptr);
        }
        nb::list out;
        Index i = 0;
        const std::size_t n = labels_.size();
        for (const Index length : rows.lengths) {
            std::vector<double> own(length * n);
            if (length > 0) {
                const double* from = marginals.data() + offsets[i++];
                for (Index t = 0; t < length; ++t) std::copy_n(from + t * width, n, own.data() + t * n);
            }
            out.append(numpy<2>(std::move(own), {idx(length), n}));
        }
        return nb::make_tuple(out, numpy(spread(rows, values)));
    }

    // The score of these labels of every sequence, end to end as numbers.
    NumPy<double> values(const ItemRows& rows, const Ints& labels, int n_jobs) const {
        check_size(labels, len(rows.row_ptr.size()) - 1, "labels");
        for (const Index label : span_of(labels)) {
            if (label < 0 || label >= len(labels_.size())) throw InputError("no label ", label);
        }
        Interrupt interrupt = python_interrupt();
        std::vector<double> found;
        {
            const nb::gil_scoped_release release;
            const Prepared made(*this, rows);
            std::vector<SlotCounts> owners(made.chain.num_examples());
            std::vector<SlotView> labellings;
            const Index* next = labels.data();
            for (Index i = 0; i < made.chain.num_examples(); ++i) {
                made.chain.labelling_of(i, next, owners[i]);
                labellings.push_back({owners[i].slots, owners[i].counts});
                next += made.chain.lengths()[i];
            }
            found.resize(owners.size());
            labelling_values(made.chain, made.features, weights_.data(), labellings, n_jobs, interrupt, found.data());
        }
        return numpy(spread(rows, found));
    }

   private:
    // The batch of those sequences that have items.
    struct Prepared {
        Chain chain;
        LinearMap features;

        Prepared(const NamedChain& self, const ItemRows& rows)
            : Prepared(self, rows, [&] {
                  std::vector<Index> some;
                  std::copy_if(rows.lengths.begin(), rows.lengths.end(), std::back_inserter(some),
                               [](Index length) { return length > 0; });
                  return some;
              }()) {}

       private:
        Prepared(const NamedChain& self, const ItemRows& rows, const std::vector<Index>& lengths)
            : chain(lengths, len(self.labels_.size()), true, self.ends_), features(segments(self, rows, lengths)) {
            if (!self.follow_.empty()) chain.set_follow(self.follow_);
        }

        static std::vector<std::shared_ptr<const Segment>> segments(const NamedChain& self, const ItemRows& rows,
                                                                    const std::vector<Index>& lengths) {
            const Index n_labels = len(self.labels_.size());
            const Index width = padded_width(n_labels);
            if (self.layout_->n_columns() != n_labels || self.layout_->width() != width) {
                throw InputError("the layout has ", self.layout_->n_columns(), " columns, there are ", n_labels,
                                 " labels");
            }
            std::vector<Index> example_ptr{0};
            std::vector<Index> uses;
            for (const Index length : lengths) {
                example_ptr.push_back(example_ptr.back() + length);
                uses.push_back(length - 1);
            }
            const AttributeTable table{example_ptr, rows.row_ptr, rows.attributes, rows.values};
            std::vector<std::shared_ptr<const Segment>> out{
                AttributeSegment::make(self.layout_, table, true),
                std::make_shared<SharedSegment>(n_labels * width, std::move(uses), self.mask_)};
            if (self.ends_) {
                out.push_back(std::make_shared<SharedSegment>(2 * width, std::vector<Index>(lengths.size(), 2),
                                                              std::vector<std::uint8_t>{}));
            }
            return out;
        }
    };

    // Values of the sequences that have items as values of all; 0 for the others.
    static std::vector<double> spread(const ItemRows& rows, const std::vector<double>& values) {
        std::vector<double> out(rows.lengths.size(), 0.0);
        std::size_t i = 0;
        for (std::size_t k = 0; k < out.size(); ++k) {
            if (rows.lengths[k] > 0) out[k] = values[i++];
        }
        return out;
    }

    std::shared_ptr<const StringTable> vocabulary_;
    std::string separator_;
    std::shared_ptr<const RowLayout> layout_;
    nb::tuple labels_;
    std::vector<std::uint8_t> mask_;
    bool ends_;
    Follow follow_;
    Floats weights_;
};

}  // namespace

void bind_named_chain(nb::module_& m) {
    nb::class_<PackedItems>(m, "PackedItems")
        .def_static("read", &pack, "sequence"_a, "separator"_a)
        .def_static("of_lists", &pack_lists, "items"_a)
        .def("__len__", [](const PackedItems& self) { return self.counts.size(); })
        .def("lists", &unpack)
        .def("__getstate__", [](const PackedItems& self) { return nb::make_tuple(unpack(self)); })
        .def("__setstate__",
             [](PackedItems& self, const std::tuple<std::vector<std::pair<nb::list, std::vector<double>>>>& state) {
                 new (&self) PackedItems(pack_lists(std::get<0>(state)));
             });

    nb::class_<ItemRows>(m, "ItemRows")
        .def_prop_ro("lengths", [](const ItemRows& self) { return self.lengths; })
        .def_prop_ro("unknown", [](const ItemRows& self) { return std::pair(self.unknown, self.attributes.size()); });

    nb::class_<NamedChain>(m, "NamedChain")
        .def(
            "__init__",
            [](NamedChain* self, StringTable& vocabulary, std::string separator, RowLayout& layout,
               const nb::tuple& labels, const Bytes& transition_mask, bool ends,
               const std::optional<std::tuple<Bytes, Bytes, Bytes>>& follow, const Floats& weights) {
                Follow rule;
                if (follow) {
                    const auto& [pairs, first, last] = *follow;
                    rule = {vector_of(pairs), vector_of(first), vector_of(last)};
                }
                new (self) NamedChain(share(vocabulary), std::move(separator), share(layout), labels,
                                      vector_of(transition_mask), ends, std::move(rule), weights);
            },
            "vocabulary"_a, "separator"_a, "layout"_a, "labels"_a, "transition_mask"_a, "ends"_a, "follow"_a.none(),
            "weights"_same)
        .def("read", &NamedChain::read, "sequences"_a)
        .def("best", &NamedChain::best, "rows"_a, "n_jobs"_a = 1)
        .def("sums", &NamedChain::sums, "rows"_a, "temperature"_a = 1.0, "n_jobs"_a = 1)
        .def("values", &NamedChain::values, "rows"_a, "labels"_same, "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
