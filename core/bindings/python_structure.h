// A structure written in Python: every call takes the GIL and asks the Python object.
#pragma once

#include "bindings/common.h"
#include "structures/clique_view.h"
#include "structures/structure.h"

namespace partwise::bindings {

class PythonStructure final : public Structure, public CliqueView {
   public:
    explicit PythonStructure(Index num_examples) : Structure(num_examples), sizes_(num_examples, -1) {}

    bool thread_safe() const override { return false; }
    unsigned capabilities() const override;
    // Asks Python; an error if the answer is another one than before, as there are arrays of that size by then.
    Index num_slots(Index i) const override;
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override;
    void maximize_of(std::span<const Index> examples, const double* const* scores, double* values, SlotCounts* best,
                     Workspace& ws) const override;
    bool together() const override;
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override;
    void log_partition_of(Index begin, Index end, const double* scores, double temperature, double* values,
                          double* marginals, double* entropies, Workspace& ws) const override;
    void log_values_of(Index begin, Index end, const double* scores, double temperature, double* values,
                       Workspace& ws) const override;
    void add_cost(Index i, SlotView gold, double scale, double* scores) const override;
    void check_labelling(Index i, SlotView labelling, Workspace& ws) const override;
    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override;
    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace& ws) const override;
    const CliqueView& cliques() const override { return *this; }
    std::vector<Index> clique_offsets(Index i) const override;
    double clique_marginals(Index i, const double* scores, double temperature, double* out,
                            Workspace& ws) const override;
    void slots_from_cliques(Index i, const double* cliques, double* slots) const override;
    double entropy_of_cliques(Index i, const double* cliques, double* gradient, Workspace& ws) const override;
    void scores_from_cliques(Index i, const double* cliques, double* out) const override;
    void clique_entries(Index i, SlotView labelling, Index* entries, Workspace& ws) const override;
    double maximize_in_support(Index i, const double* scores, const double* cliques, double least, SlotCounts& best,
                               Workspace& ws) const override;

   protected:
    double maximum(Index i, const double* scores, double* counts, Workspace& ws) const override;

   private:
    // The method of the Python subclass; NotImplementedError if it has none.
    nb::object method(const char* name) const;
    bool implements(const char* name) const;
    // Whether the maximum has a method of its own: `maximize` or `maximize_many`.
    bool has_maximum() const { return implements("maximize") || implements("maximize_many"); }
    bool has_sums() const { return implements("log_partition") || implements("log_partition_many"); }
    // The sums that `name` gave for example i, as (value, expected counts, entropy): checked. Returns the value.
    double take_sums(const char* name, Index i, nb::handle answer, double* marginals, double* entropy) const;
    // The sums of the examples [begin, end), slots end to end, as one question; marginals, entropies: null or as in
    // `log_partition_of`.
    void sums_of(Index begin, Index end, const double* scores, double temperature, double* values, double* marginals,
                 double* entropies) const;
    // The labelling that `name` gave for example i, as (value, slots, counts), and its value: checked.
    double take_answer(const char* name, Index i, const double* scores, nb::handle answer, SlotCounts& best) const;
    // The examples [begin, end), slots end to end, as `maximize_of` takes them.
    struct Rows {
        std::vector<Index> examples;
        std::vector<const double*> scores;
    };
    Rows rows_of(Index begin, Index end, const double* scores) const;
    // What the method gives for several examples: a list with one answer, of this form, for each.
    template <class... Rest>
    std::vector<nb::object> ask_many(const char* name, const char* form, std::span<const Index> examples,
                                     const double* const* scores, Rest... rest) const;
    // Scores as an array of their own: Python may keep it.
    NumPy<double> array(Index i, const double* scores) const;
    NumPy<double> clique_array(Index i, const double* cliques) const;
    // The first answer of num_slots: what the core's arrays have.
    Index size(Index i) const { return sizes_[i] < 0 ? num_slots(i) : sizes_[i]; }

    mutable int single_ = -1;           // whether `maximize` answers for single examples; -1: not looked up yet
    mutable std::vector<Index> sizes_;  // read and written with the GIL; -1: not asked yet
};

}  // namespace partwise::bindings
