#include "bindings/common.h"
#include "bindings/labellings.h"
#include "structures/projective_tree.h"
#include "structures/spanning_tree.h"

namespace partwise::bindings {

using namespace nb::literals;

namespace {

constexpr Index kDefaultMaxLength = 1000;

template <class Kind>
void bind_tree(nb::module_& m, const char* name) {
    nb::class_<Kind, Tree>(m, name).def(
        "__init__",
        [](Kind* self, const Ints& lengths, bool single_root, Index max_length) {
            new (self) Kind(vector_of<Index>(lengths), single_root, max_length);
        },
        "lengths"_a.noconvert(), "single_root"_a = true, "max_length"_a = kDefaultMaxLength);
}

}  // namespace

void bind_trees(nb::module_& m) {
    nb::class_<Tree, Structure>(m, "Tree")
        .def_prop_ro("single_root", &Tree::single_root)
        .def_prop_ro("max_length", &Tree::max_length)
        .def_prop_ro(
            "lengths", [](const Tree& s) { return numpy(s.lengths()); }, nb::rv_policy::automatic)
        .def(
            "encode",
            [](const Tree& s, const Ints& heads) {
                Index total = 0;
                for (const Index length : s.lengths()) total += length;
                check_size(heads, total, "heads");
                const Index* next = heads.data();
                return encode_all(s.num_examples(), [&](Index i, SlotCounts& out) {
                    s.check_heads(i, next);
                    s.labelling_of(i, next, out);
                    next += s.lengths()[idx(i)];
                });
            },
            "heads"_a.noconvert())
        .def(
            "decode",
            [](const Tree& s, const Ints& indptr, const Ints& slots, const Floats& counts) {
                std::vector<Index> heads;
                decode_all(s, indptr, slots, counts, [&](Index i, SlotView one) {
                    const std::size_t begin = heads.size();
                    heads.resize(begin + idx(s.lengths()[idx(i)]));
                    s.heads_of(i, one, heads.data() + begin);
                });
                return numpy(std::move(heads));
            },
            "indptr"_a.noconvert(), "slots"_a.noconvert(), "counts"_a)
        .def(
            "check_heads",
            [](const Tree& s, Index i, const Ints& heads) {
                check_index(i, s.num_examples());
                check_size(heads, s.lengths()[idx(i)], "heads");
                s.check_heads(i, heads.data());
            },
            "i"_a, "heads"_a.noconvert());
    bind_tree<ProjectiveTree>(m, "ProjectiveTree");
    bind_tree<SpanningTree>(m, "SpanningTree");
}

}  // namespace partwise::bindings
