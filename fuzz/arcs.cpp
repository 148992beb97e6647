// Fuzz driver of arc features: columns of words as bytes, templates, and keys as they are in model files.
#include <memory>
#include <string>

#include "bytes.h"
#include "features/arc_map.h"

using namespace partwise;
using namespace partwise::fuzz;

namespace {

std::vector<ArcTemplate::Atom> atoms(Bytes& in) {
    std::vector<ArcTemplate::Atom> out;
    for (Index k = in.below(0, 2); k > 0; --k) {
        const Index column = in.near(0, 1);
        out.push_back({column, in.near(-2, 2)});
    }
    return out;
}

std::shared_ptr<ArcIndex> index_of(Bytes& in, const std::vector<ArcTemplate>& templates, const ArcTokens& tokens) {
    Interrupt interrupt;
    switch (in.below(0, 2)) {
        case 0:
            return ArcIndex::hashed(static_cast<int>(in.near(1, 8) & 31));
        case 1: {
            std::vector<Key> keys(in.below(0, 12));
            for (Key& key : keys) key = mix(in.byte());
            return std::make_shared<ArcIndex>(std::move(keys));
        }
        default: {
            std::vector<Index> heads;
            if (in.flag()) heads = in.indices(tokens.num_words(), 0, 3);
            return ArcIndex::seen(templates, tokens, heads, in.near(1, 2), interrupt);
        }
    }
}

void check_map(Bytes& in, const ArcMap& map) {
    const std::vector<double> w = in.numbers(map.num_weights(), false);
    for (Index i = 0; i < map.num_examples(); ++i) {
        std::vector<double> scores(map.num_slots(i));
        map.scores(i, w.data(), scores.data());
        const std::vector<double> slots = in.numbers(map.num_slots(i), false);
        std::vector<double> back(w.size(), 0.0);
        const Added added = map.add_transpose(i, slots.data(), 1.0, back.data());
        double left = 0;
        double right = 0;
        double norm2 = 0;
        for (std::size_t k = 0; k < slots.size(); ++k) left += slots[k] * scores[k];
        for (std::size_t k = 0; k < back.size(); ++k) {
            right += back[k] * w[k];
            norm2 += back[k] * back[k];
        }
        require(std::abs(left - right) <= 1e-6 * (1.0 + std::abs(left)), "<slots, A w> = <A' slots, w>");
        require(std::abs(added.norm2 - norm2) <= 1e-6 * (1.0 + norm2), "|A' slots|^2 is what is said");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    accepted([&] {
        std::vector<Index> lengths = in.indices(in.below(1, 2), 1, 5);
        std::vector<std::string> columns;
        for (Index j = in.below(0, 2); j > 0; --j) {
            std::string& column = columns.emplace_back();
            for (const Index length : lengths) {
                for (Index t = 0; t < length && t < 8; ++t) column.append(in.text(in.below(0, 2))).push_back('\0');
            }
            if (in.byte() > 250) column.append("x");
        }
        const auto tokens =
            std::make_shared<ArcTokens>(lengths, std::vector<std::string_view>(columns.begin(), columns.end()));
        std::vector<ArcTemplate> templates(in.below(0, 3));
        for (ArcTemplate& one : templates) {
            one.head = atoms(in);
            one.modifier = atoms(in);
            one.between = in.near(-1, 1);
        }
        const std::shared_ptr<ArcIndex> index = index_of(in, templates, *tokens);
        if (index->num_weights() > 1000) return;
        Interrupt interrupt;
        const double limit = in.flag() ? 0.0 : 1e6;
        const ArcMap map(std::move(templates), tokens, index, limit, 1, interrupt);
        check_map(in, map);
    });
    return 0;
}
