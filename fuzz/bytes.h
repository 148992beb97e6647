// Helpers of all drivers: values made from a fuzzer's bytes, and `require`, which ends a run that breaks a promise.
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

// Returns whether f accepted its input: it may refuse it by these errors. Other exceptions end the process.
template <class F>
bool accepted(F&& f) {
    try {
        f();
        return true;
    } catch (const InputError&) {
        return false;
    } catch (const NumberError&) {
        return false;
    } catch (const std::length_error&) {  // a size that no vector can have
        return false;
    }
}

// Makes values from the fuzzer's bytes, taken from the front; after the last byte they are 0.
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
    // A value with least <= value <= most, where most - least < 256.
    Index below(Index least, Index most) { return least + byte() % (most - least + 1); }
    // A value that is nearly always in the range, and otherwise a little or far outside of it.
    Index near(Index least, Index most) {
        const std::uint8_t kind = byte();
        if (kind < 250) return least + kind % (most - least + 1);
        // No value like 2^40: AddressSanitizer ends the process instead of throwing when so much memory is asked for.
        constexpr Index kOdd[] = {-1, std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max(),
                                  Index{1} << 62};
        return kind < 252 ? most + 1 : kOdd[kind - 252];
    }
    // The value plus at most `most`; beyond the largest Index it wraps around.
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

    // Small numbers with many ties, or (wide) any eight bytes and extreme numbers.
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
