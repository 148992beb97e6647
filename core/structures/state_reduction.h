// Sums over spanning trees by the matrix-tree theorem, with no subtraction anywhere.
//
// Z = det L for the Laplacian L of the arc weights w(h, m) (Tutte 1948; Koo et al. 2007). Its elimination is done the
// way Grassmann et al. 1985 do it for Markov chains: the pivot of word k is the sum of the weights into k
// from the root 0 and from the words that are left, and
//   d_k = sum_i w(i, k),   p_i(k) = w(i, k) / d_k,   w(i, j) += p_i(k) w(k, j),   Z = product of all d_k.
// These are sums, products and quotients of non-negative numbers, so every result keeps nearly all its digits. Pivots
// computed by subtraction, or differences of entries of the inverse, lose them when words prefer each other to the
// root.
//
// The same holds for marginals. A random walk with probabilities p from word to head ends at the root; e(h) is the
// probability that the walk from h gets there without a visit to m. If m is eliminated last,
//   e(0) = 1,   e(m) = 0,   e(k) = sum_i p_i(k) e(i) from the last eliminated to the first
// and P(h -> m) is proportional to w(h, m) e(h). Every word must be the last one once. So each half of the words is
// eliminated in turn, recursively; for all words together this takes O(n^3).
//
// Trees with exactly one arc from the root are the lowest-order term in t when all weights w(0, m) have a factor t ->
// 0. So root weights are left out of d_k. If d_k is then 0, word k (with the words eliminated before) can have only the
// root as its head: from then on k takes the place of the root ("handed over" below), and the root weights of all other
// words vanish, because they are of higher order.
#pragma once

#include "structures/numbers.h"
#include "support/parallel.h"

namespace partwise {

template <class Num>
class StateReduction {
   public:
    // columns: n columns of n + 1 weights, in the order of slots; entries with h == m are not read. They are changed
    // only if each_word() chooses heads.
    StateReduction(Index n, Num* columns, bool single_root, Workspace& ws)
        : n_(n), columns_(columns), single_root_(single_root), ws_(ws), nodes_(n), escape_(n + 1) {
        for (Index m = 0; m < n; ++m) nodes_[m] = m + 1;
    }

    // Computes log Z; returns false if no tree has a weight above 0 or if doubles overflow.
    bool total(double& log_z) {
        found_ = &log_z;
        return visit(
            nodes_.data(), n_, columns_, n_ + 1, false, 0.0, [](Index, const Num*, bool) { return kGoOn; }, true);
    }

    static constexpr Index kGoOn = -1;
    static constexpr Index kStop = -2;

    // Calls word(m, e, root_counts) for each word m: P(h -> m) is proportional to w(h, m) e[h] for h = 1..n, and for
    // h = 0 if root_counts. word() returns kGoOn, kStop, or a head that is then fixed for m.
    template <class Word>
    bool each_word(double& log_z, Word&& word) {
        found_ = &log_z;
        return visit(nodes_.data(), n_, columns_, n_ + 1, false, 0.0, word, false);
    }

   private:
    // Words eliminated together: the order of all words (those kept come first); the columns (p for eliminated words);
    // the word of the hand-over, or -1; and the index below which words were eliminated at the hand-over or after it.
    struct Step {
        std::vector<Index> order;
        Index kept = 0;
        Num* columns = nullptr;
        Index stride = 0;
        Index handed_at = -1;
        Index normal_below = 0;
    };

    Num* take(Workspace::Frame& frame, Index count) {
        static_assert(sizeof(Num) % sizeof(double) == 0);
        return reinterpret_cast<Num*>(frame.take(count * static_cast<Index>(sizeof(Num) / sizeof(double))));
    }

    // Handles the words in `order`; all other words are eliminated, and `pivots` is the sum of their log d_k.
    template <class Word>
    bool visit(const Index* order, Index size, Num* columns, Index stride, bool handed_over, double pivots, Word&& word,
               bool only_total) {
        if (size == 1) {
            if (found_) {
                const double log_z = pivots + log_of(columns[0]);
                if (!std::isfinite(log_z) || is_zero(columns[0])) return false;
                *found_ = log_z;
                found_ = nullptr;
            }
            if (only_total) return true;
            return finish(order[0], handed_over, word);
        }
        const Index half = (size + 1) / 2;
        for (int second = 0; second < 2; ++second) {
            Workspace::Frame frame(ws_);
            Step step;
            step.kept = second ? size - half : half;
            step.stride = size + 1;
            step.columns = take(frame, size * (size + 1));
            step.order.resize(size);
            // Words `begin`.. come first, then the rest.
            const Index begin = second ? half : 0;
            for (Index j = 0; j < size; ++j) {
                const Index from = (begin + j) % size;
                step.order[j] = order[from];
                const Num* source = columns + from * stride;
                Num* target = step.columns + j * step.stride;
                target[0] = source[0];
                std::copy(source + 1 + begin, source + 1 + size, target + 1);
                std::copy(source + 1, source + 1 + begin, target + 1 + size - begin);
            }
            bool over = handed_over;
            double logs = pivots;
            if (!eliminate(step, size, over, logs)) return false;
            steps_.push_back(std::move(step));
            const Step& mine = steps_.back();
            const std::vector<Index> kept(mine.order.begin(), mine.order.begin() + mine.kept);
            const bool good = visit(kept.data(), mine.kept, mine.columns, mine.stride, over, logs, word, only_total);
            steps_.pop_back();
            if (!good) return false;
            if (only_total) return true;
            if (!second) replace_chosen(order, half, size, columns, stride, order);
        }
        return true;
    }

