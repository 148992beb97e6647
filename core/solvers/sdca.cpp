#include "solvers/sdca.h"

#include <optional>

#include "solvers/dual_weights.h"
#include "structures/width_dispatch.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

// The least logarithm of a probability: a slot in use keeps a positive probability.
constexpr double kLowest = -690.0;
constexpr int kMostIterations = 50;
// After a step d of log q, the error of q is at most about q d^2 / 2. A step with a smaller error is the last one.
constexpr double kSettled = 1e-11;

// The loop of `newton`. It is inlined, so that a constant n unrolls it.
[[gnu::always_inline]] inline std::optional<int> descend(const double* __restrict target, const double* __restrict rho,
                                                         const double* __restrict used, double* __restrict logs,
                                                         double* __restrict q, double* __restrict inverse,
                                                         double* __restrict change, const Index n) {
    for (int k = 1; k <= kMostIterations; ++k) {
        double sum = 0;
        double slope = 0;
        double pull = 0;
#pragma omp simd reduction(+ : sum, slope, pull)
        for (Index a = 0; a < n; ++a) {
            const double weight = rho[a] * q[a];
            inverse[a] = 1.0 / (1.0 + weight);
            change[a] = (target[a] - logs[a] - weight) * inverse[a];
            sum += q[a];
            slope += q[a] * inverse[a];
            pull += q[a] * change[a];
        }
        const double nu = (sum + pull - 1.0) / slope;
        double left = 0;
#pragma omp simd reduction(max : left)
        for (Index a = 0; a < n; ++a) {
            const double step = change[a] - nu * inverse[a];
            double next = logs[a] + step;
            next = next > 0.0 ? 0.0 : next;
            next = next < kLowest ? kLowest : next;
            logs[a] = next;
            q[a] = used[a] * fast_exp(next);
            const double error = q[a] * step * step;
            left = left > error ? left : error;
        }
        if (left < kSettled) return k;
    }
    return std::nullopt;
}

// Arrays of one block; used[a] is 1 for slots in use and 0 for the others.
struct Block {
    const double* target;  // t_a + rho_a p_a
    const double* rho;
    const double* used;
    double* logs;    // log q; on entry a guess
    double* q;       // exp(logs) for slots in use; on return it sums to one
    double* change;  // scratch
};

// Newton's method on both conditions of sdca.h: with e_a = target_a - log q_a - rho_a q_a, the step of log q_a is (e_a
// - nu) / (1 + rho_a q_a), and nu makes the linearised sum of q one. Logs are cut off at 0 (q_a <= 1): a slot that
// rises from almost 0 then starts from there, where Newton's method descends a convex function.
//
// For the widths that kernels are compiled for, all values are in local arrays, which few labels keep in registers.
template <int W>
std::optional<int> newton(const Block& block, Index slots) {
    if constexpr (W > 0) {
        double target[W], rho[W], used[W], logs[W], q[W], inverse[W], change[W];
        for (int a = 0; a < W; ++a) {
            target[a] = block.target[a];
            rho[a] = block.rho[a];
            used[a] = block.used[a];
            logs[a] = block.logs[a];
            q[a] = block.q[a];
        }
        const auto steps = descend(target, rho, used, logs, q, inverse, change, Index{W});
        for (int a = 0; a < W; ++a) {
            block.logs[a] = logs[a];
            block.q[a] = q[a];
        }
        return steps;
    } else {
        std::vector<double> inverse(slots);
        return descend(block.target, block.rho, block.used, block.logs, block.q, inverse.data(), block.change, slots);
    }
}

// Solves log q + rho q = v for log q: with x = rho q, x + log x = v + log rho.
double solve_slot(double v, double rho) {
    if (rho == 0.0) return v;
    const double log_rho = std::log(rho);
    const double shifted = v + log_rho;
    double log_x = shifted > 1.0 ? std::log(shifted) : shifted;
    for (int k = 0; k < 30; ++k) {
        const double x = std::exp(log_x);
        const double step = (shifted - log_x - x) / (1.0 + x);
        log_x += step;
        if (std::abs(step) < 1e-14 * (1.0 + std::abs(log_x))) break;
    }
    return log_x - log_rho;
}

