"""Iterative scaling with the bound that coordinate descent uses for its line search.

Problem. That of `base`, with non-negative features.

Update. One weight after the other, each to the minimum of

    A_t(z) = l2 (w_t z + z^2/2) - z e_t + tau M_t log(1 + (exp(z f#_t / tau) - 1) E_t / (f#_t M_t)),

M_t = sum of omega_x over the contexts that have feature t. It lies below the function of `scgis`. Newton's method to
|A_t'| <= newton_tol, kept inside the bracket of the root; with l2 = 0 the root in closed form.

Stopping rule. That of `base`.

Source. Huang et al. 2010, Algorithm 1 with (39): the new method proposed at the end of section 3.2.1.

Departures. Those of `base`.
"""

from dataclasses import dataclass

from partwise.solvers.columns.scgis import SCGIS
from partwise.solvers.engine.registry import register


@register(place=18)
@dataclass(frozen=True)
class ISBound(SCGIS):
    """Iterative scaling with the bound (39) (see the module's docstring)."""

    name = "is-bound"
    function = "log"
