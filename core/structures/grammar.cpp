#include "structures/grammar.h"

#include <cstdio>

#include "support/sizes.h"

namespace partwise {

using grammar::Anchored;
using grammar::kNone;

Grammar::Grammar(std::vector<Index> lengths, grammar::RuleTable rules, Options options)
    : ChartStructure(len(lengths.size())),
      lengths_(std::move(lengths)),
      rules_(grammar::make_rules(std::move(rules))),
      options_(std::move(options)),
      has_gold_(!options_.gold.empty()) {
    first_word_.push_back(0);
    for (Index i = 0; i < num_examples(); ++i) {
        const Index n = lengths_[i];
        if (n < 1) refuse(i, n == 0 ? "is empty" : "has a negative length");
        // Values and slopes of all symbols by begin and by end.
        const double bytes = 2.0 * sizeof(double) * static_cast<double>(rules_.n_symbols) * static_cast<double>(n) *
                             (static_cast<double>(n) + 1.0);
        check_bytes(i, bytes, "sums over its derivations");
        first_word_.push_back(checked_sum(first_word_.back(), n, "the number of words"));
    }
    set_words();
    if (rules_.n_tuples > 0 ? len(options_.tuple_codes.size()) != first_word_.back() : !options_.tuple_codes.empty()) {
        throw InputError("tuple_codes must have a code per word (", first_word_.back(),
                         ") with hashed tuples, and is for these alone");
    }
    auto& costs = options_.span_costs;
    if (costs.empty()) costs.assign(rules_.span.count, 1.0);
    if (len(costs.size()) != rules_.span.count) {
        throw InputError("span_costs has ", costs.size(), " values for ", rules_.span.count, " columns of spans");
    }
    for (const double cost : costs) {
        if (!(cost >= 0.0) || cost == kInfinity) throw InputError("span_costs must be finite and 0 or more");
    }
    if (has_gold_) set_gold();
    if (options_.cost == Cost::kRules && !has_gold_) {
        throw InputError("the cost 'rules' needs gold derivations, for a slot per gold rule: give gold");
    }
}

void Grammar::check_bytes(Index i, double bytes, const char* what) const {
    if (bytes <= options_.max_bytes) return;
    char text[160];
    std::snprintf(text, sizeof text, "has %lld words: %s would take %.3g MB, the limit is %.3g",
                  static_cast<long long>(lengths_[i]), what, bytes / 1e6, options_.max_bytes / 1e6);
    refuse(i, text);
}

// The chart program takes more memory than the hand-written kernels: it has cells for rules, too, in two tables.
template <class F>
auto Grammar::with_program(Index i, F&& f) const {
    const grammar::Program program(sentence(i));
    check_bytes(i, 2.0 * sizeof(double) * static_cast<double>(program.cells()), "a chart of all rules");
    return f(program);
}

void Grammar::set_words() {
    const Index n_words = first_word_.back();
    const auto& ptr = options_.word_ptr;
    const auto& columns = options_.word_columns;
    if (ptr.empty()) return;
    if (len(ptr.size()) != n_words + 1 || ptr.front() != 0 || ptr.back() != len(columns.size())) {
        throw InputError("word_ptr must have ", n_words + 1, " values, from 0 to the number of word_columns");
    }
    for (Index i = 0; i < num_examples(); ++i) {
        for (Index w = first_word_[i]; w < first_word_[i + 1]; ++w) {
            const Index begin = ptr[w];
            const Index end = ptr[w + 1];
            if (end < begin) throw InputError("word_ptr must not fall");
            for (Index k = begin; k < end; ++k) {
                const Index c = columns[k];
                const std::string word = "has word " + std::to_string(w - first_word_[i]);
                if (c < 0 || c >= rules_.word.count) {
                    refuse(i, word, " with the column ", c, ", which is not in [0, ", rules_.word.count, ")");
                }
                if (k > begin && c <= columns[k - 1]) refuse(i, word, " with columns that are not in order");
            }
        }
    }
}

void Grammar::set_gold() {
    const Index expected = 2 * first_word_.back() - num_examples();
    if (len(options_.gold.size()) != expected) {
        throw InputError("gold has ", options_.gold.size(), " nodes, ", expected, " are needed");
    }
    const GrammarNode* nodes = options_.gold.data();
    for (Index i = 0; i < num_examples(); ++i) {
        std::vector<Anchored> own = anchored(i, nodes);
        std::sort(own.begin(), own.end(),
                  [](const Anchored& x, const Anchored& y) { return std::pair(x.s, x.t) < std::pair(y.s, y.t); });
        gold_.insert(gold_.end(), own.begin(), own.end());
        nodes += 2 * lengths_[i] - 1;
    }
    options_.gold.clear();
    options_.gold.shrink_to_fit();
}

grammar::Sentence Grammar::sentence(Index i) const {
    const Index n = lengths_[i];
    const Index first = first_word_[i];
    const bool filled = len(gold_.size()) >= first - i + n - 1;  // false while set_gold() still reads them
    const std::span<const Anchored> gold =
        filled ? std::span(gold_).subspan(first - i, n - 1) : std::span<const Anchored>{};
    return {rules_,
            n,
            options_.word_ptr.empty() ? nullptr : options_.word_ptr.data() + first,
            options_.word_columns.data(),
            gold,
            has_gold_,
            options_.tuple_codes.empty() ? nullptr : options_.tuple_codes.data() + first};
}

std::vector<Anchored> Grammar::anchored(Index i, const GrammarNode* nodes) const {
    const grammar::Sentence own = sentence(i);
    return grammar::anchored_rules(own, std::span(nodes, 2 * own.n - 1),
                                   [&](const std::string& what) { refuse(i, what); });
}

// The hand-written kernels sum over a rule's splits together. With hashed tuples each split has its own slot, so the
// chart program is used.
bool Grammar::best(Index i, const double* scores, std::vector<Index>& slots, Workspace& ws) const {
    if (rules_.n_tuples == 0) return grammar::best_derivation(sentence(i), scores, slots, ws);
    return with_program(i, [&](const grammar::Program& program) {
        return chart::best(program, scores, ws, [&](Index slot) { slots.push_back(slot); });
    });
}

double Grammar::maximize(Index i, const double* scores, SlotCounts& out, Workspace& ws) const {
    Workspace::Frame frame(ws);
    std::vector<Index> slots;
    if (!best(i, masked_scores(i, scores, 1.0, frame), slots, ws)) nothing_left(i);
    return gather(i, scores, slots, out);
}

double Grammar::log_partition(Index i, const double* scores, double temperature, double* marginals, double* entropy,
                              Workspace& ws) const {
    if (temperature == 0.0) return maximum_as_sums(i, scores, marginals, entropy, ws);
    Workspace::Frame frame(ws);
    const double* own = masked_scores(i, scores, 1.0 / temperature, frame);
    double log_z = 0;
    if (rules_.n_tuples == 0 && grammar::plain_sums(sentence(i), own, marginals, entropy, log_z, ws)) {
        return temperature * log_z;
    }
    return chart_sums(i, scores, temperature, marginals, entropy, ws);
}

// Slots of the gold derivation cost nothing. The cost "rules" is on `other`, the slot of rules that are not gold.
void Grammar::add_cost(Index i, SlotView gold, double scale, double* scores) const {
    const grammar::Slots at = slots(i);
    for (Index s = 0; s < at.n; ++s) {
        for (Index c = 0; c < rules_.word.count; ++c) scores[at.word(c, s)] += scale;
    }
    const auto& costs = options_.span_costs;
    if (options_.cost == Cost::kRules) {
        scores[at.other()] += scale;
    } else {
        for (Index row = 0; row < grammar::n_spans(at.n); ++row) {
            double* own = scores + at.spans() + row * rules_.span.width;
            for (Index c = 0; c < rules_.span.count; ++c) own[c] += scale * costs[c];
        }
    }
    for (const Index slot : gold.slots) {
        if (slot >= at.words() && slot < at.other()) scores[slot] -= scale;
        if (options_.cost == Cost::kRules || slot < at.spans() || slot >= at.words()) continue;
        scores[slot] -= scale * costs[(slot - at.spans()) % rules_.span.width];
    }
}

bool Grammar::has_derivation(Index i) const {
    Workspace ws;
    Workspace::Frame frame(ws);
    const std::vector<double> zeros(num_slots(i), 0.0);
    std::vector<Index> slots;
    return best(i, masked_scores(i, zeros.data(), 1.0, frame), slots, ws);
}

void Grammar::check_mask(Index i) const {
    if (!has_derivation(i)) throw InputError("the mask of sentence ", i, " allows no derivation");
}

void Grammar::labelling_of(Index i, const GrammarNode* nodes, SlotCounts& out) const {
    std::vector<Index> slots;
    const grammar::Sentence own = sentence(i);
    const grammar::Slots at = own.slots();
    for (const Anchored& x : anchored(i, nodes)) own.add_slots(x, slots);
    for (Index k = 0; k < 2 * own.n - 1; ++k) {
        if (nodes[k].end == nodes[k].begin + 1) slots.push_back(at.word(rules_.word[nodes[k].symbol], nodes[k].begin));
    }
    out.clear();
    add_counted(slots, out);
}

std::vector<GrammarNode> Grammar::nodes_of(Index i, SlotView labelling) const {
    return grammar::derivation_of(sentence(i), labelling, [&](const std::string& what) { refuse(i, what); });
}

void Grammar::check_labelling(Index i, SlotView labelling, Workspace&) const {
    const std::vector<GrammarNode> nodes = nodes_of(i, labelling);
    SlotCounts again;
    labelling_of(i, nodes.data(), again);
    std::vector<std::pair<Index, double>> given;
    for (std::size_t k = 0; k < labelling.slots.size(); ++k)
        given.emplace_back(labelling.slots[k], labelling.counts[k]);
    std::sort(given.begin(), given.end());
    bool same = given.size() == again.slots.size();
    for (std::size_t k = 0; same && k < given.size(); ++k) {
        same = given[k] == std::pair(again.slots[k], again.counts[k]);
    }
    if (!same) refuse(i, "has slots that are not those of a derivation");
    for (std::size_t k = 0; mask(i) && k < again.slots.size(); ++k) {
        if (!mask(i)[again.slots[k]]) refuse(i, "has slot ", again.slots[k], ", which its mask forbids");
    }
}

template class ChartStructure<Grammar>;

}  // namespace partwise
