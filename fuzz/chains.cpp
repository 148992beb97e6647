// Fuzz driver of sequences of labels: chains of first and second order, greedy tagging by history, and single labels.
#include "answers.h"
#include "structures/chain.h"
#include "structures/history_chain.h"
#include "structures/multiclass.h"
#include "structures/second_order_chain.h"

using namespace partwise;
using namespace partwise::fuzz;

namespace {

void follow_some(Sequences& s, Bytes& in) {
    if (!in.flag()) return;
    const Index n = std::min<Index>(s.n_labels(), 8);
    const auto part = [&](Index size) {
        std::vector<std::uint8_t> out(in.flag() ? size : 0);
        for (std::uint8_t& one : out) one = in.byte() < 200;
        if (in.byte() > 250) out.push_back(1);
        return out;
    };
    Follow rule{part(n * n), part(n), part(n)};
    accepted([&] { s.set_follow(std::move(rule)); });
}

std::unique_ptr<Structure> make(Bytes& in, Index& width) {
    const Index kind = in.below(0, 3);
    if (kind == 3) {
        auto s = std::make_unique<Multiclass>(in.below(1, 2), in.near(1, 20));
        width = s->width();
        return s;
    }
    std::vector<Index> lengths = in.indices(in.below(1, 2), 1, 7);
    std::unique_ptr<Sequences> s;
    if (kind == 0) {
        const bool tied = in.flag();
        s = std::make_unique<Chain>(lengths, in.near(1, 7), tied, in.flag());
    } else if (kind == 1) {
        s = std::make_unique<SecondOrderChain>(lengths, in.near(1, 5));
    } else {
        const Index n = in.below(1, 5);
        const Index history = in.near(1, 2);
        std::vector<Index> pairs = in.indices(in.below(0, 4), 0, (n + 1) * (n + 1) - 1);
        if (in.flag()) std::sort(pairs.begin(), pairs.end());
        const bool wide = in.flag();
        const std::vector<double> first = in.numbers((n + 1) * n + (in.byte() > 250), wide);
        const std::vector<double> second = in.numbers(len(pairs.size()) * n, wide);
        s = std::make_unique<HistoryChain>(lengths, n, history, first, pairs, second, in.near(0, 6));
    }
    follow_some(*s, in);
    width = s->width();
    return s;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    std::unique_ptr<Structure> s;
    Index width = 0;
    if (!accepted([&] { s = make(in, width); })) return 0;
    for (Index i = 0; i < s->num_examples(); ++i) {
        mask_some(*s, i, in);
        check_answers(*s, i, in, width);
    }
    return 0;
}
