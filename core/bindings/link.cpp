#include "solvers/link.h"

#include "bindings/common.h"

namespace partwise::bindings {

using namespace nb::literals;

void bind_link(nb::module_& m) {
    nb::class_<Link>(m, "Link")
        .def(
            "__init__", [](Link* self, const std::string& name) { new (self) Link(Link::named(name)); }, "name"_a)
        .def_prop_ro("name", [](const Link& link) { return std::string(link.name()); })
        .def_prop_ro("least_mass", &Link::least_mass)
        .def_prop_ro("largest_mass", &Link::largest_mass)
        .def_prop_ro("fixed_mass", &Link::fixed_mass)
        .def_prop_ro("quadratic_conjugate", &Link::quadratic_conjugate)
        .def("value", &Link::value, "t"_a)
        .def("mass", &Link::mass, "t"_a)
        .def("second", &Link::second, "t"_a)
        .def("conjugate", &Link::conjugate, "s"_a);
}

}  // namespace partwise::bindings
