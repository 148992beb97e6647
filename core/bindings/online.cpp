#include "bindings/states.h"
#include "solvers/online_mira.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {
StepRule rule_of(const std::string& name) {
    if (name == "reciprocal") return StepRule::kReciprocal;
    if (name == "power") return StepRule::kPower;
    if (name == "bottou") return StepRule::kBottou;
    throw InputError("rule must be 'reciprocal', 'power' or 'bottou', not '" + name + "'");
}

void check_explicit(const Objective& o) {
    if (!o.features().explicit_weights()) throw InputError("online methods need explicit weights");
}
}  // namespace

void bind_online(nb::module_& m) {
    nb::class_<OnlineReport>(m, "OnlineReport")
        .def_ro("visits", &OnlineReport::visits)
        .def_ro("mistakes", &OnlineReport::mistakes)
        .def_ro("loss", &OnlineReport::loss)
        .def_ro("bound", &OnlineReport::bound)
        .def_ro("mass", &OnlineReport::mass);
    nb::class_<MiraReport>(m, "MiraReport")
        .def_ro("visits", &MiraReport::visits)
        .def_ro("mistakes", &MiraReport::mistakes)
        .def_ro("left_out", &MiraReport::left_out)
        .def_ro("mass", &MiraReport::mass);

    using State = Held<OnlineState>;
    nb::class_<State>(m, "OnlineState")
        .def(
            "__init__",
            [](State* self, Objective& o, const MutableFloats& weights, const std::optional<MutableFloats>& sum,
               const std::optional<MutableFloats>& plane) {
                check_explicit(o);
                new (self) State{{o, per_weight(o, weights, "weights"), sum ? per_weight(o, *sum, "sum") : nullptr,
                                  plane ? per_weight(o, *plane, "plane") : nullptr},
                                 {share(o), keep_alive(weights)}};
                if (sum) self->owners.push_back(keep_alive(*sum));
                if (plane) self->owners.push_back(keep_alive(*plane));
            },
            "objective"_a, nb::kw_only(), "weights"_a.noconvert(), "sum"_a.noconvert().none() = nb::none(),
            "plane"_a.noconvert().none() = nb::none());

    nb::class_<SgdOptions>(m, "SgdOptions")
        .def(
            "__init__",
            [](SgdOptions* self, double l2, double step_size, const std::string& rule, double n, double first) {
                check_l2(l2);
                if (!(step_size > 0.0) || step_size == kInfinity) throw InputError("step_size must be above 0");
                if (!(n >= 1.0) || !(first >= 0.0)) throw InputError("n must be at least 1, first at least 0");
                new (self) SgdOptions{l2, step_size, rule_of(rule), n, first};
            },
            nb::kw_only(), "l2"_a, "step_size"_a, "rule"_a, "n"_a, "first"_a);

    m.def(
        "perceptron_epoch",
        [](const State& held, const Ints& order) {
            check_order(held.state.objective, order);
            return run_kernel([&](auto& interrupt) { return perceptron_epoch(held.state, span_of(order), interrupt); });
        },
        "state"_a, "order"_a.noconvert());
    m.def(
        "sgd_epoch",
        [](const State& held, const Ints& order, const SgdOptions& options) {
            check_order(held.state.objective, order);
            return run_kernel(
                [&](auto& interrupt) { return sgd_epoch(held.state, span_of(order), options, interrupt); });
        },
        "state"_a, "order"_a.noconvert(), "options"_a);
    m.def(
        "mira_epoch",
        [](const State& held, const Ints& order, Index k) {
            check_order(held.state.objective, order);
            if (k < 1) throw InputError("k must be at least 1");
            return run_kernel([&](auto& interrupt) { return mira_epoch(held.state, span_of(order), k, interrupt); });
        },
        "state"_a, "order"_a.noconvert(), "k"_a);
    m.def(
        "most_labellings",
        [](Objective& o, Index k) {
            return run_kernel([&](auto& interrupt) { return most_labellings(o, k, interrupt); });
        },
        "objective"_a, "k"_a);
    m.def(
        "wrong_parts",
        [](Objective& o, const Floats& weights, const Ints& examples) {
            check_weights(o.features(), weights);
            check_order(o, examples);
            return run_kernel(
                [&](auto& interrupt) { return wrong_parts(o, weights.data(), span_of(examples), interrupt); });
        },
        "objective"_a, "weights"_a.noconvert(), "examples"_a.noconvert());
    m.def(
        "sum_of_losses",
        [](Objective& o, const Floats& weights, const Ints& examples) {
            check_weights(o.features(), weights);
            check_order(o, examples);
            return run_kernel(
                [&](auto& interrupt) { return sum_of_losses(o, weights.data(), span_of(examples), interrupt); });
        },
        "objective"_a, "weights"_a.noconvert(), "examples"_a.noconvert());
}

}  // namespace partwise::bindings
