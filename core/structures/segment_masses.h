// Probabilities of segments from the sums over prefixes (segment_sums.h): expected counts, entropy, and with tangents
// products with the covariance.
#pragma once

#include "structures/segment_sums.h"

namespace partwise::segments {

// Tables to which expected counts are added; they start as zeros.
using Tables = TablesOf<double>;

// Segments whose probabilities the caller asks for, in the order of their ends, and the array for these.
struct Asked {
    std::span<const Index> begins;
    std::span<const Index> ends;
    std::span<const Index> labels;
    double* out{};
};

// Adds probabilities of the segments [s, t), a row for each s from first_begin(t), to the tables. A position is inside
// the segments that begin before it and end after it: sums over begins from the left, so that no difference is taken.
// listed: the first listed segment that ends at t or later; run: scratch.
template <int W>
void spread(const View& v, Index t, Index listed, const double* terms, double* __restrict run, const Tables& out) {
    const Index width = row_width<W>(v);
    const Index low = v.first_begin(t);
    fill(run, width, 0.0);
    for (Index s = low; s < t; ++s) {
        const double* __restrict p = terms + (s - low) * width;
        double* __restrict first = out.first + s * width;
        double* __restrict inside = out.inside + s * width;
        double* __restrict length = out.lengths + (t - s - 1) * width;
        for (Index b = 0; b < width; ++b) {
            run[b] += p[b];
            first[b] += p[b];
            inside[b] += run[b];
            length[b] += p[b];
        }
        if (listed < len(v.ends.size()) && v.ends[listed] == t && v.begins[listed] == s) {
            copy(p, out.whole + listed * width, width);
            ++listed;
        }
    }
}

// Probabilities, from the end of the sequence: an end divides its probability among the begins of its segments, an open
// segment among the ends before it, in proportion to weights. Normalising these each time loses no probability.
//   H = sum over ends and open segments of P * entropy of the choice: nothing cancels.
template <int W, bool tangent>
class Backward {
   public:
    Backward(const View& v, const View& d, const Prefixes& p, const Tables& out, const Tables& out_d,
             Workspace::Frame& frame)
        : v_(v), d_(d), p_(p), out_(out), out_d_(out_d), width_(row_width<W>(v)) {
        const Index rows = std::max(v.longest, v.n_labels);
        terms_ = frame.take(rows * width_);
        terms_d_ = tangent ? frame.take(rows * width_) : nullptr;
        for (double** row : {&high_, &sum_, &mean_, &run_, &run_d_}) *row = frame.take(width_);
    }

    // Returns the entropy.
    double run(Asked asked) {
        const Index T = v_.length;
        hand_to_last();
        Index listed = len(v_.ends.size());
        Index question = len(asked.ends.size());
        for (Index t = T; t > 0; --t) {
            check_now_and_then(t);
            if (t < T) hand_to_ends(t);
            listed = hand_to_begins(t, listed);
            for (; question > 0 && asked.ends[question - 1] == t; --question) {
                const Index s = asked.begins[question - 1];
                asked.out[question - 1] = terms_[(s - v_.first_begin(t)) * width_ + asked.labels[question - 1]];
            }
        }
        return entropy_;
    }

   private:
    // Writes the probabilities of the last label to the last row of `last`.
    void hand_to_last() {
        const double* end = p_.end + v_.length * width_;
        double* to = out_.last + (v_.length - 1) * width_;
        const double high = finite_max(end, v_.n_labels);
        double sum = 0;
        double mean = 0;
        double moment = 0;
        for (Index b = 0; b < v_.n_labels; ++b) {
            to[b] = fast_exp(end[b] - high);
            sum += to[b];
            if (to[b] > 0.0) moment += to[b] * (end[b] - high);
            if constexpr (tangent) mean += to[b] * p_.end_d[v_.length * width_ + b];
        }
        for (Index b = 0; b < v_.n_labels; ++b) to[b] /= sum;
        entropy_ = std::log(sum) - moment / sum;
        if constexpr (tangent) {
            double* to_d = out_d_.last + (v_.length - 1) * width_;
            for (Index b = 0; b < v_.n_labels; ++b) to_d[b] = to[b] * (p_.end_d[v_.length * width_ + b] - mean / sum);
        }
    }

