#include "solvers/likely_labellings.h"

#include <cmath>

namespace partwise {

AtomTable likely_labellings(const Objective& objective, const double* scores, Index most, Interrupt& interrupt) {
    AtomTable out;
    out.example_ptr.push_back(0);
    out.labelling_ptr.push_back(0);
    Workspace ws;
    for (Index i = 0; i < objective.num_examples(); ++i) {
        interrupt.check();
        std::vector<Scored> best = objective.structure().k_best(i, scores + objective.offset(i), most, ws);
        const double first = best.front().value;
        while (std::exp(best.back().value - first) < kUnlikely) best.pop_back();
        double sum = 0;
        for (const Scored& found : best) sum += std::exp(found.value - first);
        for (const auto& [value, labelling] : best) {
            out.slots.insert(out.slots.end(), labelling.slots.begin(), labelling.slots.end());
            out.counts.insert(out.counts.end(), labelling.counts.begin(), labelling.counts.end());
            out.labelling_ptr.push_back(len(out.slots.size()));
            out.coefficients.push_back(std::exp(value - first) / sum);
            out.stamps.push_back(0);
        }
        out.example_ptr.push_back(len(out.coefficients.size()));
    }
    return out;
}

}  // namespace partwise
