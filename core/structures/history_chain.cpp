#include "structures/history_chain.h"

#include <algorithm>
#include <cmath>

#include "structures/history_search.h"
#include "structures/history_sums.h"
#include "support/sizes.h"

namespace partwise {

namespace {

Index count_states(Index n_labels, Index history) {
    if (history != 1 && history != 2) throw InputError("history must be 1 or 2");
    if (n_labels >= Index{1} << 20) throw InputError("too many labels for a table of histories");
    return history == 1 ? n_labels + 1 : (n_labels + 1) * (n_labels + 1);
}

void check_count(const std::vector<double>& values, Index expected, const char* name) {
    if (len(values.size()) != expected) {
        throw InputError(name, ": ", values.size(), " values, ", expected, " are needed");
    }
}

// Rows with something behind the labels.
std::vector<double> widened(const std::vector<double>& rows, Index n_rows, Index n_labels, Index width, double rest) {
    std::vector<double> out(n_rows * width, rest);
    for (Index r = 0; r < n_rows; ++r) copy(rows.data() + r * n_labels, out.data() + r * width, n_labels);
    return out;
}

// exp of rows over the largest of each, and the logarithms of those.
void set_factors(const std::vector<double>& rows, Index width, std::vector<double>& factors,
                 std::vector<double>& highs) {
    factors.resize(rows.size());
    highs.resize(rows.size() / width);
    for (std::size_t r = 0; r < highs.size(); ++r) {
        const double* row = rows.data() + len(r) * width;
        highs[r] = *std::max_element(row, row + width);
        set_exps(row, width, factors.data() + len(r) * width);
    }
}

// Numbers that a table of all histories may have; where there are more, its rows are made when they are needed.
constexpr Index kLargestTable = Index{1} << 22;

std::string sequence(Index i) { return "sequence " + std::to_string(i); }

}  // namespace

HistoryChain::HistoryChain(std::vector<Index> lengths, Index n_labels, Index history, const std::vector<double>& first,
                           std::vector<Index> pairs, const std::vector<double>& second, Index beam_width)
    : Sequences(std::move(lengths), n_labels),
      history_(history),
      n_states_(count_states(n_labels, history)),
      beam_width_(beam_width),
      pairs_(std::move(pairs)) {
    if (beam_width < 0) throw InputError("beam_width must be 1 or more, or 0 for all histories");
    Index total = 0;
    for (const Index length : this->lengths()) {
        const Index slots = checked_product(length, width(), "the number of a sequence's slots");
        total = checked_sum(total, slots, "the number of slots");
    }
    const Index tags = n_labels + 1;
    check_count(first, tags * n_labels, "scores after one tag");
    check_count(second, len(pairs_.size()) * n_labels, "scores after two tags");
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
        if (history == 1 || pairs_[k] < 0 || pairs_[k] >= n_states_ || (k > 0 && pairs_[k] <= pairs_[k - 1]))
            throw InputError("pairs must be histories of two tags, ascending");
    }
    first_ = widened(first, tags, n_labels, width(), -kInfinity);
    second_ = widened(second, len(pairs_.size()), n_labels, width(), 0.0);
    set_factors(first_, width(), first_factors_, first_highs_);
    set_factors(second_, width(), second_factors_, second_highs_);
    if (n_states_ > kLargestTable) return;
    places_.assign(n_states_, -1);
    for (std::size_t k = 0; k < pairs_.size(); ++k) places_[pairs_[k]] = len(k);
}

HistoryChain::View HistoryChain::plain_view(Index i, const double* scores) const {
    View v{};
    v.length = length(i);
    v.n_labels = n_labels();
    v.width = width();
    v.tags = n_labels() + 1;
    v.history = history_;
    v.n_states = n_states_;
    v.scores = scores;
    v.first = first_.data();
    v.pairs = pairs_;
    v.second = second_.data();
    v.places = places_.empty() ? nullptr : places_.data();
    v.first_factors = first_factors_.data();
    v.second_factors = second_factors_.data();
    v.first_highs = first_highs_.data();
    v.second_highs = second_highs_.data();
    v.follow = follow().pairs.empty() ? nullptr : follow().pairs.data();
    return v;
}

HistoryChain::View HistoryChain::view(Index i, const double* scores, std::vector<std::uint8_t>& open) const {
    View out = plain_view(i, scores);
    const Index T = out.length;
    const Index L = n_labels();
    const std::uint8_t* allowed = mask(i);
    if (!allowed && follow().empty()) return out;
    // A label is open if it is allowed and an open label of the next position may follow it.
    open.assign(T * L, 0);
    for (Index t = T - 1; t >= 0; --t) {
        const std::uint8_t* later = open.data() + (t + 1) * L;
        for (Index a = 0; a < L; ++a) {
            bool is_open = (!allowed || allowed[t * width() + a]) && may_stand(i, t, a);
            if (is_open && t < T - 1) {
                is_open = false;
                for (Index b = 0; b < L && !is_open; ++b) is_open = later[b] && may_follow(a, b);
            }
            open[t * L + a] = is_open;
        }
    }
    out.open = open.data();
    if (std::find(open.begin(), open.begin() + L, 1) == open.begin() + L) nothing_left(i);
    return out;
}

