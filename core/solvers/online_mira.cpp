#include "solvers/online_mira.h"

#include "solvers/online_qp.h"
#include "solvers/online_weights.h"

namespace partwise {

namespace {

class Mira {
   public:
    Mira(const OnlineState& state, Index k)
        : objective_(state.objective), k_(k), w_(objective_.features(), state.weights, state.sum) {}

    MiraReport report;

    void visit(Index i) {
        if (objective_.weight(i) == 0.0) return;
        ++report.visits;
        const Index n = objective_.num_slots(i);
        Workspace::Frame frame(ws_);
        double* scores = frame.take(n);
        w_.scores(i, scores);
        check_scores(i, scores, n);
        find_best(i, scores);
        collect(i, scores, frame);
        if (!need_.empty()) {
            ++report.mistakes;
            report.left_out += qp_.solve(gram_, need_);
            for (std::size_t j = 0; j < need_.size(); ++j) {
                if (qp_.alpha()[j] > 0.0) w_.add(psi_[j], qp_.alpha()[j]);
            }
        }
        w_.average(1.0);
    }

    void settle() {
        w_.settle();
        report.mass = w_.mass();
    }

   private:
    void find_best(Index i, const double* scores) {
        if (k_ > 1) {
            best_ = objective_.structure().k_best(i, scores, k_, ws_);
        } else {
            best_.resize(1);
            best_[0].value = objective_.structure().maximize(i, scores, best_[0].labelling, ws_);
        }
    }

    // Vectors, inner products and needs of the labellings found other than the gold one; none if all margins are met.
    void collect(Index i, const double* scores, Workspace::Frame& frame) {
        const Index n = objective_.num_slots(i);
        double* direction = frame.take(n);
        double* cost = frame.take(n);
        fill(cost, n, 0.0);
        objective_.add_cost(i, objective_.loss().cost_scale, cost);
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
    OnlineWeights w_;
    Workspace ws_;
    std::vector<Scored> best_;
    std::vector<SparseVector> psi_;
    std::vector<double> need_;
    std::vector<double> gram_;
    HardMargins qp_;
};

}  // namespace

MiraReport mira_epoch(const OnlineState& state, std::span<const Index> order, Index k, Interrupt& interrupt) {
    Mira pass(state, k);
    for (const Index i : order) {
        interrupt.check();
        pass.visit(i);
    }
    pass.settle();
    return pass.report;
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

}  // namespace partwise
