"""Cutting planes for the squared hinge with dual coordinate descent inside (CPD).

Problem. That of `dcd`.

Update. An epoch asks the oracle for every example at the same weights, lets each answer that violates by delta or more
join its working set, and then solves the problem over the working sets: sweeps of `update(i)` (see `dcd`) until no
coefficient has a projected gradient above inner_tol, or `max_rounds` sweeps were made.

Stopping rule. That of `dcd`.

Source. The rival of Chang and Yih 2013 (section 4.4.1), after Chang et al. 2010.

Departures. Those of `dcd`; a limit on the sweeps (without one the first cutting planes, which are bad, are fitted at
great cost).
"""

from dataclasses import dataclass

from partwise.problem import Problem
from partwise.solvers.engine.options import NOT_NEGATIVE, at_least, option
from partwise.solvers.engine.registry import register
from partwise.solvers.working_sets.base import CoordinateDescent, DCDState


@register(place=23)
@dataclass(frozen=True)
class CPD(CoordinateDescent):
    """Cutting planes with dual coordinate descent (see the module's docstring)."""

    name = "cpd"

    inner_tol: float = option(
        0.1, "largest projected gradient at which the working sets' problem counts as solved", NOT_NEGATIVE
    )
    max_rounds: int = option(20, "most sweeps over the working sets in an epoch", at_least(1))

    def step(self, problem: Problem, state: DCDState) -> None:
        state.gain = self.visit(problem, state, update=False).gap_estimate
        for _ in range(self.max_rounds):
            if self.visit(problem, state, search=False).violation <= self.inner_tol:
                break
        state.epoch += 1
