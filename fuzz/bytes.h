// What the drivers share: values from a fuzzer's bytes, and the end of a run that breaks a promise.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "support/types.h"

namespace partwise::fuzz {

// A broken promise ends the process, as a sanitizer's report does, so that the fuzzer keeps the input.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

// Runs what may refuse its input; whether it did not. Other exceptions end the process.
template <class F>
bool accepted(F&& f) {
    try {
        f();
        return true;
    } catch (const InputError&) {
        return false;
    } catch (const NumberError&) {
        return false;
    } catch (const std::length_error&) {  // a size that no vector has
        return false;
    }
}

// Values are taken from the front; after the end they are 0.
class Bytes {
   public:
    Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

    std::size_t left() const { return left_; }
    std::uint8_t byte() {
        if (left_ == 0) return 0;
        --left_;
        return *data_++;
    }
    bool flag() { return (byte() & 1) != 0; }
    // least <= value <= most, most - least < 256
    Index below(Index least, Index most) { return least + byte() % (most - least + 1); }
    // Nearly always in the range; else a little or far outside of it.
    Index near(Index least, Index most) {
        const std::uint8_t kind = byte();
        if (kind < 250) return least + kind % (most - least + 1);
        // Not 2^40: AddressSanitizer ends the process where an allocation of that size would throw.
        constexpr Index kOdd[] = {-1, std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max(),
                                  Index{1} << 62};
        return kind < 252 ? most + 1 : kOdd[kind - 252];
    }
    // The value and a little more; beyond the largest number it begins again.
    Index after(Index value, Index most) {
        return static_cast<Index>(static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(below(0, most)));
    }
    std::string_view text(std::size_t most) {
        const std::size_t n = std::min(most, left_);
        const std::string_view out(reinterpret_cast<const char*>(data_), n);
        data_ += n;
        left_ -= n;
        return out;
    }
    std::string_view rest() { return text(left_); }

    // Small numbers with many ties, or (wide) any eight bytes and the ends of the range.
    double number(bool wide) {
        const std::uint8_t kind = byte();
        if (!wide || kind < 160) return (static_cast<double>(kind) - 80.0) / 16.0;
        if (kind >= 176) {
            constexpr double kOdd[] = {1e308, -1e308, 1e150, -1e150, 700.0, -745.0, 1e-300, 5e-324, -0.0, 1e16};
            return kOdd[kind % 10];
        }
        std::uint64_t bits = 0;
        for (int k = 0; k < 8; ++k) bits = bits << 8 | byte();
        double value = 0;
        std::memcpy(&value, &bits, sizeof value);
        return std::isfinite(value) ? value : 0.0;
    }
    std::vector<double> numbers(Index n, bool wide) {
        std::vector<double> out(n);
        for (double& value : out) value = number(wide);
        return out;
    }
    std::vector<Index> indices(Index n, Index least, Index most) {
        std::vector<Index> out(n);
        for (Index& value : out) value = near(least, most);
        return out;
    }

   private:
    const std::uint8_t* data_;
    std::size_t left_;
};

}  // namespace partwise::fuzz
