// Predictions of chains over named attributes in one call: Python's items in, labels out.
//
// A call makes the same structure and feature map as a batch, so the results have the same bits. It saves the detour
// through Python and NumPy, which for one sentence takes longer than the prediction.
#include <numeric>
#include <optional>

#include "bindings/labellings.h"
#include "bindings/states.h"
#include "bindings/text.h"
#include "features/segments.h"
#include "solvers/inference.h"
#include "structures/chain.h"

namespace partwise::bindings {

namespace {

// Attributes as they are read: name k is text[offsets[k], offsets[k + 1]), with its value.
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

// The items of one sequence, read once and used in several calls.
struct PackedItems {
    Names names;
    std::vector<Index> counts;  // attributes of each item
};

// Adds the names of a sequence's items, and how many each has; false if it is not a list or tuple of items that
// `reader` reads.
bool read_items(PyObject* sequence, ItemReader& reader, Names& names, std::vector<Index>& counts) {
    const auto items = members_of(sequence);
    if (!items) return false;
    for (PyObject* const item : *items) {
        const std::size_t before = names.size();
        if (!reader.read(item, [&](std::string_view name, double value) { names.add(name, value); })) return false;
        counts.push_back(len(names.size() - before));
    }
    return true;
}

std::optional<PackedItems> pack_items(const nb::handle& sequence, const std::string& separator) {
    PackedItems out;
    ItemReader reader(separator, true);
    if (!read_items(sequence.ptr(), reader, out.names, out.counts)) return {};
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

// Sequences as rows of attributes, one row per item; all sequences are concatenated.
struct ItemRows {
    std::vector<Index> lengths;  // of all sequences; some may be 0
    std::vector<Index> row_ptr{0};
    std::vector<Index> attributes;  // -1: unknown
    std::vector<double> values;     // empty: all 1
    Index unknown = 0;
};

// Reads sequences: collects names with the GIL and looks them up, without the GIL if they are many.
class RowsReader {
   public:
    RowsReader(const StringTable& vocabulary, const std::string& separator)
        : vocabulary_(vocabulary), reader_(separator) {}

    // Empty if something is not a list or tuple of lists, tuples or `PackedItems` of items that `ItemReader` reads.
    std::optional<ItemRows> read(const nb::handle& sequences) {
        if (!members_of(sequences.ptr())) return {};
        Interrupt interrupt = python_interrupt();
        for (std::size_t k = 0; k < members_of(sequences.ptr())->size(); ++k) {
            const nb::object sequence = nb::borrow((*members_of(sequences.ptr()))[k]);
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
        counts_.clear();
        if (!read_items(items, reader_, names_, counts_)) return false;
        add_sequence(counts_);
        return true;
    }

    void add_sequence(const std::vector<Index>& counts) {
        for (const Index n : counts) rows_.row_ptr.push_back(rows_.row_ptr.back() + n);
        rows_.lengths.push_back(len(counts.size()));
    }

    bool add(const PackedItems& items) {
        look_up(names_);
        names_.clear();
        add_sequence(items.counts);
        if (!all_finite(items.names.values.data(), len(items.names.size()))) return false;
        look_up(items.names);
        return true;
    }

    void look_up(const Names& names) {
        if (names.size() == 0) return;
        // The GIL is kept for few names: to release it takes about as long as to look up a sentence's names.
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
    std::vector<Index> counts_;  // scratch
    std::vector<std::int32_t> ids_;
    ItemRows rows_;
    bool ones_ = true;
};

// A tied chain with its vocabulary and its weights. The weights are not copied, so changes of the array count.
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
        std::vector<Index> labels(rows.row_ptr.size() - 1);
        run_kernel([&](Interrupt& interrupt) {
            const Prepared made(*this, rows);
            std::vector<Index> all(made.chain.num_examples());
            std::iota(all.begin(), all.end(), Index{0});
            const Decoded found = decode(made.chain, made.features, weights_.data(), all, n_jobs, interrupt);
            Index* next = labels.data();
            for (const Index i : all) {
                const std::size_t begin = found.indptr[i];
                const std::size_t size = found.indptr[i + 1] - begin;
                made.chain.labels_of(i, {{found.slots.data() + begin, size}, {found.counts.data() + begin, size}},
                                     next);
                next += made.chain.lengths()[i];
            }
        });
        nb::list out;
        const Index* next = labels.data();
        for (const Index length : rows.lengths) {
            out.append(list_of(
                length, [&](Index) { return PyTuple_GET_ITEM(labels_.ptr(), static_cast<Py_ssize_t>(*next++)); }));
        }
        return out;
    }

    // For every sequence the probabilities of its labels (length x n_labels), and the log partition of each.
    nb::tuple sums(const ItemRows& rows, double temperature, int n_jobs) const {
        check_temperature(temperature);
        std::vector<double> marginals, values;
        Index width = 0;
        std::vector<Index> offsets;
        run_kernel([&](Interrupt& interrupt) {
            const Prepared made(*this, rows);
            offsets = made.chain.slot_offsets();
            width = made.chain.width();
            marginals.resize(offsets.back());
            values.resize(made.chain.num_examples());
            infer(made.chain, made.features, weights_.data(), temperature, n_jobs, interrupt, marginals.data(),
                  values.data(), nullptr);
        });
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

    // The scores of these labellings; labels are numbers, those of all sequences concatenated.
    NumPy<double> values(const ItemRows& rows, const Ints& labels, int n_jobs) const {
        check_size(labels, len(rows.row_ptr.size()) - 1, "labels");
        for (const Index label : span_of(labels)) {
            if (label < 0 || label >= len(labels_.size())) throw InputError("no label ", label);
        }
        std::vector<double> found;
        run_kernel([&](Interrupt& interrupt) {
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
        });
        return numpy(spread(rows, found));
    }

   private:
    // Structure and feature map of the sequences that have items.
    struct Prepared {
        Chain chain;
        LinearMap features;

        Prepared(const NamedChain& self, const ItemRows& rows)
            : chain(filled(rows.lengths), len(self.labels_.size()), true, self.ends_),
              features(self.segments(rows, chain)) {
            if (!self.follow_.empty()) chain.set_follow(self.follow_);
        }
        static std::vector<Index> filled(std::vector<Index> lengths) {
            std::erase(lengths, 0);
            return lengths;
        }
    };

    std::vector<std::shared_ptr<const Segment>> segments(const ItemRows& rows, const Chain& chain) const {
        if (layout_->n_columns() != chain.n_labels() || layout_->width() != chain.width()) {
            throw InputError("the layout has ", layout_->n_columns(), " columns, there are ", chain.n_labels(),
                             " labels");
        }
        const std::vector<Index> example_ptr = starts_of(chain.lengths());
        std::vector<Index> uses;
        for (const Index length : chain.lengths()) uses.push_back(length - 1);
        const AttributeTable table{example_ptr, rows.row_ptr, rows.attributes, rows.values};
        std::vector<std::shared_ptr<const Segment>> out{
            AttributeSegment::make(layout_, table, true),
            std::make_shared<SharedSegment>(chain.n_labels() * chain.width(), std::move(uses), mask_)};
        if (ends_) {
            out.push_back(std::make_shared<SharedSegment>(
                2 * chain.width(), std::vector<Index>(chain.lengths().size(), 2), std::vector<std::uint8_t>{}));
        }
        return out;
    }

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
        .def_static("read", &pack_items, "sequence"_a, "separator"_a)
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

    nb::class_<NamedChain> named_chain(m, "NamedChain");
    define(named_chain, "__init__",
           args("vocabulary"_a, "separator"_a, "layout"_a, "labels"_a, "transition_mask"_a, "ends"_a, "follow"_a.none(),
                "weights"_same),
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
           });
    named_chain.def("read", &NamedChain::read, "sequences"_a)
        .def("best", &NamedChain::best, "rows"_a, "n_jobs"_a = 1)
        .def("sums", &NamedChain::sums, "rows"_a, "temperature"_a = 1.0, "n_jobs"_a = 1)
        .def("values", &NamedChain::values, "rows"_a, "labels"_same, "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
