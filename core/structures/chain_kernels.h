// Dynamic programs over one chain, by hand: the fast special case of the chart program in chain_program.h, which tests
// compare them with. W is the row width as a template constant, or 0 to read it at run time.
//
// Scores of a path y_0..y_{T-1}:  sum_t node[t][y_t] + sum_{t>0} edge_t[y_{t-1}][y_t].
// Chain::prepare() adds begin and end scores to the first and last node rows and divides by the temperature.
#pragma once

#include "structures/width_dispatch.h"
#include "support/extremes.h"
#include "support/parallel.h"
#include "support/vector_math.h"

namespace partwise::chain {

// Arrays are read only by the kernels. Columns n_labels..width-1 are padding.
struct View {
    Index length = 0;      // T
    Index n_labels = 0;    // L
    Index width = 0;       // row stride
    const double* node{};  // T x width
    const double* edge{};  // one L x width block (tied) or T - 1 of them
    Index edge_step = 0;   // 0 if tied, else L * width
    const double* edge_at(Index t) const { return edge + (t - 1) * edge_step; }  // block between t - 1 and t
};

// The results of a sum over labellings: expected counts. node: T x width; edge: as in the view; edges: T - 1 blocks
// even if tied (scaled sums only). Any array may be null, but `edge` and `edges` need `node`.
struct Sums {
    double* node{};
    double* edge{};
    double* edges{};
    double log_partition = 0;
    double entropy = 0;
};

// Checks for Ctrl-C once in 1024 positions: a chain can be as long as a file.
inline void check_now_and_then(Index t) {
    if ((t & 1023) == 1023) Interrupt::check_current();
}

// out[b] = sum_a x[a] rows[a][b]
template <int W>
inline void combine_rows(const double* __restrict x, const double* __restrict rows, Index n, Index width,
                         double* __restrict out) {
    if constexpr (W > 0) {
        double acc[W] = {};
        for (Index a = 0; a < n; ++a) {
            const double xa = x[a];
            for (int b = 0; b < W; ++b) acc[b] += xa * rows[a * W + b];
        }
        for (int b = 0; b < W; ++b) out[b] = acc[b];
    } else {
        fill(out, width, 0.0);
        for (Index a = 0; a < n; ++a) axpy(x[a], rows + a * width, out, width);
    }
}

// out[b] = max_a (x[a] + rows[a][b])
template <int W>
inline void max_rows(const double* __restrict x, const double* __restrict rows, Index n, Index width,
                     double* __restrict out) {
    const auto better = [](double p, double q) { return p > q ? p : q; };
    if constexpr (W > 0) {
        double acc[W];
        for (int b = 0; b < W; ++b) acc[b] = -kInfinity;
        for (Index a = 0; a < n; ++a) {
            const double xa = x[a];
            for (int b = 0; b < W; ++b) acc[b] = better(xa + rows[a * W + b], acc[b]);
        }
        for (int b = 0; b < W; ++b) out[b] = acc[b];
    } else {
        fill(out, width, -kInfinity);
        for (Index a = 0; a < n; ++a) {
            const double* __restrict row = rows + a * width;
            for (Index b = 0; b < width; ++b) out[b] = better(x[a] + row[b], out[b]);
        }
    }
}

// to[b][a] = from[a][b], and 0 in the padding
inline void transpose(const double* __restrict from, Index n, Index width, double* __restrict to) {
    fill(to, n * width, 0.0);
    for (Index a = 0; a < n; ++a) {
        for (Index b = 0; b < n; ++b) to[b * width + a] = from[a * width + b];
    }
}

// out[a][b] = E[a][b] sum_k x_k[a] y_k[b] over n rows x and y. Four rows of the sum at a time stay in registers. Rows
// of x are read up to a multiple of 4, so they must be finite there. scaled_sums has its own copy of this loop with
// strides known to the compiler, which saves 5% of its time.
template <int W>
void sum_products(const double* x, Index x_step, const double* y, Index y_step, Index n, Index L, Index width,
                  const double* E, double* out) {
    for (Index a = 0; a < L; a += 4) {
        const Index rows = std::min<Index>(4, L - a);
        if constexpr (W > 0) {
            double acc[4][W] = {};
            for (Index t = 0; t < n; ++t) {
                const double* __restrict xt = x + t * x_step + a;
                const double* __restrict yt = y + t * y_step;
                for (int k = 0; k < 4; ++k) {
                    for (int b = 0; b < W; ++b) acc[k][b] += xt[k] * yt[b];
                }
            }
            for (Index k = 0; k < rows; ++k) {
                for (int b = 0; b < W; ++b) out[(a + k) * W + b] = acc[k][b] * E[(a + k) * W + b];
            }
        } else {
            for (Index k = 0; k < rows; ++k) {
                double* __restrict to = out + (a + k) * width;
                fill(to, width, 0.0);
                for (Index t = 0; t < n; ++t) axpy(x[t * x_step + a + k], y + t * y_step, to, width);
                for (Index b = 0; b < width; ++b) to[b] *= E[(a + k) * width + b];
            }
        }
    }
}

// Viterbi values: best[t][b] = best score of a path that ends in b at t. Values in padding have no meaning.
template <int W>
void best_prefixes(const View& v, double* __restrict best) {
    const Index width = row_width<W>(v);
    copy(v.node, best, width);
    for (Index t = 1; t < v.length; ++t) {
        check_now_and_then(t);
        double* __restrict row = best + t * width;
        const double* __restrict node = v.node + t * width;
        max_rows<W>(row - width, v.edge_at(t), v.n_labels, width, row);
        for (Index b = 0; b < width; ++b) row[b] += node[b];
    }
}

inline Index first_argmax(const double* x, Index n) {
    Index best = 0;
    for (Index a = 1; a < n; ++a) {
        if (x[a] > x[best]) best = a;
    }
    return best;
}

// Follows best_prefixes back; labels has T values. Ties go to the lowest label.
inline void backtrack(const View& v, const double* best, Index* labels) {
    Index b = first_argmax(best + (v.length - 1) * v.width, v.n_labels);
    labels[v.length - 1] = b;
    for (Index t = v.length - 1; t > 0; --t) {
        const double* previous = best + (t - 1) * v.width;
        const double* edge = v.edge_at(t);
        Index arg = 0;
        double value = previous[0] + edge[b];
        for (Index a = 1; a < v.n_labels; ++a) {
            const double candidate = previous[a] + edge[a * v.width + b];
            if (candidate > value) {
                value = candidate;
                arg = a;
            }
        }
        b = arg;
        labels[t - 1] = b;
    }
}

// The largest minus the smallest entry of some rows, without masked entries (-infinity); infinity if all are masked.
inline double spread(const double* rows, Index n_rows, Index n_labels, Index width) {
    double low = kInfinity;
    double high = -kInfinity;
    for (Index a = 0; a < n_rows; ++a) {
        const double* __restrict row = rows + a * width;
        PARTWISE_SIMD_RANGE(low, high)
        for (Index b = 0; b < n_labels; ++b) {
            const double x = row[b];
            const double y = x == -kInfinity ? kInfinity : x;
            low = y < low ? y : low;
            high = x > high ? x : high;
        }
    }
    return high == -kInfinity ? kInfinity : high - low;
}

// Sums in scaled probabilities: alpha rows are normalised, so no state is smaller than exp(-spread) / L of the largest.
// Good while node spread + edge spread stays below kSafeSpread; edges must not be masked (a masked edge can cut the
// best state off from a state that is needed later).
//   q_t(b)      = sum_a alpha_{t-1}(a) E(a, b)
//   alpha_t(b)  = q_t(b) N_t(b) / c_t                          log Z = sum_t log c_t
//   r_t(b)      = mu_t(b) / q_t(b)
//   mu_{t-1}(a) = alpha_{t-1}(a) sum_b E(a, b) r_t(b)
//   xi_t(a, b)  = alpha_{t-1}(a) E(a, b) r_t(b)                edge marginals; tied: summed over t, one matrix product
constexpr double kSafeSpread = 300.0;

template <int W>
void scaled_sums(const View& v, Sums& out, Workspace& ws) {
    const Index width = row_width<W>(v);
    const Index T = v.length;
    const Index L = v.n_labels;
    const bool tied = v.edge_step == 0;
    const bool backward = out.node != nullptr;
    const Index n_blocks = T == 1 ? 0 : (tied ? 1 : T - 1);
    const Index L4 = (L + 3) / 4 * 4;
    Workspace::Frame frame(ws);
    double* __restrict alpha = frame.take(T * width);  // normalised forward rows; zero in padding
    double* __restrict q = backward ? frame.take(T * width) : frame.take(width);  // q_t, later r_t
    double* __restrict E = frame.take(std::max<Index>(1, n_blocks) * L * width);
    double log_z = 0;

    for (Index block = 0; block < n_blocks; ++block) {
        const double* __restrict edge = v.edge + block * L * width;
        double* __restrict e = E + block * L * width;
        double high = -kInfinity;
        for (Index a = 0; a < L; ++a) high = std::max(high, largest(edge + a * width, L));
        log_z += high * static_cast<double>(tied ? T - 1 : 1);
        for (Index a = 0; a < L; ++a) {
            for (Index b = 0; b < width; ++b) e[a * width + b] = fast_exp(edge[a * width + b] - high);
            for (Index b = L; b < width; ++b) e[a * width + b] = 0.0;
        }
    }
    for (Index t = 0; t < T; ++t) {
        check_now_and_then(t);
        double* __restrict row = alpha + t * width;
        const double* __restrict node = v.node + t * width;
        const double high = largest(node, L);
        for (Index b = 0; b < width; ++b) row[b] = fast_exp(node[b] - high);
        for (Index b = L; b < width; ++b) row[b] = 0.0;
        if (t > 0) {
            double* __restrict qt = backward ? q + t * width : q;
            combine_rows<W>(row - width, E + (tied ? 0 : (t - 1) * L * width), L, width, qt);
            for (Index b = 0; b < width; ++b) row[b] *= qt[b];
        }
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index b = 0; b < width; ++b) sum += row[b];
        const double scale = 1.0 / sum;
        for (Index b = 0; b < width; ++b) row[b] *= scale;
        log_z += high + std::log(sum);
    }
    out.log_partition = log_z;
    if (!backward) return;

