// Row widths that kernels know as a compile-time constant W, or 0 where they read them at run time.
#pragma once

#include <type_traits>

#include "support/types.h"

namespace partwise {

// Calls f with the row width as a compile-time constant where a kernel was compiled for it, else with 0.
template <class F>
decltype(auto) with_width(Index width, F&& f) {
    switch (width) {
        case 4:
            return f(std::integral_constant<int, 4>{});
        case 8:
            return f(std::integral_constant<int, 8>{});
        case 12:
            return f(std::integral_constant<int, 12>{});
        case 16:
            return f(std::integral_constant<int, 16>{});
        case 24:
            return f(std::integral_constant<int, 24>{});
        case 32:
            return f(std::integral_constant<int, 32>{});
        case 48:
            return f(std::integral_constant<int, 48>{});
        default:
            return f(std::integral_constant<int, 0>{});
    }
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
