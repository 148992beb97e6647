"""Improved iterative scaling.

Problem. That of `base`, with non-negative features.

Update. For every weight the minimum of

    A_t(z) = l2 (w_t z + z^2/2) - z e_t + tau sum_{x,y} omega_x P_w(y|x) f_t(x, y) (exp(z f#(x,y) / tau) - 1) / f#(x,y)

with f#(x, y) = sum_t f_t(x, y), then all weights at once. Newton's method to |A_t'| <= newton_tol.

Stopping rule. That of `base`.

Source. Huang et al. 2010, Algorithm 2 with Table 1 and (28); Della Pietra et al. 1997.

Departures. Those of `gis`. With 0/1 features f#(x, y) is a count, and the cells of one count share their exponential.
"""

from dataclasses import dataclass

from partwise.solvers.columns.base import ParallelSolver
from partwise.solvers.engine.registry import register


@register(place=20)
@dataclass(frozen=True)
class IIS(ParallelSolver):
    """Improved iterative scaling (see the module's docstring)."""

    name = "iis"
    function = "iis"
    default_max_passes = 20_000
