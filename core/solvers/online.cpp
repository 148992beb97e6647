#include "solvers/online.h"

#include <cmath>

#include "solvers/online_weights.h"

namespace partwise {

void check_scores(Index i, const double* scores, Index n) {
    if (!all_finite(scores, n)) {
        throw NumberError("the scores of example " + std::to_string(i) + " are no longer finite");
    }
}

bool difference(const Objective& objective, Index i, const SlotCounts& answer, double* direction) {
    const Index n = objective.num_slots(i);
    fill(direction, n, 0.0);
    objective.add_gold(i, 1.0, direction);
    for (std::size_t k = 0; k < answer.slots.size(); ++k) direction[answer.slots[k]] -= answer.counts[k];
    return norm2(direction, n) != 0.0;
}

namespace {

class Sgd {
   public:
    Sgd(const OnlineState& state, const SgdOptions& options)
        : objective_(state.objective),
          options_(options),
          plane_(state.plane),
          w_(objective_.features(), state.weights, state.sum) {}

    OnlineReport report;

    void visit(Index i) {
        const double omega = objective_.weight(i);
        if (omega == 0.0) return;
        const Index n = objective_.num_slots(i);
        Workspace::Frame frame(ws_);
        double* scores = frame.take(n);
        double* direction = frame.take(n);
        w_.scores(i, scores);
        check_scores(i, scores, n);
        const double gold_score = objective_.dot_gold(i, scores);
        objective_.add_cost(i, objective_.loss().cost_scale, scores);
        bool moves = true;
        if (objective_.loss().temperature == 0.0) {
            const double best = objective_.structure().maximize(i, scores, answer_, ws_);
            moves = difference(objective_, i, answer_, direction);
            report.loss += omega * (best - gold_score);
            if (plane_ && moves) add_to_plane(i, omega, direction, scores);
        } else {
            const double smax =
                objective_.structure().log_partition(i, scores, objective_.loss().temperature, direction, nullptr, ws_);
            report.loss += omega * (smax - gold_score);
            scale(-1.0, direction, n);
            objective_.add_gold(i, 1.0, direction);
        }
        const double eta = step(options_.first + static_cast<double>(report.visits));
        ++report.visits;
        w_.shrink(1.0 - eta * options_.l2 / options_.n);
        if (moves) w_.add(i, direction, eta * omega);
        w_.average(options_.first + static_cast<double>(report.visits));
    }

    void settle() {
        w_.settle();
        report.mass = w_.mass();
    }

   private:
    double step(double k) const {
        const double eta = options_.step_size;
        if (options_.rule == StepRule::kReciprocal) return eta / (1.0 + k / options_.n);
        const double decay = options_.rule == StepRule::kPower ? options_.l2 : options_.l2 / options_.n;
        return eta / std::pow(1.0 + eta * k * decay, 0.75);
    }

    void add_to_plane(Index i, double omega, const double* direction, double* cost) {
        fill(cost, objective_.num_slots(i), 0.0);
        objective_.add_cost(i, objective_.loss().cost_scale, cost);
        for (std::size_t k = 0; k < answer_.slots.size(); ++k) {
            report.bound += omega * answer_.counts[k] * cost[answer_.slots[k]];
        }
        objective_.features().add_transpose(i, direction, omega, plane_);
    }

    const Objective& objective_;
    SgdOptions options_;
    double* plane_;
    OnlineWeights w_;
    Workspace ws_;
    SlotCounts answer_;
};

void check_link(const Objective& objective) {
    if (!objective.loss().link.fixed_mass()) throw InputError("this method needs the identity link");
}

}  // namespace

OnlineReport perceptron_epoch(const OnlineState& state, std::span<const Index> order, Interrupt& interrupt) {
    const Objective& objective = state.objective;
    OnlineWeights w(objective.features(), state.weights, state.sum);
    OnlineReport report;
    Workspace ws;
    SlotCounts answer;
    for (const Index i : order) {
        interrupt.check();
        if (objective.weight(i) == 0.0) continue;
        ++report.visits;
        const Index n = objective.num_slots(i);
        Workspace::Frame frame(ws);
        double* slots = frame.take(n);
        w.scores(i, slots);
        check_scores(i, slots, n);
        objective.structure().maximize(i, slots, answer, ws);
        if (difference(objective, i, answer, slots)) {
            ++report.mistakes;
            w.add(i, slots, objective.weight(i));
        }
        w.average(1.0);
    }
    w.settle();
    report.mass = w.mass();
    return report;
}

OnlineReport sgd_epoch(const OnlineState& state, std::span<const Index> order, const SgdOptions& options,
                       Interrupt& interrupt) {
    check_link(state.objective);
    Sgd pass(state, options);
    for (const Index i : order) {
        interrupt.check();
        pass.visit(i);
    }
    pass.settle();
    return pass.report;
}

namespace {

// sum over these examples of omega_i f(i, slot scores, workspace); f may write to the scores.
template <class F>
double weighted_sum(const Objective& objective, const double* weights, std::span<const Index> examples,
                    Interrupt& interrupt, F&& f) {
    Workspace ws;
    double sum = 0;
    for (const Index i : examples) {
        interrupt.check();
        const Index n = objective.num_slots(i);
        Workspace::Frame frame(ws);
        double* scores = frame.take(n);
        objective.features().scores(i, weights, scores);
        check_scores(i, scores, n);
        sum += objective.weight(i) * f(i, scores, ws);
    }
    return sum;
}

}  // namespace

double wrong_parts(const Objective& objective, const double* weights, std::span<const Index> examples,
                   Interrupt& interrupt) {
    SlotCounts answer;
    return weighted_sum(objective, weights, examples, interrupt, [&](Index i, double* slots, Workspace& ws) {
        objective.structure().maximize(i, slots, answer, ws);
        difference(objective, i, answer, slots);
        double wrong = 0;
        for (Index r = 0; r < objective.num_slots(i); ++r) wrong += std::max(-slots[r], 0.0);
        return wrong;
    });
}

double sum_of_losses(const Objective& objective, const double* weights, std::span<const Index> examples,
                     Interrupt& interrupt) {
    check_link(objective);
    SlotCounts answer;
    const double temperature = objective.loss().temperature;
    return weighted_sum(objective, weights, examples, interrupt, [&](Index i, double* scores, Workspace& ws) {
        const double gold_score = objective.dot_gold(i, scores);
        objective.add_cost(i, objective.loss().cost_scale, scores);
        const double smax = temperature == 0.0
                                ? objective.structure().maximize(i, scores, answer, ws)
                                : objective.structure().log_partition(i, scores, temperature, nullptr, nullptr, ws);
        return smax - gold_score;
    });
}

}  // namespace partwise
