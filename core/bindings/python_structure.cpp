#include "bindings/python_structure.h"

#include <random>

#include "support/vector_math.h"

namespace partwise::bindings {

namespace {
// The Python object that wraps this instance; it is known to nanobind as a Structure.
nb::object wrapper(const Structure* structure) { return nb::find(structure); }
}  // namespace

bool PythonStructure::implements(const char* name) const {
    return !wrapper(this).type().attr(name).is(nb::type<Structure>().attr(name));
}

nb::object PythonStructure::method(const char* name) const {
    if (!implements(name)) {
        PyErr_Format(PyExc_NotImplementedError, "a structure written in Python must implement '%s'", name);
        throw nb::python_error();
    }
    return wrapper(this).attr(name);
}

NumPy<double> PythonStructure::array(Index i, const double* scores) const {
    return numpy(std::vector<double>(scores, scores + size(i)));
}

unsigned PythonStructure::capabilities() const {
    const nb::gil_scoped_acquire gil;
    // Besides the required methods the core calls covariance_product; what else there is, Python code can call.
    unsigned found = 0;
    if (implements("clique_marginals")) found |= kCliques;
    if (implements("covariance_product")) found |= kCovariance;
    if (implements("k_best")) found |= kKBest;
    if (implements("sample")) found |= kSample;
    return found;
}

Index PythonStructure::num_slots(Index i) const {
    const nb::gil_scoped_acquire gil;
    const auto n = nb::cast<Index>(method("num_slots")(i));
    const std::string name = "num_slots(" + std::to_string(i) + ")";
    if (n < 0) throw InputError(name + " is " + std::to_string(n));
    Index& known = sizes_[idx(i)];
    if (known < 0) known = n;
    if (known != n) {
        throw InputError(name + " was " + std::to_string(known) + " and is now " + std::to_string(n) +
                         ": a structure must not change, make a new one");
    }
    return n;
}

double PythonStructure::maximize(Index i, const double* scores, SlotCounts& best, Workspace&) const {
    const nb::gil_scoped_acquire gil;
    const auto [value, slots, counts] =
        nb::cast<std::tuple<double, Ints, Floats>>(method("maximize")(i, array(i, scores)));
    if (slots.size() != counts.size()) throw InputError("maximize: one count per slot is needed");
    best.clear();
    for (std::size_t k = 0; k < slots.size(); ++k) {
        if (slots.data()[k] < 0 || slots.data()[k] >= size(i)) throw InputError("maximize: a slot is out of range");
        best.add(slots.data()[k], counts.data()[k]);
    }
    return value;
}

double PythonStructure::log_partition(Index i, const double* scores, double temperature, double* marginals,
                                      double* entropy, Workspace& ws) const {
    const nb::gil_scoped_acquire gil;
    if (temperature == 0.0 && !implements("log_partition")) {  // the maximum is all that temperature 0 needs
        return maximum_as_sums(i, scores, marginals, entropy, ws);
    }
    const auto [value, mu, h] =
        nb::cast<std::tuple<double, Floats, double>>(method("log_partition")(i, array(i, scores), temperature));
    check_size(mu, size(i), "log_partition: expected counts");
    if (marginals) copy(mu.data(), marginals, len(mu.size()));
    if (entropy) *entropy = h;
    return value;
}

void PythonStructure::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    const nb::gil_scoped_acquire gil;
    const auto cost =
        nb::cast<Floats>(method("cost")(i, numpy(vector_of<Index>(gold.slots)), numpy(vector_of<double>(gold.counts))));
    check_size(cost, size(i), "cost");
    axpy(scale, cost.data(), scores, len(cost.size()));
}

void PythonStructure::check_labelling(Index i, SlotView labelling, Workspace& ws) const {
    const nb::gil_scoped_acquire gil;
    if (implements("check_labelling")) {
        method("check_labelling")(i, numpy(vector_of<Index>(labelling.slots)),
                                  numpy(vector_of<double>(labelling.counts)));
    }
    check_by_oracle(i, labelling, ws);
}

// No labelling scores more than the maximum. Scores that are positive on the slots of this one and negative elsewhere
// find out everything that uses slots once or not at all and is not a labelling; where slots are used several times,
// different magnitudes find out what lies outside of the labellings' convex hull, which is what certificates rest on.
void PythonStructure::check_by_oracle(Index i, SlotView labelling, Workspace& ws) const {
    constexpr int kTrials = 4;
    std::vector<double> used(idx(size(i)), -1.0);
    for (const Index slot : labelling.slots) {
        if (slot < 0 || slot >= size(i))
            throw InputError("example " + std::to_string(i) + ": slot " + std::to_string(slot) + " is out of range");
        used[idx(slot)] = 1.0;
    }
    std::vector<double> scores(used);
    std::mt19937_64 rng(idx(i));
    std::normal_distribution<double> normal;
    SlotCounts best;
    for (int trial = 0; trial < kTrials; ++trial) {
        double own = 0;
        double magnitude = 1;
        for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
            const double term = labelling.counts[k] * scores[idx(labelling.slots[k])];
            own += term;
            magnitude += std::abs(term);
        }
        const double maximum = implements("maximize") ? maximize(i, scores.data(), best, ws)
                                                      : log_partition(i, scores.data(), 0.0, nullptr, nullptr, ws);
        if (!(own <= maximum + 1e-9 * magnitude)) {
            throw InputError("example " + std::to_string(i) +
                             ": the gold labelling is not one of the structure's labellings: for some scores it has " +
                             std::to_string(own) + " and the structure's maximum is " + std::to_string(maximum));
        }
        for (std::size_t r = 0; r < scores.size(); ++r) {
            const double x = normal(rng);
            scores[r] = trial + 2 < kTrials ? used[r] * std::abs(x) : x;
        }
    }
}

void PythonStructure::covariance_product(Index i, const double* scores, double temperature, const double* direction,
                                         double* out, Workspace&) const {
    const nb::gil_scoped_acquire gil;
    const auto product =
        nb::cast<Floats>(method("covariance_product")(i, array(i, scores), temperature, array(i, direction)));
    check_size(product, size(i), "covariance_product");
    copy(product.data(), out, len(product.size()));
}

}  // namespace partwise::bindings
