"""Sequential conditional generalised iterative scaling.

Problem. That of `base`, with non-negative features.

Update. One weight after the other, each to the minimum of

    A_t(z) = l2 (w_t z + z^2/2) - z e_t + tau E_t (exp(z f#_t / tau) - 1) / f#_t,    f#_t = max_{x,y} f_t(x, y)

by Newton's method without line search to |A_t'| <= newton_tol; with l2 = 0 the closed form
z = tau / f#_t log(e_t / E_t).

Stopping rule. That of `base`.

Source. Huang et al. 2010, Algorithm 1 with Table 1, (25) and (27); Goodman 2002.

Departures. Those of `gis`.
"""

from dataclasses import dataclass

from partwise._core import ScalingReport
from partwise.problem import Problem
from partwise.solvers.columns.base import ScalingSolver, ScalingState, newton_tol_option
from partwise.solvers.engine.registry import register


@register(place=17)
@dataclass(frozen=True)
class SCGIS(ScalingSolver):
    """Sequential conditional generalised iterative scaling (see the module's docstring)."""

    name = "scgis"
    function = "scgis"
    default_max_passes = 5000

    newton_tol: float = newton_tol_option()

    def epoch(self, problem: Problem, state: ScalingState) -> ScalingReport:
        return self.run_epoch(problem, state, newton_tol=self.newton_tol)
