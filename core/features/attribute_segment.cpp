#include <algorithm>

#include "features/segments.h"
#include "support/sizes.h"
#include "support/vector_math.h"

namespace partwise {

namespace {

void check(const RowLayout& layout, const AttributeTable& table) {
    check_pointers(table.row_ptr, len(table.attributes.size()), "row_ptr");
    check_pointers(table.example_ptr, len(table.row_ptr.size()) - 1, "example_ptr");
    if (!table.values.empty() && table.values.size() != table.attributes.size()) {
        throw InputError("values must have one value per attribute");
    }
    check_values(table.values, [&](Index k) { return "attribute " + std::to_string(table.attributes[idx(k)]); });
    // Extremes first: that is a loop of vector instructions.
    Index low = -1;
    Index high = -1;
    for (const Index attribute : table.attributes) {
        low = std::min(low, attribute);
        high = std::max(high, attribute);
    }
    if (low < -1 || high >= layout.num_attributes()) {
        throw InputError("attribute " + std::to_string(low < -1 ? low : high) + " is out of range");
    }
    if (layout.num_weights() > Index{0xFFFFFFFF}) throw InputError("more than 2^32 weights in one segment");
}

}  // namespace

bool has_single_rows(const AttributeTable& table) {
    const auto ptr = table.example_ptr;
    for (std::size_t i = 1; i < ptr.size(); ++i) {
        if (ptr[i] - ptr[i - 1] != 1) return false;
    }
    return true;
}

Index longest_row(std::span<const Index> row_ptr) {
    Index longest = 0;
    for (std::size_t p = 1; p < row_ptr.size(); ++p) longest = std::max(longest, row_ptr[p] - row_ptr[p - 1]);
    return longest;
}

AttributeSegment::AttributeSegment(std::shared_ptr<const RowLayout> layout, const AttributeTable& table, bool once,
                                   RowUse use) {
    check(*layout, table);
    if (use.uses < 1) throw InputError("uses must be at least 1");
    if (!use.parts.empty() && use.parts.size() + 1 != table.example_ptr.size()) {
        throw InputError("parts must have one value per example");
    }
    for (const Index n : use.parts) {
        if (n < 0) throw InputError("parts must not be negative");
    }
    if (once) {  // whatever the other examples are like: the bits of one must not depend on them
        rows_ = std::make_unique<PassingRows>(std::move(layout), table, std::move(use));
    } else if (has_single_rows(table) && layout->all_full()) {
        rows_ = std::make_unique<SingleRows>(std::move(layout), table, std::move(use));
    } else {
        rows_ = std::make_unique<AttributeRows>(std::move(layout), table, std::move(use));
    }
}

}  // namespace partwise
