#include "solvers/violators.h"

#include <algorithm>

namespace partwise {

ViolatorReport find_violators(const Objective& objective, const double* weights, WorkingSets& sets,
                              std::span<const Index> order, const ViolatorOptions& options, Interrupt& interrupt) {
    if (objective.loss().temperature != 0.0) throw InputError("a search for violators needs a loss of temperature 0");
    sets.attach(objective, interrupt);
    ViolatorReport report;
    Workspace ws;
    SlotCounts answer;
    for (const Index i : order) {
        interrupt.check();
        const double omega = objective.weight(i);
        if (omega == 0.0) continue;
        ++report.visits;
        const double margin = objective.worst_margin(i, weights, answer, ws);
        Workspace::Frame frame(ws);
        double* scores = frame.take(objective.num_slots(i));
        sets.rows(i).scores(weights, 1.0, scores);
        const Index n = len(sets.of(i).size());
        double* v = frame.take(n);
        sets.values(i, scores, v);
        double slack = -kInfinity;
        for (Index k = 0; k < n; ++k) slack = std::max(slack, v[k]);
        // Without a labelling there is no slack yet: the gold one's, 0.
        const double violation = std::max(0.0, margin - (slack == -kInfinity ? 0.0 : slack));
        report.losses += omega * margin;
        report.total += omega * violation;
        report.largest = std::max(report.largest, violation);
        if (!(violation > options.epsilon)) continue;
        ++report.added;
        sets.find_or_add(objective, i, answer, options.now);
        if (sets.bytes() > options.max_bytes && sets.merge(objective, i)) ++report.merged;
    }
    return report;
}

}  // namespace partwise
