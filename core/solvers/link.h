// The link phi of a loss phi(t), t = smax(theta + kappa c) - <theta, g>: convex, non-decreasing. All facts about links
// that the objective, its dual and the solvers use are here; a new link is a struct and an entry in `Links`.
//
//              phi(t)         s = phi'(t)      phi''(t)       phi*(s)    domain of phi*
//   identity   t              1                0              0          s = 1
//   squared    max(t, 0)^2    2 max(t, 0)      2 if t > 0     s^2 / 4    s >= 0
//
// phi*(s) = sup_t (s t - phi(t)), so phi(t) + phi*(s) >= s t, with equality at s = phi'(t). The mass s of an example's
// dual block lies in the domain of phi*: if that is one point, blocks are distributions (simplices) and phi(t) = t.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "support/types.h"

namespace partwise {

struct IdentityLink {
    static constexpr std::string_view kName = "identity";
    static constexpr double kLeastMass = 1.0;
    static constexpr double kLargestMass = 1.0;

    static constexpr double value(double t) { return t; }
    static constexpr double mass(double) { return 1.0; }
    static constexpr double second(double) { return 0.0; }
    static constexpr double conjugate(double) { return 0.0; }
};

struct SquaredLink {
    static constexpr std::string_view kName = "squared";
    static constexpr double kLeastMass = 0.0;
    static constexpr double kLargestMass = kInfinity;
    static constexpr double kConjugateCurvature = 0.5;

    static constexpr double value(double t) {
        const double positive = std::max(t, 0.0);
        return positive * positive;
    }
    static constexpr double mass(double t) { return 2.0 * std::max(t, 0.0); }
    static constexpr double second(double t) { return t > 0.0 ? 2.0 : 0.0; }
    static constexpr double conjugate(double s) { return 0.25 * s * s; }
};

using Links = std::variant<IdentityLink, SquaredLink>;

// Capabilities of a link.
template <class L>
inline constexpr bool kFixedMass = L::kLeastMass == L::kLargestMass;
// Every s >= 0 is a valid mass, and phi*(s) = kConjugateCurvature / 2 s^2: steps of a block have a closed form.
template <class L>
inline constexpr bool kQuadraticConjugate = requires { L::kConjugateCurvature; };

// A link chosen at run time.
class Link {
   public:
    // Throws InputError if no link has this name.
    static Link named(std::string_view name) {
        std::string names;  // for the message: 'one', 'two' or 'three'
        for (std::size_t k = 0; k < kAll.size(); ++k) {
            const Link link(kAll[k]);
            if (link.name() == name) return link;
            names += concat(k == 0 ? "" : k + 1 < kAll.size() ? ", " : " or ", "'", link.name(), "'");
        }
        throw InputError("link must be ", names, ", not '", name, "'");
    }

    // Calls f with the link's own type, so that loops are compiled for each link.
    template <class F>
    decltype(auto) with(F&& f) const {
        return std::visit(std::forward<F>(f), link_);
    }

    // As `with`, for solvers whose steps need a fixed mass or a quadratic conjugate; other links are refused.
    template <class Report, class F>
    Report with_block_steps(const char* solver, F&& f) const {
        return with([&](auto link) -> Report {
            using L = decltype(link);
            if constexpr (kFixedMass<L> || kQuadraticConjugate<L>) return f(link);
            throw InputError(solver, " is not available with the ", L::kName, " link");
        });
    }

    std::string_view name() const {
        return with([](auto link) { return link.kName; });
    }
    double value(double t) const {
        return with([&](auto link) { return link.value(t); });
    }
    double mass(double t) const {
        return with([&](auto link) { return link.mass(t); });
    }
    double second(double t) const {
        return with([&](auto link) { return link.second(t); });
    }
    double conjugate(double s) const {
        return with([&](auto link) { return link.conjugate(s); });
    }
    double least_mass() const {
        return with([](auto link) { return link.kLeastMass; });
    }
    double largest_mass() const {
        return with([](auto link) { return link.kLargestMass; });
    }
    bool fixed_mass() const {
        return with([](auto link) { return kFixedMass<decltype(link)>; });
    }
    bool quadratic_conjugate() const {
        return with([](auto link) { return kQuadraticConjugate<decltype(link)>; });
    }

   private:
    static constexpr auto kAll = []<std::size_t... K>(std::index_sequence<K...>) {
        return std::array{Links(std::in_place_index<K>)...};
    }(std::make_index_sequence<std::variant_size_v<Links>>());

    explicit Link(const Links& link) : link_(link) {}

    Links link_;
};

}  // namespace partwise