// The slow but safe method, if Newton's method has not converged: bisection on nu, with each slot solved separately.
void bisect(const Block& block, Index n) {
    double low = kInfinity;
    double high = -kInfinity;
    double count = 0;
    for (Index a = 0; a < n; ++a) count += block.used[a];
    for (Index a = 0; a < n; ++a) {
        if (block.used[a] == 0.0) continue;
        // With nu = target - rho this slot has q = 1; with nu = target - rho / n + log n it has at most q = 1 / n.
        high = std::max(high, block.target[a] - block.rho[a] / count + std::log(count));
        low = std::min(low, block.target[a] - block.rho[a]);
    }
    for (int k = 0; k < 200; ++k) {
        const double nu = 0.5 * (low + high);
        double sum = 0;
        for (Index a = 0; a < n; ++a) {
            block.logs[a] = std::clamp(solve_slot(block.target[a] - nu, block.rho[a]), kLowest, 0.0);
            block.q[a] = block.used[a] * std::exp(block.logs[a]);
            sum += block.q[a];
        }
        (sum > 1.0 ? low : high) = nu;
        if (!(high - low > 1e-15 * (1.0 + std::abs(nu)))) break;
    }
}

class Pass {
   public:
    Pass(const SdcaState& state, const SdcaOptions& options)
        : objective_(state.objective),
          l2_(options.l2),
          state_(state),
          spare_(2 * (options.pulled.second - options.pulled.first)),
          weights_{options.l1,
                   options.l2,
                   state.weights,
                   state.plane,
                   {options.pulled.first, options.pulled.second, options.pull, spare_.data()}} {}

    SdcaReport report;

    template <int W>
    void visit(Index i) {
        const double omega = objective_.weight(i);
        ++report.visits;
        const Index n = W > 0 ? W : objective_.num_slots(i);
        const Index first = objective_.offset(i);
        const double tau = objective_.loss().temperature;
        double* __restrict logs = state_.scores + first;
        Workspace::Frame frame(ws_);
        double* __restrict p = frame.take(n);
        double* __restrict t = frame.take(n);
        double* __restrict target = frame.take(n);
        double* __restrict rho = frame.take(n);
        double* __restrict used = frame.take(n);
        double* __restrict trial = frame.take(n);
        double* __restrict q = frame.take(n);
        double* __restrict scratch = frame.take(n);
        objective_.features().scores(i, state_.weights, t);
        if (objective_.loss().cost_scale != 0.0) objective_.add_cost(i, objective_.loss().cost_scale, t);
        const double inverse = 1.0 / tau;
        const double scale = omega / (l2_ * tau);
        for (Index a = 0; a < n; ++a) {
            t[a] *= inverse;
            const double curvature = state_.curvatures[first + a];
            used[a] = curvature >= 0.0 ? 1.0 : 0.0;
            rho[a] = scale * used[a] * curvature;
            trial[a] = logs[a];
            p[a] = used[a] * fast_exp(trial[a]);
            q[a] = p[a];
            target[a] = t[a] + rho[a] * p[a];
        }
        const Block block{target, rho, used, trial, q, scratch};
        if (const auto steps = newton<W>(block, n)) {
            report.iterations += *steps;
        } else {
            report.iterations += kMostIterations;
            bisect(block, n);
        }
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (Index a = 0; a < n; ++a) sum += q[a];
        const double log_sum = std::log(sum);
        const double inverse_sum = 1.0 / sum;
        double entropy = 0;
        double linear = 0;
        double quadratic = 0;
        double* __restrict d = scratch;
#pragma omp simd reduction(+ : entropy, linear, quadratic)
        for (Index a = 0; a < n; ++a) {
            trial[a] -= log_sum;
            q[a] *= inverse_sum;
            d[a] = p[a] - q[a];
            entropy -= q[a] * trial[a];
            linear -= t[a] * d[a];
            quadratic += 0.5 * rho[a] * d[a] * d[a];
        }
        const double gain = linear + (entropy - state_.entropies[i]) - quadratic;
        state_.gains[i] = std::max(0.0, omega * tau * gain);
        // A maximum that is no better than the current point differs from it by rounding: the block is at its optimum.
        if (!(gain > 0.0)) {
            ++report.refused;
            return;
        }
        const Added added = weights_.move(objective_.features(), i, d, omega);
        const double found = added.norm2 * 0.5 * scale;
        if (weights_.l1 == 0.0) check_geometry(i, found, quadratic);
        report.dual_gain += omega * tau * (gain + (weights_.l1 > 0.0 ? quadratic - found : 0.0));
        for (Index a = 0; a < n; ++a) logs[a] = used[a] > 0.0 ? trial[a] : 0.0;
        state_.entropies[i] = entropy;
    }

   private:
    // Checks the curvatures, on which the block's maximum depends; the norm for it is known already.
    static void check_geometry(Index i, double found, double expected) {
        if (!(std::abs(found - expected) <= 1e-6 * (found + expected) + 1e-200)) {
            throw InputError("example ", i, ": the curvatures given are not those of its features");
        }
    }

    const Objective& objective_;
    double l2_;
    SdcaState state_;
    std::vector<double> spare_;
    DualWeights weights_;
    Workspace ws_;
};

