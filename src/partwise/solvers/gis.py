"""Generalised iterative scaling.

Problem. That of `scaling`, with non-negative features.

Update. For every weight the minimum of

    A_t(z) = l2 (w_t z + z^2/2) - z e_t + tau E_t (exp(z f# / tau) - 1) / f#,    f# = max_{x,y} sum_t f_t(x, y)

(e_t: the feature's sum over gold labels; E_t: its expectation at w), then all weights at once. Newton's method without
line search to |A_t'| <= newton_tol; with l2 = 0 the closed form z = tau / f# log(e_t / E_t).

Memory. The parallel update goes through the examples and keeps numbers per weight alone, no table of examples and
labels (003, section 4.2).

Stopping rule. That of `scaling`.

Source. 003, Algorithm 2 with Table 1, (25) and (27); Darroch, Ratcliff 1972. Departures: those of `scaling`; at least
one Newton step; its first step goes no further than the closed form, which bounds the root. The feature that fills up
the sum to f# needs no weight (003, (13)).
"""

from dataclasses import dataclass
from typing import ClassVar

from .registry import register
from .scaling import ParallelSolver


@register(place=19)
@dataclass(frozen=True)
class GIS(ParallelSolver):
    """Generalised iterative scaling (see the module's docstring)."""

    name: ClassVar[str] = "gis"
    function: ClassVar[str] = "gis"
    needs_largest_sum: ClassVar[bool] = True
    default_max_passes: ClassVar[int] = 20_000

    @property
    def keeps_cells(self) -> bool:
        return self.update == "sequential"
