
#include "bindings/common.h"
#include "features/arc_map.h"

namespace partwise::bindings {

namespace {

using Keys = Array<const Key>;
using Atoms = std::vector<std::pair<Index, Index>>;
// (head's atoms, modifier's atoms, column looked at in between or -1)
using Table = std::vector<std::tuple<Atoms, Atoms, Index>>;

std::vector<ArcTemplate> templates_of(const Table& table) {
    std::vector<ArcTemplate> out;
    for (const auto& [head, modifier, between] : table) {
        ArcTemplate& t = out.emplace_back();
        for (const auto& [column, offset] : head) t.head.push_back({column, offset});
        for (const auto& [column, offset] : modifier) t.modifier.push_back({column, offset});
        t.between = between;
    }
    return out;
}

// Calls use(ids) with the features of each word's arc from the head it is given; unknown ones are kUnknown.
template <class Use>
void for_each_arc(const ArcIndex& index, const Table& table, const ArcTokens& tokens, const Ints& heads,
                  const Use& use) {
    check_size(heads, tokens.num_words(), "heads");
    const std::vector<ArcTemplate> templates = templates_of(table);
    run_kernel([&](auto& interrupt) {
        ArcKeys keys(templates, tokens);
        std::vector<Key> found;
        std::vector<std::uint32_t> ids;
        for (Index i = 0; i < tokens.num_sentences(); ++i) {
            interrupt.check();
            keys.load(i);
            for (Index word = 1; word <= tokens.length(i); ++word) {
                found.clear();
                keys.arc(tokens.checked_head(span_of(heads), i, word), word, found);
                ids.resize(found.size());
                index.find(found.data(), found.size(), ids.data());
                use(ids);
            }
        }
    });
}

}  // namespace

void bind_arcs(nb::module_& m) {
    nb::class_<ArcTokens> arc_tokens(m, "ArcTokens");
    define(arc_tokens, "__init__", args("lengths"_a, "columns"_a),
           [](ArcTokens* self, const Ints& lengths, const std::vector<nb::bytes>& columns) {
               std::vector<std::string_view> views;
               for (const nb::bytes& column : columns) views.emplace_back(column.c_str(), column.size());
               new (self) ArcTokens(vector_of(lengths), views);
           });
    arc_tokens.def_prop_ro("num_sentences", &ArcTokens::num_sentences).def_prop_ro("num_words", &ArcTokens::num_words);
    define(arc_tokens, "varies", args("column"_a), [](const ArcTokens& t, Index column) {
        if (column < 0 || column >= t.num_columns()) throw InputError("no such column");
        return t.varies(column);
    });

    nb::class_<ArcIndex> arc_index(m, "ArcIndex");
    define(arc_index, "__init__", args("keys"_same),
           [](ArcIndex* self, const Keys& keys) { new (self) ArcIndex(vector_of(keys)); });
    arc_index.def_static("hashed", &ArcIndex::hashed, "bits"_a);
    define_static(arc_index, "seen", args("templates"_a, "tokens"_a, "heads"_a.none(), "min_count"_a = 1),
                  [](const Table& table, const ArcTokens& tokens, OrNone<Ints> heads, Index min_count) {
                      const std::vector<ArcTemplate> templates = templates_of(table);
                      return run_kernel(ArcIndex::seen, templates, tokens, span_of(heads), min_count);
                  });
    define_static(arc_index, "counted", args("templates"_a, "tokens"_a, "heads"_a.none()),
                  [](const Table& table, const ArcTokens& tokens, OrNone<Ints> heads) {
                      const std::vector<ArcTemplate> templates = templates_of(table);
                      auto [keys, counts] = run_kernel(ArcIndex::counted, templates, tokens, span_of(heads));
                      return tuple_of(std::move(keys), std::move(counts));
                  });
    define(arc_index, "with_plain", args("kept"_a),
           [](const ArcIndex& index, const Bytes& kept) { return numpy(index.with_plain(span_of(kept))); });
    arc_index.def_prop_ro("num_weights", &ArcIndex::num_weights)
        .def_prop_ro("bits", &ArcIndex::bits)
        .def_prop_ro("keys", copied<ArcIndex>(&ArcIndex::keys));
    define(arc_index, "attributes", args("templates"_a, "tokens"_a, "heads"_a),
           [](const ArcIndex& index, const Table& table, const ArcTokens& tokens, const Ints& heads) {
               std::vector<Index> row_ptr(1, 0);
               std::vector<Index> attributes;
               for_each_arc(index, table, tokens, heads, [&](const std::vector<std::uint32_t>& ids) {
                   for (const std::uint32_t id : ids) {
                       if (id != ArcIndex::kUnknown) attributes.push_back(id);
                   }
                   row_ptr.push_back(len(attributes.size()));
               });
               return tuple_of(std::move(row_ptr), std::move(attributes));
           });
    define(arc_index, "unknown", args("templates"_a, "tokens"_a, "heads"_a),
           [](const ArcIndex& index, const Table& table, const ArcTokens& tokens, const Ints& heads) {
               Index unknown = 0;
               Index total = 0;
               for_each_arc(index, table, tokens, heads, [&](const std::vector<std::uint32_t>& ids) {
                   unknown += std::ranges::count(ids, ArcIndex::kUnknown);
                   total += len(ids.size());
               });
               return nb::make_tuple(unknown, total);
           });

    nb::class_<ArcMap, FeatureMap> arc_map(m, "ArcMap");
    define(arc_map, "__init__", args("templates"_a, "tokens"_a, "index"_a, "memory_limit"_a = 0.0, "n_jobs"_a = 1),
           [](ArcMap* self, const Table& table, ArcTokens& tokens, ArcIndex& index, double memory_limit, int n_jobs) {
               std::vector<ArcTemplate> templates = templates_of(table);
               std::shared_ptr<ArcTokens> shared_tokens = share(tokens);
               std::shared_ptr<ArcIndex> shared_index = share(index);
               run_kernel([&](auto& interrupt) {
                   new (self) ArcMap(std::move(templates), std::move(shared_tokens), std::move(shared_index),
                                     memory_limit, n_jobs, interrupt);
               });
           });
    arc_map.def_prop_ro("num_cached", &ArcMap::num_cached)
        .def_prop_ro("cached_bytes", &ArcMap::cached_bytes)
        .def("features_per_arc", &ArcMap::features_per_arc, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace partwise::bindings