    // Turns the terms of `rows` alternatives per label into probabilities that add up to `mass` of the label; tangents
    // likewise. Adds to the entropy.
    void normalise(Index rows, const double* __restrict mass, const double* __restrict mass_d) {
        double* __restrict high = high_;
        double* __restrict sum = sum_;
        double* __restrict moment = run_;
        fill(high_, width_, -kInfinity);
        fill(sum_, width_, 0.0);
        fill(run_, width_, 0.0);
        for (Index r = 0; r < rows; ++r) {
            const double* __restrict x = terms_ + r * width_;
            for (Index b = 0; b < width_; ++b) high[b] = x[b] > high[b] ? x[b] : high[b];
        }
        for (Index b = 0; b < width_; ++b) high[b] = high[b] == -kInfinity ? 0.0 : high[b];
        for (Index r = 0; r < rows; ++r) {
            double* __restrict x = terms_ + r * width_;
            for (Index b = 0; b < width_; ++b) {
                const double above = x[b] - high[b];
                const double weight = fast_exp(above);
                sum[b] += weight;
                moment[b] += weight > 0.0 ? weight * above : 0.0;
                x[b] = weight;
            }
        }
        for (Index b = 0; b < v_.n_labels; ++b) {
            if (mass[b] > 0.0) entropy_ += mass[b] * (std::log(sum[b]) - moment[b] / sum[b]);
        }
        for (Index b = 0; b < width_; ++b) sum[b] = sum[b] > 0.0 ? 1.0 / sum[b] : 0.0;
        if constexpr (tangent) {
            double* __restrict mean = mean_;
            fill(mean_, width_, 0.0);
            for (Index r = 0; r < rows; ++r) {
                for (Index b = 0; b < width_; ++b)
                    mean[b] += terms_[r * width_ + b] * sum[b] * terms_d_[r * width_ + b];
            }
            for (Index r = 0; r < rows; ++r) {
                double* __restrict x_d = terms_d_ + r * width_;
                for (Index b = 0; b < width_; ++b) {
                    x_d[b] = terms_[r * width_ + b] * sum[b] * (mass_d[b] + mass[b] * (x_d[b] - mean[b]));
                }
            }
        }
        for (Index r = 0; r < rows; ++r) {
            double* __restrict x = terms_ + r * width_;
            for (Index b = 0; b < width_; ++b) x[b] *= sum[b] * mass[b];
        }
    }

    void hand_to_ends(Index t) {
        const double* end = p_.end + t * width_;
        for (Index a = 0; a < v_.n_labels; ++a) {
            double* __restrict x = terms_ + a * width_;
            const double* __restrict edge = v_.edge + a * width_;
            for (Index b = 0; b < width_; ++b) x[b] = end[a] + edge[b];
            if constexpr (tangent) {
                for (Index b = 0; b < width_; ++b) {
                    terms_d_[a * width_ + b] = p_.end_d[t * width_ + a] + d_.edge[a * width_ + b];
                }
            }
        }
        normalise(v_.n_labels, out_.first + t * width_, tangent ? out_d_.first + t * width_ : nullptr);
        for (Index a = 0; a < v_.n_labels; ++a) {
            take_edge(terms_ + a * width_, out_.edge + a * width_, out_.last[(t - 1) * width_ + a]);
            if constexpr (tangent) {
                take_edge(terms_d_ + a * width_, out_d_.edge + a * width_, out_d_.last[(t - 1) * width_ + a]);
            }
        }
    }
    void take_edge(const double* __restrict p, double* __restrict edge, double& end) const {
        double sum = 0;
        for (Index b = 0; b < v_.n_labels; ++b) {
            edge[b] += p[b];
            sum += p[b];
        }
        end = sum;
    }

    // listed: the first listed segment that ends after t; returns the first that ends at t.
    Index hand_to_begins(Index t, Index listed) {
        const Index low = v_.first_begin(t);
        fill(run_, width_, 0.0);
        if constexpr (tangent) fill(run_d_, width_, 0.0);
        Index at = listed;
        for (Index s = t - 1; s >= low; --s) {
            const bool in_list = at > 0 && v_.ends[at - 1] == t && v_.begins[at - 1] == s;
            at -= in_list;
            term(terms_ + (s - low) * width_, run_, p_.inside + s * width_, p_.joined + s * width_,
                 p_.open + s * width_, v_.lengths + (t - s - 1) * width_, in_list ? v_.whole + at * width_ : nullptr);
            if constexpr (tangent) {
                term(terms_d_ + (s - low) * width_, run_d_, p_.inside_d + s * width_, p_.inside_d + s * width_,
                     p_.open_d + s * width_, d_.lengths + (t - s - 1) * width_,
                     in_list ? d_.whole + at * width_ : nullptr);
            }
        }
        normalise(t - low, out_.last + (t - 1) * width_, tangent ? out_d_.last + (t - 1) * width_ : nullptr);
        spread<W>(v_, t, at, terms_, run_, out_);
        if constexpr (tangent) spread<W>(v_, t, at, terms_d_, run_d_, out_d_);
        return at;
    }
    // run: `joined` of the positions after s.
    void term(double* __restrict to, double* __restrict run, const double* inside, const double* joined,
              const double* __restrict open, const double* __restrict length, const double* whole) const {
        for (Index b = 0; b < width_; ++b) to[b] = open[b] + (inside[b] + run[b]) + length[b];
        for (Index b = 0; b < width_; ++b) run[b] += joined[b];
        if (whole) axpy(1.0, whole, to, width_);
    }

    const View& v_;
    const View& d_;
    const Prefixes& p_;
    const Tables& out_;
    const Tables& out_d_;
    Index width_;
    double entropy_ = 0;
    double* terms_{};
    double* terms_d_{};
    double* high_{};
    double* sum_{};
    double* mean_{};
    double* run_{};
    double* run_d_{};
};

}  // namespace partwise::segments
