#include "solvers/eg_batch.h"

#include "support/vector_math.h"

namespace partwise {

Plane eg_batch_step(const Objective& objective, const double* weights, double step, const double* scores, double* moved,
                    int n_jobs, Interrupt& interrupt) {
    // Examples of weight 0 take no part in the dual, but their scores must stay scores.
    for (Index i = 0; i < objective.num_examples(); ++i) {
        const Index begin = objective.offset(i);
        if (objective.weight(i) == 0.0 && moved != scores) copy(scores + begin, moved + begin, objective.num_slots(i));
    }
    const LossParameters& loss = objective.loss();
    const double keep = 1.0 - step * loss.temperature;
    const auto move = [&](Index i, double* target) -> const double* {
        objective.features().scores(i, weights, 1.0, target);
        objective.add_cost(i, loss.cost_scale, target);
        const double* from = scores + objective.offset(i);
        double* to = moved + objective.offset(i);
        const Index n = objective.num_slots(i);
        for (Index r = 0; r < n; ++r) to[r] = keep * from[r] + step * target[r];
        return to;
    };
    return objective.dual_terms_gibbs(move, n_jobs, interrupt);
}

}  // namespace partwise
