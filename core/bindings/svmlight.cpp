#include "text/svmlight.h"

#include "bindings/common.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_svmlight(nb::module_& m) {
    m.def(
        "parse_svmlight",
        [](const nb::bytes& data, Index first) {
            SvmlightRows rows;
            {
                const nb::gil_scoped_release release;
                rows = parse_svmlight({data.c_str(), data.size()}, first);
            }
            return nb::make_tuple(numpy(std::move(rows.labels)), numpy(std::move(rows.row_ptr)),
                                  numpy(std::move(rows.columns)), numpy(std::move(rows.values)));
        },
        "data"_a, "first"_a = 1);
}

}  // namespace partwise::bindings
