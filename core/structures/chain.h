// First-order sequences of labels.
//
// Slots of a sequence of length T with L labels in rows of `width`:
//   T rows: slot t * width + a is label a at position t
//   tied:   L rows: slot (a, b) counts how often label b follows label a;  untied: T - 1 such blocks, one per edge
//   ends:   a row for the first label, a row for the last one
#pragma once

#include "structures/chain_kernels.h"
#include "structures/chart_structure.h"
#include "structures/clique_view.h"
#include "structures/sequences.h"

namespace partwise {

class Chain final : public ChartStructure<Chain, LabelSequences>, public CliqueView {
   public:
    Chain(std::vector<Index> lengths, Index n_labels, bool tied, bool ends);

    bool tied() const { return tied_; }
    bool ends() const { return ends_; }

    unsigned capabilities() const override { return ChartStructure::capabilities() | kCliques | kSupport; }
    Index num_slots(Index i) const override;
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override;
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override;
    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace& ws) const override;

    // Cliques: the T - 1 edges (L x width each), or the single node of a sequence of length 1.
    const CliqueView& cliques() const override { return *this; }
    std::vector<Index> clique_offsets(Index i) const override;
    double clique_marginals(Index i, const double* scores, double temperature, double* out,
                            Workspace& ws) const override;
    void slots_from_cliques(Index i, const double* cliques, double* slots) const override;
    double clique_disagreement(Index i, const double* cliques, Workspace& ws) const override;
    double entropy_of_cliques(Index i, const double* cliques, double* gradient, Workspace& ws) const override;
    Along entropy_along(Index i, const double* cliques, const double* direction, double step,
                        Workspace& ws) const override;
    void scores_from_cliques(Index i, const double* cliques, double* out) const override;
    bool slot_scores_from_cliques(Index i, const double* cliques, double* scores) const override;
    void clique_entries(Index i, SlotView labelling, Index* entries, Workspace& ws) const override;
    double maximize_in_support(Index i, const double* scores, const double* cliques, double least, SlotCounts& best,
                               Workspace& ws) const override;

    void labelling_of(Index i, const Index* labels, SlotCounts& out) const override;

   private:
    friend ChartStructure;
    template <class F>
    auto with_program(Index i, F&& f) const;
    template <class Program>
    const double* to_program(Index i, const Program& program, const double* values, double scale, bool masked,
                             Workspace::Frame& frame) const;
    double gather(Index i, const double* scores, std::vector<Index>& used, SlotCounts& out) const;

    Index edge_slots(Index i) const;
    Index edge_begin(Index i) const { return length(i) * width(); }
    Index ends_begin(Index i) const { return edge_begin(i) + edge_slots(i); }
    // Writes the labels of the best path; returns false if every path has the score -infinity.
    static bool best_path(const chain::View& view, Index* labels, Workspace& ws);
    // Sums over paths: in scaled probabilities if `safe`, else in log space.
    void sum_paths(Index i, const chain::View& view, bool safe, chain::Sums& sums, Workspace& ws) const;
    double weight_of(Index i, const double* scores, const Index* labels) const;

    // The kernels' view of scores * scale, with -infinity for masked slots. Scores are copied only if they change.
    // cut: whether a rule or a mask forbids pairs of labels.
    enum class Cut { kNone, kByRule, kByMask };
    chain::View prepare(Index i, const double* scores, double scale, Workspace::Frame& frame, Cut& cut) const;
    // Whether sums in scaled probabilities keep their digits.
    bool is_safe(const chain::View& view, Cut cut) const;
    void follow_changed() override;
    // Writes the begin and end rows from the first and last node rows.
    void add_ends(Index i, const double* node_marginals, double* slots) const;

    bool tied_;
    bool ends_;
    std::vector<double> follow_scores_;  // L rows of width: 0, or -infinity where the rule forbids a pair; empty: none
    bool within_two_ = true;             // see follow_changed
};

extern template class ChartStructure<Chain, LabelSequences>;

}  // namespace partwise
