// Fuzz driver of solvers on tiny problems: weights stay finite and the dual does not fall, or the run is refused.
#include <memory>

#include "bytes.h"
#include "features/segments.h"
#include "solvers/bcfw.h"
#include "solvers/dcd.h"
#include "solvers/eg.h"
#include "solvers/online.h"
#include "solvers/smo.h"
#include "structures/chain.h"
#include "structures/multiclass.h"

using namespace partwise;
using namespace partwise::fuzz;

namespace {

struct Tiny {
    std::shared_ptr<Structure> structure;
    std::shared_ptr<LinearMap> features;
    GoldTable gold{{0}, {}, {}};
    std::vector<double> sample_weight;
    bool wide = false;
};

Tiny make(Bytes& in) {
    Tiny out;
    out.wide = in.byte() > 180;
    const bool chain = in.flag();
    const Index n_labels = in.below(1, 4);
    const Index n_attributes = in.below(1, 4);
    const Index n = in.below(1, 3);
    std::vector<Index> lengths;
    for (Index i = 0; i < n; ++i) lengths.push_back(chain ? in.below(1, 4) : 1);
    std::vector<Index> example_ptr{0};
    std::vector<Index> row_ptr{0};
    for (const Index length : lengths) {
        example_ptr.push_back(example_ptr.back() + length);
        for (Index t = 0; t < length; ++t) row_ptr.push_back(row_ptr.back() + in.below(0, 3));
    }
    const std::vector<Index> attributes = in.indices(row_ptr.back(), -1, n_attributes - 1);
    const std::vector<double> values = in.numbers(row_ptr.back(), out.wide);
    const auto layout =
        std::make_shared<const RowLayout>(RowLayout::dense(n_attributes, n_labels, padded_width(n_labels)));
    std::vector<std::shared_ptr<const Segment>> segments{
        AttributeSegment::make(layout, {example_ptr, row_ptr, attributes, values})};
    if (chain) {
        const auto made = std::make_shared<Chain>(lengths, n_labels, true, false);
        std::vector<Index> uses;
        for (const Index length : lengths) uses.push_back(length - 1);
        segments.push_back(
            std::make_shared<SharedSegment>(n_labels * made->width(), uses, std::vector<std::uint8_t>{}));
        for (Index i = 0; i < n; ++i) {
            std::vector<Index> labels;
            for (Index t = 0; t < lengths[i]; ++t) labels.push_back(in.below(0, n_labels - 1));
            SlotCounts y;
            made->labelling_of(i, labels.data(), y);
            out.gold.slots.insert(out.gold.slots.end(), y.slots.begin(), y.slots.end());
            out.gold.counts.insert(out.gold.counts.end(), y.counts.begin(), y.counts.end());
            out.gold.indptr.push_back(len(out.gold.slots.size()));
        }
        out.structure = made;
    } else {
        out.structure = std::make_shared<Multiclass>(n, n_labels);
        for (Index i = 0; i < n; ++i) {
            out.gold.slots.push_back(in.below(0, n_labels - 1));
            out.gold.counts.push_back(1.0);
            out.gold.indptr.push_back(i + 1);
        }
    }
    out.features = std::make_shared<LinearMap>(std::move(segments));
    if (in.flag()) {
        for (Index i = 0; i < n; ++i) out.sample_weight.push_back(static_cast<double>(in.below(0, 3)));
    }
    return out;
}

void check_weights(const Tiny& tiny, const std::vector<double>& w) {
    if (tiny.wide) return;
    for (const double one : w) require(std::isfinite(one), "weights of moderate problems are finite");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    accepted([&] {
        const Tiny tiny = make(in);
        const double l2 = std::ldexp(1.0, static_cast<int>(in.below(-6, 6)));
        const Index kind = in.below(0, 4);
        const bool squared = kind == 1 || (kind == 2 && in.flag());
        const LossParameters loss{kind == 0 ? 1.0 : 0.0, in.flag() ? 1.0 : 0.0,
                                  Link::named(squared ? "squared" : "identity")};
        const Objective o(tiny.structure, tiny.features, tiny.gold, loss, {}, tiny.sample_weight);
        o.check_gold();
        const Index n = o.num_examples();
        std::vector<double> w(o.features().num_weights(), 0.0);
        std::vector<double> counts(o.total_slots(), 0.0);
        std::vector<double> of_examples(n, 0.0);
        std::vector<Index> order;
        for (Index k = in.below(0, 8); k > 0; --k) order.push_back(in.below(0, n - 1));
        Interrupt interrupt;
        const auto add_gold = [&] {
            for (Index i = 0; i < n; ++i) o.add_gold(i, 1.0, counts.data() + o.offset(i));
        };
        if (kind == 0) {
            std::vector<double> scores(counts.size(), 0.0);
            o.marginals_of_scores(scores.data(), counts.data(), of_examples.data(), 1, interrupt);
            w = o.dual_terms_gibbs(scores.data(), 1, interrupt).u;
            for (double& one : w) one /= l2;
            std::vector<double> steps(n, 0.5);
            const EgReport report =
                eg_epoch({o, w.data(), nullptr, scores.data(), counts.data(), of_examples.data(), steps.data()}, order,
                         {.l2 = l2}, interrupt);
            require(tiny.wide || report.dual_gain >= -1e-9, "the dual does not fall");
        } else if (kind == 1) {
            WorkingSets sets(n);
            const DcdReport report = dcd_epoch({o, w.data(), sets}, order,
                                               {.l2 = l2, .seed = in.byte(), .violators = in.below(1, 3)}, interrupt);
            require(tiny.wide || report.dual_gain >= -1e-9, "the dual does not fall");
            const WorkingSets again(sets.table());
            require(again.num_atoms() == sets.num_atoms(), "working sets are read as they were written");
        } else if (kind == 2) {
            if (!squared) add_gold();
            std::vector<double> mass(n, squared ? 0.0 : 1.0);
            std::vector<double> lag(w.size(), 0.0);
            double average[3] = {0, 1, 0};
            const BcfwReport report =
                bcfw_epoch({o, w.data(), counts.data(), mass.data(), of_examples.data(), lag.data(), average, nullptr},
                           order, {l2}, interrupt);
            require(tiny.wide || report.gap_estimate >= -1e-6, "gaps are not negative");
        } else if (kind == 3) {
            const std::vector<Index> starts = clique_starts(o.structure());
            std::vector<double> scores(counts.size(), 0.0);
            std::vector<double> cliques(starts.back());
            o.near_gold_scores(30.0, scores.data());
            cliques_of_scores(o.structure(), scores.data(), cliques.data(), 1, interrupt);
            const SmoReport report =
                smo_epoch({o, w.data(), cliques.data(), starts, of_examples.data()}, order, {l2}, interrupt);
            require(tiny.wide || report.dual_gain >= -1e-6, "the dual does not fall");
            if (!tiny.wide) check_clique_marginals(o.structure(), cliques.data());
        } else {
            perceptron_epoch({o, w.data()}, order, interrupt);
            sgd_epoch({o, w.data()}, order, {.l2 = l2, .step_size = 0.25 / l2, .n = static_cast<double>(n)}, interrupt);
        }
        check_weights(tiny, w);
        const double value = o.value(w.data(), 1, interrupt);
        require(tiny.wide || (std::isfinite(value) && value >= -1e-9), "losses are finite and not negative");
    });
    return 0;
}
