// One epoch of each solver that visits examples: its state, options and report.
#include "bindings/states.h"
#include "solvers/bcfw.h"
#include "solvers/bcfw_sets.h"
#include "solvers/dcd.h"
#include "solvers/eg.h"
#include "solvers/online.h"
#include "solvers/sdca.h"
#include "solvers/sdca_cliques.h"
#include "solvers/smo.h"

namespace partwise::bindings {

namespace {

template <class Options>
void check_penalty(const Options& options) {
    check_l2(options.l2);
    if constexpr (requires { options.l1; }) check_l1(options.l1);
}

// The states of all batches, which must have the same weights.
std::vector<EgState> of_one_problem(const std::vector<const Held<EgState>*>& held) {
    if (held.empty()) throw InputError("at least one state is needed");
    std::vector<EgState> states;
    for (const auto* each : held) {
        if (each == nullptr) throw InputError("a state is None");
        const EgState& state = each->state;
        const EgState& first = held[0]->state;
        const bool same = state.weights == first.weights && state.plane == first.plane &&
                          state.objective.features().num_weights() == first.objective.features().num_weights();
        if (!same) throw InputError("states of several batches need the same weights and plane");
        states.push_back(state);
    }
    return states;
}

void bind_eg(nb::module_& m) {
    using R = EgReport;
    bind_report<R>(m, "EgReport", "visits", &R::visits, "dual_gain", &R::dual_gain, "rejected", &R::rejected, "lanes",
                   &R::lanes, "rounds", &R::rounds, "taken_back", &R::taken_back);
    bind_state<EgState>(
        m, "EgState",
        [](const Objective& o) {
            if (!o.loss().link.fixed_mass()) throw InputError("exponentiated gradient needs the identity link");
        },
        per_weight("weights"), per_slot("scores"), per_slot("marginals"), per_example("entropies"),
        per_example("step_sizes"), or_none(per_weight("plane")));
    using O = EgOptions;
    bind_options<O>(
        m, "EgOptions",
        [](const O& options) {
            check_penalty(options);
            if (options.temperature && !(*options.temperature >= 0.0 && *options.temperature < kInfinity))
                throw InputError("the temperature must be a number >= 0");
        },
        required("l2", &O::l2), usual("adaptive", &O::adaptive), usual("growth", &O::growth),
        usual("max_step", &O::max_step), usual("n_jobs", &O::n_jobs), usual("round_size", &O::round_size),
        usual("l1", &O::l1), usual("temperature", &O::temperature));

    using State = Held<EgState>;
    const auto epoch = [](const std::vector<const State*>& held, const Ints& order, const O& options) {
        const std::vector<EgState> states = of_one_problem(held);
        Index num_examples = 0;
        for (const EgState& state : states) num_examples += state.objective.num_examples();
        for (const Index i : span_of(order)) check_index(i, num_examples);
        check_plane(options.l1, states[0].plane);
        return run_kernel(eg_epoch, states, span_of(order), options);
    };
    m.def("eg_epoch", epoch, "states"_a, "order"_same, "options"_a);
    define(m, "eg_epoch", args("state"_a, "order"_same, "options"_a),
           [epoch](const State& held, const Ints& order, const O& options) { return epoch({&held}, order, options); });
}

void bind_bcfw(nb::module_& m) {
    bind_report<BcfwReport>(m, "BcfwReport", "visits", &BcfwReport::visits, "gap_estimate", &BcfwReport::gap_estimate,
                            "steps", &BcfwReport::steps);
    bind_state<BcfwState>(m, "BcfwState", unchecked, per_weight("weights"), per_slot("counts"), per_example("mass"),
                          per_example("linear"), per_weight("lag"),
                          sized("average", [](const Objective&) { return Index{3}; }), or_none(per_example("gaps")));
    bind_options<BcfwOptions>(m, "BcfwOptions", check_penalty, required("l2", &BcfwOptions::l2));
    bind_epoch(m, "bcfw_epoch", bcfw_epoch);

    using R = BcfwSetReport;
    bind_report<R>(m, "BcfwSetReport", "visits", &R::visits, "steps", &R::steps, "merged", &R::merged, "work", &R::work,
                   "dual_gain", &R::dual_gain, "gap_estimate", &R::gap_estimate, "bound", &R::bound);
    bind_state<BcfwSetState>(m, "BcfwSetState", unchecked, per_weight("weights"), ObjectPart<WorkingSets>{"sets"},
                             per_example("gaps"));
    using O = BcfwSetOptions;
    bind_options<O>(
        m, "BcfwSetOptions",
        [](const O& options) {
            check_penalty(options);
            if (options.violators < 1) throw InputError("violators must be at least 1");
            if (options.steps < 0 || options.keep < 0) throw InputError("steps and keep must be 0 or more");
        },
        required("l2", &O::l2), usual("search", &O::search), usual("pairwise", &O::pairwise), usual("steps", &O::steps),
        usual("now", &O::now), usual("keep", &O::keep), usual("max_bytes", &O::max_bytes),
        usual("violators", &O::violators));
    bind_epoch(m, "bcfw_set_epoch", bcfw_set_epoch);
}

void bind_working_sets(nb::module_& m) {
    nb::class_<WorkingSets> cls(m, "WorkingSets");
    cls.def(nb::init<Index>(), "num_examples"_a);
    define_static(cls, "from_arrays",
                  args("example_ptr"_a, "labelling_ptr"_a, "slots"_a, "counts"_a, "coefficients"_a, "stamps"_a),
                  [](const Ints& example_ptr, const Ints& labelling_ptr, const Ints& slots, const Floats& counts,
                     const Floats& coefficients, const Ints& stamps) {
                      return std::make_unique<WorkingSets>(AtomTable{vector_of(example_ptr), vector_of(labelling_ptr),
                                                                     vector_of(slots), vector_of(counts),
                                                                     vector_of(coefficients), vector_of(stamps)});
                  });
    cls.def_prop_ro("num_examples", &WorkingSets::num_examples)
        .def_prop_ro("num_atoms", &WorkingSets::num_atoms)
        .def_prop_ro("bytes", &WorkingSets::bytes);
    define(cls, "check", args("objective"_a, "n_jobs"_a = 1),
           [](const WorkingSets& sets, const Objective& o, int n_jobs) {
               if (sets.num_examples() != o.num_examples()) throw InputError("working sets of other examples");
               run_kernel(&WorkingSets::check, sets, o, n_jobs);
           });
    cls.def("to_arrays", [](const WorkingSets& sets) {
        AtomTable table = sets.table();
        nb::dict out;
        out["example_ptr"] = numpy(std::move(table.example_ptr));
        out["labelling_ptr"] = numpy(std::move(table.labelling_ptr));
        out["slots"] = numpy(std::move(table.slots));
        out["counts"] = numpy(std::move(table.counts));
        out["coefficients"] = numpy(std::move(table.coefficients));
        out["stamps"] = numpy(std::move(table.stamps));
        return out;
    });
    define(m, "likely_labellings", args("objective"_a, "scores"_same, "most"_a),
           [](const Objective& o, const Floats& scores, Index most) {
               if (most < 1) throw InputError("the number of labellings must be at least 1");
               check_size(scores, o.total_slots(), "scores");
               return std::make_unique<WorkingSets>(run_kernel(likely_labellings, o, scores.data(), most));
           });

    using R = ViolatorReport;
    bind_report<R>(m, "ViolatorReport", "visits", &R::visits, "added", &R::added, "merged", &R::merged, "losses",
                   &R::losses, "largest", &R::largest, "total", &R::total);
    constexpr ViolatorOptions usual;
    define(m, "find_violators",
           args("objective"_a, "weights"_same, "sets"_a, "order"_same, nb::kw_only(), "epsilon"_a, "now"_a = usual.now,
                "max_bytes"_a = usual.max_bytes),
           [](const Objective& o, const Floats& weights, WorkingSets& sets, const Ints& order, double epsilon,
              Index now, Index max_bytes) {
               check_size(weights, o.features().num_weights(), "weights");
               check_order(o, order);
               if (!(epsilon >= 0.0)) throw InputError("epsilon must be 0 or more");
               return run_kernel([&](auto& interrupt) {
                   return find_violators(o, weights.data(), sets, span_of(order), {epsilon, now, max_bytes}, interrupt);
               });
           });
}

void bind_dcd(nb::module_& m) {
    using R = DcdReport;
    bind_report<R>(m, "DcdReport", "visits", &R::visits, "steps", &R::steps, "added", &R::added, "removed", &R::removed,
                   "merged", &R::merged, "work", &R::work, "dual_gain", &R::dual_gain, "gap_estimate", &R::gap_estimate,
                   "violation", &R::violation);
    bind_state<DcdState>(m, "DcdState", unchecked, per_weight("weights"), ObjectPart<WorkingSets>{"sets"});
    using O = DcdOptions;
    bind_options<O>(
        m, "DcdOptions",
        [](const O& options) {
            check_penalty(options);
            if (options.violators < 1) throw InputError("violators must be at least 1");
            if (!(options.delta >= 0.0)) throw InputError("delta must be 0 or more");
        },
        required("l2", &O::l2), usual("search", &O::search), usual("update", &O::update), usual("delta", &O::delta),
        usual("seed", &O::seed), usual("max_bytes", &O::max_bytes), usual("violators", &O::violators));
    bind_epoch(m, "dcd_epoch", dcd_epoch);
}

StepRule rule_of(const std::string& name) {
    if (name == "reciprocal") return StepRule::kReciprocal;
    if (name == "power") return StepRule::kPower;
    if (name == "bottou") return StepRule::kBottou;
    throw InputError("rule must be 'reciprocal', 'power' or 'bottou', not '", name, "'");
}

// kernel(objective, weights, examples) of some examples at some weights.
template <class Kernel>
void bind_sum_at(nb::module_& m, const char* name, Kernel kernel) {
    m.def(
        name,
        [kernel](const Objective& o, const Floats& weights, const Ints& examples) {
            check_weights(o.features(), weights);
            check_order(o, examples);
            return run_kernel(kernel, o, weights.data(), span_of(examples));
        },
        "objective"_a, "weights"_same, "examples"_same);
}

void bind_online(nb::module_& m) {
    using R = OnlineReport;
    bind_report<R>(m, "OnlineReport", "visits", &R::visits, "mistakes", &R::mistakes, "loss", &R::loss, "bound",
                   &R::bound, "mass", &R::mass);
    bind_report<MiraReport>(m, "MiraReport", "visits", &MiraReport::visits, "mistakes", &MiraReport::mistakes,
                            "left_out", &MiraReport::left_out, "mass", &MiraReport::mass);
    bind_state<OnlineState>(
        m, "OnlineState",
        [](const Objective& o) {
            if (!o.features().explicit_weights()) throw InputError("online methods need explicit weights");
        },
        per_weight("weights"), or_none(per_weight("sum")), or_none(per_weight("plane")));
    using O = SgdOptions;
    bind_options<O>(
        m, "SgdOptions",
        [](const O& options) {
            check_penalty(options);
            if (!(options.step_size > 0.0) || options.step_size == kInfinity)
                throw InputError("step_size must be above 0");
            if (!(options.n >= 1.0) || !(options.first >= 0.0))
                throw InputError("n must be at least 1, first at least 0");
        },
        required("l2", &O::l2), required("step_size", &O::step_size), named("rule", &O::rule, rule_of),
        required("n", &O::n), required("first", &O::first));

    bind_epoch(m, "sgd_epoch", sgd_epoch);
    using State = Held<OnlineState>;
    define(m, "perceptron_epoch", args("state"_a, "order"_same), [](const State& held, const Ints& order) {
        check_order(held.state.objective, order);
        return run_kernel(perceptron_epoch, held.state, span_of(order));
    });
    define(m, "mira_epoch", args("state"_a, "order"_same, "k"_a), [](const State& held, const Ints& order, Index k) {
        check_order(held.state.objective, order);
        if (k < 1) throw InputError("k must be at least 1");
        return run_kernel(mira_epoch, held.state, span_of(order), k);
    });
    define(m, "most_labellings", args("objective"_a, "k"_a),
           [](const Objective& o, Index k) { return run_kernel(most_labellings, o, k); });
    bind_sum_at(m, "wrong_parts", wrong_parts);
    bind_sum_at(m, "sum_of_losses", sum_of_losses);
}

void bind_sdca(nb::module_& m) {
    bind_report<SdcaReport>(m, "SdcaReport", "visits", &SdcaReport::visits, "dual_gain", &SdcaReport::dual_gain,
                            "iterations", &SdcaReport::iterations, "refused", &SdcaReport::refused);
    define(m, "slot_curvatures", args("objective"_a, "examples"_same),
           [](const Objective& o, const Ints& examples) -> std::optional<NumPy<double>> {
               check_one_part(o);
               check_order(o, examples);
               Index slots = 0;
               for (const Index i : span_of(examples)) slots += o.num_slots(i);
               std::vector<double> found = run_kernel(slot_curvatures, o, span_of(examples));
               if (len(found.size()) != slots) return std::nullopt;
               return numpy(std::move(found));
           });
    define(m, "sdca_start", args("objective"_a, "reach"_a, "scores"_same, "n_jobs"_a = 1),
           [](const Objective& o, double reach, const MutableFloats& scores, int n_jobs) {
               check_one_part(o);
               check_size(scores, o.total_slots(), "scores");
               return fill_array(o.num_examples(), [&](double* entropies, Interrupt& interrupt) {
                   sdca_start(o, reach, scores.data(), entropies, n_jobs, interrupt);
               });
           });
    bind_state<SdcaState>(
        m, "SdcaState",
        [](const Objective& o) {
            check_one_part(o);
            if (!o.loss().link.fixed_mass()) throw InputError("exact blocks need the identity link");
            if (!(o.loss().temperature > 0.0)) throw InputError("exact blocks need a temperature above 0");
        },
        per_slot<Floats>("curvatures"), per_weight("weights"), per_slot("scores"), per_example("entropies"),
        per_example("gains"), or_none(per_weight("plane")));
    using O = SdcaOptions;
    bind_options<O>(
        m, "SdcaOptions",
        [](const O& options) {
            check_penalty(options);
            const auto [start, stop] = options.pulled;
            if (!(0 <= start && start <= stop)) throw InputError("pulled weights: the first one is after the last");
            if (!(options.pull > 0.0 && options.pull < kInfinity))
                throw InputError("the pull must be a number above 0");
        },
        required("l2", &O::l2), usual("l1", &O::l1), usual("pulled", &O::pulled), usual("pull", &O::pull));
    bind_epoch<SdcaReport, SdcaState, O>(m, "sdca_epoch", sdca_epoch, [](const SdcaState& state, const O& options) {
        check_plane(options.l1, state.plane);
        if (options.pulled.second > state.objective.features().num_weights())
            throw InputError("pulled weights: there are not so many");
    });
}

const Structure& with_cliques(const Structure& structure) {
    if (!(structure.capabilities() & kCliques)) throw InputError("this structure has no clique view");
    return structure;
}

// Marginals of all examples' cliques, end to end.
ArrayPart<MutableFloats> all_cliques() {
    return {"cliques", [](const Objective& o) { return clique_starts(o.structure()).back(); }};
}

void bind_clique_solvers(nb::module_& m) {
    define(m, "clique_starts", args("structure"_a),
           [](const Structure& s) { return numpy(clique_starts(with_cliques(s))); });
    define(m, "cliques_of_scores", args("structure"_a, "scores"_same, "n_jobs"_a = 1),
           [](const Structure& s, const Floats& scores, int n_jobs) {
               const Index size = clique_starts(with_cliques(s)).back();
               check_size(scores, s.slot_offsets().back(), "scores");
               return fill_array(size, [&](double* cliques, Interrupt& interrupt) {
                   cliques_of_scores(s, scores.data(), cliques, n_jobs, interrupt);
               });
           });
    define(m, "read_cliques", args("structure"_a, "cliques"_same, "n_jobs"_a = 1),
           [](const Structure& s, const Floats& cliques, int n_jobs) {
               check_size(cliques, clique_starts(with_cliques(s)).back(), "cliques");
               std::vector<double> counts(s.slot_offsets().back());
               std::vector<double> entropies(s.num_examples());
               run_kernel(read_cliques, s, cliques.data(), counts.data(), entropies.data(), n_jobs);
               return tuple_of(std::move(counts), std::move(entropies));
           });
    define(m, "entropy_along", args("structure"_a, "i"_a, "cliques"_same, "direction"_same, "step"_a),
           [](const Structure& s, Index i, const Floats& cliques, const Floats& direction, double step) {
               const CliqueView& view = with_cliques(s).cliques();
               check_index(i, s.num_examples());
               check_size(cliques, view.clique_offsets(i).back(), "cliques");
               check_size(direction, len(cliques.size()), "direction");
               if (!(step >= 0.0 && step <= 1.0)) throw InputError("step must be between 0 and 1");
               Workspace ws;
               const Along found = view.entropy_along(i, cliques.data(), direction.data(), step, ws);
               return std::tuple(found.value, found.slope, found.curvature);
           });
    define(m, "check_clique_marginals", args("objective"_a, "cliques"_a, "n_jobs"_a = 1),
           [](const Objective& o, const Floats& cliques, int n_jobs) {
               check_floats(cliques, clique_starts(o.structure()).back(), "cliques");
               const CliqueReport report = run_kernel(check_clique_marginals, o, cliques.data(), n_jobs);
               return std::pair(report.off, report.complaint);
           });

    bind_report<SdcaLineReport>(m, "SdcaLineReport", "visits", &SdcaLineReport::visits, "trials",
                                &SdcaLineReport::trials, "dual_gain", &SdcaLineReport::dual_gain);
    bind_state<SdcaLineState>(
        m, "SdcaLineState",
        [](const Objective& o) {
            with_cliques(o.structure());
            if (!o.loss().link.fixed_mass()) throw InputError("clique marginals need the identity link");
            if (!(o.loss().temperature > 0.0)) throw InputError("sdca needs a temperature above 0");
        },
        per_weight("weights"), all_cliques(), per_slot("counts"), per_example("entropies"), per_example("gaps"),
        per_example("steps"), or_none(per_weight("plane")));
    using O = SdcaLineOptions;
    bind_options<O>(
        m, "SdcaLineOptions",
        [](const O& options) {
            check_penalty(options);
            if (!(options.line_tol >= 0.0)) throw InputError("line_tol must be 0 or more");
        },
        required("l2", &O::l2), required("line_tol", &O::line_tol), usual("l1", &O::l1));
    bind_epoch<SdcaLineReport, SdcaLineState, O>(
        m, "sdca_line_epoch", sdca_line_epoch,
        [](const SdcaLineState& state, const O& options) { check_plane(options.l1, state.plane); });

    bind_report<SmoReport>(m, "SmoReport", "visits", &SmoReport::visits, "steps", &SmoReport::steps, "dual_gain",
                           &SmoReport::dual_gain);
    bind_state<SmoState>(m, "SmoState", unchecked, per_weight("weights"), all_cliques(), per_example("gaps"));
    bind_options<SmoOptions>(m, "SmoOptions", check_penalty, required("l2", &SmoOptions::l2));
    bind_epoch(m, "smo_epoch", smo_epoch);
}

}  // namespace

void bind_solvers(nb::module_& m) {
    bind_working_sets(m);
    bind_eg(m);
    bind_bcfw(m);
    bind_dcd(m);
    bind_online(m);
    bind_sdca(m);
    bind_clique_solvers(m);
}

}  // namespace partwise::bindings
