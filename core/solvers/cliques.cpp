#include "solvers/cliques.h"

namespace partwise {

namespace {

// How much clique marginals may differ from the marginals of a distribution.
constexpr double kTolerance = 1e-6;

}  // namespace

std::vector<Index> clique_starts(const Structure& structure) {
    std::vector<Index> starts{0};
    for (Index i = 0; i < structure.num_examples(); ++i)
        starts.push_back(starts.back() + structure.cliques().clique_offsets(i).back());
    return starts;
}

void cliques_of_scores(const Structure& structure, const double* scores, double* cliques, int n_jobs,
                       Interrupt& interrupt) {
    const CliqueView& view = structure.cliques();
    const std::vector<Index> slots = structure.slot_offsets();
    const std::vector<Index> starts = clique_starts(structure);
    parallel_with_scratch(structure.num_examples(), structure.jobs(n_jobs), interrupt, [&](Index i, Workspace& ws) {
        view.clique_marginals(i, scores + slots[i], 1.0, cliques + starts[i], ws);
    });
}

void read_cliques(const Structure& structure, const double* cliques, double* counts, double* entropies, int n_jobs,
                  Interrupt& interrupt) {
    const CliqueView& view = structure.cliques();
    const std::vector<Index> slots = structure.slot_offsets();
    const std::vector<Index> starts = clique_starts(structure);
    parallel_with_scratch(structure.num_examples(), structure.jobs(n_jobs), interrupt, [&](Index i, Workspace& ws) {
        const double* own = cliques + starts[i];
        view.slots_from_cliques(i, own, counts + slots[i]);
        entropies[i] = view.entropy_of_cliques(i, own, nullptr, ws);
    });
}

CliqueReport check_clique_marginals(const Objective& objective, const double* cliques, int n_jobs,
                                    Interrupt& interrupt) {
    const Structure& structure = objective.structure();
    const CliqueView& view = structure.cliques();
    const std::vector<Index> starts = clique_starts(structure);
    const Index n = structure.num_examples();
    const auto complaint_of = [](Index i, const char* what) {
        return "the clique marginals of example " + std::to_string(i) + " are not those of a distribution: " + what;
    };
    std::vector<CliqueReport> reports(n);
    parallel_with_scratch(n, objective.jobs(n_jobs), interrupt, [&](Index i, Workspace& ws) {
        if (objective.weight(i) == 0.0) return;
        const double* q = cliques + starts[i];
        CliqueReport& report = reports[i];
        const std::vector<Index> own = view.clique_offsets(i);
        for (std::size_t c = 0; c + 1 < own.size(); ++c) {
            double sum = 0;
            double least = 0;
            for (Index k = own[c]; k < own[c + 1]; ++k) {
                sum += q[k];
                least = std::min(least, q[k]);
            }
            report.off = std::max({report.off, -least, std::abs(sum - 1.0)});
            if (!(least >= -kTolerance)) throw InputError(complaint_of(i, "one is negative"));
            if (!(std::abs(sum - 1.0) <= kTolerance)) {
                throw InputError(complaint_of(i, "those of a clique do not sum to 1"));
            }
        }
        const auto look_at = [&](double wrong, const char* what) {
            report.off = std::max(report.off, wrong);
            if (wrong > kTolerance && wrong < kInfinity) report.complaint = complaint_of(i, what);
        };
        look_at(view.clique_disagreement(i, q, ws), "neighbouring cliques disagree");
        if (!structure.mask(i)) return;
        const Index n_slots = structure.num_slots(i);
        Workspace::Frame frame(ws);
        double* counts = frame.take(n_slots);
        view.slots_from_cliques(i, q, counts);
        for (Index r = 0; r < n_slots; ++r) {
            if (!structure.mask(i)[r]) look_at(counts[r], "a mask forbids a slot that they use");
        }
    });
    CliqueReport all;
    for (const CliqueReport& report : reports) {
        all.off = std::max(all.off, report.off);
        if (all.complaint.empty()) all.complaint = report.complaint;
    }
    return all;
}

}  // namespace partwise