// Values between 1/2 and 3/2, all different and without a pattern.
double probe(Index a) {
    const double x = 0.6180339887498949 * static_cast<double>(a + 1);
    return 0.5 + (x - std::floor(x));
}

}  // namespace

std::vector<double> slot_curvatures(const Objective& objective, std::span<const Index> examples, Interrupt& interrupt) {
    const FeatureMap& features = objective.features();
    Index total = 0;
    for (const Index i : examples) total += objective.num_slots(i);
    std::vector<double> all;
    all.reserve(total);  // reserved, because a growing vector would take twice the memory
    std::vector<double> v, ones, uniform, unit, sums, along;
    std::vector<double> weights;  // zero between products
    SparseVector row;
    Workspace ws;
    const auto match = [](double one, double two) { return std::abs(one - two) <= 1e-9 * (one + two); };
    for (const Index i : examples) {
        interrupt.check();
        const Index n = objective.num_slots(i);
        v.assign(n, 0.0);
        ones.assign(n, 0.0);
        unit.assign(n, 0.0);
        uniform.resize(n);
        // Slots that labellings use: those with a positive probability under the uniform distribution over labellings.
        objective.structure().log_partition(i, unit.data(), 1.0, uniform.data(), nullptr, ws);
        double norm = 0;
        Index some = -1;
        for (Index a = 0; a < n; ++a) {
            if (uniform[a] == 0.0) continue;
            some = a;
            v[a] = probe(a);
            ones[a] = 1.0;
            norm += v[a] * v[a];
        }
        const double found = features.transpose_norm2(i, v.data());
        const auto slot = [&](Index a) {
            unit[a] = 1.0;
            const double k = features.transpose_norm2(i, unit.data());
            unit[a] = 0.0;
            return k;
        };
        // out = A_i A_i' x; takes as long as a visit.
        const auto multiply = [&](const std::vector<double>& x, std::vector<double>& out) {
            weights.resize(features.num_weights(), 0.0);
            out.resize(n);
            features.project(i, x.data(), row);
            row.axpy(1.0, weights.data());
            features.scores(i, weights.data(), out.data());
            for (const SparseVector::Run& run : row.runs()) std::fill_n(weights.data() + run.start, run.length, 0.0);
        };
        const std::size_t begin = all.size();
        all.resize(begin + n, -1.0);
        const double same = slot(some);
        const bool alike = match(found, same * norm);  // the same curvature for all slots, as for full rows of features
        // If A A' is diagonal, A A' 1 is its diagonal k, and A A' v = k v. Otherwise some slot shows it, as both hold
        // only if sum_b (A A')_ab (v_b - v_a) = 0 for every a. (Sums over all slots would show too little: features
        // that two slots share add only the square of v_b - v_a, which may be tiny among hundreds of slots.)
        const bool by_slot = !alike && features.explicit_weights();
        if (by_slot) {
            multiply(ones, sums);
            multiply(v, along);
        }
        double expected = 0;
        for (Index a = 0; a < n; ++a) {
            if (uniform[a] == 0.0) continue;
            const double k = alike ? same : by_slot ? std::max(sums[a], 0.0) : slot(a);
            if (by_slot && !match(along[a], k * v[a])) return {};
            all[begin + a] = k;
            expected += k * v[a] * v[a];
        }
        if (!alike && !by_slot && !match(found, expected)) return {};
    }
    return all;
}

void sdca_start(const Objective& objective, double reach, double* scores, double* entropies, int n_jobs,
                Interrupt& interrupt) {
    parallel_with_scratch(objective.num_examples(), objective.jobs(n_jobs), interrupt, [&](Index i, Workspace& ws) {
        const Index n = objective.num_slots(i);
        double* logs = scores + objective.offset(i);
        Workspace::Frame frame(ws);
        double* p = frame.take(n);
        const double gold = objective.dot_gold(i, logs);
        for (Index a = 0; a < n; ++a) logs[a] = std::clamp(logs[a] - gold, -reach, reach);
        const double log_partition = objective.structure().log_partition(i, logs, 1.0, p, entropies + i, ws);
        for (Index a = 0; a < n; ++a) logs[a] = p[a] > 0.0 ? logs[a] - log_partition : 0.0;
    });
}

SdcaReport sdca_epoch(const SdcaState& state, std::span<const Index> order, const SdcaOptions& options,
                      Interrupt& interrupt) {
    Pass pass(state, options);
    for_each_visit(state.objective, order, interrupt, [&](Index i) {
        with_width(state.objective.num_slots(i), [&](auto width) { pass.visit<width()>(i); });
    });
    return pass.report;
}

}  // namespace partwise
