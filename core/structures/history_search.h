// The search for the best labellings of a HistoryChain.
//
// At each position the search keeps the `beam_width` histories whose best labellings are best. Of labellings that end
// in the same history only the best can be the best in the end, so that they are put together: with all histories this
// is Viterbi's algorithm. The k best labellings are those of the histories kept, found one by one from the end.
//
// A search and no chart program (chart.h): which cells there are is known only once those before them have been
// compared, and a step's score depends on all scores of its position.
#pragma once

#include <vector>

#include "structures/history_chain.h"

namespace partwise {

// Scores of labels at a position of a HistoryChain after a history, and their log partition.
//
//   Z_t(s) = sum_c E_t(c) F_s(c),   E = exp(scores),   F = exp(after) = exp(first) exp(second)
//
// each divided by its largest value: one exponential per label of a position, none per history. Where the products are
// too small for doubles the sum is taken over exp of the sums.
class HistoryRows {
   public:
    explicit HistoryRows(const HistoryChain::View& view);

    const HistoryChain::View& view() const { return view_; }
    // scores[t] + after[state], a row of width; good until the next call.
    double* scores(Index t, Index state);
    // log Z_t(state), after scores(t, state).
    double log_partition(Index t, Index state) const;

   private:
    HistoryChain::View view_;
    std::vector<double> row_;
    std::vector<double> emissions_;  // E, rows of width
    std::vector<double> highs_;      // what each row was divided by, as a logarithm
};

// log p of the best labelling that a search finds, and its labels. Probabilities only shrink along a labelling, so
// that histories whose labellings are below one that is known need not be followed: it is first looked for greedily.
double best_labelling(const HistoryChain::View& view, Index beam_width, Index* labels);

class HistorySearch {
   public:
    // Histories whose best labellings are below `least` are not kept. rows: used while the search lives. InputError if
    // scores are infinite, so that no labelling has a value.
    HistorySearch(HistoryRows& rows, Index beam_width, double least = -kInfinity);

    // Whether a labelling was found that is not below `least`.
    bool succeeded() const { return layers_[layers_.size() - 2] < layers_.back(); }
    // log p of the best labelling, and its labels.
    double best(Index* labels) const;

    struct Found {
        double value;
        std::vector<Index> labels;
    };
    // Fewer if there are fewer.
    std::vector<Found> k_best(Index k);

   private:
    // A history at a position.
    struct Node {
        Index state;
        Index last;            // its last tag
        Index group;           // the nodes of the layer before that lead here
        Index own_group;       // the nodes that lead where this one leads
        Index before;          // the best node before
        double value;          // log p of the best labelling that leads here
        double log_partition;  // log Z of the labels after this history; NaN until it is needed
    };
    // A new history on its way into a layer.
    struct Candidate {
        double value;
        Index group;
        Index label;
    };
    // The r-th best way to a node is the best step from some `rank`-th best way to a node before.
    struct Way {
        double value;
        Index before;
        Index rank;
    };
    struct Ways {
        std::vector<Way> found;  // best first
        std::vector<Way> next;   // a heap: one for each node before
        bool started = false;
        bool complete = false;  // whether the last one found has been followed up
    };

    // Closes the newest layer: puts its nodes into groups.
    void end_layer();
    void grow(Index t, Index beam_width);
    bool is_hopeless(double value, Index beam_width) const;
    // The best candidates, best first.
    void keep_best(Index beam_width);
    double step_value(Index t, Node& from, Index label);
    // The nodes that lead to a node of layer t; past the last layer all nodes lead to the end.
    std::span<const Index> nodes_before(Index t, Index node) const;
    void start(Index t, Index node);
    // Finds ways to a node until there are more than `rank` of them; false if there are fewer.
    bool find(Index t, Index node, Index rank);

    HistoryRows& rows_;
    const HistoryChain::View& view_;
    double least_;
    std::vector<Node> nodes_;    // layer t: the histories before position t, best first; the last one: after all
    std::vector<Index> layers_;  // first node of each layer, and the end
    std::vector<Index> order_;   // the nodes of each layer by their last tag (histories of one tag: as they are)
    std::vector<Index> groups_;  // first place in `order_` of each group: nodes that lead to the same ones; and the end
    std::vector<Index> first_groups_;  // of each layer, and the end
    std::vector<Ways> ways_;           // to each node, then to the end
    // Scratch of one step:
    std::vector<Index> reached_;  // groups that lead somewhere, those with the best nodes first
    std::vector<Index> place_;    // of each group among those, or -1
    std::vector<double> values_;  // of the best way to each (reached group, label), rows of `width`
    std::vector<Index> before_;   // the node before it
    std::vector<Candidate> kept_;
};

}  // namespace partwise
