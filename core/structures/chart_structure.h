// A structure with a chart program (chart.h): products with the covariance, samples and the k best labellings are the
// program's, and chart_sums are its sums in log space. Derived has
//   with_program(i, f)   f(program) with that of example i, whose type may depend on the example
// and, where the slots of the program are not those of the structure, its own
//   to_program(i, program, values, scale, masked, frame)   values * scale for the program's slots; if `masked`,
//                                                          -infinity for forbidden slots
//   from_program(i, program, own, slots)                   values of the program's slots as values of the structure's
//   gather(i, scores, used, labelling)                     writes the labelling with these slots; returns its value
#pragma once

#include "structures/chart_inference.h"
#include "structures/structure.h"

namespace partwise {

template <class Derived, class Base = Structure>
class ChartStructure : public Base {
   public:
    using Base::Base;

    unsigned capabilities() const override { return kCovariance | kKBest | kSample; }

    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace& ws) const override {
        std::vector<Scored> out;
        std::vector<Index> used;
        const auto use = [&](Index slot) { used.push_back(slot); };
        const auto done = [&] {
            Scored& next = out.emplace_back();
            next.value = self().gather(i, scores, used, next.labelling);
            used.clear();
        };
        visit(i, scores, 1.0, ws,
              [&](const auto& program, const double* own) { chart::k_best(program, own, k, ws, use, done); });
        if (out.empty()) this->check_rule(i);
        return out;
    }

    std::vector<SlotCounts> sample(Index i, const double* scores, double temperature, Index n, std::mt19937_64& rng,
                                   Workspace& ws) const override {
        this->check_rule(i);
        std::vector<SlotCounts> out;
        std::vector<Index> used;
        const auto use = [&](Index slot) { used.push_back(slot); };
        const auto done = [&] {
            self().gather(i, scores, used, out.emplace_back());
            used.clear();
        };
        visit(i, scores, 1.0 / temperature, ws,
              [&](const auto& program, const double* own) { chart::sample(program, own, n, rng, ws, use, done); });
        return out;
    }

    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace& ws) const override {
        visit(i, scores, 1.0 / temperature, ws, [&](const auto& program, const double* own) {
            Workspace::Frame frame(ws);
            double* product = frame.take(program.slots());
            const double* along = self().to_program(i, program, direction, 1.0, false, frame);
            chart::covariance_product(program, own, along, product, ws);
            self().from_program(i, program, product, out);
        });
    }

   protected:
    // `log_partition` in log space, at a temperature above 0.
    double chart_sums(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                      Workspace& ws) const {
        const double log_z = visit(i, scores, 1.0 / temperature, ws, [&](const auto& program, const double* own) {
            Workspace::Frame frame(ws);
            double* expected = marginals ? frame.take(program.slots()) : nullptr;
            const double found = chart::log_partition(program, own, expected, entropy, ws);
            if (marginals && found != -kInfinity) self().from_program(i, program, expected, marginals);
            return found;
        });
        if (log_z == -kInfinity) this->nothing_left(i);
        return temperature * log_z;
    }

    template <class Program>
    const double* to_program(Index i, const Program&, const double* values, double scale, bool masked,
                             Workspace::Frame& frame) const {
        return masked ? this->masked_scores(i, values, scale, frame) : values;
    }
    template <class Program>
    void from_program(Index, const Program& program, const double* own, double* slots) const {
        copy(own, slots, program.slots());
    }
    double gather(Index i, const double* scores, std::vector<Index>& used, SlotCounts& out) const {
        out.clear();
        add_counted(used, out);
        return this->value_of(i, scores, out.view());
    }

   private:
    const Derived& self() const { return static_cast<const Derived&>(*this); }

    // f(program, its scores)
    template <class F>
    auto visit(Index i, const double* scores, double scale, Workspace& ws, F&& f) const {
        Workspace::Frame frame(ws);
        return self().with_program(i, [&](const auto& program) {
            return f(program, self().to_program(i, program, scores, scale, true, frame));
        });
    }
};

}  // namespace partwise
