// Sums over examples: values, planes, dual points, Hessians.

#include "bindings/labellings.h"
#include "bindings/states.h"
#include "solvers/eg.h"
#include "solvers/hessian.h"
#include "solvers/matching.h"
#include "solvers/rounding.h"
#include "solvers/slack_rescaling.h"

namespace partwise::bindings {

namespace {

using MovedArrays = std::optional<std::pair<Floats, Floats>>;

// The checked arrays, if they are given.
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

nb::tuple pack(Plane plane) { return tuple_of(std::move(plane.u), plane.b); }
nb::tuple pack_valued(Plane plane) { return tuple_of(plane.value, std::move(plane.u), plane.b); }

void bind_link(nb::module_& m) {
    nb::class_<Link> cls(m, "Link");
    define(cls, "__init__", args("name"_a),
           [](Link* self, const std::string& name) { new (self) Link(Link::named(name)); });
    cls.def_prop_ro("name", [](const Link& link) { return std::string(link.name()); })
        .def_prop_ro("least_mass", &Link::least_mass)
        .def_prop_ro("largest_mass", &Link::largest_mass)
        .def_prop_ro("fixed_mass", &Link::fixed_mass)
        .def_prop_ro("quadratic_conjugate", &Link::quadratic_conjugate)
        .def("value", &Link::value, "t"_a)
        .def("mass", &Link::mass, "t"_a)
        .def("second", &Link::second, "t"_a)
        .def("conjugate", &Link::conjugate, "s"_a);
}

void bind_values(nb::class_<Objective>& cls) {
    const auto slots_of = [](void (Objective::*add)(Index, double, double*) const) {
        return [add](const Objective& o, Index i) {
            check_index(i, o.num_examples());
            std::vector<double> out(o.num_slots(i), 0.0);
            (o.*add)(i, 1.0, out.data());
            return numpy(std::move(out));
        };
    };
    cls.def("cost", slots_of(&Objective::add_cost), "i"_a).def("gold", slots_of(&Objective::add_gold), "i"_a);
    define(cls, "value", args("weights"_a, "n_jobs"_a = 1), [](const Objective& o, const Floats& weights, int n_jobs) {
        check_weights(o.features(), weights);
        return run_kernel(&Objective::value, o, weights.data(), n_jobs);
    });
    define(cls, "margins", args("weights"_a, "temperature"_a, "n_jobs"_a = 1),
           [](const Objective& o, const Floats& weights, double temperature, int n_jobs) {
               check_weights(o.features(), weights);
               check_temperature(temperature);
               return fill_array(o.num_examples(), [&](double* out, Interrupt& interrupt) {
                   o.margins(weights.data(), temperature, out, n_jobs, interrupt);
               });
           });
    define(cls, "plane", args("weights"_a, "n_jobs"_a = 1), [](const Objective& o, const Floats& weights, int n_jobs) {
        check_weights(o.features(), weights);
        return pack_valued(run_kernel(&Objective::plane, o, weights.data(), n_jobs));
    });
    define(cls, "plane_of", args("weights"_a, "examples"_same),
           [](const Objective& o, const Floats& weights, const Ints& examples) {
               check_weights(o.features(), weights);
               check_order(o, examples);
               return pack_valued(run_kernel(&Objective::plane_of, o, span_of(examples), weights.data()));
           });
    define(cls, "slack_plane", args("weights"_a, "with_u"_a = true, "n_jobs"_a = 1),
           [](const Objective& o, const Floats& weights, bool with_u, int n_jobs) {
               check_weights(o.features(), weights);
               return pack_valued(run_kernel(slack_plane, o, weights.data(), with_u, n_jobs));
           });
    define(cls, "largest_cost", args("n_jobs"_a = 1),
           [](const Objective& o, int n_jobs) { return run_kernel(largest_cost, o, n_jobs); });
    define(
        cls, "plane_at", args("weights"_a, "temperature"_a, "marginals"_same, "n_jobs"_a = 1),
        [](const Objective& o, const Floats& weights, double temperature, const MutableFloats& marginals, int n_jobs) {
            check_weights(o.features(), weights);
            check_size(marginals, o.total_slots(), "marginals");
            check_temperature(temperature);
            Plane plane = run_kernel(&Objective::plane_at, o, weights.data(), temperature, marginals.data(), n_jobs);
            return tuple_of(plane.value, std::move(plane.u), plane.b, plane.extra);
        });
}

void bind_dual_points(nb::class_<Objective>& cls) {
    define(cls, "dual_terms_gibbs", args("scores"_a, "n_jobs"_a = 1, "moved"_or_none),
           [](const Objective& o, const Floats& scores, int n_jobs, const MovedArrays& moved) {
               check_floats(scores, o.total_slots(), "scores");
               const auto change = moved_mass(o, moved);
               return pack(
                   run_kernel(&Objective::dual_terms_gibbs, o, scores.data(), change ? &*change : nullptr, n_jobs));
           });
    define(cls, "dual_terms_linear", args("z"_a, "cost_scale"_a, "n_jobs"_a = 1, "moved"_or_none),
           [](const Objective& o, const Floats& z, double cost_scale, int n_jobs, const MovedArrays& moved) {
               check_floats(z, o.features().num_weights(), "z");
               if (!std::isfinite(cost_scale)) throw InputError("cost_scale must be finite");
               const auto change = moved_mass(o, moved);
               return pack(run_kernel(&Objective::dual_terms_linear, o, z.data(), cost_scale,
                                      change ? &*change : nullptr, n_jobs));
           });
    define(cls, "dual_terms_slots", args("counts"_a, "mass"_a.none(), "entropies"_a.none(), "n_jobs"_a = 1),
           [](const Objective& o, const Floats& counts, OrNone<Floats> mass, OrNone<Floats> entropies, int n_jobs) {
               check_floats(counts, o.total_slots(), "counts");
               check_size(mass, o.num_examples(), "mass");
               check_size(entropies, o.num_examples(), "entropies");
               return pack(run_kernel(&Objective::dual_terms_slots, o, counts.data(), data_or_null(mass),
                                      data_or_null(entropies), n_jobs));
           });
    define(cls, "dual_terms_sparse", args("indptr"_a, "slots"_a, "counts"_a, "mass"_a, "n_jobs"_a = 1),
           [](const Objective& o, const Ints& indptr, const Ints& slots, const Floats& counts, const Floats& mass,
              int n_jobs) {
               check_size(mass, o.num_examples(), "mass");
               check_finite(counts, "counts");
               decode_all(o.structure(), indptr, slots, counts, [&](Index i, SlotView used) {
                   for (const Index r : used.slots) {
                       if (r < 0 || r >= o.num_slots(i)) throw InputError("example ", i, " has no slot ", r);
                   }
               });
               return pack(run_kernel(&Objective::dual_terms_sparse, o, indptr.data(), slots.data(), counts.data(),
                                      mass.data(), n_jobs));
           });
    define(cls, "marginals_of_scores", args("scores"_a, "n_jobs"_a = 1),
           [](const Objective& o, const Floats& scores, int n_jobs) {
               check_floats(scores, o.total_slots(), "scores");
               std::vector<double> marginals(scores.size());
               std::vector<double> entropies(o.num_examples());
               run_kernel(&Objective::marginals_of_scores, o, scores.data(), marginals.data(), entropies.data(),
                          n_jobs);
               return tuple_of(std::move(marginals), std::move(entropies));
           });
    define(cls, "near_gold_scores", args("sharpness"_a), [](const Objective& o, double sharpness) {
        return fill_array(o.total_slots(), [&](double* scores, Interrupt&) { o.near_gold_scores(sharpness, scores); });
    });
}

void check_identity_link(const Objective& objective) {
    if (!objective.loss().link.fixed_mass()) throw InputError("exponentiated gradient needs the identity link");
}

nb::tuple pack_move(Plane move) { return tuple_of(std::move(move.u), move.b, move.value, move.extra); }

void bind_batch_steps(nb::module_& m) {
    define(
        m, "eg_batch_step", args("objective"_a, "weights"_a, "step"_a, "scores"_same, "moved"_same, "n_jobs"_a = 1),
        [](const Objective& o, const Floats& weights, double step, const Floats& scores, const MutableFloats& moved,
           int n_jobs) {
            check_identity_link(o);
            check_weights(o.features(), weights);
            check_size(scores, o.total_slots(), "scores");
            check_size(moved, o.total_slots(), "moved");
            if (!(step >= 0.0) || !std::isfinite(step)) throw InputError("step must be finite and not negative");
            return pack_move(run_kernel(eg_batch_step, o, weights.data(), step, scores.data(), moved.data(), n_jobs));
        });
    define(m, "eg_primal_point", args("objective"_a, "z"_a, "cost_scale"_a, "old_cost_scale"_a, "n_jobs"_a = 1),
           [](const Objective& o, const Floats& z, double cost_scale, double old_cost_scale, int n_jobs) {
               check_identity_link(o);
               check_floats(z, o.features().num_weights(), "z");
               if (!std::isfinite(cost_scale) || !std::isfinite(old_cost_scale))
                   throw InputError("cost scales must be finite");
               return pack_move(run_kernel(eg_primal_point, o, z.data(), cost_scale, old_cost_scale, n_jobs));
           });
    define(m, "gold_features", args("objective"_a, "n_jobs"_a = 1),
           [](const Objective& o, int n_jobs) { return numpy(run_kernel(gold_features, o, n_jobs)); });

    bind_report<MatchReport>(m, "MatchReport", "inferences", &MatchReport::inferences, "unmatched",
                             &MatchReport::unmatched, "largest", &MatchReport::largest);
    define(m, "match_counts",
           args("objective"_a, "counts"_a, "scores"_same, nb::kw_only(), "tolerance"_a, "max_inferences"_a,
                "n_jobs"_a = 1),
           [](const Objective& o, const Floats& counts, const MutableFloats& scores, double tolerance,
              Index max_inferences, int n_jobs) {
               check_floats(counts, o.total_slots(), "counts");
               check_size(scores, o.total_slots(), "scores");
               if (!(tolerance > 0.0) || max_inferences < 1) {
                   throw InputError("tolerance must be above 0 and max_inferences at least 1");
               }
               return run_kernel([&](auto& interrupt) {
                   return match_counts(o, counts.data(), scores.data(), {tolerance, max_inferences}, n_jobs, interrupt);
               });
           });
}

void bind_hessian(nb::module_& m) {
    nb::class_<Hessian> cls(m, "Hessian");
    define(cls, "__init__",
           args("objective"_a, "weights"_a, "n_jobs"_a = 1, "every"_a = 1, "marginals"_a = nb::none(),
                nb::keep_alive<1, 2>(), nb::keep_alive<1, 6>()),
           [](Hessian* self, const Objective& o, const Floats& weights, int n_jobs, Index every,
              OrNone<Floats> marginals) {
               check_weights(o.features(), weights);
               if (marginals) check_floats(*marginals, o.total_slots(), "marginals");
               run_kernel([&](auto& interrupt) {
                   new (self) Hessian(o, weights.data(), data_or_null(marginals), every, n_jobs, interrupt);
               });
           });
    define(cls, "product", args("direction"_a, "n_jobs"_a = 1),
           [](const Hessian& hessian, const Floats& direction, int n_jobs) {
               check_floats(direction, hessian.objective().features().num_weights(), "direction");
               return numpy(run_kernel(&Hessian::product, hessian, direction.data(), n_jobs));
           });
    define(cls, "diagonal", args("n_jobs"_a = 1), [](const Hessian& hessian, int n_jobs) {
        if (!hessian.objective().features().explicit_weights()) {
            throw InputError("a diagonal needs explicit weights");
        }
        return numpy(run_kernel(&Hessian::diagonal, hessian, n_jobs));
    });
    cls.def_prop_ro("partial", &Hessian::partial);
}

}  // namespace

void bind_objective(nb::module_& m) {
    bind_link(m);
    nb::class_<Objective> cls(m, "Objective");
    define(cls, "__init__",
           args("structure"_a, "features"_a, "gold_indptr"_same, "gold_slots"_same, "gold_counts"_a, "temperature"_a,
                "cost_scale"_a, "link"_a, "cost"_or_none, "sample_weight"_or_none),
           [](Objective* self, Structure& structure, FeatureMap& features, const Ints& indptr, const Ints& slots,
              const Floats& counts, double temperature, double cost_scale, const std::string& link, OrNone<Floats> cost,
              OrNone<Floats> sample_weight) {
               check_finite(counts, "gold_counts");
               if (cost && cost->size() == 0 && structure.num_examples() > 0)
                   throw InputError("cost must have one value per slot");
               check_size(sample_weight, structure.num_examples(), "sample_weight");
               new (self) Objective(
                   share(structure), share(features), {vector_of(indptr), vector_of(slots), vector_of(counts)},
                   {temperature, cost_scale, Link::named(link)}, vector_of(cost), vector_of(sample_weight));
           });
    cls.def_prop_ro("num_examples", &Objective::num_examples)
        .def_prop_ro("link", [](const Objective& o) { return o.loss().link; })
        .def("check_gold", &Objective::check_gold, nb::call_guard<nb::gil_scoped_release>());
    bind_values(cls);
    bind_dual_points(cls);

    using R = RoundingSums;
    bind_report<R>(m, "RoundingSums", "scores", &R::scores, "level", &R::level, "transposed", &R::transposed, "scores2",
                   &R::scores2, "level2", &R::level2, "transposed2", &R::transposed2, "largest_reach",
                   &R::largest_reach);
    define(m, "rounding_sums", args("objective"_a, "fixed"_a, "examples"_a, "n_jobs"_a = 1),
           [](const Objective& o, double fixed, double examples, int n_jobs) {
               return run_kernel(rounding_sums, o, fixed, examples, n_jobs);
           });
    bind_batch_steps(m);
    bind_hessian(m);
}

}  // namespace partwise::bindings
