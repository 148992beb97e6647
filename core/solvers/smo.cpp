#include "solvers/smo.h"

#include "support/vector_math.h"

namespace partwise {

namespace {

// Mass below this is rounding: labellings that need an entry with less mass are not in the support.
constexpr double kNoMass = 1e-12;

class Pass {
   public:
    Pass(const SmoState& state, const SmoOptions& options)
        : objective_(state.objective),
          view_(objective_.structure().cliques()),
          l2_(options.l2),
          state_(state),
          starts_(clique_starts(objective_.structure())) {}

    SmoReport report;

    void visit(Index i) {
        const double omega = objective_.weight(i);
        ++report.visits;
        const Index n = objective_.num_slots(i);
        Workspace::Frame frame(ws_);
        double* augmented = frame.take(n);  // theta + kappa c
        double* change = frame.take(n);     // d
        objective_.features().scores(i, state_.weights, augmented);
        objective_.add_cost(i, objective_.loss().cost_scale, augmented);
        double* q = state_.cliques + starts_[i];

        const double best = objective_.structure().maximize(i, augmented, up_, ws_);
        view_.slots_from_cliques(i, q, change);
        state_.gaps[i] = std::max(0.0, omega * (best - dot(augmented, change, n)));
        for (Index r = 0; r < n; ++r) augmented[r] = -augmented[r];
        const double worst = -view_.maximize_in_support(i, augmented, q, kNoMass, down_, ws_);
        const double rise = best - worst;
        if (!(rise > 0.0)) return;

        fill(change, n, 0.0);
        down_.view().add_to(change, 1.0);
        up_.view().add_to(change, -1.0);
        const double norm = objective_.features().transpose_norm2(i, change);
        const double most = room(i, q);
        const double gamma = norm > 0.0 ? std::min(most, rise * l2_ / (omega * norm)) : most;
        if (!(gamma > 0.0)) return;
        move(q, gamma);
        objective_.features().add_transpose(i, change, gamma * omega / l2_, state_.weights);
        report.dual_gain += omega * gamma * (rise - 0.5 * gamma * omega / l2_ * norm);
        ++report.steps;
    }

   private:
    // Finds the entries of both labellings. Returns the most mass that can move (gamma's limit in smo.h).
    double room(Index i, const double* q) {
        const std::size_t n_cliques = view_.clique_offsets(i).size() - 1;
        up_entries_.resize(n_cliques);
        down_entries_.resize(n_cliques);
        view_.clique_entries(i, up_.view(), up_entries_.data(), ws_);
        view_.clique_entries(i, down_.view(), down_entries_.data(), ws_);
        double most = 1.0;
        for (std::size_t c = 0; c < n_cliques; ++c) {
            if (up_entries_[c] != down_entries_[c]) most = std::min(most, q[down_entries_[c]]);
        }
        return most;
    }

    void move(double* q, double gamma) const {
        for (std::size_t c = 0; c < up_entries_.size(); ++c) {
            if (up_entries_[c] == down_entries_[c]) continue;
            q[up_entries_[c]] += gamma;
            q[down_entries_[c]] = std::max(0.0, q[down_entries_[c]] - gamma);
        }
    }

    const Objective& objective_;
    const CliqueView& view_;
    double l2_;
    const SmoState& state_;
    std::vector<Index> starts_;  // where each example's marginals begin in `cliques`
    Workspace ws_;
    SlotCounts up_, down_;
    std::vector<Index> up_entries_, down_entries_;
};

}  // namespace

SmoReport smo_epoch(const SmoState& state, std::span<const Index> order, const SmoOptions& options,
                    Interrupt& interrupt) {
    const LossParameters& loss = state.objective.loss();
    if (loss.temperature != 0.0 || !loss.link.fixed_mass()) {
        throw InputError("smo needs a loss of temperature 0 with the identity link");
    }
    Pass pass(state, options);
    for_each_visit(state.objective, order, interrupt, [&](Index i) { pass.visit(i); });
    return pass.report;
}

}  // namespace partwise
