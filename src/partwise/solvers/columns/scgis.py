"""Sequential conditional generalised iterative scaling.

Problem. That of `scaling`, with non-negative features.

Update. One weight after the other, each to the minimum of

    A_t(z) = l2 (w_t z + z^2/2) - z e_t + tau E_t (exp(z f#_t / tau) - 1) / f#_t,    f#_t = max_{x,y} f_t(x, y)

by Newton's method without line search to |A_t'| <= newton_tol; with l2 = 0 the closed form
z = tau / f#_t log(e_t / E_t).

Stopping rule. That of `scaling`.

Source. Huang et al. 2010, Algorithm 1 with Table 1, (25) and (27); Goodman 2002. Departures: those of `scaling` and
`gis`.
"""

from dataclasses import dataclass
from typing import ClassVar

from partwise._core import ScalingReport
from partwise.problem import Problem
from partwise.solvers.columns.base import ScalingState, SequentialSolver
from partwise.solvers.engine.options import POSITIVE, option
from partwise.solvers.engine.registry import register


@register(place=17)
@dataclass(frozen=True)
class SCGIS(SequentialSolver):
    """Sequential conditional generalised iterative scaling (see the module's docstring)."""

    name: ClassVar[str] = "scgis"
    function: ClassVar[str] = "scgis"
    default_max_passes: ClassVar[int] = 5000

    newton_tol: float = option(1e-5, "one-variable problems are solved to a derivative of at most this", POSITIVE)

    def epoch(self, problem: Problem, state: ScalingState) -> ScalingReport:
        return self.run_epoch(problem, state, newton_tol=self.newton_tol)
