"""Generalised iterative scaling.

Problem. That of `base`, with non-negative features.

Update. For every weight the minimum of

    A_t(z) = l2 (w_t z + z^2/2) - z e_t + tau E_t (exp(z f# / tau) - 1) / f#,    f# = max_{x,y} sum_t f_t(x, y)

(e_t: the feature's sum over gold labels; E_t: its expectation at w), then all weights at once. Newton's method without
line search to |A_t'| <= newton_tol; with l2 = 0 the closed form z = tau / f# log(e_t / E_t).

The parallel update goes through the examples and keeps numbers per weight alone, no table of examples and labels
(section 4.2). f# is a maximum over batches, e and E are sums over them: batches may lie in files, or on other machines.
update="sequential" needs one batch in memory.

Stopping rule. That of `base`.

Source. Huang et al. 2010, Algorithm 2 with Table 1, (25) and (27); Darroch and Ratcliff 1972.

Departures. Those of `base`; at least one Newton step; its first step goes no further than the closed form, which bounds
the root. The feature that fills up the sum to f# needs no weight (their equation 13).
"""

from dataclasses import dataclass

from partwise import _core
from partwise._core import ScalingReport
from partwise.problem import Problem
from partwise.solvers.columns.base import MOST_NEWTON, OF_TABLES, ParallelSolver, ScalingState
from partwise.solvers.engine.registry import register


@register(place=19)
@dataclass(frozen=True)
class GIS(ParallelSolver):
    """Generalised iterative scaling (see the module's docstring)."""

    name = "gis"
    function = "gis"
    needs_largest_sum = True
    requires = ParallelSolver.requires - OF_TABLES
    default_max_passes = 20_000

    @property
    def keeps_cells(self) -> bool:
        return self.update == "sequential"

    def epoch(self, problem: Problem, state: ScalingState) -> ScalingReport:
        if self.keeps_cells:
            return super().epoch(problem, state)
        report = _core.gis_update(
            state.weights,
            problem.sums.scaling_constants.weights[self.columns(state)],
            empirical=state.empirical,
            expectations=problem.sums.scaling_expectations(state.weights),
            largest_sum=state.largest_sum,
            temperature=problem.loss.temperature,
            options=_core.ScalingOptions(
                l2=problem.l2,
                function=self.function,
                newton_tol=self.newton_tol,
                max_newton=MOST_NEWTON,
                n_jobs=problem.n_jobs,
            ),
        )
        report.cells = state.n_cells
        return report
