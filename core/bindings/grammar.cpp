#include "structures/grammar.h"

#include "bindings/common.h"
#include "bindings/labellings.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

using IntRows = nb::ndarray<const Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
constexpr double kDefaultMaxBytes = 2e9;

// symbol, begin, end
std::vector<GrammarNode> nodes_of(const IntRows& rows, const char* name) {
    if (rows.shape(1) != 3) throw InputError(std::string(name) + " must have three columns: symbol, begin, end");
    std::vector<GrammarNode> out;
    out.reserve(rows.shape(0));
    for (std::size_t k = 0; k < rows.shape(0); ++k) {
        const Index* row = rows.data() + 3 * k;
        out.push_back({row[0], row[1], row[2]});
    }
    return out;
}

Grammar::Cost cost_of(const std::string& name) {
    if (name == "constituents") return Grammar::Cost::kConstituents;
    if (name == "rules") return Grammar::Cost::kRules;
    throw InputError("cost must be 'constituents' or 'rules', got '" + name + "'");
}

std::vector<Index> list_of(const std::optional<Ints>& values) {
    return values ? vector_of<Index>(*values) : std::vector<Index>{};
}

}  // namespace

void bind_grammar(nb::module_& m) {
    nb::class_<Grammar, Structure>(m, "Grammar")
        .def(
            "__init__",
            [](Grammar* self, const Ints& lengths, Index n_symbols, const IntRows& rules, const Ints& roots,
               const Ints& words, const std::optional<Ints>& start_columns, const std::optional<Ints>& split_columns,
               const std::optional<Ints>& end_columns, const std::optional<Ints>& span_columns,
               const std::optional<Ints>& word_ptr, const std::optional<Ints>& word_columns,
               const std::optional<IntRows>& gold, const std::string& cost, const std::optional<Floats>& span_costs,
               const std::optional<Ints>& tuple_codes, Index n_tuples, double max_bytes) {
                if (rules.shape(1) != 3) throw InputError("rules must have three columns: parent, left, right");
                if (word_ptr.has_value() != word_columns.has_value()) {
                    throw InputError("word_ptr and word_columns must be given together");
                }
                grammar::RuleTable table{n_symbols,
                                         std::vector<Index>(rules.data(), rules.data() + rules.size()),
                                         vector_of<Index>(roots),
                                         vector_of<Index>(words),
                                         list_of(start_columns),
                                         list_of(split_columns),
                                         list_of(end_columns),
                                         list_of(span_columns),
                                         n_tuples};
                Grammar::Options options;
                options.word_ptr = list_of(word_ptr);
                options.word_columns = list_of(word_columns);
                if (gold) options.gold = nodes_of(*gold, "gold");
                if (span_costs) options.span_costs = vector_of<double>(*span_costs);
                options.tuple_codes = list_of(tuple_codes);
                options.cost = cost_of(cost);
                options.max_bytes = max_bytes;
                new (self) Grammar(vector_of<Index>(lengths), std::move(table), std::move(options));
            },
            "lengths"_a.noconvert(), "n_symbols"_a, "rules"_a.noconvert(), "roots"_a.noconvert(), "words"_a.noconvert(),
            nb::kw_only(), "start_columns"_a.none() = nb::none(), "split_columns"_a.none() = nb::none(),
            "end_columns"_a.none() = nb::none(), "span_columns"_a.none() = nb::none(), "word_ptr"_a.none() = nb::none(),
            "word_columns"_a.none() = nb::none(), "gold"_a.none() = nb::none(), "cost"_a = "constituents",
            "span_costs"_a.none() = nb::none(), "tuple_codes"_a.none() = nb::none(), "n_tuples"_a = 0,
            "max_bytes"_a = kDefaultMaxBytes)
        .def_prop_ro(
            "lengths", [](const Grammar& s) { return numpy(s.lengths()); }, nb::rv_policy::automatic)
        .def_prop_ro("n_symbols", [](const Grammar& s) { return s.rules().n_symbols; })
        .def_prop_ro("n_rules", [](const Grammar& s) { return s.rules().size(); })
        .def_prop_ro("n_tuples", [](const Grammar& s) { return s.rules().n_tuples; })
        .def_prop_ro("has_gold", &Grammar::has_gold)
        .def_prop_ro("cost_name",
                     [](const Grammar& s) { return s.cost() == Grammar::Cost::kRules ? "rules" : "constituents"; })
        .def_prop_ro("widths",
                     [](const Grammar& s) {
                         const grammar::Rules& g = s.rules();
                         return nb::make_tuple(g.start.width, g.split.width, g.end.width, g.span.width, g.word.width);
                     })
        .def(
            "table_offsets",
            [](const Grammar& s, Index i) {
                check_index(i, s.num_examples());
                const grammar::Slots at = s.slots(i);
                return nb::make_tuple(s.rules().size(), at.splits(), at.ends(), at.spans(), at.words(), at.other());
            },
            "i"_a)
        .def(
            "has_derivation",
            [](const Grammar& s, Index i) {
                check_index(i, s.num_examples());
                return s.has_derivation(i);
            },
            "i"_a)
        .def(
            "encode",
            [](const Grammar& s, const IntRows& nodes) {
                const std::vector<GrammarNode> all = nodes_of(nodes, "nodes");
                Index total = 0;
                for (const Index length : s.lengths()) total += 2 * length - 1;
                if (len(all.size()) != total) {
                    throw InputError("nodes has " + std::to_string(all.size()) + " rows, " + std::to_string(total) +
                                     " are needed");
                }
                const GrammarNode* next = all.data();
                return encode_all(s.num_examples(), [&](Index i, SlotCounts& out) {
                    s.labelling_of(i, next, out);
                    next += 2 * s.lengths()[idx(i)] - 1;
                });
            },
            "nodes"_a.noconvert())
        .def(
            "labelling_of",
            [](const Grammar& s, Index i, const IntRows& nodes) {
                check_index(i, s.num_examples());
                const std::vector<GrammarNode> own = nodes_of(nodes, "nodes");
                if (len(own.size()) != 2 * s.lengths()[idx(i)] - 1) {
                    throw InputError("nodes must have two rows per word, less one");
                }
                SlotCounts out;
                s.labelling_of(i, own.data(), out);
                return nb::make_tuple(numpy(std::move(out.slots)), numpy(std::move(out.counts)));
            },
            "i"_a, "nodes"_a.noconvert())
        .def(
            "decode",
            [](const Grammar& s, const Ints& indptr, const Ints& slots, const Floats& counts) {
                std::vector<Index> nodes;
                decode_all(s, indptr, slots, counts, [&](Index i, SlotView one) {
                    for (const GrammarNode& node : s.nodes_of(i, one)) {
                        nodes.insert(nodes.end(), {node.symbol, node.begin, node.end});
                    }
                });
                const std::size_t n = nodes.size() / 3;
                return numpy<2>(std::move(nodes), {n, 3});
            },
            "indptr"_a.noconvert(), "slots"_a.noconvert(), "counts"_a)
        .def(
            "nodes_of",
            [](const Grammar& s, Index i, const Ints& slots, const Floats& counts) {
                check_index(i, s.num_examples());
                std::vector<Index> nodes;
                for (const GrammarNode& node : s.nodes_of(i, view_of(slots, counts))) {
                    nodes.insert(nodes.end(), {node.symbol, node.begin, node.end});
                }
                const std::size_t n = nodes.size() / 3;
                return numpy<2>(std::move(nodes), {n, 3});
            },
            "i"_a, "slots"_a.noconvert(), "counts"_a);
}

}  // namespace partwise::bindings
