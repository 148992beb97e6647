#include "bindings/common.h"
#include "solvers/bcfw.h"
#include "solvers/eg.h"
#include "solvers/inference.h"
#include "solvers/objective.h"
#include "support/vector_math.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

Link link_of(const std::string& name) {
    if (name == "identity") return Link::kIdentity;
    if (name == "squared") return Link::kSquared;
    throw InputError("link must be 'identity' or 'squared', not '" + name + "'");
}

void check_weights(const FeatureMap& features, const Floats& weights) {
    check_size(weights, features.num_weights(), "weights");
    check_finite(weights, "weights");
}

void check_l2(double l2) {
    if (!(l2 > 0.0) || l2 == kInfinity) throw InputError("l2 must be above 0 and finite");
}

void check_order(const Objective& objective, const Ints& order) {
    for (const Index i : span_of(order)) check_index(i, objective.num_examples());
}

nb::tuple pack(Plane plane) { return nb::make_tuple(numpy(std::move(plane.u)), plane.b); }

}  // namespace

void bind_solvers(nb::module_& m) {
    nb::class_<Objective>(m, "Objective")
        .def("__init__",
             [](Objective* self, std::shared_ptr<Structure> structure, std::shared_ptr<FeatureMap> features, const Ints& indptr,
                const Ints& slots, const Floats& counts, double temperature, double cost_scale, const std::string& link,
                const std::optional<Floats>& cost, const std::optional<Floats>& sample_weight) {
                 check_finite(counts, "gold_counts");
                 if (cost && cost->size() == 0 && structure->num_examples() > 0) throw InputError("cost must have one value a slot");
                 if (sample_weight) check_size(*sample_weight, structure->num_examples(), "sample_weight");
                 new (self) Objective(std::move(structure), std::move(features),
                                      {vector_of<Index>(indptr), vector_of<Index>(slots), vector_of<double>(counts)},
                                      {temperature, cost_scale, link_of(link)},
                                      cost ? vector_of<double>(*cost) : std::vector<double>{},
                                      sample_weight ? vector_of<double>(*sample_weight) : std::vector<double>{});
             },
             "structure"_a, "features"_a, "gold_indptr"_a.noconvert(), "gold_slots"_a.noconvert(), "gold_counts"_a, "temperature"_a, "cost_scale"_a,
             "link"_a, "cost"_a.none() = nb::none(), "sample_weight"_a.none() = nb::none())
        .def_prop_ro("num_examples", &Objective::num_examples)
        .def("check_gold", &Objective::check_gold)
        .def("cost",
             [](const Objective& o, Index i) {
                 check_index(i, o.num_examples());
                 std::vector<double> out(idx(o.num_slots(i)), 0.0);
                 o.add_cost(i, 1.0, out.data());
                 return numpy(std::move(out));
             },
             "i"_a)
        .def("gold",
             [](const Objective& o, Index i) {
                 check_index(i, o.num_examples());
                 std::vector<double> out(idx(o.num_slots(i)), 0.0);
                 o.add_gold(i, 1.0, out.data());
                 return numpy(std::move(out));
             },
             "i"_a)
        .def("value",
             [](const Objective& o, const Floats& weights, int n_jobs) {
                 check_weights(o.features(), weights);
                 Interrupt interrupt = python_interrupt();
                 const nb::gil_scoped_release release;
                 return o.value(weights.data(), n_jobs, interrupt);
             },
             "weights"_a, "n_jobs"_a = 1)
        .def("plane",
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
        .def("dual_terms_gibbs",
             [](const Objective& o, const Floats& scores, int n_jobs) {
                 check_size(scores, o.total_slots(), "scores");
                 check_finite(scores, "scores");
                 Interrupt interrupt = python_interrupt();
                 Plane plane;
                 {
                     const nb::gil_scoped_release release;
                     plane = o.dual_terms_gibbs(scores.data(), n_jobs, interrupt);
                 }
                 return pack(std::move(plane));
             },
             "scores"_a, "n_jobs"_a = 1)
        .def("dual_terms_slots",
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
        .def("marginals_of_scores",
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
        .def("near_gold_scores",
             [](const Objective& o, double sharpness) {
                 std::vector<double> scores(idx(o.total_slots()));
                 o.near_gold_scores(sharpness, scores.data());
                 return numpy(std::move(scores));
             },
             "sharpness"_a);

    nb::class_<EgReport>(m, "EgReport")
        .def_ro("visits", &EgReport::visits)
        .def_ro("dual_gain", &EgReport::dual_gain)
        .def_ro("rejected", &EgReport::rejected);

    m.def(
        "eg_epoch",
        [](const Objective& o, double l2, const Ints& order, const MutableFloats& step_sizes, const MutableFloats& weights,
           const MutableFloats& scores, const MutableFloats& marginals, const MutableFloats& entropies, bool adaptive,
           double growth, double max_step, int n_jobs, Index round_size) {
            check_l2(l2);
            check_order(o, order);
            check_size(weights, o.features().num_weights(), "weights");
            check_size(step_sizes, o.num_examples(), "step_sizes");
            check_size(scores, o.total_slots(), "scores");
            check_size(marginals, o.total_slots(), "marginals");
            check_size(entropies, o.num_examples(), "entropies");
            if (o.loss().link != Link::kIdentity) throw InputError("exponentiated gradient needs the identity link");
            const EgOptions options{adaptive, growth, max_step, n_jobs, round_size};
            const EgState state{weights.data(), scores.data(), marginals.data(), entropies.data(), step_sizes.data()};
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return eg_epoch(o, l2, span_of(order), state, options, interrupt);
        },
        "objective"_a, "l2"_a, "order"_a.noconvert(), "step_sizes"_a.noconvert(), "weights"_a.noconvert(), "scores"_a.noconvert(),
        "marginals"_a.noconvert(), "entropies"_a.noconvert(), "adaptive"_a, "growth"_a = 1.05, "max_step"_a = kInfinity,
        "n_jobs"_a = 1, "round_size"_a = 0);

    nb::class_<BcfwReport>(m, "BcfwReport")
        .def_ro("visits", &BcfwReport::visits)
        .def_ro("gap_estimate", &BcfwReport::gap_estimate)
        .def_ro("steps", &BcfwReport::steps);

    m.def(
        "bcfw_epoch",
        [](const Objective& o, double l2, const Ints& order, const MutableFloats& weights, const MutableFloats& counts,
           const MutableFloats& mass, const MutableFloats& linear, const MutableFloats& lag, const MutableFloats& average) {
            check_l2(l2);
            check_order(o, order);
            check_size(weights, o.features().num_weights(), "weights");
            check_size(lag, o.features().num_weights(), "lag");
            check_size(counts, o.total_slots(), "counts");
            check_size(mass, o.num_examples(), "mass");
            check_size(linear, o.num_examples(), "linear");
            check_size(average, 3, "average");
            const BcfwState state{weights.data(), counts.data(), mass.data(), linear.data(), lag.data(), average.data()};
            Interrupt interrupt = python_interrupt();
            const nb::gil_scoped_release release;
            return bcfw_epoch(o, l2, span_of(order), state, interrupt);
        },
        "objective"_a, "l2"_a, "order"_a.noconvert(), "weights"_a.noconvert(), "counts"_a.noconvert(), "mass"_a.noconvert(),
        "linear"_a.noconvert(), "lag"_a.noconvert(), "average"_a.noconvert());

    m.def(
        "decode",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, int n_jobs) {
            check_weights(features, weights);
            Interrupt interrupt = python_interrupt();
            Decoded out;
            {
                const nb::gil_scoped_release release;
                out = decode(structure, features, weights.data(), n_jobs, interrupt);
            }
            return nb::make_tuple(numpy(std::move(out.indptr)), numpy(std::move(out.slots)), numpy(std::move(out.counts)),
                                  numpy(std::move(out.values)));
        },
        "structure"_a, "features"_a, "weights"_a, "n_jobs"_a = 1);

    m.def(
        "infer",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, double temperature, int n_jobs) {
            check_weights(features, weights);
            if (!(temperature >= 0.0) || temperature == kInfinity) throw InputError("temperature must be 0 or more and finite");
            Interrupt interrupt = python_interrupt();
            std::vector<double> marginals(idx(structure.slot_offsets().back()));
            std::vector<double> values(idx(structure.num_examples()));
            std::vector<double> entropies(values.size());
            {
                const nb::gil_scoped_release release;
                infer(structure, features, weights.data(), temperature, n_jobs, interrupt, marginals.data(), values.data(),
                      entropies.data());
            }
            return nb::make_tuple(numpy(std::move(marginals)), numpy(std::move(values)), numpy(std::move(entropies)));
        },
        "structure"_a, "features"_a, "weights"_a, "temperature"_a = 1.0, "n_jobs"_a = 1);

    m.def(
        "all_scores",
        [](const Structure& structure, const FeatureMap& features, const Floats& weights, int n_jobs) {
            check_weights(features, weights);
            Interrupt interrupt = python_interrupt();
            std::vector<double> scores(idx(structure.slot_offsets().back()));
            {
                const nb::gil_scoped_release release;
                all_scores(structure, features, weights.data(), n_jobs, interrupt, scores.data());
            }
            return numpy(std::move(scores));
        },
        "structure"_a, "features"_a, "weights"_a, "n_jobs"_a = 1);
}

}  // namespace partwise::bindings
