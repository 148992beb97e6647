// A structure written in Python: every call takes the GIL and asks the Python object.
#pragma once

#include <sstream>

#include "bindings/common.h"
#include "structures/clique_view.h"
#include "structures/structure.h"

namespace partwise::bindings {

// How far a value may be from the sum of its slots' scores, relative to the sizes of the terms.
constexpr double kValueTolerance = 1e-6;
constexpr const char* kLabellingForm = "(value, slots, counts)";
constexpr std::size_t kShown = 200;  // letters of a wrong answer that a message shows

inline std::string where(const char* name, Index i) { return concat(name, ": example ", i, ": "); }

inline std::string number(double x) {
    std::ostringstream text;
    text << x;
    return text.str();
}

inline std::string text_of(nb::handle object) { return nb::str(object).c_str(); }

inline std::string kind_of(nb::handle object) { return text_of(object.type().attr("__name__")); }

template <class... Parts>
[[noreturn]] void type_error(const Parts&... message) {
    PyErr_SetString(PyExc_TypeError, concat(message...).c_str());
    throw nb::python_error();
}

// (value, slots, counts) as a method gave it: arrays of integers and of numbers, or lists of them.
inline std::tuple<double, Ints, Floats> labelling_in(const char* name, Index i, nb::handle answer) {
    std::tuple<double, Ints, Floats> found;
    if (nb::try_cast(answer, found, false)) return found;
    const char* const form = " is needed, a number and two arrays of one length; ";
    if (!nb::isinstance<nb::tuple>(answer) && !nb::isinstance<nb::list>(answer)) {
        type_error(where(name, i), kLabellingForm, form, "got ", kind_of(answer));
    }
    const auto parts = nb::borrow<nb::sequence>(answer);
    if (nb::len(parts) != 3) type_error(where(name, i), kLabellingForm, form, "got ", nb::len(parts), " values");
    const nb::object numpy = nb::module_::import_("numpy");
    nb::object slots = numpy.attr("asarray")(parts[1]);
    const nb::object counts = numpy.attr("asarray")(parts[2]);
    const std::string kind = text_of(slots.attr("dtype").attr("kind"));
    const bool none = nb::cast<Index>(slots.attr("size")) == 0;  // NumPy makes floats of an empty list
    if (kind != "i" && kind != "u" && !none) {
        type_error(where(name, i), "slots must be integers, got an array of ", text_of(slots.attr("dtype")));
    }
    slots = numpy.attr("ascontiguousarray")(slots, numpy.attr("int64"));
    if (!nb::try_cast(parts[0], std::get<0>(found)) || !nb::try_cast(slots, std::get<1>(found)) ||
        !nb::try_cast(counts, std::get<2>(found))) {
        type_error(where(name, i), kLabellingForm, form, "got ", text_of(nb::repr(answer)).substr(0, kShown));
    }
    return found;
}

class PythonStructure final : public Structure, public CliqueView {
   public:
    explicit PythonStructure(Index num_examples) : Structure(num_examples), sizes_(num_examples, -1) {}

