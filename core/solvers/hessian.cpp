#include "solvers/hessian.h"

#include "solvers/sum_examples.h"

namespace partwise {

namespace {
// The fewest runs of examples that may stand for all examples.
constexpr Index kFewestRuns = 4;
}  // namespace

Hessian::Hessian(const Objective& objective, const double* weights, const double* marginals, Index every, int n_jobs,
                 Interrupt& interrupt)
    : objective_(objective),
      every_(objective.total_slots() < kFewestRuns * every * kRunSlots ? 1 : every),
      scores_(marginals ? 0 : objective.total_slots()),
      kept_(marginals ? marginals : scores_.data()) {
    if (every < 1) throw InputError("every must be at least 1");
    if (!(objective.structure().capabilities() & kCovariance)) {
        throw InputError("a Hessian needs a structure with the capability 'covariance'");
    }
    if (!(objective.loss().temperature > 0.0)) throw InputError("a Hessian needs a temperature above 0");
    const bool one_part = (objective.structure().capabilities() & kOnePart) != 0;
    keeps_marginals_ = one_part && objective.loss().link.fixed_mass();
    if (marginals && !keeps_marginals_) {
        throw InputError("marginals replace scores only if labellings have one part and the link is the identity");
    }
    const auto prepare = [&](Index begin, Index end, double*, Workspace& ws) {
        Term used;
        for (Index i = begin; i < end; ++i) used.value += objective.weight(i);
        if (marginals) return used;
        double* scores = scores_.data() + objective.offset(begin);
        const Index all = objective.offset(end) - objective.offset(begin);
        objective.augmented_scores_of(begin, end, weights, scores, nullptr);
        if (!keeps_marginals_) return used;
        Workspace::Frame frame(ws);
        double* found = frame.take(all);
        objective.structure().log_partition_of(begin, end, scores, objective.loss().temperature,
                                               frame.take(end - begin), found, frame.take(end - begin), ws);
        copy(found, scores, all);
        return used;
    };
    const double used = sum_runs(objective, n_jobs, interrupt, false, prepare, every_).value;
    if (every_ == 1) return;
    double sum = 0;
    for (Index i = 0; i < objective.num_examples(); ++i) sum += objective.weight(i);
    factor_ = sum / used;
}

std::vector<double> Hessian::product(const double* direction, int n_jobs, Interrupt& interrupt) const {
    const auto multiply = [&](Index begin, Index end, double* out, Workspace& ws) {
        const Index first = objective_.offset(begin);
        Workspace::Frame frame(ws);
        double* change = frame.take(objective_.offset(end) - first);
        objective_.features().scores_of(begin, end, direction, change);
        if (keeps_marginals_) {
            double* factors = frame.take(end - begin);
            const double inverse = factor_ / objective_.loss().temperature;
            for (Index i = begin; i < end; ++i) factors[i - begin] = objective_.weight(i) * inverse;
            objective_.structure().covariance_of_marginals(begin, end, kept_ + first, change, factors, out);
            return Term{};
        }
        for (Index i = begin; i < end; ++i) {
            const Index at = objective_.offset(i) - first;
            apply(i, change + at, out + at, ws);
            scale(factor_ * objective_.weight(i), out + at, objective_.num_slots(i));
        }
        return Term{};
    };
    return sum_runs(objective_, n_jobs, interrupt, true, multiply, every_).u;
}

std::vector<double> Hessian::diagonal(int n_jobs, Interrupt& interrupt) const {
    if (!objective_.loss().link.fixed_mass()) throw InputError("the diagonal is available for the identity link only");
    const double tau = objective_.loss().temperature;
    const auto variances = [&](Index begin, Index end, double* out, Workspace& ws) {
        const Index first = objective_.offset(begin);
        for (Index i = begin; i < end; ++i) {
            const double* kept = kept_ + objective_.offset(i);
            double* v = out + (objective_.offset(i) - first);
            const Index n = objective_.num_slots(i);
            const double share = factor_ * objective_.weight(i) / tau;
            if (keeps_marginals_) {
                double sum = 0;
                Index labels = 0;  // without padding and forbidden labels
                for (Index r = 0; r < n; ++r) {
                    sum += kept[r] * (1.0 - kept[r]);
                    labels += kept[r] > 0 ? 1 : 0;
                }
                std::fill(v, v + n, share * sum / static_cast<double>(labels));
            } else {
                objective_.structure().log_partition(i, kept, tau, v, nullptr, ws);
                scale(share, v, n);
            }
        }
        return Term{};
    };
    return sum_runs(objective_, n_jobs, interrupt, true, variances, every_, true).u;
}

void Hessian::apply(Index i, const double* change, double* out, Workspace& ws) const {
    const Index n = objective_.num_slots(i);
    const double tau = objective_.loss().temperature;
    const double* scores = kept_ + objective_.offset(i);
    const Structure& structure = objective_.structure();
    const Link& link = objective_.loss().link;
    if (link.fixed_mass()) {
        structure.covariance_product(i, scores, tau, change, out, ws);
        for (Index r = 0; r < n; ++r) out[r] /= tau;
        return;
    }
    Workspace::Frame frame(ws);
    double* residual = frame.take(n);  // g - mu
    double* cost = frame.take(n);
    objective_.costs(i, cost);
    const double gold_score = objective_.dot_gold(i, scores) - objective_.dot_gold(i, cost);
    const double margin = structure.log_partition(i, scores, tau, residual, nullptr, ws) - gold_score;
    const double mass = link.mass(margin);
    const double second = link.second(margin);
    if (mass == 0.0 && second == 0.0) {
        fill(out, n, 0.0);
        return;
    }
    for (Index r = 0; r < n; ++r) residual[r] = -residual[r];
    objective_.add_gold(i, 1.0, residual);
    structure.covariance_product(i, scores, tau, change, out, ws);
    const double along = second * dot(residual, change, n);
    for (Index r = 0; r < n; ++r) out[r] = mass / tau * out[r] + along * residual[r];
}

}  // namespace partwise
