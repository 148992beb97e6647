// Fuzz driver of graphs: arbitrary layouts of vertices and edges, and the junction trees that are made from them.
#include "answers.h"
#include "structures/graph.h"

using namespace partwise;
using namespace partwise::fuzz;

namespace {

std::unique_ptr<Graph> make(Bytes& in) {
    GraphLayout layout;
    layout.vertex_ptr = {0};
    layout.clique_ptr = {0};
    layout.member_ptr = {0};
    for (Index example = in.below(1, 2); example > 0; --example) {
        const Index vertices = in.below(1, 5);
        for (Index v = 0; v < vertices; ++v) layout.n_labels.push_back(in.near(1, 3));
        layout.vertex_ptr.push_back(in.byte() < 253 ? len(layout.n_labels.size()) : in.near(0, 9));
        const Index cliques = in.below(0, 6);
        for (Index c = 0; c < cliques; ++c) {
            for (Index member = in.below(1, 3); member > 0; --member) {
                layout.members.push_back(in.near(0, vertices - 1));
            }
            layout.member_ptr.push_back(in.byte() < 253 ? len(layout.members.size()) : in.near(0, 9));
            layout.tables.push_back(in.byte() < 200 ? c : in.near(0, cliques - 1));
        }
        layout.clique_ptr.push_back(in.byte() < 253 ? len(layout.tables.size()) : in.near(0, 9));
    }
    if (in.byte() > 200) {
        layout.common_ptr = {0};
        for (Index t = in.below(0, 3); t > 0; --t) {
            for (Index k = in.below(1, 3); k > 0; --k) layout.common_labels.push_back(in.near(1, 3));
            layout.common_ptr.push_back(in.byte() < 253 ? len(layout.common_labels.size()) : in.near(0, 9));
        }
    }
    return std::make_unique<Graph>(std::move(layout), in.byte() < 250 ? 1 << 20 : in.number(true));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    std::unique_ptr<Graph> s;
    if (!accepted([&] { s = make(in); })) return 0;
    for (Index i = 0; i < s->num_examples(); ++i) {
        const std::vector<Index> labels = in.indices(s->num_vertices(i), 0, 2);
        SlotCounts y;
        if (accepted([&] { s->labelling_of(i, labels.data(), y); })) {
            Workspace ws;
            check_answer(*s, i, y, ws);
            std::vector<Index> again(labels.size());
            s->labels_of(i, {y.slots, y.counts}, again.data());
            require(again == labels, "labels that are packed and unpacked are the same");
        }
        mask_some(*s, i, in);
        if (s->num_slots(i) > 100'000) continue;
        check_answers(*s, i, in, 0);
    }
    return 0;
}
