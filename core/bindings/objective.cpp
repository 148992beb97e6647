#include <cmath>

#include "bindings/checks.h"
#include "bindings/keep_alive.h"
#include "bindings/labellings.h"
#include "bindings/states.h"
#include "solvers/rounding.h"
#include "solvers/slack_rescaling.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

using MovedArrays = std::optional<std::pair<Floats, Floats>>;

// What the arrays say, checked; null without them.
std::optional<MovedMass> moved_mass(const Objective& o, const MovedArrays& given) {
    if (!given) return std::nullopt;
    check_one_part(o);
    const MovedMass moved{span_of(given->first), span_of(given->second)};
    for (const auto& each : {moved.keep, moved.to}) {
        for (Index i = 0; i < o.num_examples(); ++i) {
            if (o.num_slots(i) != len(each.size())) throw InputError("moved: one number per slot of every example");
        }
        for (const double x : each) {
            if (!(x >= 0.0 && x <= 1.0)) throw InputError("moved: shares are between 0 and 1");
        }
    }
    return moved;
}

nb::tuple pack(Plane plane) { return nb::make_tuple(numpy(std::move(plane.u)), plane.b); }

}  // namespace

void bind_objective(nb::module_& m) {
    nb::class_<Objective>(m, "Objective")
        .def(
            "__init__",
            [](Objective* self, Structure& structure, FeatureMap& features, const Ints& indptr, const Ints& slots,
               const Floats& counts, double temperature, double cost_scale, const std::string& link,
               const std::optional<Floats>& cost, const std::optional<Floats>& sample_weight) {
                check_finite(counts, "gold_counts");
                if (cost && cost->size() == 0 && structure.num_examples() > 0)
                    throw InputError("cost must have one value per slot");
                if (sample_weight) check_size(*sample_weight, structure.num_examples(), "sample_weight");
                new (self) Objective(share(structure), share(features),
                                     {vector_of<Index>(indptr), vector_of<Index>(slots), vector_of<double>(counts)},
                                     {temperature, cost_scale, Link::named(link)},
                                     cost ? vector_of<double>(*cost) : std::vector<double>{},
                                     sample_weight ? vector_of<double>(*sample_weight) : std::vector<double>{});
            },
            "structure"_a, "features"_a, "gold_indptr"_a.noconvert(), "gold_slots"_a.noconvert(), "gold_counts"_a,
            "temperature"_a, "cost_scale"_a, "link"_a, "cost"_a.none() = nb::none(),
            "sample_weight"_a.none() = nb::none())
        .def_prop_ro("num_examples", &Objective::num_examples)
        .def_prop_ro("link", [](const Objective& o) { return o.loss().link; })
        .def("check_gold", &Objective::check_gold, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "cost",
            [](const Objective& o, Index i) {
                check_index(i, o.num_examples());
                std::vector<double> out(idx(o.num_slots(i)), 0.0);
                o.add_cost(i, 1.0, out.data());
                return numpy(std::move(out));
            },
            "i"_a)
        .def(
            "gold",
            [](const Objective& o, Index i) {
                check_index(i, o.num_examples());
                std::vector<double> out(idx(o.num_slots(i)), 0.0);
                o.add_gold(i, 1.0, out.data());
                return numpy(std::move(out));
            },
            "i"_a)
        .def(
            "value",
            [](const Objective& o, const Floats& weights, int n_jobs) {
                check_weights(o.features(), weights);
                Interrupt interrupt = python_interrupt();
                const nb::gil_scoped_release release;
                return o.value(weights.data(), n_jobs, interrupt);
            },
            "weights"_a, "n_jobs"_a = 1)
        .def(
            "margins",
            [](const Objective& o, const Floats& weights, double temperature, int n_jobs) {
                check_weights(o.features(), weights);
                check_temperature(temperature);
                Interrupt interrupt = python_interrupt();
                std::vector<double> out(idx(o.num_examples()));
                {
                    const nb::gil_scoped_release release;
                    o.margins(weights.data(), temperature, out.data(), n_jobs, interrupt);
                }
                return numpy(std::move(out));
            },
            "weights"_a, "temperature"_a, "n_jobs"_a = 1)
        .def(
            "plane",
            [](const Objective& o, const Floats& weights, int n_jobs) {
                check_weights(o.features(), weights);
                Interrupt interrupt = python_interrupt();
                Plane plane;
                {
                    const nb::gil_scoped_release release;
                    plane = o.plane(weights.data(), n_jobs, interrupt);
                }
                return nb::make_tuple(plane.value, numpy(std::move(plane.u)), plane.b);
            },
            "weights"_a, "n_jobs"_a = 1)
        .def(
            "plane_of",
            [](const Objective& o, const Floats& weights, const Ints& examples) {
                check_weights(o.features(), weights);
                check_order(o, examples);
                Interrupt interrupt = python_interrupt();
                Plane plane;
                {
                    const nb::gil_scoped_release release;
                    plane = o.plane_of(span_of(examples), weights.data(), interrupt);
                }
                return nb::make_tuple(plane.value, numpy(std::move(plane.u)), plane.b);
            },
            "weights"_a, "examples"_a.noconvert())
        .def(
            "slack_plane",
            [](const Objective& o, const Floats& weights, bool with_u, int n_jobs) {
                check_weights(o.features(), weights);
                Interrupt interrupt = python_interrupt();
                Plane plane;
                {
                    const nb::gil_scoped_release release;
                    plane = slack_plane(o, weights.data(), with_u, n_jobs, interrupt);
                }
                return nb::make_tuple(plane.value, numpy(std::move(plane.u)), plane.b);
            },
            "weights"_a, "with_u"_a = true, "n_jobs"_a = 1)
        .def(
            "largest_cost",
            [](const Objective& o, int n_jobs) {
                Interrupt interrupt = python_interrupt();
                const nb::gil_scoped_release release;
                return largest_cost(o, n_jobs, interrupt);
            },
            "n_jobs"_a = 1)
        .def(
            "plane_at",
            [](const Objective& o, const Floats& weights, double temperature, const MutableFloats& marginals,
               int n_jobs) {
                check_weights(o.features(), weights);
                check_size(marginals, o.total_slots(), "marginals");
                check_temperature(temperature);
                Interrupt interrupt = python_interrupt();
                Plane plane;
                {
                    const nb::gil_scoped_release release;
                    plane = o.plane_at(weights.data(), temperature, marginals.data(), n_jobs, interrupt);
                }
                return nb::make_tuple(plane.value, numpy(std::move(plane.u)), plane.b, plane.extra);
            },
            "weights"_a, "temperature"_a, "marginals"_a.noconvert(), "n_jobs"_a = 1)
        .def(
            "dual_terms_gibbs",
            [](const Objective& o, const Floats& scores, int n_jobs, const MovedArrays& moved) {
                check_size(scores, o.total_slots(), "scores");
                check_finite(scores, "scores");
                const auto change = moved_mass(o, moved);
                Interrupt interrupt = python_interrupt();
                Plane plane;
                {
                    const nb::gil_scoped_release release;
                    plane = o.dual_terms_gibbs(scores.data(), change ? &*change : nullptr, n_jobs, interrupt);
                }
                return pack(std::move(plane));
            },
            "scores"_a, "n_jobs"_a = 1, "moved"_a.none() = nb::none())
        .def(
            "dual_terms_linear",
            [](const Objective& o, const Floats& z, double cost_scale, int n_jobs, const MovedArrays& moved) {
                check_size(z, o.features().num_weights(), "z");
                check_finite(z, "z");
                if (!std::isfinite(cost_scale)) throw InputError("cost_scale must be finite");
                const auto change = moved_mass(o, moved);
                Interrupt interrupt = python_interrupt();
                Plane plane;
                {
                    const nb::gil_scoped_release release;
                    plane = o.dual_terms_linear(z.data(), cost_scale, change ? &*change : nullptr, n_jobs, interrupt);
                }
                return pack(std::move(plane));
            },
            "z"_a, "cost_scale"_a, "n_jobs"_a = 1, "moved"_a.none() = nb::none())
        .def(
            "dual_terms_slots",
            [](const Objective& o, const Floats& counts, const std::optional<Floats>& mass,
               const std::optional<Floats>& entropies, int n_jobs) {
                check_size(counts, o.total_slots(), "counts");
                check_finite(counts, "counts");
                if (mass) check_size(*mass, o.num_examples(), "mass");
                if (entropies) check_size(*entropies, o.num_examples(), "entropies");
                Interrupt interrupt = python_interrupt();
                Plane plane;
                {
                    const nb::gil_scoped_release release;
                    plane = o.dual_terms_slots(counts.data(), mass ? mass->data() : nullptr,
                                               entropies ? entropies->data() : nullptr, n_jobs, interrupt);
                }
                return pack(std::move(plane));
            },
            "counts"_a, "mass"_a.none(), "entropies"_a.none(), "n_jobs"_a = 1)
        .def(
            "dual_terms_sparse",
            [](const Objective& o, const Ints& indptr, const Ints& slots, const Floats& counts, const Floats& mass,
               int n_jobs) {
                check_size(mass, o.num_examples(), "mass");
                check_finite(counts, "counts");
                decode_all(o.structure(), indptr, slots, counts, [&](Index i, SlotView used) {
                    for (const Index r : used.slots) {
                        if (r < 0 || r >= o.num_slots(i)) {
                            throw InputError("example " + std::to_string(i) + " has no slot " + std::to_string(r));
                        }
                    }
                });
                Interrupt interrupt = python_interrupt();
                Plane plane;
                {
                    const nb::gil_scoped_release release;
                    plane =
                        o.dual_terms_sparse(indptr.data(), slots.data(), counts.data(), mass.data(), n_jobs, interrupt);
                }
                return pack(std::move(plane));
            },
            "indptr"_a, "slots"_a, "counts"_a, "mass"_a, "n_jobs"_a = 1)
        .def(
            "marginals_of_scores",
            [](const Objective& o, const Floats& scores, int n_jobs) {
                check_size(scores, o.total_slots(), "scores");
                check_finite(scores, "scores");
                Interrupt interrupt = python_interrupt();
                std::vector<double> marginals(scores.size());
                std::vector<double> entropies(idx(o.num_examples()));
                {
                    const nb::gil_scoped_release release;
                    o.marginals_of_scores(scores.data(), marginals.data(), entropies.data(), n_jobs, interrupt);
                }
                return nb::make_tuple(numpy(std::move(marginals)), numpy(std::move(entropies)));
            },
            "scores"_a, "n_jobs"_a = 1)
        .def(
            "near_gold_scores",
            [](const Objective& o, double sharpness) {
                std::vector<double> scores(idx(o.total_slots()));
                {
                    const nb::gil_scoped_release release;
                    o.near_gold_scores(sharpness, scores.data());
                }
                return numpy(std::move(scores));
            },
            "sharpness"_a);

    nb::class_<RoundingSums>(m, "RoundingSums")
        .def_ro("scores", &RoundingSums::scores)
        .def_ro("level", &RoundingSums::level)
        .def_ro("transposed", &RoundingSums::transposed)
        .def_ro("scores2", &RoundingSums::scores2)
        .def_ro("level2", &RoundingSums::level2)
        .def_ro("transposed2", &RoundingSums::transposed2)
        .def_ro("largest_reach", &RoundingSums::largest_reach);

    m.def(
        "rounding_sums",
        [](const Objective& o, double fixed, double examples, int n_jobs) {
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return rounding_sums(o, fixed, examples, n_jobs, interrupt);
        },
        "objective"_a, "fixed"_a, "examples"_a, "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
