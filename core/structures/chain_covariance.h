// Products with the covariance of a chain's counts in scaled probabilities: a forward and a backward pass that carry
// the derivatives along a direction of scores (node_d, edge_d). Safe where scaled_sums is; else see chain_program.h.
//
// With alpha, q, r, E as in scaled_sums, D = log-derivative of alpha (up to a constant per row) and F = E .* dE:
//   g_t(b)      = (sum_a alpha_{t-1}(a) D_{t-1}(a) E(a, b) + alpha_{t-1}(a) F(a, b)) / q_t(b)     = d log q_t(b)
//   D_t(b)      = dN_t(b) + g_t(b) - mean,   mean = sum_b alpha_t(b) (dN_t(b) + g_t(b))
//   rho_t(b)    = d mu_t(b) / q_t(b) - r_t(b) g_t(b)                                               = d r_t(b)
//   d mu_{t-1}  = mu_{t-1} D_{t-1} + alpha_{t-1} (E rho_t + F r_t)
//   d xi_t(a,b) = alpha_{t-1}(a) E(a, b) (rho_t(b) + r_t(b) (D_{t-1}(a) + dE(a, b)))
// A constant taken off a row of D changes g of the next row by as much, so that xi does not see it; without it D would
// grow along the chain and cancel at the end.
#pragma once

#include "structures/chain_kernels.h"

