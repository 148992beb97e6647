// Any graph over discrete variables: cliques of vertices with scores for their joint labels.
//
// Slots of an example:
//   a row per vertex: slot a of it is label a; rows are padded to padded_width(number of labels)
//   tables of cliques, ordered by number: the entry of the labels (a_1, ..., a_m) of the clique's vertices, in
//   the order in which the clique names them, is ((a_1 n_2 + a_2) n_3 + ...) w + a_m, w the padded width of the last
// Several cliques may share a table; each of them then uses its slots. Every vertex has a row of its own, so the
// Hamming cost is put on the rows.
//
// Inference runs on a junction tree (junction_tree.h) of the vertices with two or more possible labels: labels that the
// mask forbids, directly or through their neighbours, are removed first. A tree is made when its example is first used.
// Examples of the same shape without masks share a tree.
#pragma once

#include <map>
#include <mutex>

#include "structures/clique_view.h"
#include "structures/junction_tree.h"
#include "structures/structure.h"

namespace partwise {

namespace junction {
struct Support;
}

// All examples end to end. Example i has vertices [vertex_ptr[i], vertex_ptr[i+1]) and cliques [clique_ptr[i],
// clique_ptr[i+1]); clique c has members[member_ptr[c]..member_ptr[c+1]), numbers of vertices within the example, and
// the table tables[c] of the example, numbered from 0.
struct GraphLayout {
    std::vector<Index> vertex_ptr;
    std::vector<Index> n_labels;
    std::vector<Index> clique_ptr;
    std::vector<Index> member_ptr;
    std::vector<Index> members;
    std::vector<Index> tables;
    // Tables that every example has, whether a clique names them or not: table t is for cliques of vertices with
    // common_labels[common_ptr[t]..common_ptr[t+1]) labels. They come first. Empty: none.
    std::vector<Index> common_ptr;
    std::vector<Index> common_labels;
};

class Graph final : public Structure, public CliqueView {
   public:
    // memory_limit: bytes that the tables of one example may take.
    Graph(GraphLayout layout, double memory_limit);

    const GraphLayout& layout() const { return layout_; }
    double memory_limit() const { return memory_limit_; }
    Index num_vertices(Index i) const { return layout_.vertex_ptr[i + 1] - layout_.vertex_ptr[i]; }
    // The first slot of each of the example's tables; the last value is the end of the last table.
    std::vector<Index> table_offsets(Index i) const;
    // Width of the junction tree, and the bytes that sums take. Throws InputError if that is beyond the limit.
    Index width(Index i) const { return compiled(i).tree.width; }
    Index bytes(Index i) const { return compiled(i).tree.doubles() * Index{sizeof(double)}; }

    unsigned capabilities() const override { return kCliques | kSupport | kCovariance | kKBest | kSample; }
    Index num_slots(Index i) const override { return num_slots_[i]; }
    Index num_row_slots(Index i) const override;
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override;
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override;
    void add_cost(Index i, SlotView gold, double scale, double* scores) const override;
    void check_labelling(Index i, SlotView labelling, Workspace& ws) const override;
    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override;
    std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                   Workspace& ws) const override;
    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace& ws) const override;

    // Cliques: those of the junction tree, as junction_tree.h lays out their tables; they depend on the mask.
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
    void clique_entries(Index i, SlotView labelling, Index* entries, Workspace& ws) const override;
    double maximize_in_support(Index i, const double* scores, const double* cliques, double least, SlotCounts& best,
                               Workspace& ws) const override;

    // The slots of labels of all vertices, merged, ascending. Labels are checked.
    void labelling_of(Index i, const Index* labels, SlotCounts& out) const;
    // Reads the labels from the rows of vertices. Throws InputError unless each vertex has one label.
    void labels_of(Index i, SlotView labelling, Index* labels) const;

   protected:
    void check_mask(Index i) const override;

   private:
    // An example prepared for inference: its junction tree, and the slots of the factors' entries.
    struct Compiled {
        bool masked = false;
        junction::Tree tree;
        std::vector<Index> vertices;             // of the tree's variables
        std::vector<std::vector<Index>> labels;  // left to each vertex, ascending
        std::vector<Index> slots;                // of factors' entries; -1: forbidden
        std::vector<Index> always;               // slots that all labellings use; repeated if used several times
    };
    struct Gathered {
        double* factors;
        double constant;  // of the slots that are always used
    };
    // Vertices of a clique, and the distance between the slots of successive labels of each.
    struct Axes {
        Index begin;  // first slot
        std::vector<Index> vertices;
        std::vector<Index> steps;
    };

    const Compiled& compiled(Index i) const;
    std::shared_ptr<const Compiled> compile(Index i) const;
    std::vector<std::vector<Index>> labels_left(Index i, const std::vector<Axes>& all) const;
    // The axes of all rows of vertices, then of all cliques.
    std::vector<Axes> axes_of(Index i) const;
    std::vector<Index> shape_of(Index i) const;

    Gathered gather(const Compiled& c, const double* scores, double scale, double forbidden,
                    Workspace::Frame& frame) const;
    void scatter(Index i, const Compiled& c, const double* factors, double always, double* slots) const;
    // The labelling in which the tree's variables have these rows.
    void labelling_of_rows(Index i, const Compiled& c, const Index* rows, SlotCounts& out) const;
    // Finds the best labelling and returns its value, which is far below 0 if no labelling is allowed. support: the
    // entries of cliques that are allowed, or null for all.
    double find_best(Index i, const double* scores, const junction::Support* support, SlotCounts& best,
                     Workspace& ws) const;
    template <class... Parts>
    [[noreturn]] static void refuse(Index i, const Parts&... what) {
        throw InputError("example ", i, what...);
    }

    GraphLayout layout_;
    double memory_limit_;
    std::vector<Index> row_begin_;     // of each vertex, within its example
    std::vector<Index> table_ptr_;     // tables of each example
    std::vector<Index> table_begin_;   // first slot of each
    std::vector<Index> clique_begin_;  // first slot of each clique's table, within its example
    std::vector<Index> num_slots_;
    mutable std::mutex mutex_;
    mutable std::vector<std::shared_ptr<const Compiled>> compiled_;
    mutable std::map<std::vector<Index>, std::shared_ptr<const Compiled>> shapes_;
};

}  // namespace partwise
