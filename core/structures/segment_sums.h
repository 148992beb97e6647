// Maxima and sums over the segmentations of one sequence in log space, for masks and any spread of scores. Memory: a
// few rows per position and one window of D rows.
//
//   end_t(b)   = last[t-1][b] + (sum over s of open_s(b) + inside[s..t)(b) + lengths[t-s-1][b] + whole)
//   open_t(b)  = first[t][b] + (sum over a of end_t(a) + edge[a][b]);     open_0 = first[0]
//   log Z      = sum over b of end_T(b)
// with "sum" the maximum, or the log of the sum of exponentials. Sums of `inside` are running ones over the window, so
// that nothing is subtracted. As every labelling uses each position once, inside[t] may be shifted by a constant of
// the position: by the largest of inside[t] and of end_t, so that values stay small and long sequences lose no digits.
// With tangents every value carries its derivative along a direction of scores.
#pragma once

#include "structures/chain_kernels.h"

namespace partwise::segments {

using chain::check_now_and_then;

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

// One sequence as the kernels see it.
// The score of a segment [s, t) with label b after one with label a, d = t - s:
//   sum of inside[u][b] over u in [s, t)  +  first[s][b] + last[t - 1][b] + length[d - 1][b] + whole[row of (s, t)][b]
//   + edge[a][b]
// where only listed segments have a row in `whole`, and a position that continues its segment reads `joined`.
// Rows are `width` long; forbidden entries and padding are -infinity. All scores are divided by the temperature.
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

// The largest finite value of a row; 0 if there is none.
inline double finite_max(const double* __restrict row, Index n) {
    const double high = largest(row, n);
    return high == -kInfinity ? 0.0 : high;
}

enum Mode { kBest, kSum, kTangent };

// The results of the pass over prefixes. Tangents are null without a direction.
struct Prefixes {
    double* end{};     // T + 1 rows; row 0 is not used
    double* open{};    // T rows
    double* inside{};  // T rows: shifted
    double* joined{};  // likewise; may be the same
    double* end_d{};
    double* open_d{};
    double* inside_d{};
    double log_partition = 0;
};

template <int W, Mode mode>
class Forward {
   public:
    // d: the direction, for kTangent.
    Forward(const View& v, const View& d, Workspace::Frame& frame) : v_(v), d_(d), width_(row_width<W>(v)) {
        const Index size = v.length * width_;
        out_.end = frame.take(size + width_);
        out_.open = frame.take(size);
        out_.inside = frame.take(size);
        out_.joined = v.joined ? frame.take(size) : out_.inside;
        if constexpr (mode == kTangent) {
            out_.end_d = frame.take(size + width_);
            out_.open_d = frame.take(size);
            out_.inside_d = frame.take(size);
            window_d_ = frame.take(v.longest * width_);
        }
        window_ = frame.take(v.longest * width_);
        for (double** row : {&high_, &sum_, &moment_}) *row = frame.take(width_);
    }

    Prefixes run() {
        copy(v_.first, out_.open, width_);
        if constexpr (mode == kTangent) copy(d_.first, out_.open_d, width_);
        double shift = 0;
        double total = 0;
        double shift_d = 0;
        Index listed = 0;
        for (Index t = 0; t < v_.length; ++t) {
            check_now_and_then(t);
            shift += finite_max(v_.inside + t * width_, width_);
            total += shift;
            enter(t, shift, shift_d);
            listed = close(t + 1, listed);
            const double* end = out_.end + (t + 1) * width_;
            shift = finite_max(end, width_);
            if constexpr (mode == kTangent) shift_d = out_.end_d[(t + 1) * width_ + best_label(end)];
            if (t + 1 < v_.length) open(t + 1);
        }
        const double* end = out_.end + v_.length * width_;
        double sum = 0;
        if constexpr (mode != kBest) {
            for (Index b = 0; b < width_; ++b) sum += fast_exp(end[b] - shift);
            total += std::log(sum);
        }
        const bool none = std::all_of(end, end + v_.n_labels, [](double x) { return x == -kInfinity; });
        out_.log_partition = none ? -kInfinity : total + shift;
        return out_;
    }

   private:
    Index best_label(const double* row) const { return std::max_element(row, row + v_.n_labels) - row; }

    // Position t joins all open segments and the one that begins at t.
    void enter(Index t, double shift, double shift_d) {
        shift_row(v_.inside + t * width_, shift, out_.inside + t * width_);
        if (v_.joined) shift_row(v_.joined + t * width_, shift, out_.joined + t * width_);
        copy(out_.open + t * width_, window_ + t % v_.longest * width_, width_);
        if constexpr (mode == kTangent) {
            shift_row(d_.inside + t * width_, shift_d, out_.inside_d + t * width_);
            copy(out_.open_d + t * width_, window_d_ + t % v_.longest * width_, width_);
        }
        for (Index s = v_.first_begin(t + 1); s <= t; ++s) {
            axpy(1.0, (s < t ? out_.joined : out_.inside) + t * width_, window_ + s % v_.longest * width_, width_);
            if constexpr (mode == kTangent) {
                axpy(1.0, out_.inside_d + t * width_, window_d_ + s % v_.longest * width_, width_);
            }
        }
    }
    void shift_row(const double* __restrict from, double by, double* __restrict to) const {
        for (Index b = 0; b < width_; ++b) to[b] = from[b] - by;
    }

