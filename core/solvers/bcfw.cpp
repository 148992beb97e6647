#include "solvers/bcfw.h"

#include "support/vector_math.h"

namespace partwise {

namespace {

// The z = (alpha, beta) that maximises L'z - z'Hz / 2 over alpha >= -1, beta >= 0; see the squared link in bcfw.h.
struct Step {
    double alpha = 0;
    double beta = 0;
};

Step best_step(double la, double lb, double haa, double hab, double hbb) {
    const auto value = [&](Step z) {
        return la * z.alpha + lb * z.beta -
               0.5 * (haa * z.alpha * z.alpha + 2 * hab * z.alpha * z.beta + hbb * z.beta * z.beta);
    };
    const double determinant = haa * hbb - hab * hab;
    if (haa > 0.0 && determinant > 1e-12 * haa * hbb) {
        const Step free{(la * hbb - lb * hab) / determinant, (lb * haa - la * hab) / determinant};
        if (free.alpha >= -1.0 && free.beta >= 0.0) return free;
    }
    const Step along{haa > 0.0 ? std::max(-1.0, la / haa) : 0.0, 0.0};
    const Step fresh{-1.0, std::max(0.0, (lb + hab) / hbb)};
    const Step added{0.0, std::max(0.0, lb / hbb)};
    Step best = along;
    for (const Step& z : {fresh, added}) {
        if (value(z) > value(best)) best = z;
    }
    return best;
}

template <class L>
class Pass {
   public:
    Pass(const BcfwState& state, const BcfwOptions& options)
        : objective_(state.objective), l2_(options.l2), state_(state) {
        for (Index i = 0; i < objective_.num_examples(); ++i) b_ += objective_.weight(i) * block_bound(i);
    }

    BcfwReport report;

    void visit(Index i) {
        const double omega = objective_.weight(i);
        ++report.visits;
        const Index n = objective_.num_slots(i);
        Workspace::Frame frame(ws_);
        double* theta = frame.take(n);
        double* cost = frame.take(n);  // costs kappa c of the slots
        double* augmented = frame.take(n);
        double* change = frame.take(n);  // the block's change times -1, the vector that A' is applied to
        objective_.features().scores(i, state_.weights, theta);
        objective_.costs(i, cost);
        for (Index r = 0; r < n; ++r) augmented[r] = theta[r] + cost[r];
        const double best = objective_.structure().maximize(i, augmented, answer_, ws_);
        const double answer_cost = answer_.view().dot(cost);
        b_ -= omega * block_bound(i);
        bool moved = false;
        if constexpr (kFixedMass<L>) {
            moved = step_on_simplex(i, omega, augmented, best, answer_cost, change);
        } else {
            moved = step_in_cone(i, omega, theta, best, answer_cost, change, frame);
        }
        b_ += omega * block_bound(i);
        if (moved) ++report.steps;
        average(i, omega, moved ? change : nullptr);
    }

   private:
    double block_bound(Index i) const { return state_.linear[i] - L::conjugate(state_.mass[i]); }

    void note_gap(Index i, double gap) {
        report.gap_estimate += gap;
        if (state_.gaps) state_.gaps[i] = gap;
    }

    bool step_on_simplex(Index i, double omega, const double* augmented, double best, double answer_cost,
                         double* change) {
        const Index n = objective_.num_slots(i);
        double* mu = state_.counts + objective_.offset(i);
        const double gap = std::max(0.0, best - dot(augmented, mu, n));
        note_gap(i, omega * gap);
        copy(mu, change, n);
        answer_.view().add_to(change, -1.0);
        const double norm = objective_.features().transpose_norm2(i, change);
        const double gamma = norm > 0.0 ? std::min(1.0, gap * l2_ / (omega * norm)) : (gap > 0.0 ? 1.0 : 0.0);
        if (gamma == 0.0) return false;
        for (Index r = 0; r < n; ++r) {
            change[r] *= gamma;
            mu[r] -= change[r];
        }
        state_.linear[i] = (1.0 - gamma) * state_.linear[i] + gamma * answer_cost;
        return true;
    }

