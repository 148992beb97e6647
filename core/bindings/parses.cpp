// Structures beyond sequences: trees, graphs, grammars.
#include "bindings/labellings.h"
#include "structures/grammar.h"
#include "structures/graph.h"
#include "structures/projective_tree.h"
#include "structures/spanning_tree.h"

namespace partwise::bindings {

namespace {

template <class Kind>
void bind_kind_of_tree(nb::module_& m, const char* name) {
    constexpr Index kDefaultMaxLength = 1000;
    nb::class_<Kind, Tree>(m, name).def(
        "__init__",
        [](Kind* self, const Ints& lengths, bool single_root, Index max_length) {
            new (self) Kind(vector_of(lengths), single_root, max_length);
        },
        "lengths"_same, "single_root"_a = true, "max_length"_a = kDefaultMaxLength);
}

void bind_trees(nb::module_& m) {
    nb::class_<Tree, Structure> cls(m, "Tree");
    cls.def_prop_ro("single_root", &Tree::single_root)
        .def_prop_ro("max_length", &Tree::max_length)
        .def_prop_ro("lengths", copied<Tree>(&Tree::lengths))
        .def(
            "check_heads",
            [](const Tree& s, Index i, const Ints& heads) {
                check_size(heads, checked(s, i).lengths()[i], "heads");
                s.check_heads(i, heads.data());
            },
            "i"_a, "heads"_same);
    def_numbers(
        cls, "heads", [](const Tree& s) { return starts_of(s.lengths()); },
        [](const Tree& s, Index i, const Index* heads, SlotCounts& out) {
            s.check_heads(i, heads);
            s.labelling_of(i, heads, out);
        },
        [](const Tree& s, Index i, SlotView one, Index* heads) { s.heads_of(i, one, heads); });
    bind_kind_of_tree<ProjectiveTree>(m, "ProjectiveTree");
    bind_kind_of_tree<SpanningTree>(m, "SpanningTree");
}

// The getter of one of a graph's arrays.
auto layout_array(std::vector<Index> GraphLayout::* member) {
    return copied<Graph>([member](const Graph& g) { return g.layout().*member; });
}

void bind_graph(nb::module_& m) {
    constexpr double kDefaultMemoryLimit = 1 << 30;
    nb::class_<Graph, Structure> cls(m, "Graph");
    define(
        cls, "__init__",
        args("vertex_ptr"_same, "n_labels"_same, "clique_ptr"_same, "member_ptr"_same, "members"_same, "tables"_same,
             "memory_limit"_a = kDefaultMemoryLimit, "common_ptr"_same = nb::none(), "common_labels"_same = nb::none()),
        [](Graph* self, const Ints& vertex_ptr, const Ints& n_labels, const Ints& clique_ptr, const Ints& member_ptr,
           const Ints& members, const Ints& tables, double memory_limit, OrNone<Ints> common_ptr,
           OrNone<Ints> common_labels) {
            new (self) Graph({vector_of(vertex_ptr), vector_of(n_labels), vector_of(clique_ptr), vector_of(member_ptr),
                              vector_of(members), vector_of(tables), vector_of(common_ptr), vector_of(common_labels)},
                             memory_limit);
        });
    cls.def_prop_ro("memory_limit", &Graph::memory_limit)
        .def_prop_ro("vertex_ptr", layout_array(&GraphLayout::vertex_ptr))
        .def_prop_ro("n_labels", layout_array(&GraphLayout::n_labels))
        .def_prop_ro("clique_ptr", layout_array(&GraphLayout::clique_ptr))
        .def_prop_ro("member_ptr", layout_array(&GraphLayout::member_ptr))
        .def_prop_ro("members", layout_array(&GraphLayout::members))
        .def_prop_ro("tables", layout_array(&GraphLayout::tables));
    define(cls, "table_offsets", args("i"_a),
           [](const Graph& g, Index i) { return numpy(checked(g, i).table_offsets(i)); });
    define(cls, "width", args("i"_a), [](const Graph& g, Index i) { return checked(g, i).width(i); });
    define(cls, "bytes", args("i"_a), [](const Graph& g, Index i) { return checked(g, i).bytes(i); });
    define(cls, "decode_of", args("i"_a, "slots"_same, "counts"_a),
           [](const Graph& g, Index i, const Ints& slots, const Floats& counts) {
               std::vector<Index> labels(checked(g, i).num_vertices(i));
               g.labels_of(i, view_of(slots, counts), labels.data());
               return numpy(std::move(labels));
           });
    def_numbers(
        cls, "labels", [](const Graph& g) { return g.layout().vertex_ptr; },
        [](const Graph& g, Index i, const Index* labels, SlotCounts& out) { g.labelling_of(i, labels, out); },
        [](const Graph& g, Index i, SlotView one, Index* labels) { g.labels_of(i, one, labels); });
}

using IntRows = Array<const Index, 2>;
using Nodes = std::vector<GrammarNode>;

// symbol, begin, end
Nodes nodes_of(const IntRows& rows, const char* name) {
    if (rows.shape(1) != 3) throw InputError(name, " must have three columns: symbol, begin, end");
    Nodes out;
    for (std::size_t k = 0; k < rows.shape(0); ++k) {
        const Index* row = rows.data() + 3 * k;
        out.push_back({row[0], row[1], row[2]});
    }
    return out;
}

void append(const Nodes& nodes, std::vector<Index>& out) {
    for (const GrammarNode& node : nodes) out.insert(out.end(), {node.symbol, node.begin, node.end});
}

auto rows_of(std::vector<Index> nodes) {
    const std::size_t n = nodes.size() / 3;
    return numpy<2>(std::move(nodes), {n, 3});
}

Grammar::Cost cost_of(const std::string& name) {
    if (name == "constituents") return Grammar::Cost::kConstituents;
    if (name == "rules") return Grammar::Cost::kRules;
    throw InputError("cost must be 'constituents' or 'rules', got '", name, "'");
}

void bind_grammar(nb::module_& m) {
    constexpr double kDefaultMaxBytes = 2e9;
    nb::class_<Grammar, Structure> cls(m, "Grammar");
    define(cls, "__init__",
           args("lengths"_same, "n_symbols"_a, "rules"_same, "roots"_same, "words"_same, nb::kw_only(),
                "start_columns"_or_none, "split_columns"_or_none, "end_columns"_or_none, "span_columns"_or_none,
                "word_ptr"_or_none, "word_columns"_or_none, "gold"_or_none, "cost"_a = "constituents",
                "span_costs"_or_none, "tuple_codes"_or_none, "n_tuples"_a = 0, "max_bytes"_a = kDefaultMaxBytes),
           [](Grammar* self, const Ints& lengths, Index n_symbols, const IntRows& rules, const Ints& roots,
              const Ints& words, OrNone<Ints> start_columns, OrNone<Ints> split_columns, OrNone<Ints> end_columns,
              OrNone<Ints> span_columns, OrNone<Ints> word_ptr, OrNone<Ints> word_columns, OrNone<IntRows> gold,
              const std::string& cost, OrNone<Floats> span_costs, OrNone<Ints> tuple_codes, Index n_tuples,
              double max_bytes) {
               if (rules.shape(1) != 3) throw InputError("rules must have three columns: parent, left, right");
               if (word_ptr.has_value() != word_columns.has_value()) {
                   throw InputError("word_ptr and word_columns must be given together");
               }
               new (self)
                   Grammar(vector_of(lengths),
                           {n_symbols, vector_of(rules), vector_of(roots), vector_of(words), vector_of(start_columns),
                            vector_of(split_columns), vector_of(end_columns), vector_of(span_columns), n_tuples},
                           {vector_of(word_ptr), vector_of(word_columns), gold ? nodes_of(*gold, "gold") : Nodes{},
                            vector_of(span_costs), vector_of(tuple_codes), cost_of(cost), max_bytes});
           });
    cls.def_prop_ro("lengths", copied<Grammar>(&Grammar::lengths))
        .def_prop_ro("n_symbols", [](const Grammar& s) { return s.rules().n_symbols; })
        .def_prop_ro("n_rules", [](const Grammar& s) { return s.rules().size(); })
        .def_prop_ro("n_tuples", [](const Grammar& s) { return s.rules().n_tuples; })
        .def_prop_ro("has_gold", &Grammar::has_gold)
        .def_prop_ro("cost_name",
                     [](const Grammar& s) { return s.cost() == Grammar::Cost::kRules ? "rules" : "constituents"; })
        .def_prop_ro("widths", [](const Grammar& s) {
            const grammar::Rules& g = s.rules();
            return nb::make_tuple(g.start.width, g.split.width, g.end.width, g.span.width, g.word.width);
        });
    define(cls, "table_offsets", args("i"_a), [](const Grammar& s, Index i) {
        const grammar::Slots at = checked(s, i).slots(i);
        return nb::make_tuple(s.rules().size(), at.splits(), at.ends(), at.spans(), at.words(), at.other());
    });
    define(cls, "has_derivation", args("i"_a),
           [](const Grammar& s, Index i) { return checked(s, i).has_derivation(i); });
    define(cls, "encode", args("nodes"_same), [](const Grammar& s, const IntRows& nodes) {
        const Nodes all = nodes_of(nodes, "nodes");
        Index total = 0;
        for (const Index length : s.lengths()) total += 2 * length - 1;
        if (len(all.size()) != total) {
            throw InputError("nodes has ", all.size(), " rows, ", total, " are needed");
        }
        const GrammarNode* next = all.data();
        return encode_all(s.num_examples(), [&](Index i, SlotCounts& out) {
            s.labelling_of(i, next, out);
            next += 2 * s.lengths()[i] - 1;
        });
    });
    define(cls, "labelling_of", args("i"_a, "nodes"_same), [](const Grammar& s, Index i, const IntRows& nodes) {
        const Nodes own = nodes_of(nodes, "nodes");
        if (len(own.size()) != 2 * checked(s, i).lengths()[i] - 1) {
            throw InputError("nodes must have two rows per word, less one");
        }
        SlotCounts out;
        s.labelling_of(i, own.data(), out);
        return pack(out);
    });
    define(cls, "decode", args("indptr"_same, "slots"_same, "counts"_a),
           [](const Grammar& s, const Ints& indptr, const Ints& slots, const Floats& counts) {
               std::vector<Index> nodes;
               decode_all(s, indptr, slots, counts, [&](Index i, SlotView one) { append(s.nodes_of(i, one), nodes); });
               return rows_of(std::move(nodes));
           });
    define(cls, "nodes_of", args("i"_a, "slots"_same, "counts"_a),
           [](const Grammar& s, Index i, const Ints& slots, const Floats& counts) {
               std::vector<Index> nodes;
               append(checked(s, i).nodes_of(i, view_of(slots, counts)), nodes);
               return rows_of(std::move(nodes));
           });
}

}  // namespace

void bind_parses(nb::module_& m) {
    bind_trees(m);
    bind_graph(m);
    bind_grammar(m);
}

}  // namespace partwise::bindings
