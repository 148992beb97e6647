// Row widths that kernels know as a compile-time constant W, or 0 where they read them at run time.
#pragma once

#include <type_traits>

#include "support/types.h"

namespace partwise {

// Calls f with the row width as a compile-time constant if it is one of these widths, which end with 0; else with 0.
template <int W, int... Wider, class F>
decltype(auto) with_one_of(Index width, F&& f) {
    if constexpr (W == 0) {
        return f(std::integral_constant<int, 0>{});
    } else {
        return width == W ? f(std::integral_constant<int, W>{}) : with_one_of<Wider...>(width, f);
    }
}
template <class F>
decltype(auto) with_width(Index width, F&& f) {
    return with_one_of<4, 8, 12, 16, 24, 32, 48, 0>(width, f);
}

// The row width of a view.
template <int W, class View>
constexpr Index row_width(const View& view) {
    if constexpr (W > 0) {
        return W;
    } else {
        return view.width;
    }
}

}  // namespace partwise
