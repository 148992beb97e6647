#include "structures/history_chain.h"

#include "structures/history_search.h"
#include "support/sizes.h"

namespace partwise {

using histories::HistoryRows;
using histories::HistorySearch;
using histories::HistorySums;
using histories::set_exps;

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

// rest: the value in the padding of each row.
HistoryChain::Table make_table(const std::vector<double>& rows, Index n_labels, Index width, double rest) {
    const Index n_rows = len(rows.size()) / n_labels;
    HistoryChain::Table out{std::vector<double>(n_rows * width, rest), std::vector<double>(n_rows * width),
                            std::vector<double>(n_rows)};
    for (Index r = 0; r < n_rows; ++r) {
        double* row = out.scores.data() + r * width;
        copy(rows.data() + r * n_labels, row, n_labels);
        out.highs[r] = *std::max_element(row, row + width);
        set_exps(row, width, out.factors.data() + r * width);
    }
    return out;
}

// The largest size of a table of all histories, in numbers. Rows of larger tables are computed when they are needed.
constexpr Index kLargestTable = Index{1} << 22;

}  // namespace

HistoryChain::HistoryChain(std::vector<Index> lengths, Index n_labels, Index history, const std::vector<double>& first,
                           std::vector<Index> pairs, const std::vector<double>& second, Index beam_width)
    : LabelSequences(std::move(lengths), n_labels),
      shape_{n_labels, width(), n_labels + 1, history, count_states(n_labels, history)},
      beam_width_(beam_width),
      pairs_(std::move(pairs)) {
    if (beam_width < 0) throw InputError("beam_width must be 1 or more, or 0 for all histories");
    Index total = 0;
    for (const Index length : this->lengths()) {
        const Index slots = checked_product(length, width(), "the number of a sequence's slots");
        total = checked_sum(total, slots, "the number of slots");
    }
    check_count(first, (n_labels + 1) * n_labels, "scores after one tag");
    check_count(second, len(pairs_.size()) * n_labels, "scores after two tags");
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
        if (history == 1 || pairs_[k] < 0 || pairs_[k] >= n_states() || (k > 0 && pairs_[k] <= pairs_[k - 1]))
            throw InputError("pairs must be histories of two tags, ascending");
    }
    first_ = make_table(first, n_labels, width(), -kInfinity);
    second_ = make_table(second, n_labels, width(), 0.0);
    if (n_states() > kLargestTable) return;
    places_.assign(n_states(), -1);
    for (std::size_t k = 0; k < pairs_.size(); ++k) places_[pairs_[k]] = len(k);
}

HistoryChain::View HistoryChain::plain_view(Index i, const double* scores) const {
    return {shape_,
            first_,
            second_,
            pairs_,
            places_.empty() ? nullptr : places_.data(),
            length(i),
            scores,
            follow().pairs.empty() ? nullptr : follow().pairs.data()};
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
    if (n_states() > kLargestTable / width()) return nullptr;
    std::call_once(factors_once_, [&] {
        factors_.resize(n_states() * width());
        const std::vector<double> zeros(width(), 0.0);
        for (Index s = 0; s < n_states(); ++s) {
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
    const double value = histories::best_labelling(v, beam_width(), labels.data());
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

double HistoryChain::value_of(Index i, const double* scores, SlotView labelling) const {
    std::vector<Index> labels(length(i));
    labels_of(i, labelling, labels.data());
    HistoryRows rows(plain_view(i, scores));
    double total = 0;
    Index state = n_states() - 1;
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
    HistorySearch search(rows, std::max(beam_width(), k));
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
    // Constraints on later positions change a label's probabilities; without constraints no sums are needed.
    if (v.open && !sums.run(nullptr)) one_of_them(-1);
    std::vector<double> p(n_labels());
    std::vector<Index> labels(v.length);
    std::vector<SlotCounts> out(n);
    for (SlotCounts& labelling : out) {
        Index state = n_states() - 1;
        for (Index t = 0; t < v.length; ++t) {
            sums.label_weights(t, state, p.data());
            const Index label = labels[t] = draw_one(p.data(), n_labels(), 1.0, rng);
            state = v.next(state, label);
        }
        labelling_of(i, labels.data(), labelling);
    }
    return out;
}

}  // namespace partwise