const double* HistoryChain::factors(const View& v) const {
    if (n_states_ > kLargestTable / width()) return nullptr;
    std::call_once(factors_once_, [&] {
        factors_.resize(n_states_ * width());
        const std::vector<double> zeros(width(), 0.0);
        for (Index s = 0; s < n_states_; ++s) {
            double* row = factors_.data() + s * width();
            v.add_after(s, zeros.data(), row);
            set_exps(row, width(), row);
        }
    });
    return factors_.data();
}

void HistoryChain::check_mask(Index i) const {
    std::vector<std::uint8_t> open;
    view(i, nullptr, open);
}

double HistoryChain::maximize(Index i, const double* scores, SlotCounts& best, Workspace&) const {
    std::vector<std::uint8_t> open;
    const View v = view(i, scores, open);
    std::vector<Index> labels(v.length);
    const double value = best_labelling(v, beam_width_ == 0 ? n_states_ : beam_width_, labels.data());
    labelling_of(i, labels.data(), best);
    return value;
}

double HistoryChain::log_partition(Index i, const double* scores, double temperature, double* marginals,
                                   double* entropy, Workspace& ws) const {
    if (temperature == 0.0) return maximum_as_sums(i, scores, marginals, entropy, ws);
    if (temperature != 1.0) throw InputError("a chain of histories supports temperatures 0 and 1 only");
    std::vector<std::uint8_t> open;
    View v = view(i, scores, open);
    v.factors = factors(v);
    HistorySums<double> sums(v);
    if (!entropy && sums.run(marginals)) return sums.log_constant();
    HistorySums<LogNumber> logs(v);
    if (!logs.run(marginals)) one_of_them(-1);
    if (entropy) *entropy = logs.entropy();
    return logs.log_constant();
}

void HistoryChain::labelling_of(Index i, const Index* labels, SlotCounts& out) const {
    out.clear();
    for (Index t = 0; t < length(i); ++t) out.add(t * width() + labels[t], 1.0);
}

void HistoryChain::check_labelling(Index i, SlotView labelling, Workspace&) const {
    std::vector<Index> labels(length(i));
    labels_of(i, labelling, labels.data());
    check_follow(i, labels.data());
    const std::uint8_t* allowed = mask(i);
    for (std::size_t t = 0; t < labels.size(); ++t) {
        if (allowed && !allowed[len(t) * width() + labels[t]]) {
            throw InputError(sequence(i), ", position ", t, ": a mask forbids the label");
        }
    }
}

double HistoryChain::value_of(Index i, const double* scores, SlotView labelling) const {
    std::vector<Index> labels(length(i));
    labels_of(i, labelling, labels.data());
    HistoryRows rows(plain_view(i, scores));
    double total = 0;
    Index state = n_states_ - 1;
    for (Index t = 0; t < length(i); ++t) {
        const double score = rows.scores(t, state)[labels[t]];
        total += score - rows.log_partition(t, state);
        state = rows.view().next(state, labels[t]);
    }
    return total;
}

std::vector<Scored> HistoryChain::k_best(Index i, const double* scores, Index k, Workspace&) const {
    if (k < 1) throw InputError("k must be at least 1");
    std::vector<std::uint8_t> open;
    const View v = view(i, scores, open);
    HistoryRows rows(v);
    HistorySearch search(rows, beam_width_ == 0 ? n_states_ : std::max(beam_width_, k));
    std::vector<Scored> out;
    for (const HistorySearch::Found& found : search.k_best(k)) {
        out.push_back({found.value, {}});
        labelling_of(i, found.labels.data(), out.back().labelling);
    }
    return out;
}

std::vector<SlotCounts> HistoryChain::sample(Index i, const double* scores, double temperature, Index n,
                                             std::mt19937_64& rng, Workspace&) const {
    if (temperature != 1.0) throw InputError("a chain of histories supports sampling at temperature 1 only");
    std::vector<std::uint8_t> open;
    const View v = view(i, scores, open);
    HistorySums<LogNumber> sums(v);
    // Without constraints nothing to come changes the next label's probabilities.
    if (v.open && !sums.run(nullptr)) one_of_them(-1);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::vector<double> p(n_labels());
    std::vector<Index> labels(v.length);
    std::vector<SlotCounts> out(n);
    for (SlotCounts& labelling : out) {
        Index state = n_states_ - 1;
        for (Index t = 0; t < v.length; ++t) {
            sums.label_weights(t, state, p.data());
            double left = uniform(rng);
            Index label = -1;
            for (Index c = 0; c < n_labels() && left >= 0.0; ++c) {
                if (p[c] == 0.0) continue;
                label = c;
                left -= p[c];
            }
            labels[t] = one_of_them(label);
            state = v.next(state, label);
        }
        labelling_of(i, labels.data(), labelling);
    }
    return out;
}

}  // namespace partwise
