// Sums over the segmentations of one sequence in scaled probabilities, without logarithms: the fast special case of
// segment_sums.h, which tests compare it with.
//
// A state (open segment or end) far below the best one at its position matters only if its future is better. But every
// state can end at its position and continue as any other state does. That costs at most one more `last`, `first`,
// `edge` and `lengths`, and another length and listed segment on either side. So while the largest absolute values,
//   first + last + edge + 3 (lengths + whole),
// stay below kSafeReach and none is masked, values that underflow are negligible. Scores of `inside` are not limited.
//   S_t(b)    = sum over s of open_s(b) I[s..t)(b) Len(t - s, b) X(s, t, b)
//   end_t(b)  = S_t(b) La_{t-1}(b);      q_t(b) = sum_a end_t(a) E(a, b);      open_t(b) = q_t(b) F_t(b)
// Backward, P: probabilities of ends and of begins,
//   p(s, t, b) = open_s(b) I[s..t)(b) Len X  P_end_t(b) / S_t(b)
//   r_t(b)     = P_begin_t(b) / q_t(b);  P_end_t(a) = end_t(a) sum_b E(a, b) r_t(b);   edges: E .* sum_t end_t r_t'
// I is divided by the largest of inside_t and of end_t, which every labelling uses once.
#pragma once

#include "structures/segment_masses.h"

namespace partwise::segments {

constexpr double kSafeReach = 300.0;

// The largest absolute value; 0 where it is -infinity.
inline double reach(const double* __restrict x, Index n) {
    double high = 0;
#pragma omp simd reduction(max : high)
    for (Index k = 0; k < n; ++k) {
        const double size = x[k] == -kInfinity ? 0.0 : std::fabs(x[k]);
        high = size > high ? size : high;
    }
    return high;
}

// Whether scaled sums are accurate. No table of the view but `inside` may be masked.
inline bool is_safe(const View& v) {
    const Index rows = v.length * v.width;
    const double lengths = reach(v.lengths, v.longest * v.width) + reach(v.whole, len(v.ends.size()) * v.width);
    return reach(v.first, rows) + reach(v.last, rows) + reach(v.edge, v.n_labels * v.width) + 3.0 * lengths <=
           kSafeReach;
}

template <int W>
class Scaled {
   public:
    Scaled(const View& v, bool backward, Workspace::Frame& frame) : v_(v), width_(row_width<W>(v)) {
        const Index size = v.length * width_;
        for (double** table : {&inside_, &open_, &q_}) *table = frame.take(size);
        for (double** table : {&end_, &sum_}) *table = frame.take(size + width_);
        window_ = frame.take(v.longest * width_);
        lengths_ = exponentials(v.lengths, v.longest, frame);
        edge_ = exponentials(v.edge, v.n_labels, frame);
        whole_ = exponentials(v.whole, len(v.ends.size()), frame);
        row_ = frame.take(width_);
        if (!backward) return;
        edge_t_ = frame.take(v.n_labels * width_);
        chain::transpose(edge_, v.n_labels, width_, edge_t_);
    }

    // Returns log Z.
    double forward() {
        double total = 0;
        double high = 1.0;
        Index listed = 0;
        exponentiate(v_.first, open_, 0.0);
        for (Index t = 0; t < v_.length; ++t) {
            check_now_and_then(t);
            const double shift = finite_max(v_.inside + t * width_, width_) + std::log(high);
            total += shift;
            exponentiate(v_.inside + t * width_, inside_ + t * width_, shift);
            listed = close(t + 1, listed);
            const double* end = end_ + (t + 1) * width_;
            high = largest(end, width_);
            if (high == 0.0) return -kInfinity;  // the mask leaves no label for a position
            if (t + 1 == v_.length) break;
            double* __restrict q = q_ + (t + 1) * width_;
            double* __restrict open = open_ + (t + 1) * width_;
            chain::combine_rows<W>(end, edge_, v_.n_labels, width_, q);
            exponentiate(v_.first + (t + 1) * width_, open, 0.0);
            for (Index b = 0; b < width_; ++b) open[b] *= q[b];
        }
        const double* end = end_ + v_.length * width_;
        double sum = 0;
        for (Index b = 0; b < v_.n_labels; ++b) sum += end[b];
        return total + std::log(sum);
    }