    bool thread_safe() const override { return false; }
    unsigned capabilities() const override {
        const nb::gil_scoped_acquire gil;
        // Besides the required methods the core calls covariance_product, k_best and those of cliques; what else there
        // is, Python code can call.
        unsigned found = 0;
        if (implements("clique_marginals")) found |= kCliques;
        if (found && implements("clique_entries") && implements("maximize_in_support")) found |= kSupport;
        if (implements("covariance_product")) found |= kCovariance;
        if (implements("k_best")) found |= kKBest;
        if (implements("sample")) found |= kSample;
        return found;
    }
    // Asks Python; throws if the answer has changed, because arrays of the old size exist.
    Index num_slots(Index i) const override {
        const nb::gil_scoped_acquire gil;
        const auto n = nb::cast<Index>(method("num_slots")(i));
        const std::string name = "num_slots(" + std::to_string(i) + ")";
        if (n < 0) throw InputError(name, " is ", n);
        Index& known = sizes_[i];
        if (known < 0) known = n;
        if (known != n) {
            throw InputError(name, " was ", known, " and is now ", n, ": a structure must not change, make a new one");
        }
        return n;
    }
    double maximize(Index i, const double* scores, SlotCounts& best, Workspace& ws) const override {
        const nb::gil_scoped_acquire gil;
        // Online solvers ask for one example at a time, so the method that answers is looked up once.
        if (single_ < 0) {
            if (!has_maximum()) method("maximize");  // throws
            single_ = implements("maximize") ? 1 : 0;
        }
        if (single_ == 0) {
            double value = 0;
            maximize_of({&i, 1}, &scores, &value, &best, ws);
            return value;
        }
        const nb::object answer = wrapper().attr("maximize")(i, array(i, scores));
        return take_answer("maximize", i, scores, answer, best);
    }
    void maximize_of(std::span<const Index> examples, const double* const* scores, double* values, SlotCounts* best,
                     Workspace& ws) const override {
        const nb::gil_scoped_acquire gil;
        if (!implements("maximize_many")) return Structure::maximize_of(examples, scores, values, best, ws);
        const std::vector<nb::object> answers = ask_many("maximize_many", kLabellingForm, examples, scores);
        for (std::size_t k = 0; k < answers.size(); ++k) {
            values[k] = take_answer("maximize_many", examples[k], scores[k], answers[k], best[k]);
        }
    }
    bool together() const override {
        const nb::gil_scoped_acquire gil;
        return implements("maximize_many") || implements("log_partition_many");
    }
    double log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                         Workspace& ws) const override {
        const nb::gil_scoped_acquire gil;
        if (temperature == 0.0 && !has_sums()) {  // the maximum is all that temperature 0 needs
            return maximum_as_sums(i, scores, marginals, entropy, ws);
        }
        if (!implements("log_partition") && implements("log_partition_many")) {
            double value = 0;
            sums_of(i, i + 1, scores, temperature, &value, marginals, entropy);
            return value;
        }
        const nb::object answer = method("log_partition")(i, array(i, scores), temperature);
        return take_sums("log_partition", i, answer, marginals, entropy);
    }
    void log_partition_of(Index begin, Index end, const double* scores, double temperature, double* values,
                          double* marginals, double* entropies, Workspace& ws) const override {
        const nb::gil_scoped_acquire gil;
        if (temperature != 0.0 && implements("log_partition_many")) {
            return sums_of(begin, end, scores, temperature, values, marginals, entropies);
        }
        if (temperature != 0.0 || !implements("maximize_many")) {
            return Structure::log_partition_of(begin, end, scores, temperature, values, marginals, entropies, ws);
        }
        const Rows rows = rows_of(begin, end, scores);
        std::vector<SlotCounts> best(rows.examples.size());
        maximize_of(rows.examples, rows.scores.data(), values, best.data(), ws);
        for (Index i = begin; i < end; ++i) {
            fill(marginals, size(i), 0.0);
            best[i - begin].view().add_to(marginals, 1.0);
            entropies[i - begin] = 0.0;
            marginals += size(i);
        }
    }
    void log_values_of(Index begin, Index end, const double* scores, double temperature, double* values,
                       Workspace& ws) const override {
        const nb::gil_scoped_acquire gil;
        Index n = 0;
        for (Index i = begin; i < end; ++i) n += size(i);
        Workspace::Frame frame(ws);
        double* marginals = frame.take(n);  // Python gives all of it
        log_partition_of(begin, end, scores, temperature, values, marginals, frame.take(end - begin), ws);
    }
    void add_cost(Index i, SlotView gold, double scale, double* scores) const override {
        const nb::gil_scoped_acquire gil;
        const auto cost =
            nb::cast<Floats>(method("cost")(i, numpy(vector_of(gold.slots)), numpy(vector_of(gold.counts))));
        check_size(cost, size(i), "cost");
        axpy(scale, cost.data(), scores, len(cost.size()));
    }
    void check_labelling(Index i, SlotView labelling, Workspace& ws) const override {
        const nb::gil_scoped_acquire gil;
        if (implements("check_labelling")) {
            method("check_labelling")(i, numpy(vector_of(labelling.slots)), numpy(vector_of(labelling.counts)));
        }
        for (const Index slot : labelling.slots) {
            if (slot < 0 || slot >= size(i)) throw InputError("example ", i, ": slot ", slot, " is out of range");
        }
        check_by_maxima(i, labelling, "the gold labelling is not one of the structure's labellings", ws);
    }
    std::vector<Scored> k_best(Index i, const double* scores, Index k, Workspace&) const override {
        const nb::gil_scoped_acquire gil;
        const nb::object found = method("k_best")(i, array(i, scores), k);
        if (!nb::isinstance<nb::sequence>(found)) {
            type_error(where("k_best", i), "a list of ", kLabellingForm, " is needed, got ", kind_of(found));
        }
        const auto answers = nb::borrow<nb::sequence>(found);
        std::vector<Scored> best(std::min(nb::len(answers), idx(k)));
        for (std::size_t j = 0; j < best.size(); ++j) {
            best[j].value = take_answer("k_best", i, scores, nb::object(answers[j]), best[j].labelling);
        }
        return best;
    }
    void covariance_product(Index i, const double* scores, double temperature, const double* direction, double* out,
                            Workspace&) const override {
        const nb::gil_scoped_acquire gil;
        const auto product =
            nb::cast<Floats>(method("covariance_product")(i, array(i, scores), temperature, array(i, direction)));
        check_size(product, size(i), "covariance_product");
        copy(product.data(), out, len(product.size()));
    }
    const CliqueView& cliques() const override { return *this; }
    std::vector<Index> clique_offsets(Index i) const override {
        const nb::gil_scoped_acquire gil;
        const auto offsets = nb::cast<Ints>(method("clique_offsets")(i));
        const Index* first = offsets.data();
        const Index* last = first + offsets.size();
        if (first == last || *first != 0 || !std::is_sorted(first, last))
            throw InputError(where("clique_offsets", i), "they must start at 0 and not fall");
        return {first, last};
    }
    double clique_marginals(Index i, const double* scores, double temperature, double* out,
                            Workspace& ws) const override {
        const nb::gil_scoped_acquire gil;
        const auto found = nb::cast<Floats>(method("clique_marginals")(i, array(i, scores), temperature));
        check_floats(found, clique_offsets(i).back(), "clique_marginals");
        copy(found.data(), out, len(found.size()));
        return log_partition(i, scores, temperature, nullptr, nullptr, ws);
    }
    void slots_from_cliques(Index i, const double* cliques, double* slots) const override {
        const nb::gil_scoped_acquire gil;
        const auto found = nb::cast<Floats>(method("slots_from_cliques")(i, clique_array(i, cliques)));
        check_floats(found, size(i), "slots_from_cliques");
        copy(found.data(), slots, len(found.size()));
    }
    double entropy_of_cliques(Index i, const double* cliques, double* gradient, Workspace&) const override {
        const nb::gil_scoped_acquire gil;
        const auto own = clique_array(i, cliques);
        const auto [entropy, slope] = nb::cast<std::pair<double, Floats>>(method("entropy_of_cliques")(i, own));
        check_size(slope, len(own.size()), "entropy_of_cliques");
        if (!std::isfinite(entropy))
            throw InputError(where("entropy_of_cliques", i), "the entropy is ", number(entropy));
        if (gradient) copy(slope.data(), gradient, len(slope.size()));
        return entropy;
    }
    void scores_from_cliques(Index, const double*, double*) const override {
        throw InputError("this structure does not offer scores from cliques");  // nor is Python asked for them
    }
    void clique_entries(Index i, SlotView labelling, Index* entries, Workspace&) const override {
        const nb::gil_scoped_acquire gil;
        const auto found = nb::cast<Ints>(
            method("clique_entries")(i, numpy(vector_of(labelling.slots)), numpy(vector_of(labelling.counts))));
        const std::vector<Index> offsets = clique_offsets(i);
        if (found.size() + 1 != offsets.size())
            throw InputError(where("clique_entries", i), found.size(), " entries for ", offsets.size() - 1, " cliques");
        for (std::size_t c = 0; c < found.size(); ++c) {
            entries[c] = found.data()[c];
            if (entries[c] < offsets[c] || entries[c] >= offsets[c + 1])
                throw InputError(where("clique_entries", i), "entry ", entries[c], " is none of clique ", c);
        }
    }
    double maximize_in_support(Index i, const double* scores, const double* cliques, double least, SlotCounts& best,
                               Workspace&) const override {
        const nb::gil_scoped_acquire gil;
        const nb::object answer = method("maximize_in_support")(i, array(i, scores), clique_array(i, cliques), least);
        return take_answer("maximize_in_support", i, scores, answer, best);
    }

