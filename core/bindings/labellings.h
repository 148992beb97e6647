// Labellings of all examples as (indptr, slots, counts), for the bindings of structures.
#pragma once

#include "bindings/common.h"
#include "structures/structure.h"

namespace partwise::bindings {

template <class S>
const S& checked(const S& structure, Index i) {
    check_index(i, structure.num_examples());
    return structure;
}

inline SlotView view_of(const Ints& slots, const Floats& counts) {
    check_size(counts, len(slots.size()), "counts");
    return {span_of(slots), span_of(counts)};
}

// A labelling as a tuple for Python, with its value first if one is given.
inline nb::tuple pack(const SlotCounts& labelling) { return tuple_of(labelling.slots, labelling.counts); }
inline nb::tuple pack(double value, const SlotCounts& labelling) {
    return tuple_of(value, labelling.slots, labelling.counts);
}

inline void check_label(Index label, Index n_labels, Index example, const char* what = "example ") {
    if (label < 0 || label >= n_labels) {
        throw InputError(what, example, ": label ", label, " is not in [0, ", n_labels, ")");
    }
}

// Where each sequence begins in an array of all positions, and where the last one ends.
inline std::vector<Index> starts_of(const std::vector<Index>& lengths) {
    std::vector<Index> starts{0};
    for (const Index length : lengths) starts.push_back(starts.back() + length);
    return starts;
}

// Calls labelling_of(i, labelling) for each example; returns all labellings as (indptr, slots, counts).
template <class F>
nb::tuple encode_all(Index n, F&& labelling_of) {
    std::vector<Index> indptr{0};
    std::vector<Index> slots;
    std::vector<double> counts;
    SlotCounts one;
    for (Index i = 0; i < n; ++i) {
        one.clear();
        labelling_of(i, one);
        slots.insert(slots.end(), one.slots.begin(), one.slots.end());
        counts.insert(counts.end(), one.counts.begin(), one.counts.end());
        indptr.push_back(len(slots.size()));
    }
    return tuple_of(std::move(indptr), std::move(slots), std::move(counts));
}

// Calls f(i, labelling) for each example of (indptr, slots, counts).
template <class F>
void decode_all(const Structure& s, const Ints& indptr, const Ints& slots, const Floats& counts, F&& f) {
    check_size(indptr, s.num_examples() + 1, "indptr");
    const SlotView all = view_of(slots, counts);
    for (Index i = 0; i < s.num_examples(); ++i) {
        const Index begin = indptr.data()[i];
        const Index end = indptr.data()[i + 1];
        if (begin < 0 || end < begin || end > len(slots.size())) throw InputError("indptr does not fit slots");
        f(i, SlotView{all.slots.subspan(begin, end - begin), all.counts.subspan(begin, end - begin)});
    }
}

// `encode` and `decode` of a structure whose labelling of example i is starts(structure)[i + 1] - starts(structure)[i]
// numbers: put(structure, i, numbers, labelling) checks and encodes them, take(structure, i, labelling, numbers)
// decodes.
template <class S, class Starts, class Put, class Take>
void def_numbers(nb::class_<S, Structure>& cls, const char* name, Starts starts, Put put, Take take) {
    define(cls, "encode", args(nb::arg(name).noconvert()), [=](const S& s, const Ints& numbers) {
        const std::vector<Index> at = starts(s);
        check_size(numbers, at.back(), name);
        return encode_all(s.num_examples(), [&](Index i, SlotCounts& out) { put(s, i, numbers.data() + at[i], out); });
    });
    define(cls, "decode", args("indptr"_same, "slots"_same, "counts"_a),
           [=](const S& s, const Ints& indptr, const Ints& slots, const Floats& counts) {
               const std::vector<Index> at = starts(s);
               std::vector<Index> numbers(at.back());
               decode_all(s, indptr, slots, counts,
                          [&](Index i, SlotView one) { take(s, i, one, numbers.data() + at[i]); });
               return numpy(std::move(numbers));
           });
}

}  // namespace partwise::bindings
