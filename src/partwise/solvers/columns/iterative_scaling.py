"""Problem. That of `base`, with non-negative features.

Update. With e_t the feature's sum over gold labels, E_t its expectation at w, M_t the sum of omega_x over the contexts
that have feature t, f#(x, y) = sum_t f_t(x, y), f# the largest of these, and f#_t the largest f_t(x, y),

    A_t(z) = l2 (w_t z + z^2/2) - z e_t + tau B_t(z)

    gis        B_t = E_t (exp(z f# / tau) - 1) / f#
    iis        B_t = sum_{x,y} omega_x P_w(y|x) f_t(x, y) (exp(z f#(x,y) / tau) - 1) / f#(x, y)
    scgis      B_t = E_t (exp(z f#_t / tau) - 1) / f#_t
    is-bound   B_t = M_t log(1 + (exp(z f#_t / tau) - 1) E_t / (f#_t M_t)), which lies below that of `scgis`

`gis` and `iis` move all weights at once (update="sequential": one after the other), `scgis` and `is-bound` one after
the other. Newton's method without line search runs to |A_t'| <= newton_tol (`is-bound`: inside the bracket of the
root). With l2 = 0 all but `iis` have a closed form; that of `gis` is z = tau / f# log(e_t / E_t).

The parallel update of `gis` keeps numbers per weight alone, no table of examples and labels (section 4.2). f# is a
maximum over batches, e and E are sums over them: batches may lie in files, or on other machines.

Stopping rule. That of `base`.

Source. Huang et al. 2010, Table 1 with (25), (27) and (28), in Algorithm 2 (parallel) or 1; (39), the new method at the
end of section 3.2.1, for `is-bound`. Darroch and Ratcliff 1972 (gis), Della Pietra et al. 1997, Goodman 2002 (scgis).

Departures. Those of `base`; at least one Newton step, the first no further than the closed form, which bounds the root.
The feature that fills up the sum to f# needs no weight (their equation 13).
"""

from dataclasses import dataclass
from typing import Any

from partwise import _core
from partwise._core import ScalingReport
from partwise.problem import Problem
from partwise.solvers.columns import base


@dataclass(frozen=True)
class GIS(base.ParallelSolver):
    """Generalised iterative scaling."""

    name = "gis"
    function = "gis"
    needs_largest_sum = True
    requires = base.ParallelSolver.requires - base.OF_TABLES
    default_max_passes = 20_000

    @property
    def keeps_cells(self) -> bool:
        return self.update == "sequential"

    def epoch(self, problem: Problem, state: base.ScalingState) -> ScalingReport:
        if self.keeps_cells:
            return super().epoch(problem, state)
        report = _core.gis_update(
            state.weights,
            problem.sums.scaling_constants.weights[self.columns(state)],
            empirical=state.empirical,
            expectations=problem.sums.scaling_expectations(state.weights),
            largest_sum=state.largest_sum,
            temperature=problem.loss.temperature,
            options=self.core_options(problem, n_jobs=problem.n_jobs),
        )
        report.cells = state.n_cells
        return report


@dataclass(frozen=True)
class IIS(base.ParallelSolver):
    """Improved iterative scaling."""

    name = "iis"
    function = "iis"
    default_max_passes = 20_000


@dataclass(frozen=True)
class SCGIS(base.ScalingSolver):
    """Sequential conditional generalised iterative scaling."""

    name = "scgis"
    function = "scgis"
    default_max_passes = 5000

    newton_tol: float = base.newton_tol_option()

    def minimiser(self, problem: Problem) -> dict[str, Any]:
        return {"newton_tol": self.newton_tol}


@dataclass(frozen=True)
class ISBound(SCGIS):
    """Iterative scaling with the bound that coordinate descent uses for its line search."""

    name = "is-bound"
    function = "log"