    // Expected counts, in tables of zeros.
    void backward(const Tables& out) {
        const Index T = v_.length;
        const double* end = end_ + T * width_;
        double sum = 0;
        for (Index b = 0; b < v_.n_labels; ++b) sum += end[b];
        for (Index b = 0; b < v_.n_labels; ++b) out.last[(T - 1) * width_ + b] = end[b] / sum;
        Index listed = len(v_.ends.size());
        for (Index t = T; t > 0; --t) {
            check_now_and_then(t);
            double* __restrict ends = out.last + (t - 1) * width_;
            if (t < T) {
                const double* __restrict begins = out.first + t * width_;
                double* __restrict r = q_ + t * width_;
                const double* __restrict own = end_ + t * width_;
                for (Index b = 0; b < width_; ++b) r[b] = r[b] > 0.0 ? begins[b] / r[b] : 0.0;
                chain::combine_rows<W>(r, edge_t_, v_.n_labels, width_, ends);
                for (Index a = 0; a < width_; ++a) ends[a] *= own[a];
            }
            listed = hand_to_begins(t, listed, ends);
            spread<W>(v_, t, listed, window_, row_, out);
        }
        chain::sum_products<W>(end_ + width_, width_, q_ + width_, width_, T - 1, v_.n_labels, width_, edge_, out.edge);
    }

   private:
    void exponentiate(const double* __restrict from, double* __restrict to, double shift) const {
        for (Index b = 0; b < width_; ++b) to[b] = fast_exp(from[b] - shift);
    }
    double* exponentials(const double* from, Index rows, Workspace::Frame& frame) const {
        double* to = frame.take(rows * width_);
        for (Index k = 0; k < rows; ++k) exponentiate(from + k * width_, to + k * width_, 0.0);
        return to;
    }

    Index close(Index t, Index listed) {
        const double* __restrict inside = inside_ + (t - 1) * width_;
        double* __restrict sum = sum_ + t * width_;
        double* __restrict end = end_ + t * width_;
        copy(open_ + (t - 1) * width_, window_ + (t - 1) % v_.longest * width_, width_);
        fill(sum, width_, 0.0);
        for (Index s = v_.first_begin(t), at = s % v_.longest; s < t; ++s, at = at + 1 < v_.longest ? at + 1 : 0) {
            double* __restrict row = window_ + at * width_;
            const double* __restrict length = lengths_ + (t - s - 1) * width_;
            for (Index b = 0; b < width_; ++b) row[b] *= inside[b];
            if (listed < len(v_.ends.size()) && v_.ends[listed] == t && v_.begins[listed] == s) {
                const double* __restrict whole = whole_ + listed * width_;
                for (Index b = 0; b < width_; ++b) sum[b] += row[b] * length[b] * whole[b];
                ++listed;
            } else {
                for (Index b = 0; b < width_; ++b) sum[b] += row[b] * length[b];
            }
        }
        exponentiate(v_.last + (t - 1) * width_, end, 0.0);
        for (Index b = 0; b < width_; ++b) end[b] *= sum[b];
        return listed;
    }

    // Writes p(s, t, .) to row s - first_begin(t) of the window, which is no longer needed.
    Index hand_to_begins(Index t, Index listed, const double* __restrict ends) {
        const Index low = v_.first_begin(t);
        const double* __restrict sum = sum_ + t * width_;
        double* __restrict run = row_;
        for (Index b = 0; b < width_; ++b) run[b] = sum[b] > 0.0 ? ends[b] / sum[b] : 0.0;
        for (Index s = t - 1; s >= low; --s) {
            const double* __restrict inside = inside_ + s * width_;
            const double* __restrict open = open_ + s * width_;
            const double* __restrict length = lengths_ + (t - s - 1) * width_;
            double* __restrict p = window_ + (s - low) * width_;
            for (Index b = 0; b < width_; ++b) {
                run[b] *= inside[b];
                p[b] = open[b] * run[b] * length[b];
            }
            if (listed > 0 && v_.ends[listed - 1] == t && v_.begins[listed - 1] == s) {
                --listed;
                const double* __restrict whole = whole_ + listed * width_;
                for (Index b = 0; b < width_; ++b) p[b] *= whole[b];
            }
        }
        return listed;
    }

    const View& v_;
    Index width_;
    double* inside_{};  // T rows
    double* open_{};
    double* q_{};    // later r
    double* end_{};  // T + 1 rows
    double* sum_{};
    double* window_{};  // D rows
    double* lengths_{};
    double* edge_{};
    double* edge_t_{};
    double* whole_{};
    double* row_{};
};

}  // namespace partwise::segments