    // f(window row of s, row of its length, row of `whole` or null, numbers of these rows) for the segments [s, t).
    template <class F>
    Index for_segments(Index t, Index listed, F&& f) const {
        for (Index s = v_.first_begin(t); s < t; ++s) {
            const bool in_list = listed < len(v_.ends.size()) && v_.ends[listed] == t && v_.begins[listed] == s;
            f(s % v_.longest * width_, (t - s - 1) * width_, in_list ? listed * width_ : Index{-1});
            listed += in_list;
        }
        return listed;
    }

    // Segments that end before position t; returns the first listed segment that ends later.
    Index close(Index t, Index listed) {
        double* __restrict end = out_.end + t * width_;
        const double* __restrict last = v_.last + (t - 1) * width_;
        fill(high_, width_, -kInfinity);
        const Index next = for_segments(t, listed, [&](Index row, Index length, Index whole) {
            double* __restrict x = window_ + row;  // holds the sum for this end until the next position
            const double* __restrict own = v_.lengths + length;
            double* __restrict high = high_;
            for (Index b = 0; b < width_; ++b) {
                const double value = x[b] + own[b] + (whole < 0 ? 0.0 : v_.whole[whole + b]);
                high[b] = value > high[b] ? value : high[b];
            }
        });
        if constexpr (mode == kBest) {
            for (Index b = 0; b < width_; ++b) end[b] = last[b] + high_[b];
            return next;
        }
        fill(sum_, width_, 0.0);
        fill(moment_, width_, 0.0);
        for (Index b = 0; b < width_; ++b) high_[b] = high_[b] == -kInfinity ? 0.0 : high_[b];
        for_segments(t, listed, [&](Index row, Index length, Index whole) {
            const double* __restrict x = window_ + row;
            const double* __restrict own = v_.lengths + length;
            double* __restrict sum = sum_;
            double* __restrict moment = moment_;
            for (Index b = 0; b < width_; ++b) {
                const double value = x[b] + own[b] + (whole < 0 ? 0.0 : v_.whole[whole + b]);
                const double weight = fast_exp(value - high_[b]);
                sum[b] += weight;
                if constexpr (mode == kTangent) {
                    const double value_d =
                        window_d_[row + b] + d_.lengths[length + b] + (whole < 0 ? 0.0 : d_.whole[whole + b]);
                    moment[b] += weight * value_d;
                }
            }
        });
        for (Index b = 0; b < width_; ++b) end[b] = last[b] + high_[b] + std::log(sum_[b]);
        if constexpr (mode == kTangent) {
            double* __restrict end_d = out_.end_d + t * width_;
            const double* __restrict last_d = d_.last + (t - 1) * width_;
            for (Index b = 0; b < width_; ++b) end_d[b] = last_d[b] + (sum_[b] > 0.0 ? moment_[b] / sum_[b] : 0.0);
        }
        return next;
    }

    void open(Index t) {
        const double* end = out_.end + t * width_;
        double* __restrict out = out_.open + t * width_;
        const double* __restrict first = v_.first + t * width_;
        double* __restrict high = high_;
        fill(high_, width_, -kInfinity);
        for (Index a = 0; a < v_.n_labels; ++a) {
            const double* __restrict edge = v_.edge + a * width_;
            for (Index b = 0; b < width_; ++b) high[b] = std::max(high[b], end[a] + edge[b]);
        }
        if constexpr (mode == kBest) {
            for (Index b = 0; b < width_; ++b) out[b] = first[b] + high[b];
            return;
        }
        double* __restrict sum = sum_;
        double* __restrict moment = moment_;
        fill(sum_, width_, 0.0);
        fill(moment_, width_, 0.0);
        for (Index b = 0; b < width_; ++b) high[b] = high[b] == -kInfinity ? 0.0 : high[b];
        for (Index a = 0; a < v_.n_labels; ++a) {
            const double* __restrict edge = v_.edge + a * width_;
            for (Index b = 0; b < width_; ++b) {
                const double weight = fast_exp(end[a] + edge[b] - high[b]);
                sum[b] += weight;
                if constexpr (mode == kTangent)
                    moment[b] += weight * (out_.end_d[t * width_ + a] + d_.edge[a * width_ + b]);
            }
        }
        for (Index b = 0; b < width_; ++b) out[b] = first[b] + high[b] + std::log(sum[b]);
        if constexpr (mode == kTangent) {
            for (Index b = 0; b < width_; ++b) {
                out_.open_d[t * width_ + b] = d_.first[t * width_ + b] + (sum[b] > 0.0 ? moment[b] / sum[b] : 0.0);
            }
        }
    }

    const View& v_;
    const View& d_;
    Index width_;
    Prefixes out_;
    double* window_{};  // row s % D: open_s and inside of the positions since
    double* window_d_{};
    double* high_{};
    double* sum_{};
    double* moment_{};
};

}  // namespace partwise::segments
