// Labellings of all examples as (indptr, slots, counts), for the bindings of structures.
#pragma once

#include "bindings/common.h"
#include "structures/structure.h"

namespace partwise::bindings {

inline SlotView view_of(const Ints& slots, const Floats& counts) {
    check_size(counts, len(slots.size()), "counts");
    return {span_of(slots), span_of(counts)};
}

// (indptr, slots, counts) built example by example.
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
    return nb::make_tuple(numpy(std::move(indptr)), numpy(std::move(slots)), numpy(std::move(counts)));
}

// f(i, view of example i's labelling)
template <class F>
void decode_all(const Structure& s, const Ints& indptr, const Ints& slots, const Floats& counts, F&& f) {
    check_size(indptr, s.num_examples() + 1, "indptr");
    const SlotView all = view_of(slots, counts);
    for (Index i = 0; i < s.num_examples(); ++i) {
        const Index begin = indptr.data()[i];
        const Index end = indptr.data()[i + 1];
        if (begin < 0 || end < begin || end > len(slots.size())) throw InputError("indptr does not fit slots");
        f(i,
          SlotView{all.slots.subspan(idx(begin), idx(end - begin)), all.counts.subspan(idx(begin), idx(end - begin))});
    }
}

}  // namespace partwise::bindings
