// Fuzz driver of dependency trees, projective and non-projective.
#include "answers.h"
#include "structures/projective_tree.h"
#include "structures/spanning_tree.h"

using namespace partwise;
using namespace partwise::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    std::unique_ptr<Tree> s;
    const bool made = accepted([&] {
        const bool projective = in.flag();
        const bool single_root = in.flag();
        std::vector<Index> lengths = in.indices(in.below(1, 2), 1, 6);
        const Index longest = in.near(6, 8);
        if (projective) {
            s = std::make_unique<ProjectiveTree>(lengths, single_root, longest);
        } else {
            s = std::make_unique<SpanningTree>(lengths, single_root, longest);
        }
    });
    if (!made) return 0;
    for (Index i = 0; i < s->num_examples(); ++i) {
        const Index n = s->lengths()[i];
        const std::vector<Index> heads = in.indices(n, 0, n);
        if (accepted([&] { s->check_heads(i, heads.data()); })) {
            Workspace ws;
            SlotCounts y;
            s->labelling_of(i, heads.data(), y);
            check_answer(*s, i, y, ws);
            std::vector<Index> again(n);
            s->heads_of(i, {y.slots, y.counts}, again.data());
            require(again == heads, "heads that are packed and unpacked are the same");
        }
        mask_some(*s, i, in);
        check_answers(*s, i, in, n + 1);
    }
    return 0;
}