   protected:
    double maximum(Index i, const double* scores, double* counts, Workspace& ws) const override {
        if (has_maximum()) return Structure::maximum(i, scores, counts, ws);
        return log_partition(i, scores, 0.0, counts, nullptr, ws);
    }

   private:
    // The Python object that wraps this instance; it is known to nanobind as a Structure.
    nb::object wrapper() const { return nb::find(static_cast<const Structure*>(this)); }
    // The method of the Python subclass; NotImplementedError if it has none.
    nb::object method(const char* name) const {
        if (!implements(name)) {
            PyErr_Format(PyExc_NotImplementedError, "a structure written in Python must implement '%s'", name);
            throw nb::python_error();
        }
        return wrapper().attr(name);
    }
    bool implements(const char* name) const {
        return !wrapper().type().attr(name).is(nb::type<Structure>().attr(name));
    }
    // Whether the maximum has a method of its own: `maximize` or `maximize_many`.
    bool has_maximum() const { return implements("maximize") || implements("maximize_many"); }
    bool has_sums() const { return implements("log_partition") || implements("log_partition_many"); }
    // The sums that `name` gave for example i, as (value, expected counts, entropy): checked. Returns the value.
    double take_sums(const char* name, Index i, nb::handle answer, double* marginals, double* entropy) const {
        std::tuple<double, Floats, double> found;
        if (!nb::try_cast(answer, found)) {
            type_error(where(name, i), "(value, expected counts, entropy) is needed, a number, a float64 array and ",
                       "a number; got ", text_of(nb::repr(answer)).substr(0, kShown));
        }
        const auto& [value, mu, h] = found;
        check_size(mu, size(i), (std::string(name) + ": expected counts").c_str());
        if (std::isnan(value) || std::isnan(h)) {
            throw InputError(where(name, i), "the value is ", number(value), " and the entropy ", number(h));
        }
        if (!all_finite(mu.data(), len(mu.size()))) throw InputError(where(name, i), "an expected count is not finite");
        if (marginals) copy(mu.data(), marginals, len(mu.size()));
        if (entropy) *entropy = h;
        return value;
    }
    // The sums of the examples [begin, end), slots end to end, as one question; marginals, entropies: null or as in
    // `log_partition_of`.
    void sums_of(Index begin, Index end, const double* scores, double temperature, double* values, double* marginals,
                 double* entropies) const {
        const Rows rows = rows_of(begin, end, scores);
        const std::vector<nb::object> answers = ask_many("log_partition_many", "(value, expected counts, entropy)",
                                                         rows.examples, rows.scores.data(), temperature);
        for (Index i = begin; i < end; ++i) {
            const Index k = i - begin;
            values[k] = take_sums("log_partition_many", i, answers[k], marginals, entropies ? entropies + k : nullptr);
            if (marginals) marginals += size(i);
        }
    }
    // The labelling that `name` gave for example i, as (value, slots, counts), and its value: checked.
    double take_answer(const char* name, Index i, const double* scores, nb::handle answer, SlotCounts& best) const {
        const auto [value, slots, counts] = labelling_in(name, i, answer);
        if (slots.size() != counts.size()) {
            throw InputError(where(name, i), slots.size(), " slots with ", counts.size(),
                             " counts: one count per slot is needed");
        }
        best.clear();
        const Index n = size(i);
        double sum = 0;
        double magnitude = 1;
        for (std::size_t k = 0; k < slots.size(); ++k) {
            const Index slot = slots.data()[k];
            if (slot < 0 || slot >= n)
                throw InputError(where(name, i), "slot ", slot, " is out of range, there are ", n);
            best.add(slot, counts.data()[k]);
            const double term = counts.data()[k] * scores[slot];
            sum += term;
            magnitude += std::abs(term);
        }
        // Certificates are computed from the value. NaN and infinite counts fail this check, too.
        if (!(std::abs(value - sum) <= kValueTolerance * magnitude)) {
            throw InputError(where(name, i), "the value is ", number(value), ", but the labelling's slots sum up to ",
                             number(sum));
        }
        return value;
    }
    // The examples [begin, end), slots end to end, as `maximize_of` takes them.
    struct Rows {
        std::vector<Index> examples;
        std::vector<const double*> scores;
    };
    Rows rows_of(Index begin, Index end, const double* scores) const {
        Rows rows;
        for (Index i = begin; i < end; scores += size(i), ++i) {
            rows.examples.push_back(i);
            rows.scores.push_back(scores);
        }
        return rows;
    }
    // Calls the method for several examples; it must return a list with one answer of this form per example.
    template <class... Rest>
    std::vector<nb::object> ask_many(const char* name, const char* form, std::span<const Index> examples,
                                     const double* const* scores, Rest... rest) const {
        nb::list numbers;
        nb::list arrays;
        for (std::size_t k = 0; k < examples.size(); ++k) {
            numbers.append(examples[k]);
            arrays.append(nb::cast(array(examples[k], scores[k])));
        }
        const nb::object found = method(name)(numbers, arrays, rest...);
        if (!nb::isinstance<nb::sequence>(found)) {
            type_error(name, " must return a list of ", form, ", got ", kind_of(found));
        }
        const auto answers = nb::borrow<nb::sequence>(found);
        if (nb::len(answers) != examples.size()) {
            throw InputError(name, " gave ", nb::len(answers), " answers for ", examples.size(), " examples");
        }
        std::vector<nb::object> own;
        for (std::size_t k = 0; k < examples.size(); ++k) own.emplace_back(answers[k]);
        return own;
    }
    // A copy of the scores as an array, which Python may keep.
    NumPy<double> array(Index i, const double* scores) const {
        return numpy(std::vector<double>(scores, scores + size(i)));
    }
    NumPy<double> clique_array(Index i, const double* cliques) const {
        return numpy(std::vector<double>(cliques, cliques + clique_offsets(i).back()));
    }
    // The first answer of num_slots, which is the size of the core's arrays.
    Index size(Index i) const { return sizes_[i] < 0 ? num_slots(i) : sizes_[i]; }

    mutable int single_ = -1;           // whether `maximize` answers for single examples; -1: not looked up yet
    mutable std::vector<Index> sizes_;  // read and written with the GIL; -1: not asked yet
};

}  // namespace partwise::bindings
