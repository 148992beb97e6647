#include "solvers/hessian.h"

#include "solvers/sum_examples.h"

namespace partwise {

Hessian::Hessian(const Objective& objective, const double* weights, int n_jobs, Interrupt& interrupt)
    : objective_(objective), scores_(idx(objective.total_slots())) {
    if (!(objective.structure().capabilities() & kCovariance)) {
        throw InputError("a Hessian needs a structure with the capability 'covariance'");
    }
    if (!(objective.loss().temperature > 0.0)) throw InputError("a Hessian needs a temperature above 0");
    parallel_for(objective.num_examples(), objective.jobs(n_jobs), interrupt, [&](Index i, int) {
        double* scores = scores_.data() + objective.offset(i);
        objective.features().scores(i, weights, 1.0, scores);
        objective.add_cost(i, objective.loss().cost_scale, scores);
    });
}

std::vector<double> Hessian::product(const double* direction, int n_jobs, Interrupt& interrupt) const {
    return sum_examples(objective_, n_jobs, interrupt, true,
                        [&](Index i, double* out, Workspace& ws) {
                            Workspace::Frame frame(ws);
                            double* change = frame.take(objective_.num_slots(i));
                            objective_.features().scores(i, direction, 1.0, change);
                            apply(i, change, out, ws);
                            return Term{};
                        })
        .u;
}

void Hessian::apply(Index i, const double* change, double* out, Workspace& ws) const {
    const Index n = objective_.num_slots(i);
    const double tau = objective_.loss().temperature;
    const double* scores = scores_.data() + objective_.offset(i);
    const Structure& structure = objective_.structure();
    if (objective_.loss().link == Link::kIdentity) {
        structure.covariance_product(i, scores, tau, change, out, ws);
        for (Index r = 0; r < n; ++r) out[r] /= tau;
        return;
    }
    Workspace::Frame frame(ws);
    double* residual = frame.take(n);  // g - mu
    double* cost = frame.take(n);
    fill(cost, n, 0.0);
    objective_.add_cost(i, objective_.loss().cost_scale, cost);
    const double gold_score = objective_.dot_gold(i, scores) - objective_.dot_gold(i, cost);
    const double margin = structure.log_partition(i, scores, tau, residual, nullptr, ws) - gold_score;
    if (!(margin > 0.0)) {
        fill(out, n, 0.0);
        return;
    }
    for (Index r = 0; r < n; ++r) residual[r] = -residual[r];
    objective_.add_gold(i, 1.0, residual);
    structure.covariance_product(i, scores, tau, change, out, ws);
    const double along = 2.0 * dot(residual, change, n);
    for (Index r = 0; r < n; ++r) out[r] = 2.0 * margin / tau * out[r] + along * residual[r];
}

}  // namespace partwise