namespace partwise::chain {

namespace covariance_detail {

// out[b] = sum_a x[a] E[a][b];  out_d[b] = sum_a y[a] E[a][b] + x[a] F[a][b]
template <int W>
inline void combine_pair(const double* __restrict x, const double* __restrict y, const double* __restrict E,
                         const double* __restrict F, Index n, Index width, double* __restrict out,
                         double* __restrict out_d) {
    if constexpr (W > 0) {
        double sum[W] = {};
        double sum_d[W] = {};
        for (Index a = 0; a < n; ++a) {
            const double xa = x[a];
            const double ya = y[a];
            for (int b = 0; b < W; ++b) {
                sum[b] += xa * E[a * W + b];
                sum_d[b] += ya * E[a * W + b] + xa * F[a * W + b];
            }
        }
        for (int b = 0; b < W; ++b) {
            out[b] = sum[b];
            out_d[b] = sum_d[b];
        }
    } else {
        fill(out, width, 0.0);
        fill(out_d, width, 0.0);
        for (Index a = 0; a < n; ++a) {
            const double* __restrict e = E + a * width;
            const double* __restrict f = F + a * width;
            for (Index b = 0; b < width; ++b) {
                out[b] += x[a] * e[b];
                out_d[b] += y[a] * e[b] + x[a] * f[b];
            }
        }
    }
}

// out = (sum_t x_t r_t') .* F + (sum_t x_t rho_t' + y_t r_t') .* E over edges t = 1..T-1, for labels [a, a + R).
// x_t = alpha_{t-1}, y_t = alpha_{t-1} D_{t-1}; row t - 1 of both meets row t of r and rho.
template <int W, int R>
inline void edge_rows(Index a, Index T, const double* __restrict x, const double* __restrict y,
                      const double* __restrict r, const double* __restrict rho, const double* __restrict E,
                      const double* __restrict F, double* __restrict out) {
    double sum[R][W] = {};
    double sum_d[R][W] = {};
    for (Index t = 1; t < T; ++t) {
        check_now_and_then(t);
        const double* __restrict rt = r + t * W;
        const double* __restrict rho_t = rho + t * W;
        for (int k = 0; k < R; ++k) {
            const double xk = x[(t - 1) * W + a + k];
            const double yk = y[(t - 1) * W + a + k];
            for (int b = 0; b < W; ++b) {
                sum[k][b] += xk * rt[b];
                sum_d[k][b] += xk * rho_t[b] + yk * rt[b];
            }
        }
    }
    for (int k = 0; k < R; ++k) {
        for (int b = 0; b < W; ++b) {
            const Index at = (a + k) * W + b;
            out[at] = sum[k][b] * F[at] + sum_d[k][b] * E[at];
        }
    }
}

}  // namespace covariance_detail

template <int W>
void scaled_covariance(const View& v, const double* __restrict node_d, const double* __restrict edge_d,
                       double* __restrict node_out, double* __restrict edge_out, Workspace& ws) {
    namespace detail = covariance_detail;
    const Index width = row_width<W>(v);
    const Index T = v.length;
    const Index L = v.n_labels;
    const bool tied = v.edge_step == 0;
    const Index n_blocks = T == 1 ? 0 : (tied ? 1 : T - 1);
    const Index block_size = L * width;
    Workspace::Frame frame(ws);
    double* __restrict alpha = frame.take(T * width);  // normalised forward rows; zero in padding
    double* __restrict D = frame.take(T * width);
    double* __restrict y = frame.take(T * width);  // alpha .* D
    double* __restrict q = frame.take(T * width);  // q_t, later r_t
    double* __restrict g = frame.take(T * width);  // g_t, later rho_t
    double* __restrict E = frame.take(std::max<Index>(1, n_blocks) * block_size);
    double* __restrict F = frame.take(std::max<Index>(1, n_blocks) * block_size);

    for (Index block = 0; block < n_blocks; ++block) {
        const double* __restrict edge = v.edge + block * block_size;
        const double* __restrict d = edge_d + block * block_size;
        double* __restrict e = E + block * block_size;
        double* __restrict f = F + block * block_size;
        double high = -kInfinity;
        for (Index a = 0; a < L; ++a) high = std::max(high, largest(edge + a * width, L));
        for (Index a = 0; a < L; ++a) {
            for (Index b = 0; b < width; ++b) e[a * width + b] = fast_exp(edge[a * width + b] - high);
            for (Index b = L; b < width; ++b) e[a * width + b] = 0.0;
            for (Index b = 0; b < L; ++b) f[a * width + b] = e[a * width + b] * d[a * width + b];
            for (Index b = L; b < width; ++b) f[a * width + b] = 0.0;
        }
    }
    const auto block_at = [&](const double* blocks, Index t) { return blocks + (tied ? 0 : (t - 1) * block_size); };

    for (Index t = 0; t < T; ++t) {
        check_now_and_then(t);
        double* __restrict row = alpha + t * width;
        double* __restrict row_d = D + t * width;
        double* __restrict row_y = y + t * width;
        const double* __restrict node = v.node + t * width;
        const double* __restrict d = node_d + t * width;
        const double high = largest(node, L);
        for (Index b = 0; b < width; ++b) row[b] = fast_exp(node[b] - high);
        for (Index b = L; b < width; ++b) row[b] = 0.0;
        for (Index b = 0; b < L; ++b) row_d[b] = d[b];
        for (Index b = L; b < width; ++b) row_d[b] = 0.0;
        if (t > 0) {
            double* __restrict qt = q + t * width;
            double* __restrict gt = g + t * width;
            detail::combine_pair<W>(row - width, row_y - width, block_at(E, t), block_at(F, t), L, width, qt, gt);
            for (Index b = 0; b < width; ++b) {
                gt[b] = qt[b] > 0.0 ? gt[b] / qt[b] : 0.0;
                row[b] *= qt[b];
                row_d[b] += gt[b];
            }
        }
        double sum = 0;
        double moment = 0;
#pragma omp simd reduction(+ : sum, moment)
        for (Index b = 0; b < width; ++b) {
            sum += row[b];
            moment += row[b] * row_d[b];
        }
        const double scale = 1.0 / sum;
        const double mean = moment * scale;
        for (Index b = 0; b < width; ++b) {
            row[b] *= scale;
            row_d[b] -= mean;
            row_y[b] = row[b] * row_d[b];
        }
    }

    // mu of the current row; node_out holds d mu.
    double* __restrict mu = frame.take(width);
    double* __restrict mu_d = frame.take(width);
    copy(alpha + (T - 1) * width, mu, width);
    copy(y + (T - 1) * width, node_out + (T - 1) * width, width);
    double* __restrict Et = nullptr;
    double* __restrict Ft = nullptr;
    if (tied && T > 1) {
        Et = frame.take(block_size);
        Ft = frame.take(block_size);
        transpose(E, L, width, Et);
        transpose(F, L, width, Ft);
    }
    for (Index t = T - 1; t > 0; --t) {
        check_now_and_then(t);
        double* __restrict r = q + t * width;
        double* __restrict rho = g + t * width;
        const double* __restrict current_d = node_out + t * width;
        for (Index b = 0; b < width; ++b) {
            const double inverse = r[b] > 0.0 ? 1.0 / r[b] : 0.0;
            r[b] = mu[b] * inverse;
            rho[b] = current_d[b] * inverse - r[b] * rho[b];
        }
        const double* __restrict x = alpha + (t - 1) * width;
        const double* __restrict x_d = D + (t - 1) * width;
        double* __restrict previous_d = node_out + (t - 1) * width;
        if (tied) {
            detail::combine_pair<W>(r, rho, Et, Ft, L, width, mu, mu_d);
            for (Index a = 0; a < width; ++a) {
                mu[a] *= x[a];
                previous_d[a] = mu[a] * x_d[a] + x[a] * mu_d[a];
            }
        } else {
            const double* __restrict e = block_at(E, t);
            const double* __restrict f = block_at(F, t);
            double* __restrict xi_d = edge_out + (t - 1) * block_size;
            for (Index a = 0; a < L; ++a) {
                double total = 0;
                double total_d = 0;
#pragma omp simd reduction(+ : total, total_d)
                for (Index b = 0; b < width; ++b) {
                    const double change = e[a * width + b] * (rho[b] + x_d[a] * r[b]) + f[a * width + b] * r[b];
                    total += e[a * width + b] * r[b];
                    total_d += change;
                    xi_d[a * width + b] = x[a] * change;
                }
                mu[a] = x[a] * total;
                previous_d[a] = x[a] * total_d;
            }
            for (Index a = L; a < width; ++a) {
                mu[a] = 0.0;
                previous_d[a] = 0.0;
            }
        }
    }
    if (!tied) return;
    if (T == 1) {
        fill(edge_out, block_size, 0.0);
        return;
    }
    if constexpr (W > 0) {
        Index a = 0;
        for (; a + 2 <= L; a += 2) detail::edge_rows<W, 2>(a, T, alpha, y, q, g, E, F, edge_out);
        if (a < L) detail::edge_rows<W, 1>(a, T, alpha, y, q, g, E, F, edge_out);
    } else {
        double* __restrict sum = frame.take(width);
        double* __restrict sum_d = frame.take(width);
        for (Index a = 0; a < L; ++a) {
            fill(sum, width, 0.0);
            fill(sum_d, width, 0.0);
            for (Index t = 1; t < T; ++t) {
                const double xa = alpha[(t - 1) * width + a];
                axpy(xa, q + t * width, sum, width);
                axpy(xa, g + t * width, sum_d, width);
                axpy(y[(t - 1) * width + a], q + t * width, sum_d, width);
            }
            for (Index b = 0; b < width; ++b) {
                const Index at = a * width + b;
                edge_out[at] = sum[b] * F[at] + sum_d[b] * E[at];
            }
        }
    }
}

}  // namespace partwise::chain
