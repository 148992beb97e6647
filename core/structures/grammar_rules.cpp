#include "structures/grammar_rules.h"

#include <tuple>

namespace partwise::grammar {

namespace {

void check_symbol(Index symbol, Index n_symbols, const std::string& what) {
    if (symbol >= 0 && symbol < n_symbols) return;
    throw InputError(what, " ", symbol, ", which is not in [0, ", n_symbols, ")");
}

Columns make_columns(std::vector<Index> of, Index n_symbols, const char* name) {
    Columns out;
    if (of.empty()) return out;
    if (len(of.size()) != n_symbols) throw InputError(name, " has ", of.size(), " values for ", n_symbols, " symbols");
    for (const Index column : of) {
        if (column < kNone || column >= n_symbols) {
            throw InputError(name, " has the column ", column, ", which is not in [-1, ", n_symbols, ")");
        }
        out.count = std::max(out.count, column + 1);
    }
    if (out.count == 0) return out;
    out.width = padded_width(out.count);
    out.of = std::move(of);
    return out;
}

}  // namespace

Index Rules::find(Index a, Index b, Index c) const {
    for (Index r = first[a]; r < first[a + 1]; ++r) {
        if (left[r] == b && right[r] == c) return r;
    }
    return kNone;
}

Rules make_rules(RuleTable table) {
    const Index n = table.n_symbols;
    constexpr Index kMostSymbols = Index{1} << 30;
    if (n < 1 || n > kMostSymbols) throw InputError("n_symbols must be from 1 to ", kMostSymbols);
    Rules out;
    out.n_symbols = n;
    if (table.rules.size() % 3 != 0) throw InputError("rules must have three symbols each: parent, left, right");
    std::vector<std::tuple<Index, Index, Index>> seen;
    for (std::size_t k = 0; k < table.rules.size(); k += 3) {
        const std::string name = "rule " + std::to_string(k / 3) + " has the symbol";
        for (std::size_t j = 0; j < 3; ++j) check_symbol(table.rules[k + j], n, name);
        if (k > 0 && table.rules[k] < table.rules[k - 3]) {
            throw InputError("rule ", k / 3, " is not in the order of parents");
        }
        out.parent.push_back(table.rules[k]);
        out.left.push_back(table.rules[k + 1]);
        out.right.push_back(table.rules[k + 2]);
        seen.emplace_back(table.rules[k], table.rules[k + 1], table.rules[k + 2]);
    }
    std::sort(seen.begin(), seen.end());
    const auto twice = std::adjacent_find(seen.begin(), seen.end());
    if (twice != seen.end()) {
        const auto [a, b, c] = *twice;
        throw InputError("the rule ", a, " -> ", b, " ", c, " comes twice");
    }
    constexpr Index kMostTuples = Index{1} << 30;
    if (table.n_tuples < 0 || table.n_tuples > kMostTuples || (table.n_tuples & (table.n_tuples - 1)) != 0) {
        throw InputError("n_tuples must be 0 or a power of two of at most ", kMostTuples, ", got ", table.n_tuples);
    }
    out.n_tuples = table.n_tuples;
    if (table.roots.empty()) throw InputError("a grammar needs a start symbol: roots is empty");
    std::vector<std::uint8_t> used(n, 0);
    for (const Index a : table.roots) {
        check_symbol(a, n, "roots has the symbol");
        if (used[a]++) throw InputError("roots has the symbol ", a, " twice");
    }
    if (table.words.empty()) throw InputError("a grammar needs symbols of words: words is empty");
    std::vector<Index> word_column(n, kNone);
    for (std::size_t c = 0; c < table.words.size(); ++c) {
        const Index a = table.words[c];
        check_symbol(a, n, "words has the symbol");
        if (word_column[a] != kNone) throw InputError("words has the symbol ", a, " twice");
        word_column[a] = len(c);
    }
    for (Index a = 0; a <= n; ++a) {
        out.first.push_back(std::lower_bound(out.parent.begin(), out.parent.end(), a) - out.parent.begin());
    }
    out.first_by_left.assign(n + 1, 0);
    for (const Index b : out.left) ++out.first_by_left[b + 1];
    for (Index b = 0; b < n; ++b) out.first_by_left[b + 1] += out.first_by_left[b];
    out.by_left.resize(out.size());
    std::vector<Index> next = out.first_by_left;
    for (Index r = 0; r < out.size(); ++r) {
        out.by_left[next[out.left[r]]++] = {static_cast<std::int32_t>(out.right[r]),
                                            static_cast<std::int32_t>(out.parent[r]), static_cast<std::int32_t>(r)};
    }
    out.roots = std::move(table.roots);
    out.word_symbol = std::move(table.words);
    out.word = make_columns(std::move(word_column), n, "words");
    out.start = make_columns(std::move(table.start), n, "start_columns");
    out.split = make_columns(std::move(table.split), n, "split_columns");
    out.end = make_columns(std::move(table.end), n, "end_columns");
    out.span = make_columns(std::move(table.span), n, "span_columns");
    return out;
}

bool Sentence::has_column(Index s, Index c) const {
    return !word_ptr || std::binary_search(columns + word_ptr[s], columns + word_ptr[s + 1], c);
}

Index Sentence::gold_at(Index s, Index t) const {
    const auto before = [&](const Anchored& x, std::pair<Index, Index> at) { return std::pair(x.s, x.t) < at; };
    const auto found = std::lower_bound(gold.begin(), gold.end(), std::pair(s, t), before);
    return found != gold.end() && found->s == s && found->t == t ? found - gold.begin() : kNone;
}

chart::HashedSlots Sentence::tuples(Index r, Index s, Index t, Index q) const {
    const auto mix = &chart::HashedSlots::mix;
    const auto of = [&](Index word) { return static_cast<std::uint64_t>(codes[word]); };
    const std::uint64_t key = mix(mix(static_cast<std::uint64_t>(r) ^ of(s)) ^ of(t - 1));
    return {slots().tuples(), key, codes + q, static_cast<std::uint64_t>(g.n_tuples) - 1};
}

void Sentence::add_slots(const Anchored& x, std::vector<Index>& out) const {
    const Slots at = slots();
    const Index a = g.parent[x.rule];
    const Slots::OfNode node = at.of_node(a, x.s, x.t);
    out.push_back(x.rule);
    out.insert(out.end(), node.slots.begin(), node.slots.begin() + node.count);
    if (g.split[a] != kNone) out.push_back(at.split(g.split[a], x.q));
    if (g.n_tuples > 0) out.push_back(tuples(x.rule, x.s, x.t, x.q)(0));
    if (!has_gold) return;
    const Index k = gold_at(x.s, x.t);
    const bool is_gold = k != kNone && gold[k].rule == x.rule && gold[k].q == x.q;
    out.push_back(is_gold ? at.gold(k) : at.other());
}

}  // namespace partwise::grammar
