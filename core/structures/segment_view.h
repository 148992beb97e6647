// One sequence of a segment chain as the kernels see it.
//
// The score of a segment [s, t) with label b after one with label a, d = t - s:
//   sum of inside[u][b] over u in [s, t)  +  first[s][b] + last[t - 1][b] + length[d - 1][b] + whole[row of (s, t)][b]
//   + edge[a][b]
// where only listed segments have a row in `whole`, and a position that continues its segment reads `joined`.
// Rows are `width` long; -infinity where something is forbidden and
// behind the labels. All is divided by the temperature.
#pragma once

#include <algorithm>
#include <span>

#include "structures/width_dispatch.h"
#include "support/extremes.h"
#include "support/parallel.h"
#include "support/types.h"
#include "support/vector_math.h"

namespace partwise::segments {

// [begin, end) with a label.
struct Segment {
    Index begin;
    Index end;
    Index label;
};

// The tables of scores, or of expected counts.
template <class T>
struct TablesOf {
    T* inside{};   // T rows
    T* first{};    // T rows
    T* last{};     // T rows
    T* lengths{};  // D rows
    T* edge{};     // L rows
    T* whole{};    // a row per listed segment
};

struct View : TablesOf<const double> {
    Index length = 0;    // T
    Index n_labels = 0;  // L
    Index width = 0;
    Index longest = 0;              // D
    const double* joined{};         // T rows: `inside` of positions that continue a segment; null: as `inside`
    std::span<const Index> begins;  // of the listed segments, which are in the order of (end, begin)
    std::span<const Index> ends;

    Index first_begin(Index t) const { return std::max<Index>(0, t - longest); }
    // The listed segments that end at t are those from here to list_at(t + 1).
    Index list_at(Index t) const { return std::lower_bound(ends.begin(), ends.end(), t) - ends.begin(); }
};

// Looks for Ctrl-C, seldom enough for a loop over positions.
inline void check_now_and_then(Index t) {
    if ((t & 255) == 255) Interrupt::check_current();
}

// The largest finite value of a row; 0 if there is none.
inline double finite_max(const double* __restrict row, Index n) {
    const double high = largest(row, n);
    return high == -kInfinity ? 0.0 : high;
}

}  // namespace partwise::segments
