// Sums over one chain in log space: slower than scaled probabilities, but no spread of scores is too large and masks
// (-infinity) are allowed. Everything is built from p_t(a | b), the distribution of the label before b.
#pragma once

#include "structures/chain_kernels.h"

namespace partwise::chain {

// Forward values in log space, shifted so that each row's maximum is 0 (no loss of digits on long chains); returns log
// Z. alpha_t(b) = log sum_a exp(alpha_{t-1}(a) + E(a, b)) + N_t(b) - shift_t. Masked entries are -infinity.
template <int W>
double log_forward(const View& v, double* __restrict alpha, Workspace& ws) {
    const Index width = row_width<W>(v);
    const Index L = v.n_labels;
    Workspace::Frame frame(ws);
    double* __restrict high = frame.take(width);
    double* __restrict sum = frame.take(width);
    double log_z = 0;
    for (Index t = 0; t < v.length; ++t) {
        check_now_and_then(t);
        double* __restrict row = alpha + t * width;
        const double* __restrict node = v.node + t * width;
        if (t == 0) {
            copy(node, row, width);
        } else {
            const double* __restrict previous = row - width;
            const double* __restrict edge = v.edge_at(t);
            max_rows<W>(previous, edge, L, width, high);
            fill(sum, width, 0.0);
            for (Index a = 0; a < L; ++a) {
                const double xa = previous[a];
                if (xa == -kInfinity) continue;
                for (Index b = 0; b < width; ++b) {
                    const double shift = high[b] == -kInfinity ? 0.0 : high[b];
                    sum[b] += fast_exp(xa + edge[a * width + b] - shift);
                }
            }
            for (Index b = 0; b < L; ++b)
                row[b] = high[b] == -kInfinity ? -kInfinity : high[b] + std::log(sum[b]) + node[b];
        }
        double top = -kInfinity;
        for (Index b = 0; b < L; ++b) top = std::max(top, row[b]);
        if (top == -kInfinity) return -kInfinity;
        for (Index b = 0; b < L; ++b) row[b] -= top;
        for (Index b = L; b < width; ++b) row[b] = -kInfinity;
        log_z += top;
    }
    const double* last = alpha + (v.length - 1) * width;
    double sum_last = 0;
    for (Index b = 0; b < L; ++b) sum_last += fast_exp(last[b]);
    return log_z + std::log(sum_last);
}

// Probabilities of the last label given the forward values.
inline void last_marginals(const View& v, const double* alpha, double* out) {
    const double* last = alpha + (v.length - 1) * v.width;
    double sum = 0;
    for (Index b = 0; b < v.width; ++b) {
        out[b] = b < v.n_labels ? fast_exp(last[b]) : 0.0;
        sum += out[b];
    }
    for (Index b = 0; b < v.width; ++b) out[b] /= sum;
}

// log p_t(a | b), the distribution of the label before b, into out (L x width, -infinity where impossible).
// It is normalised over a by itself, so that rounding in alpha cannot leak probability.
template <int W>
void log_predecessors(const View& v, const double* __restrict alpha, Index t, double* __restrict out,
                      double* __restrict scratch) {
    const Index width = row_width<W>(v);
    const double* __restrict previous = alpha + (t - 1) * width;
    const double* __restrict edge = v.edge_at(t);
    double* __restrict high = scratch;
    double* __restrict sum = scratch + width;
    max_rows<W>(previous, edge, v.n_labels, width, high);
    fill(sum, width, 0.0);
    for (Index b = 0; b < width; ++b) high[b] = high[b] == -kInfinity ? 0.0 : high[b];
    for (Index a = 0; a < v.n_labels; ++a) {
        for (Index b = 0; b < width; ++b) {
            const double x = previous[a] + edge[a * width + b] - high[b];
            out[a * width + b] = x;
            sum[b] += fast_exp(x);
        }
    }
    for (Index b = 0; b < v.n_labels; ++b) sum[b] = sum[b] > 0.0 ? std::log(sum[b]) : 0.0;
    for (Index a = 0; a < v.n_labels; ++a) {
        for (Index b = 0; b < width; ++b) out[a * width + b] -= sum[b];
    }
}

// The same sums in log space: two exps an edge, no spread is too large, masks allowed.
//   H = H(mu_{T-1}) - sum_t sum_ab xi_t(a, b) log p_t(a | b): every term is positive, nothing cancels.
template <int W>
void log_sums(const View& v, Sums& out, Workspace& ws) {
    const Index width = row_width<W>(v);
    const Index T = v.length;
    const Index L = v.n_labels;
    const bool tied = v.edge_step == 0;
    Workspace::Frame frame(ws);
    double* alpha = frame.take(T * width);
    out.log_partition = log_forward<W>(v, alpha, ws);
    if (!out.node) return;
    double* __restrict log_p = frame.take(L * width);
    double* scratch = frame.take(2 * width);
    last_marginals(v, alpha, out.node + (T - 1) * width);
    double entropy = 0;
    for (Index b = 0; b < L; ++b) {
        const double p = out.node[(T - 1) * width + b];
        if (p > 0.0) entropy -= p * std::log(p);
    }
    if (out.edge) fill(out.edge, (tied ? 1 : T - 1) * L * width, 0.0);
    for (Index t = T - 1; t > 0; --t) {
        check_now_and_then(t);
        log_predecessors<W>(v, alpha, t, log_p, scratch);
        const double* __restrict mu = out.node + t * width;
        double* __restrict previous = out.node + (t - 1) * width;
        double* __restrict edge = out.edge ? out.edge + (tied ? 0 : (t - 1) * L * width) : nullptr;
        for (Index a = 0; a < L; ++a) {
            double total = 0;
            double h = 0;
            const double* __restrict lp = log_p + a * width;
#pragma omp simd reduction(+ : total, h)
            for (Index b = 0; b < width; ++b) {
                const double xi = b < L ? fast_exp(lp[b]) * mu[b] : 0.0;
                total += xi;
                h -= xi > 0.0 ? xi * lp[b] : 0.0;
            }
            previous[a] = total;
            entropy += h;
            if (edge) {
                for (Index b = 0; b < L; ++b) edge[a * width + b] += fast_exp(lp[b]) * mu[b];
            }
        }
        for (Index a = L; a < width; ++a) previous[a] = 0.0;
    }
    out.entropy = std::max(entropy, 0.0);
}

// Derivative of the expected counts along a direction of scores (node_d, edge_d), at temperature 1: Cov(counts)
// direction.
//   d alpha_t(b)  = dN_t(b) + sum_a p_t(a | b) (d alpha_{t-1}(a) + dE_t(a, b))
//   d xi_t(a, b)  = p_t(a | b) d mu_t(b) + xi_t(a, b) (d alpha_{t-1}(a) + dE_t(a, b) + dN_t(b) - d alpha_t(b))
template <int W>
void covariance(const View& v, const double* node_d, const double* edge_d, double* node_out, double* edge_out,
                Workspace& ws) {
    const Index width = row_width<W>(v);
    const Index T = v.length;
    const Index L = v.n_labels;
    const bool tied = v.edge_step == 0;
    Workspace::Frame frame(ws);
    double* alpha = frame.take(T * width);
    double* alpha_d = frame.take(T * width);
    double* log_p = frame.take(L * width);
    double* scratch = frame.take(2 * width);
    double* mu = frame.take(2 * width);
    log_forward<W>(v, alpha, ws);
    const auto edge_d_at = [&](Index t) { return edge_d + (tied ? 0 : (t - 1) * L * width); };
    copy(node_d, alpha_d, width);
    for (Index t = 1; t < T; ++t) {
        check_now_and_then(t);
        log_predecessors<W>(v, alpha, t, log_p, scratch);
        for (Index b = 0; b < L; ++b) {
            double sum = node_d[t * width + b];
            for (Index a = 0; a < L; ++a) {
                const double p = fast_exp(log_p[a * width + b]);
                sum += p * (alpha_d[(t - 1) * width + a] + edge_d_at(t)[a * width + b]);
            }
            alpha_d[t * width + b] = sum;
        }
    }
    last_marginals(v, alpha, mu);
    double mean = 0;
    for (Index b = 0; b < L; ++b) mean += mu[b] * alpha_d[(T - 1) * width + b];
    fill(node_out, T * width, 0.0);
    fill(edge_out, (tied ? 1 : T - 1) * L * width, 0.0);
    for (Index b = 0; b < L; ++b) node_out[(T - 1) * width + b] = mu[b] * (alpha_d[(T - 1) * width + b] - mean);
    for (Index t = T - 1; t > 0; --t) {
        check_now_and_then(t);
        log_predecessors<W>(v, alpha, t, log_p, scratch);
        double* previous = mu + width;
        double* edge = edge_out + (tied ? 0 : (t - 1) * L * width);
        for (Index a = 0; a < L; ++a) {
            double total = 0;
            double total_d = 0;
            for (Index b = 0; b < L; ++b) {
                const double p = fast_exp(log_p[a * width + b]);
                const double xi = p * mu[b];
                const double change = alpha_d[(t - 1) * width + a] + edge_d_at(t)[a * width + b] +
                                      node_d[t * width + b] - alpha_d[t * width + b];
                const double xi_d = p * node_out[t * width + b] + xi * change;
                total += xi;
                total_d += xi_d;
                edge[a * width + b] += xi_d;
            }
            previous[a] = total;
            node_out[(t - 1) * width + a] = total_d;
        }
        copy(previous, mu, width);
    }
}

}  // namespace partwise::chain
