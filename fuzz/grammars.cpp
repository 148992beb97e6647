// Fuzz driver of derivations under grammars: arbitrary tables of rules, columns of symbols, words and gold derivations.
#include "answers.h"
#include "structures/grammar.h"

using namespace partwise;
using namespace partwise::fuzz;

namespace {

std::unique_ptr<Grammar> make(Bytes& in) {
    std::vector<Index> lengths = in.indices(in.below(1, 2), 1, 5);
    const Index n = in.below(1, 5);
    grammar::RuleTable table{n, {}, {}, {}, {}, {}, {}, {}};
    for (Index k = in.below(0, 8); k > 0; --k) {
        for (int side = 0; side < 3; ++side) table.rules.push_back(in.near(0, n - 1));
    }
    table.roots = in.indices(in.below(0, 3), 0, n - 1);
    table.words = in.indices(in.below(0, 4), 0, n - 1);
    for (std::vector<Index>* columns : {&table.start, &table.split, &table.end, &table.span}) {
        if (in.flag()) *columns = in.indices(n + (in.byte() > 250), -1, 3);
    }
    Grammar::Options options;
    Index words = 0;
    for (const Index length : lengths) words += std::clamp<Index>(length, 0, 8);
    if (in.flag()) {
        options.word_ptr.push_back(0);
        for (Index k = 0; k < words; ++k) {
            for (Index c = 0; c < len(table.words.size()); ++c) {
                if (in.byte() < 200) options.word_columns.push_back(in.byte() < 250 ? c : in.near(0, 5));
            }
            options.word_ptr.push_back(len(options.word_columns.size()));
        }
    }
    if (in.flag()) {
        for (Index k = 0; k < 2 * words - len(lengths.size()); ++k) {
            options.gold.push_back({in.near(0, n - 1), in.near(0, 4), in.near(1, 5)});
        }
        if (in.flag()) options.cost = Grammar::Cost::kRules;
    }
    if (in.flag()) options.span_costs = in.numbers(in.below(0, 4), true);
    if (in.flag()) {
        table.n_tuples = in.byte() < 250 ? Index{1} << in.below(0, 4) : in.near(0, 5);
        for (Index k = in.byte() < 250 ? words : in.below(0, 9); k > 0; --k)
            options.tuple_codes.push_back(in.near(0, 3));
    }
    return std::make_unique<Grammar>(lengths, std::move(table), std::move(options));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    std::unique_ptr<Grammar> s;
    if (!accepted([&] { s = make(in); })) return 0;
    for (Index i = 0; i < s->num_examples(); ++i) {
        mask_some(*s, i, in);
        if (!s->has_derivation(i)) continue;
        check_answers(*s, i, in, 0);
        Workspace ws;
        SlotCounts best;
        const std::vector<double> flat(s->num_slots(i), 0.0);
        s->maximize(i, flat.data(), best, ws);
        const std::vector<GrammarNode> nodes = s->nodes_of(i, {best.slots, best.counts});
        SlotCounts again;
        s->labelling_of(i, nodes.data(), again);
        check_answer(*s, i, again, ws);
    }
    return 0;
}
