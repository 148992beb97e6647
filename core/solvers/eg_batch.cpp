#include "solvers/eg.h"
#include "solvers/sum_examples.h"
#include "support/vector_math.h"

namespace partwise {

Plane eg_batch_step(const Objective& objective, const double* weights, double step, const double* scores, double* moved,
                    int n_jobs, Interrupt& interrupt) {
    // Examples of weight 0 do not change the dual, but their scores must stay valid.
    for (Index i = 0; i < objective.num_examples(); ++i) {
        const Index begin = objective.offset(i);
        if (objective.weight(i) == 0.0 && moved != scores) copy(scores + begin, moved + begin, objective.num_slots(i));
    }
    const LossParameters& loss = objective.loss();
    const double keep = 1.0 - step * loss.temperature;
    return sum_examples(objective, n_jobs, interrupt, true, [&](Index i, double* direction, Workspace& ws) {
        const Index n = objective.num_slots(i);
        const double* from = scores + objective.offset(i);
        double* to = moved + objective.offset(i);
        Workspace::Frame frame(ws);
        double* target = frame.take(n);
        objective.features().scores(i, weights, target);
        objective.add_cost(i, loss.cost_scale, target);
        for (Index r = 0; r < n; ++r) to[r] = keep * from[r] + step * target[r];
        Term term = objective.gibbs_term(i, to, nullptr, direction, ws);
        // mu = gold - direction
        term.extra += objective.dot_gold(i, from) - dot(direction, from, n);
        return term;
    });
}

Plane eg_primal_point(const Objective& objective, const double* z, double cost_scale, double old_cost_scale, int n_jobs,
                      Interrupt& interrupt) {
    return sum_examples(objective, n_jobs, interrupt, true, [&](Index i, double* direction, Workspace& ws) {
        const Index n = objective.num_slots(i);
        Workspace::Frame frame(ws);
        double* scores = frame.take(n);
        objective.features().scores(i, z, scores);
        objective.add_cost(i, cost_scale, scores);
        Term term = objective.gibbs_term(i, scores, nullptr, direction, ws);
        if (old_cost_scale != 0.0) {
            fill(scores, n, 0.0);
            objective.add_cost(i, old_cost_scale, scores);
            term.extra += objective.dot_gold(i, scores) - dot(direction, scores, n);
        }
        return term;
    });
}

std::vector<double> gold_features(const Objective& objective, int n_jobs, Interrupt& interrupt) {
    return sum_examples(objective, n_jobs, interrupt, true,
                        [&](Index i, double* direction, Workspace&) {
                            fill(direction, objective.num_slots(i), 0.0);
                            objective.add_gold(i, 1.0, direction);
                            return Term{};
                        })
        .u;
}

}  // namespace partwise
