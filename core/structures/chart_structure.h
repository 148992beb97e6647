// A structure that is a chart program and nothing more: all sums, maxima and capabilities come from the program
// (chart.h). The slots of an example are those of its program.
#pragma once

#include <algorithm>

#include "structures/chart_inference.h"
#include "structures/structure.h"

namespace partwise {

template <class Program>
class ChartStructure : public Structure {
   public:
    using Structure::Structure;

    unsigned capabilities() const override { return kCovariance | kKBest | kSample; }
    Index num_slots(Index i) const override { return program(i).slots(); }

    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override {
        Workspace::Frame frame(ws);
        std::vector<Index> slots;
        chart::best(program(i), masked_scores(i, scores, 1.0, frame), ws, [&](Index slot) { slots.push_back(slot); });
        return gather(i, scores, slots, best);
    }

    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override {
        if (temperature == 0.0) return maximum_as_sums(i, scores, marginals, entropy, ws);
        Workspace::Frame frame(ws);
        const double* own = masked_scores(i, scores, 1.0 / temperature, frame);
        return temperature * chart::log_partition(program(i), own, marginals, entropy, ws);
    }

    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override {
        Workspace::Frame frame(ws);
        std::vector<Scored> out;
        std::vector<Index> slots;
        const auto use = [&](Index slot) { slots.push_back(slot); };
        chart::k_best(program(i), masked_scores(i, scores, 1.0, frame), k, ws, use, [&] {
            Scored& next = out.emplace_back();
            next.value = gather(i, scores, slots, next.labelling);
            slots.clear();
        });
        return out;
    }

    std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                   Workspace& ws) const override {
        Workspace::Frame frame(ws);
        std::vector<std::vector<Index>> slots(n);
        chart::sample(program(i), masked_scores(i, scores, 1.0 / temperature, frame), n, rng, ws,
                      [&](Index j, Index slot) { slots[j].push_back(slot); });
        std::vector<SlotCounts> out(n);
        for (std::size_t j = 0; j < out.size(); ++j) gather(i, scores, slots[j], out[j]);
        return out;
    }

    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace& ws) const override {
        Workspace::Frame frame(ws);
        chart::covariance_product(program(i), masked_scores(i, scores, 1.0 / temperature, frame), direction, out, ws);
    }

   protected:
    virtual Program program(Index i) const = 0;

    void check_mask(Index i) const override {
        Workspace ws;
        Workspace::Frame frame(ws);
        const std::vector<double> zeros(num_slots(i), 0.0);
        if (!chart::best(program(i), masked_scores(i, zeros.data(), 1.0, frame), ws, [](Index) {})) {
            throw InputError("the mask of example ", i, " allows no labelling");
        }
    }

    const double* masked_scores(Index i, const double* scores, double scale, Workspace::Frame& frame) const {
        const Index n = num_slots(i);
        const std::uint8_t* allowed = mask(i);
        double* out = frame.take(n);
        for (Index r = 0; r < n; ++r) out[r] = allowed && !allowed[r] ? -kInfinity : scores[r] * scale;
        return out;
    }

    // Slots of a derivation as a labelling, each named once; its value.
    double gather(Index i, const double* scores, std::vector<Index>& slots, SlotCounts& out) const {
        out.clear();
        std::sort(slots.begin(), slots.end());
        for (std::size_t k = 0; k < slots.size(); ++k) {
            if (k > 0 && slots[k] == slots[k - 1]) {
                out.counts.back() += 1.0;
            } else {
                out.add(slots[k], 1.0);
            }
        }
        return value_of(i, scores, {out.slots, out.counts});
    }
};

}  // namespace partwise
