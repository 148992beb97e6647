#include "text/utf8.h"

#include <cstring>

namespace partwise {

namespace {

unsigned byte_at(std::string_view text, std::size_t k) { return static_cast<unsigned char>(text[k]); }
bool continues(std::string_view text, std::size_t k) { return k < text.size() && (byte_at(text, k) & 0xC0U) == 0x80U; }

// Length of the well-formed character at k, 0 if there is none (the Unicode standard's table 3-7).
std::size_t character_at(std::string_view text, std::size_t k) {
    const unsigned first = byte_at(text, k);
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4 || !continues(text, k + 1)) return 0;
    if (first < 0xE0) return 2;
    const unsigned second = byte_at(text, k + 1);
    if (!continues(text, k + 2)) return 0;
    if (first < 0xF0) {
        if (first == 0xE0 && second < 0xA0) return 0;
        if (first == 0xED && second > 0x9F) return 0;
        return 3;
    }
    if (first == 0xF0 && second < 0x90) return 0;
    if (first == 0xF4 && second > 0x8F) return 0;
    return continues(text, k + 3) ? 4 : 0;
}

bool is_surrogate(std::string_view text, std::size_t k) {
    return byte_at(text, k) == 0xED && continues(text, k + 1) && byte_at(text, k + 1) > 0x9F && continues(text, k + 2);
}

}  // namespace

void fail_at(std::string_view text, std::size_t offset, const std::string& message) {
    const std::string_view before = text.substr(0, offset);
    const Index line = 1 + static_cast<Index>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t newline = before.rfind('\n');
    Index column = 1;
    for (std::size_t k = newline == std::string_view::npos ? 0 : newline + 1; k < before.size(); ++k) {
        if ((byte_at(before, k) & 0xC0U) != 0x80U) ++column;
    }
    throw ParseError(line, column, message);
}

void check_utf8(std::string_view text) {
    std::size_t k = 0;
    while (k < text.size()) {
        std::uint64_t eight = 0;
        while (k + 8 <= text.size()) {
            std::memcpy(&eight, text.data() + k, 8);
            if ((eight & 0x8080808080808080ULL) != 0) break;
            k += 8;
        }
        if (k >= text.size()) return;
        const std::size_t length = character_at(text, k);
        if (length == 0) {
            constexpr const char* kDigits = "0123456789ABCDEF";
            const unsigned byte = byte_at(text, k);
            fail_at(text, k,
                    is_surrogate(text, k)
                        ? std::string("a lone surrogate is not a character")
                        : std::string("not UTF-8 (byte 0x") + kDigits[byte >> 4] + kDigits[byte & 15U] + ")");
        }
        k += length;
    }
}

}  // namespace partwise
