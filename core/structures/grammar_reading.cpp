// Derivations as lists of nodes: checked, and read off slots.
#include "structures/grammar_chart.h"

namespace partwise::grammar {

namespace {

std::string in_words(const GrammarNode& node) {
    return concat("symbol ", node.symbol, " over the words [", node.begin, ", ", node.end, ")");
}

// A search, with backtracking, for a derivation whose slots have exactly these counts. The chart says which symbols the
// spans can have with these slots, so it rarely backtracks: where every symbol has a column of spans, they are known.
class Search {
   public:
    Search(const Sentence& sentence, std::vector<double> counts, Chart<Maximum>& chart)
        : g_(sentence.g), at_(sentence.slots()), x_(sentence), left_(std::move(counts)), chart_(chart) {}

    bool run(Index root) {
        todo_.assign(1, {root, 0, x_.n});
        return next();
    }
    std::vector<GrammarNode> found;
    bool gave_up = false;

   private:
    static constexpr Index kMostSteps = 1'000'000;

    bool next() {
        if (todo_.empty()) return true;
        if (++steps_ > kMostSteps) gave_up = true;
        if (gave_up) return false;
        const GrammarNode node = todo_.back();
        todo_.pop_back();
        found.push_back(node);
        if (node.end == node.begin + 1 ? word(node) : rules(node)) return true;
        found.pop_back();
        todo_.push_back(node);
        return false;
    }
    bool word(const GrammarNode& node) {
        return with({at_.word(g_.word[node.symbol], node.begin)}, [&] { return next(); });
    }
    bool rules(const GrammarNode& node) {
        const auto [a, s, t] = node;
        for (Index r = g_.first[a]; r < g_.first[a + 1]; ++r) {
            if (left_[r] <= 0.0) continue;
            const Index b = g_.left[r];
            const Index c = g_.right[r];
            const auto range = chart_.splits(b, c, s, t);
            for (Index q = range.first; q <= range.last; ++q) {
                if (chart_.value(b, s, q) == -kInfinity || chart_.value(c, q, t) == -kInfinity) continue;
                std::vector<Index> used;
                x_.add_slots({r, s, q, t}, used);
                todo_.push_back({c, q, t});
                todo_.push_back({b, s, q});
                if (with(used, [&] { return next(); })) return true;
                todo_.pop_back();
                todo_.pop_back();
                if (gave_up) return false;
            }
        }
        return false;
    }
    // Subtracts these slots from the remaining counts and calls go_on(); undoes this if either fails.
    template <class F>
    bool with(const std::vector<Index>& slots, F&& go_on) {
        bool good = true;
        for (const Index slot : slots) {
            left_[slot] -= 1.0;
            good = good && left_[slot] >= 0.0;
        }
        if (good && go_on()) return true;
        for (const Index slot : slots) left_[slot] += 1.0;
        return false;
    }

    const Rules& g_;
    const Slots at_;
    const Sentence& x_;
    std::vector<double> left_;  // how often each slot is still to be used
    Chart<Maximum>& chart_;
    std::vector<GrammarNode> todo_;
    Index steps_ = 0;
};

}  // namespace

std::vector<Anchored> anchored_rules(const Sentence& sentence, std::span<const GrammarNode> nodes,
                                     const Refuse& refuse) {
    const Rules& g = sentence.g;
    const auto check = [&](const GrammarNode& node, Index s, Index t, const char* what) {
        if (node.symbol < 0 || node.symbol >= g.n_symbols) refuse(concat("has the unknown symbol ", node.symbol));
        if (node.begin != s || node.end != t || s >= t) refuse(concat("has ", in_words(node), what));
    };
    check(nodes[0], 0, sentence.n, ", which is not the whole sentence");
    if (std::find(g.roots.begin(), g.roots.end(), nodes[0].symbol) == g.roots.end()) {
        refuse(concat("has ", in_words(nodes[0]), ", which is not a symbol of whole sentences"));
    }
    std::vector<Anchored> out;
    // A subtree over m words has 2 m - 1 nodes, which gives the place of the right child.
    for (std::size_t k = 0; k < nodes.size(); ++k) {
        const auto [a, s, t] = nodes[k];
        if (t == s + 1) {
            if (g.word[a] == kNone) refuse(concat("has ", in_words(nodes[k]), ", which is not a symbol of words"));
            if (!sentence.has_column(s, g.word[a])) {
                refuse(concat("has ", in_words(nodes[k]), ", which the lexicon does not give to that word"));
            }
            continue;
        }
        const GrammarNode& left = nodes[k + 1];
        const Index q = left.end;
        if (q <= s || q >= t) refuse(concat("has ", in_words(left), ", which does not end inside its parent"));
        check(left, s, q, ", which does not begin as its parent does");
        const GrammarNode& right = nodes[k + (2 * (q - s))];
        check(right, q, t, ", which is not the rest of its parent");
        const Index rule = g.find(a, left.symbol, right.symbol);
        if (rule == kNone) {
            refuse(concat("has ", in_words(nodes[k]), ", but the grammar has no rule ", a, " -> ", left.symbol, " ",
                          right.symbol));
        }
        out.push_back({rule, s, q, t});
    }
    return out;
}

std::vector<GrammarNode> derivation_of(const Sentence& sentence, SlotView labelling, const Refuse& refuse) {
    const Index n_slots = sentence.slots().count();
    std::vector<double> counts(n_slots, 0.0);
    std::vector<double> scores(n_slots, -kInfinity);
    for (std::size_t k = 0; k < labelling.slots.size(); ++k) {
        const Index slot = labelling.slots[k];
        if (slot < 0 || slot >= n_slots) refuse(concat("has no slot ", slot));
        counts[slot] += labelling.counts[k];
        if (counts[slot] > 0.0) scores[slot] = 0.0;
    }
    Workspace ws;
    Workspace::Frame frame(ws);
    Chart<Maximum> chart(sentence, scores.data(), frame);
    chart.inside([](double, double) {}, [](const double*, const double*, const double*, Index) {});
    Search search(sentence, std::move(counts), chart);
    for (const Index root : sentence.g.roots) {
        if (chart.value(root, 0, sentence.n) == -kInfinity) continue;
        if (search.run(root)) return search.found;
    }
    refuse(search.gave_up ? "has slots that too many derivations share to find the one with these counts"
                          : "has slots that are not those of a derivation");
    return {};
}

}  // namespace partwise::grammar
