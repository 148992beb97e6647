// Fuzz driver of attribute names: packed strings of model files, tables of strings, templates over columns.
#include <algorithm>
#include <memory>
#include <string>

#include "bytes.h"
#include "text/extractor.h"
#include "text/vocabulary.h"

using namespace partwise;
using namespace partwise::fuzz;

namespace {

void vocabulary(Bytes& in) {
    std::vector<Index> offsets{0};
    const Index n = in.below(0, 12);
    for (Index k = 0; k < n; ++k) offsets.push_back(in.byte() < 250 ? in.after(offsets.back(), 9) : in.near(0, 40));
    const Index min_count = in.near(0, 3);
    const std::string text(in.flag() ? in.text(std::clamp<Index>(offsets.back(), 0, 200)) : in.rest());
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    StringTable table;
    if (!accepted([&] { table = make_vocabulary({bytes, offsets}); })) return;
    require(table.size() == n, "a vocabulary has all names");
    Interrupt interrupt;
    const std::vector<Index> ids = look_up(table, {bytes, offsets}, 1, interrupt);
    for (Index k = 0; k < n; ++k) {
        require(ids[k] == k && table.find(table.name(k)) == k, "names are found under their numbers");
    }
    NameCounts counts;
    counts.add(table, ids);
    std::vector<Index> rank;
    const std::vector<Index> ones(n, 1);
    const StringTable kept = by_frequency(table, ones, {}, min_count, rank);
    for (Index k = 0; k < n; ++k) {
        require(rank[k] < kept.size(), "ranks are numbers of kept names");
        if (rank[k] >= 0) require(kept.name(rank[k]) == table.name(k), "a rank's name is the name");
    }
}

TemplatePiece piece(Bytes& in) {
    TemplatePiece out;
    out.kind = static_cast<TemplatePiece::Kind>(in.below(0, 3));
    out.column = in.near(0, 2);
    out.row = in.near(-3, 3);
    out.outside = static_cast<TemplatePiece::Outside>(in.below(0, 2));
    out.text = in.text(in.below(0, 4));
    return out;
}

void templates(Bytes& in) {
    std::vector<Index> lengths = in.indices(in.below(0, 3), 0, 5);
    Index n_tokens = 0;
    for (const Index length : lengths) n_tokens += std::clamp<Index>(length, 0, 8);
    std::vector<std::shared_ptr<const CodedColumn>> columns;
    for (Index j = in.below(0, 3); j > 0; --j) {
        auto column = std::make_shared<CodedColumn>();
        for (Index t = 0; t < n_tokens; ++t) {
            const bool none = in.byte() > 220;
            column->codes.push_back(none ? -1 : static_cast<std::int32_t>(column->names.add(in.text(in.below(0, 3)))));
        }
        if (in.byte() > 250) column->codes.push_back(-1);
        columns.push_back(column);
    }
    std::vector<TemplateLine> lines(in.below(0, 4));
    for (TemplateLine& line : lines) {
        line.edge = in.flag();
        for (Index k = in.below(0, 7); k > 0; --k) line.pieces.push_back(piece(in));
    }
    const Index min_count = in.near(1, 3);
    accepted([&] {
        const Extractor extractor(std::move(lines), columns, lengths);
        Interrupt interrupt;
        ExtractedRows learnt;
        const StringTable names = extractor.learn(min_count, 1, interrupt, learnt);
        const ExtractedRows found = extractor.look_up(names, 2, interrupt);
        require(learnt.row_ptr == found.row_ptr && learnt.attributes == found.attributes,
                "what was learnt is found again");
        for (Index t = 0; t < n_tokens; ++t) {
            // Compare with the slow way, token by token.
            const std::vector<std::string> own = extractor.attributes(t);
            const Index begin = found.row_ptr[t];
            require(found.row_ptr[t + 1] - begin == len(own.size()), "a token has as many attributes either way");
            for (std::size_t k = 0; k < own.size(); ++k) {
                require(names.find(own[k]) == found.attributes[begin + k],
                        "a token has the same attributes either way");
            }
        }
        accepted([&] { extractor.attributes(in.near(0, n_tokens)); });
    });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes in(data, size);
    if (in.flag()) {
        vocabulary(in);
    } else {
        templates(in);
    }
    return 0;
}
