// Dynamic programs over one second-order chain, by hand: the fast special case of second_order_program.h, which tests
// compare them with. W is the row width as a template constant, or 0 to read it at run time.
//
// Scores of labels y_0..y_{T-1}:  sum_t node[t][y_t] + sum_{t>0} pair[y_{t-1}][y_t]
//                                 + sum_{t>1} triple[y_{t-2}][y_{t-1}][y_t].
// A state is a pair of labels (b, c) at t - 1 and t. Rows of states lie by the second label, the first one innermost,
// so that the sum over the label before a pair is a product of a row and a matrix, as in a first-order chain.
#pragma once

#include "structures/chain_kernels.h"

namespace partwise::second_order {

using chain::check_now_and_then;
using chain::combine_rows;
using chain::max_rows;

struct View {
    Index length = 0;    // T
    Index n_labels = 0;  // L
    Index width = 0;
    const double* node{};    // T rows
    const double* pair{};    // L rows: row a
    const double* triple{};  // L * L rows: row a * L + b
};

// to[(b * L + a) * width + c] = pair[b][c] + triple[a][b][c]
inline void join_edges(const View& v, double* __restrict to) {
    const Index L = v.n_labels;
    for (Index b = 0; b < L; ++b) {
        for (Index a = 0; a < L; ++a, to += v.width) {
            const double* __restrict pair = v.pair + b * v.width;
            const double* __restrict triple = v.triple + (a * L + b) * v.width;
            for (Index c = 0; c < v.width; ++c) to[c] = pair[c] + triple[c];
        }
    }
}

// labels: T values. Ties go to the lowest labels, from the end.
template <int W>
void best_labels(const View& v, Index* labels, Workspace& ws) {
    const Index width = row_width<W>(v);
    const Index L = v.n_labels;
    const Index T = v.length;
    const Index block = L * width;
    if (T == 1) {
        labels[0] = chain::first_argmax(v.node, L);
        return;
    }
    Workspace::Frame frame(ws);
    double* best = frame.take(T * block);  // best[t][c][b]
    double* edge = frame.take(L * block);
    double* row = frame.take(width);
    join_edges(v, edge);
    for (Index t = 1; t < T; ++t) {
        check_now_and_then(t);
        double* __restrict to = best + t * block;
        const double* __restrict node = v.node + t * width;
        for (Index b = 0; b < L; ++b) {
            if (t == 1) {
                for (Index c = 0; c < L; ++c) row[c] = v.node[b] + v.pair[b * width + c];
            } else {
                max_rows<W>(best + (t - 1) * block + b * width, edge + b * block, L, width, row);
            }
            for (Index c = 0; c < L; ++c) to[c * width + b] = row[c] + node[c];
        }
    }
    const double* last = best + (T - 1) * block;
    Index b = 0;
    Index c = 0;
    for (Index second = 0; second < L; ++second) {
        for (Index first = 0; first < L; ++first) {
            if (last[second * width + first] > last[c * width + b]) {
                c = second;
                b = first;
            }
        }
    }
    for (Index t = T - 1; t > 0; --t) {
        labels[t] = c;
        labels[t - 1] = b;
        if (t == 1) break;
        const double* before = best + (t - 1) * block + b * width;
        Index a = 0;
        for (Index other = 1; other < L; ++other) {
            const auto x = [&](Index label) { return before[label] + edge[(b * L + label) * width + c]; };
            if (x(other) > x(a)) a = other;
        }
        c = b;
        b = a;
    }
}

// Sums in scaled probabilities, as chain::scaled_sums: rows of states are normalised.
//   q_t(b, c)      = sum_a alpha_{t-1}(a, b) E_b(a, c)
//   alpha_t(b, c)  = q_t(b, c) N_t(c) / c_t                       log Z = sum_t log c_t
//   r_t(b, c)      = mu_t(b, c) / q_t(b, c)
//   mu_{t-1}(a, b) = alpha_{t-1}(a, b) sum_c E_b(a, c) r_t(b, c)
//   triples        = E_b(a, c) sum_t alpha_{t-1}(a, b) r_t(b, c)
// node, pair, triple: expected counts, laid out as the scores; node null: log Z alone. Returns log Z. Good while twice
// the spreads of nodes, pairs and triples stay below chain::kSafeSpread, and no pair or triple is masked.
template <int W>
double scaled_sums(const View& v, double* node, double* pair, double* triple, Workspace& ws) {
    const Index width = row_width<W>(v);
    const Index L = v.n_labels;
    const Index T = v.length;
    const Index block = L * width;
    const bool backward = node != nullptr;
    Workspace::Frame frame(ws);
    double* alpha = frame.zeros(T * block);              // [t][c][b], zero in padding; block 0 is not used
    double* q = frame.take((backward ? T : 1) * block);  // [t][b][c], later r
    double* E = frame.take(L * block);                   // [b][a][c]
    double* P = frame.take(block);                       // [b][c], the pair at positions 0 and 1
    double* N = frame.take(width);
    double log_z = 0;

    // Writes exp(score - largest score) of `rows` rows, 0 in padding; returns the largest score.
    const auto exponentials = [&](const double* from, Index rows, double* to) {
        double high = -kInfinity;
        for (Index a = 0; a < rows; ++a) high = std::max(high, largest(from + a * width, L));
        for (Index a = 0; a < rows; ++a) {
            for (Index b = 0; b < width; ++b) to[a * width + b] = fast_exp(from[a * width + b] - high);
            for (Index b = L; b < width; ++b) to[a * width + b] = 0.0;
        }
        return high;
    };
    log_z += exponentials(v.node, 1, N);
    if (T == 1) {
        double sum = 0;
        for (Index b = 0; b < L; ++b) sum += N[b];
        for (Index b = 0; backward && b < width; ++b) node[b] = N[b] / sum;
        if (backward) {
            fill(pair, block, 0.0);
            fill(triple, L * block, 0.0);
        }
        return log_z + std::log(sum);
    }
    join_edges(v, E);
    log_z += static_cast<double>(T - 2) * (T > 2 ? exponentials(E, L * L, E) : 0.0);
    log_z += exponentials(v.pair, L, P);
    for (Index b = 0; b < L; ++b) scale(N[b], P + b * width, width);  // with the first position's node
    for (Index t = 1; t < T; ++t) {
        check_now_and_then(t);
        double* __restrict to = alpha + t * block;
        double* qt = backward ? q + t * block : q;
        log_z += exponentials(v.node + t * width, 1, N);
        double sum = 0;
        for (Index b = 0; b < L; ++b) {
            double* __restrict row = qt + b * width;
            if (t == 1) {
                copy(P + b * width, row, width);
            } else {
                combine_rows<W>(alpha + (t - 1) * block + b * width, E + b * block, L, width, row);
            }
            for (Index c = 0; c < L; ++c) {
                const double x = row[c] * N[c];
                to[c * width + b] = x;
                sum += x;
            }
        }
        scale(1.0 / sum, to, block);
        log_z += std::log(sum);
    }
    if (!backward) return log_z;

    double* Et = frame.take(L * block);  // [b][c][a]
    for (Index b = 0; b < L; ++b) chain::transpose(E + b * block, L, width, Et + b * block);
    double* mu = frame.take(block);  // [c][b]
    copy(alpha + (T - 1) * block, mu, block);
    fill(node, T * width, 0.0);
    for (Index t = T - 1; t > 0; --t) {
        check_now_and_then(t);
        double* r = q + t * block;
        for (Index c = 0; c < L; ++c) {
            for (Index b = 0; b < L; ++b) {
                const double p = mu[c * width + b];
                node[t * width + c] += p;
                if (t == 1) node[b] += p;
                double& at = r[b * width + c];
                at = at > 0.0 ? p / at : 0.0;
            }
        }
        if (t == 1) break;
        for (Index b = 0; b < L; ++b) {
            double* __restrict row = mu + b * width;
            combine_rows<W>(r + b * width, Et + b * block, L, width, row);
            const double* __restrict own = alpha + (t - 1) * block + b * width;
            for (Index a = 0; a < width; ++a) row[a] *= own[a];
        }
    }
    // mu is that of positions 0 and 1 now: [c][b].
    for (Index b = 0; b < L; ++b) {
        for (Index c = 0; c < L; ++c) pair[b * width + c] = mu[c * width + b];
        for (Index c = L; c < width; ++c) pair[b * width + c] = 0.0;
    }
    double* sums = frame.take(block);
    for (Index b = 0; b < L; ++b) {
        const Index first = std::min<Index>(2, T);
        chain::sum_products<W>(alpha + (first - 1) * block + b * width, block, q + first * block + b * width, block,
                               T - first, L, width, E + b * block, sums);
        for (Index a = 0; a < L; ++a) {
            copy(sums + a * width, triple + (a * L + b) * width, width);
            axpy(1.0, sums + a * width, pair + b * width, width);
        }
    }
    return log_z;
}

}  // namespace partwise::second_order