    copy(alpha + (T - 1) * width, out.node + (T - 1) * width, width);
    double* __restrict Et = nullptr;  // tied: the transpose, so that the backward step also adds up whole rows
    if (tied && T > 1) {
        Et = frame.take(L * width);
        transpose(E, L, width, Et);
    }
    for (Index t = T - 1; t > 0; --t) {
        check_now_and_then(t);
        const double* __restrict mu = out.node + t * width;
        double* __restrict r = q + t * width;
        for (Index b = 0; b < width; ++b) r[b] = r[b] > 0.0 ? mu[b] / r[b] : 0.0;
        double* __restrict previous = out.node + (t - 1) * width;
        const double* __restrict a_row = alpha + (t - 1) * width;
        if (tied) {
            combine_rows<W>(r, Et, L, width, previous);
        } else {
            const double* e = E + (t - 1) * L * width;
            for (Index a = 0; a < L; ++a) previous[a] = dot(e + a * width, r, width);
            for (Index a = L; a < width; ++a) previous[a] = 0.0;
        }
        for (Index a = 0; a < width; ++a) previous[a] *= a_row[a];
        double* apart = tied ? out.edges : out.edge;
        if (apart) {
            const double* __restrict e = E + (tied ? 0 : (t - 1) * L * width);
            double* __restrict xi = apart + (t - 1) * L * width;
            for (Index a = 0; a < L; ++a) {
                for (Index b = 0; b < width; ++b) xi[a * width + b] = a_row[a] * e[a * width + b] * r[b];
            }
        }
    }
    if (!tied || !out.edge) return;
    if (T == 1) {
        fill(out.edge, L * width, 0.0);
        return;
    }
    // X = sum_t alpha_{t-1} r_t': four rows of X at a time stay in registers over all t. Rows past L are zero in alpha.
    for (Index a = 0; a < L4; a += 4) {
        const Index rows = std::min<Index>(4, L - a);
        if constexpr (W > 0) {
            double acc[4][W] = {};
            for (Index t = 1; t < T; ++t) {
                const double* __restrict x = alpha + (t - 1) * W + a;
                const double* __restrict r = q + t * W;
                for (int k = 0; k < 4; ++k) {
                    for (int b = 0; b < W; ++b) acc[k][b] += x[k] * r[b];
                }
            }
            for (Index k = 0; k < rows; ++k) {
                for (int b = 0; b < W; ++b) out.edge[(a + k) * W + b] = acc[k][b] * E[(a + k) * W + b];
            }
        } else {
            for (Index k = 0; k < rows; ++k) {
                double* __restrict xi = out.edge + (a + k) * width;
                fill(xi, width, 0.0);
                for (Index t = 1; t < T; ++t) axpy(alpha[(t - 1) * width + a + k], q + t * width, xi, width);
                for (Index b = 0; b < width; ++b) xi[b] *= E[(a + k) * width + b];
            }
        }
    }
}

}  // namespace partwise::chain