    bool step_in_cone(Index i, double omega, const double* theta, double best, double answer_cost, double* change,
                      Workspace::Frame& frame) {
        constexpr double c = L::kConjugateCurvature;
        const Index n = objective_.num_slots(i);
        double* x = state_.counts + objective_.offset(i);
        const double s = state_.mass[i];
        double* p = frame.take(n);  // s g - x, the block's direction for alpha
        double* q = frame.take(n);  // g - count(y), the direction for beta
        for (Index r = 0; r < n; ++r) p[r] = -x[r];
        objective_.add_gold(i, s, p);
        fill(q, n, 0.0);
        objective_.add_gold(i, 1.0, q);
        answer_.view().add_to(q, -1.0);
        const auto& features = objective_.features();
        const double pp = features.transpose_norm2(i, p);
        const double qq = features.transpose_norm2(i, q);
        for (Index r = 0; r < n; ++r) change[r] = p[r] + q[r];
        const double pq = 0.5 * (features.transpose_norm2(i, change) - pp - qq);
        const double ratio = omega / l2_;
        const double margin = best - objective_.dot_gold(i, theta);  // = answer_cost - <theta, q>
        const double la = state_.linear[i] - dot(theta, p, n) - c * s * s;
        const double lb = answer_cost - dot(theta, q, n) - c * s;
        const Step z = best_step(la, lb, c * s * s + ratio * pp, c * s + ratio * pq, c + ratio * qq);
        // The block's gap phi(margin) - [s (margin at mu) - phi*(s)], 0 if s = phi'(margin) and mu is a best one.
        note_gap(i, omega * (L::value(margin) - (state_.linear[i] - dot(theta, p, n)) + L::conjugate(s)));
        if (z.alpha == 0.0 && z.beta == 0.0) return false;
        for (Index r = 0; r < n; ++r) {
            change[r] = z.alpha * p[r] + z.beta * q[r];
            x[r] *= 1.0 + z.alpha;
        }
        answer_.view().add_to(x, z.beta);
        state_.mass[i] = (1.0 + z.alpha) * s + z.beta;
        state_.linear[i] = (1.0 + z.alpha) * state_.linear[i] + z.beta * answer_cost;
        return true;
    }

    // w += delta = omega / l2 A'change, then average <- (1 - rho) average + rho w. With w - average = scale * lag, (w -
    // average) <- (1 - rho) (w - average + delta), so lag += delta / scale and scale *= 1 - rho.
    void average(Index i, double omega, const double* change) {
        double& k = state_.average[0];
        double& scale = state_.average[1];
        const double rho = 2.0 / (k + 2.0);
        const Index d = objective_.features().num_weights();
        if (change) {
            objective_.features().add_transpose(i, change, omega / l2_, state_.weights);
            if (rho < 1.0) objective_.features().add_transpose(i, change, omega / (l2_ * scale), state_.lag);
        }
        if (rho < 1.0) {
            scale *= 1.0 - rho;
        } else {
            fill(state_.lag, d, 0.0);  // the average starts at the first iterate
            scale = 1.0;
        }
        if (scale < 1e-6) {
            for (Index j = 0; j < d; ++j) state_.lag[j] *= scale;
            scale = 1.0;
        }
        state_.average[2] = (1.0 - rho) * state_.average[2] + rho * b_;
        k += 1.0;
    }

    const Objective& objective_;
    double l2_;
    BcfwState state_;
    Workspace ws_;
    SlotCounts answer_;
    double b_ = 0;  // b of the dual point: sum_i omega_i (linear_i - phi*(s_i))
};

}  // namespace

BcfwReport bcfw_epoch(const BcfwState& state, std::span<const Index> order, const BcfwOptions& options,
                      Interrupt& interrupt) {
    if (state.objective.loss().temperature != 0.0) throw InputError("bcfw needs a loss of temperature 0");
    return state.objective.loss().link.with_block_steps<BcfwReport>("bcfw", [&](auto link) {
        Pass<decltype(link)> pass(state, options);
        for_each_visit(state.objective, order, interrupt, [&](Index i) { pass.visit(i); });
        return pass.report;
    });
}

}  // namespace partwise
