// The arguments of solvers' kernels as Python makes them. Every kernel takes
//
//   a state      what it updates in place: pointers into NumPy's arrays, whose shapes are checked where it is made
//   an order     which examples or columns to visit
//   options      numbers and switches, checked where they are made
//
// so that an epoch looks the same in both languages: epoch(state, order, options). Solvers declare states and options
// as structs; bind_state and bind_options give these a constructor with keywords from a list of their members.
#pragma once

#include "bindings/common.h"
#include "solvers/objective.h"

namespace partwise::bindings {

inline void check_weights(const FeatureMap& features, const Floats& weights) {
    check_floats(weights, features.num_weights(), "weights");
}

inline void check_l2(double l2) {
    if (!(l2 > 0.0) || l2 == kInfinity) throw InputError("l2 must be above 0 and finite");
}

inline void check_l1(double l1) {
    if (!(l1 >= 0.0) || l1 == kInfinity) throw InputError("l1 must be a number >= 0");
}

inline void check_plane(double l1, const double* plane) {
    if (l1 > 0.0 && !plane) throw InputError("with l1 > 0 the state needs a plane");
}

inline void check_order(const Objective& objective, const Ints& order) {
    for (const Index i : span_of(order)) check_index(i, objective.num_examples());
}

inline void check_one_part(const Objective& objective) {
    if (!(objective.structure().capabilities() & kOnePart)) {
        throw InputError("labellings of this structure have several parts");
    }
}

// Defines a Python class with these readable members: ("name", &Report::name, ...).
template <class Report, class... Members>
nb::class_<Report> bind_report(nb::module_& m, const char* name, Members... members) {
    nb::class_<Report> cls(m, name);
    def_readable(cls, members...);
    return cls;
}

// A keyword of options: its name, a function that stores the given value, and its default.
template <class Options, class Given, bool kRequired>
struct Field {
    using Type = Given;
    const char* name;
    std::function<void(Options&, const Given&)> set;
    nb::object usual{};

    auto argument() const {
        if constexpr (kRequired) {
            return nb::arg(name);
        } else {
            return nb::arg(name) = usual;
        }
    }
};

template <class Options, class T>
Field<Options, T, true> required(const char* name, T Options::* member) {
    return {name, [member](Options& options, const T& value) { options.*member = value; }};
}
// A keyword with a default, that of the struct.
template <class Options, class T>
Field<Options, T, false> usual(const char* name, T Options::* member) {
    return {name, required(name, member).set, nb::cast(Options{}.*member)};
}
// A keyword whose value is one of several names; `parse` turns the name into the member's value.
template <class Options, class T>
Field<Options, std::string, true> named(const char* name, T Options::* member, T (*parse)(const std::string&)) {
    return {name, [=](Options& options, const std::string& value) { options.*member = parse(value); }};
}
template <class Options, class T>
Field<Options, std::string, false> named(const char* name, T Options::* member, T (*parse)(const std::string&),
                                         const char* usual) {
    return {name, named(name, member, parse).set, nb::cast(usual)};
}

// Defines a Python class for options, whose constructor takes the fields as keywords. check(options) throws InputError.
template <class Options, class... Fields>
void bind_options(nb::module_& m, const char* name, void (*check)(const Options&), Fields... fields) {
    nb::class_<Options>(m, name).def(
        "__init__",
        [=](Options* self, const typename Fields::Type&... values) {
            Options options;
            (fields.set(options, values), ...);
            check(options);
            new (self) Options(options);
        },
        nb::kw_only(), fields.argument()...);
}

using Owners = std::vector<std::shared_ptr<const void>>;

// A state, and what keeps its memory alive: the objective and the arrays live as long as it does.
template <class State>
struct Held {
    State state;
    Owners owners;
};

// Keywords of states. An array whose size depends on the objective, used in place (or as a converted copy).
template <class A, bool kConverted = false>
struct ArrayPart {
    using Type = const A&;
    const char* name;
    Index (*size)(const Objective&);

    ArrayPart<A, true> converted() const { return {name, size}; }
    auto argument() const {
        if constexpr (kConverted) {
            return nb::arg(name);
        } else {
            return nb::arg(name).noconvert();
        }
    }
    auto* take(const Objective& objective, const A& array, Owners& owners) const {
        check_size(array, size(objective), name);
        owners.push_back(keep_alive(array));
        return array.data();
    }
};
// The same, or None, which becomes a null pointer.
struct OptionalPart {
    using Type = const std::optional<MutableFloats>&;
    ArrayPart<MutableFloats> part;

    auto argument() const { return part.argument() = nb::none(); }
    double* take(const Objective& objective, const std::optional<MutableFloats>& array, Owners& owners) const {
        return array ? part.take(objective, *array, owners) : nullptr;
    }
};
template <class T>
struct ObjectPart {
    using Type = T&;
    const char* name;

    auto argument() const { return nb::arg(name); }
    T& take(const Objective&, T& object, Owners& owners) const {
        owners.push_back(share(object));
        return object;
    }
};
struct NumberPart {
    using Type = double;
    const char* name;

    auto argument() const { return nb::arg(name); }
    double take(const Objective&, double value, Owners&) const { return value; }
};

template <class A = MutableFloats>
ArrayPart<A> sized(const char* name, Index (*size)(const Objective&)) {
    return {name, size};
}
template <class A = MutableFloats>
ArrayPart<A> per_weight(const char* name) {
    return {name, [](const Objective& o) { return o.features().num_weights(); }};
}
template <class A = MutableFloats>
ArrayPart<A> per_slot(const char* name) {
    return {name, [](const Objective& o) { return o.total_slots(); }};
}
template <class A = MutableFloats>
ArrayPart<A> per_example(const char* name) {
    return {name, [](const Objective& o) { return o.num_examples(); }};
}
inline OptionalPart or_none(ArrayPart<MutableFloats> part) { return {part}; }

// A class of Python for a state, whose members after the objective are these parts, in their order.
template <class State, class... Parts>
void bind_state(nb::module_& m, const char* name, void (*check)(const Objective&), Parts... parts) {
    nb::class_<Held<State>>(m, name).def(
        "__init__",
        [=](Held<State>* self, Objective& o, typename Parts::Type... given) {
            check(o);
            Owners owners{share(o)};
            new (self) Held<State>{State{o, parts.take(o, given, owners)...}, std::move(owners)};
        },
        "objective"_a, nb::kw_only(), parts.argument()...);
}

template <class T>
void unchecked(const T&) {}

// epoch(state, order, options) over examples; check(state, options) throws InputError.
template <class Report, class State, class Options>
void bind_epoch(
    nb::module_& m, const char* name, Report (*epoch)(const State&, std::span<const Index>, const Options&, Interrupt&),
    void (*check)(const State&, const Options&) = [](const State&, const Options&) {}) {
    m.def(
        name,
        [=](const Held<State>& held, const Ints& order, const Options& options) {
            check_order(held.state.objective, order);
            check(held.state, options);
            return run_kernel(epoch, held.state, span_of(order), options);
        },
        "state"_a, "order"_same, "options"_a);
}

}  // namespace partwise::bindings
