// Fuzz driver of segment chains with listed segments and positions where a segment must begin.
#include "answers.h"
#include "structures/segment_chain.h"

using namespace partwise;
using namespace partwise::fuzz;

namespace {

std::unique_ptr<SegmentChain> make(Bytes& in) {
    std::vector<Index> lengths = in.indices(in.below(1, 2), 1, 7);
    const Index n_labels = in.near(1, 4);
    const Index max_length = in.near(1, 5);
    std::vector<Index> max_lengths;
    if (in.flag()) max_lengths = in.indices(std::clamp<Index>(n_labels, 1, 8), 1, 5);
    SegmentList listed;
    if (in.flag()) {
        listed.ptr.push_back(0);
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            for (Index k = in.below(0, 3); k > 0; --k) {
                listed.begins.push_back(in.near(0, 5));
                listed.ends.push_back(in.near(1, 7));
            }
            listed.ptr.push_back(in.byte() < 250 ? len(listed.begins.size()) : in.near(0, 9));
        }
    }
    return std::make_unique<SegmentChain>(lengths, n_labels, max_length, max_lengths, listed, in.flag());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    std::unique_ptr<SegmentChain> s;
    if (!accepted([&] { s = make(in); })) return 0;
    for (Index i = 0; i < s->num_examples(); ++i) {
        if (in.flag()) {
            std::vector<std::uint8_t> allowed(s->lengths()[i] * s->width());
            for (std::uint8_t& one : allowed) one = in.byte() < 200;
            accepted([&] { s->set_continuation(i, std::move(allowed)); });
        }
        mask_some(*s, i, in);
        check_answers(*s, i, in, 0);
    }
    return 0;
}