    bool eliminate(Step& step, Index size, bool& handed_over, double& pivots) {
        step.normal_below = handed_over ? size : step.kept;
        for (Index k = size - 1; k >= step.kept; --k) {
            if (k % 16 == 15) Interrupt::check_current();
            Num* own = step.columns + k * step.stride;
            const bool bare = single_root_ && !handed_over;
            Num d = bare ? sum_of(own + 1, k) : sum_of(own, k + 1);
            if (bare && is_zero(d)) {
                handed_over = true;
                step.handed_at = k;
                step.normal_below = k + 1;
                d = own[0];
                if (is_zero(d)) return false;
                set_one(own[0]);
                for (Index i = 1; i <= k; ++i) set_zero(own[i]);
                for (Index j = 0; j < k; ++j) step.columns[j * step.stride] = step.columns[j * step.stride + k + 1];
            } else {
                if (is_zero(d)) return false;
                for (Index i = 0; i <= k; ++i) own[i] = own[i] / d;
                for (Index j = 0; j < k; ++j) {
                    Num* column = step.columns + j * step.stride;
                    const Num c = column[k + 1];
                    if (!is_zero(c)) add_scaled(c, own, column, k + 1);
                }
            }
            pivots += log_of(d);
        }
        return true;
    }

    // Computes e for the one word that is left, from the last eliminated word to the first, and calls word().
    template <class Word>
    bool finish(Index m, bool handed_over, Word&& word) {
        Workspace::Frame frame(ws_);
        Num* e = take(frame, n_ + 1);
        set_one(escape_[0]);
        set_zero(escape_[m]);
        for (std::size_t at = steps_.size(); at-- > 0;) {
            const Step& step = steps_[at];
            const Index size = len(step.order.size());
            e[0] = escape_[0];
            for (Index i = 0; i < step.kept; ++i) e[i + 1] = escape_[step.order[i]];
            for (Index k = step.kept; k < size; ++k) {
                const Num* p = step.columns + k * step.stride;
                // For words eliminated before the hand-over, a step to the root has a higher order in t: it is dropped.
                const bool skip_root = handed_over && k >= step.normal_below;
                e[k + 1] = skip_root ? dot_of(p + 1, e + 1, k) : dot_of(p, e, k + 1);
                escape_[step.order[k]] = e[k + 1];
            }
        }
        const Index head = word(m, escape_.data(), !handed_over);
        if (head == kStop) return false;
        if (head >= 0) {
            Num* column = columns_ + (m - 1) * (n_ + 1);
            for (Index h = 0; h <= n_; ++h) set_zero(column[h]);
            set_one(column[head]);
            chosen_ = true;
        }
        return true;
    }

    // Recomputes the columns of words whose heads were fixed, by applying all eliminations so far.
    void replace_chosen(const Index* words, Index count, Index size, Num* columns, Index stride, const Index* order) {
        if (!chosen_ || steps_.empty()) return;  // without eliminations `columns` are the changed columns themselves
        std::vector<Num> c(n_ + 1);
        for (Index j = 0; j < count; ++j) {
            const Num* chosen = columns_ + (words[j] - 1) * (n_ + 1);
            std::copy(chosen, chosen + n_ + 1, c.begin());
            for (const Step& step : steps_) {
                for (Index k = len(step.order.size()) - 1; k >= step.kept; --k) {
                    const Num weight = c[step.order[k]];
                    const Num* p = step.columns + k * step.stride;
                    // At the hand-over itself the old root weight, of a higher order, is dropped.
                    if (k == step.handed_at) set_zero(c[0]);
                    if (is_zero(weight)) continue;
                    c[0] = c[0] + weight * p[0];
                    for (Index i = 0; i < k; ++i) {
                        Num& at = c[step.order[i]];
                        at = at + weight * p[i + 1];
                    }
                }
            }
            Num* column = columns + j * stride;
            column[0] = c[0];
            for (Index i = 0; i < size; ++i) column[i + 1] = c[order[i]];
        }
    }

    Index n_;
    Num* columns_;
    bool single_root_;
    Workspace& ws_;
    std::vector<Index> nodes_;
    std::vector<Num> escape_;
    std::vector<Step> steps_;
    double* found_ = nullptr;
    bool chosen_ = false;
};

}  // namespace partwise
