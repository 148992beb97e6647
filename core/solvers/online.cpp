#include "solvers/online.h"

#include "solvers/online_qp.h"
#include "solvers/online_weights.h"

namespace partwise {

namespace {

// direction = g - count(y) of example i, where y is `answer`. Returns whether any entry is not 0.
bool difference(const Objective& objective, Index i, const SlotCounts& answer, double* direction) {
    const Index n = objective.num_slots(i);
    fill(direction, n, 0.0);
    objective.add_gold(i, 1.0, direction);
    answer.view().add_to(direction, -1.0);
    return norm2(direction, n) != 0.0;
}

class Sgd {
   public:
    Sgd(const OnlineState& state, const SgdOptions& options)
        : w(state.objective.features(), state.weights, state.sum),
          objective_(state.objective),
          options_(options),
          plane_(state.plane) {}

    OnlineReport report;
    OnlineWeights w;

    void visit(Index i) {
        const double omega = objective_.weight(i);
        const Index n = objective_.num_slots(i);
        Workspace::Frame frame(ws_);
        double* scores = frame.take(n);
        double* direction = frame.take(n);
        w.scores(i, scores);
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
        w.shrink(1.0 - eta * options_.l2 / options_.n);
        if (moves) w.add(i, direction, eta * omega);
        w.average(options_.first + static_cast<double>(report.visits));
    }

   private:
    double step(double k) const {
        const double eta = options_.step_size;
        if (options_.rule == StepRule::kReciprocal) return eta / (1.0 + k / options_.n);
        const double decay = options_.rule == StepRule::kPower ? options_.l2 : options_.l2 / options_.n;
        return eta / std::pow(1.0 + eta * k * decay, 0.75);
    }

    void add_to_plane(Index i, double omega, const double* direction, double* cost) {
        objective_.costs(i, cost);
        for (std::size_t k = 0; k < answer_.slots.size(); ++k) {
            report.bound += omega * answer_.counts[k] * cost[answer_.slots[k]];
        }
        objective_.features().add_transpose(i, direction, omega, plane_);
    }

    const Objective& objective_;
    SgdOptions options_;
    double* plane_;
    Workspace ws_;
    SlotCounts answer_;
};

class Mira {
   public:
    Mira(const OnlineState& state, Index k)
        : w(state.objective.features(), state.weights, state.sum), objective_(state.objective), k_(k) {}

    MiraReport report;
    OnlineWeights w;

    void visit(Index i) {
        ++report.visits;
        const Index n = objective_.num_slots(i);
        Workspace::Frame frame(ws_);
        double* scores = frame.take(n);
        w.scores(i, scores);
        best_ = objective_.worst_labellings(i, scores, 0.0, k_, ws_);  // the best by scores without costs
        collect(i, scores, frame);
        if (!need_.empty()) {
            ++report.mistakes;
            report.left_out += qp_.solve(gram_, need_);
            for (std::size_t j = 0; j < need_.size(); ++j) {
                if (qp_.alpha()[j] > 0.0) w.add(psi_[j], qp_.alpha()[j]);
            }
        }
        w.average(1.0);
    }

   private:
    // The vectors, inner products and needs of the labellings that are not gold; empty if all margins are met.
    void collect(Index i, const double* scores, Workspace::Frame& frame) {
        const Index n = objective_.num_slots(i);
        double* direction = frame.take(n);
        double* cost = frame.take(n);
        objective_.costs(i, cost);
        const double gold_score = objective_.dot_gold(i, scores);
        need_.clear();
        bool violated = false;
        for (const Scored& found : best_) {
            if (!difference(objective_, i, found.labelling, direction)) continue;
            double need = 0;
            for (std::size_t s = 0; s < found.labelling.slots.size(); ++s) {
                const Index slot = found.labelling.slots[s];
                need += found.labelling.counts[s] * (cost[slot] + scores[slot]);
            }
            need_.push_back(need - gold_score);
            violated = violated || need_.back() > 0.0;
            if (psi_.size() < need_.size()) psi_.emplace_back();
            objective_.features().project(i, direction, psi_[need_.size() - 1]);
        }
        if (!violated) need_.clear();
        const std::size_t m = need_.size();
        gram_.resize(m * m);
        for (std::size_t p = 0; p < m; ++p) {
            for (std::size_t q = 0; q <= p; ++q) gram_[p * m + q] = gram_[q * m + p] = psi_[p].dot(psi_[q]);
        }
    }

    const Objective& objective_;
    Index k_;
    Workspace ws_;
    std::vector<Scored> best_;
    std::vector<SparseVector> psi_;
    std::vector<double> need_;
    std::vector<double> gram_;
    HardMargins qp_;
};

// Visits the examples, then completes the weights and their sum (`settle`).
template <class Pass>
auto run(Pass& pass, const OnlineState& state, std::span<const Index> order, Interrupt& interrupt) {
    for_each_visit(state.objective, order, interrupt, [&](Index i) { pass.visit(i); });
    pass.w.settle();
    pass.report.mass = pass.w.mass();
    return pass.report;
}

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
    for_each_visit(objective, order, interrupt, [&](Index i) {
        ++report.visits;
        const Index n = objective.num_slots(i);
        Workspace::Frame frame(ws);
        double* slots = frame.take(n);
        w.scores(i, slots);
        objective.structure().maximize(i, slots, answer, ws);
        if (difference(objective, i, answer, slots)) {
            ++report.mistakes;
            w.add(i, slots, objective.weight(i));
        }
        w.average(1.0);
    });
    w.settle();
    report.mass = w.mass();
    return report;
}

OnlineReport sgd_epoch(const OnlineState& state, std::span<const Index> order, const SgdOptions& options,
                       Interrupt& interrupt) {
    check_link(state.objective);
    Sgd pass(state, options);
    return run(pass, state, order, interrupt);
}

MiraReport mira_epoch(const OnlineState& state, std::span<const Index> order, Index k, Interrupt& interrupt) {
    Mira pass(state, k);
    return run(pass, state, order, interrupt);
}

Index most_labellings(const Objective& objective, Index k, Interrupt& interrupt) {
    Workspace ws;
    Index most = 0;
    for (Index i = 0; i < objective.num_examples() && most < k; ++i) {
        interrupt.check();
        if (objective.weight(i) == 0.0) continue;
        const std::vector<double> scores(objective.num_slots(i), 0.0);
        most = std::max(most, len(objective.structure().k_best(i, scores.data(), k, ws).size()));
    }
    return most;
}

namespace {

// sum over these examples of omega_i f(i, slot scores, workspace); f may overwrite the scores.
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
