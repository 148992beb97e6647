"""Dual coordinate descent for the squared hinge, one update per call of the oracle (DCD-Light).

Problem. That of `dcd`.

Update. The second half of an epoch of `dcd` alone: for all examples, in random order, ask the oracle, let its answer
join the working set if it violates by delta or more, and update the working set once.

Stopping rule. That of `dcd`.

Source. Chang and Yih 2013: Algorithms 1 and 2.

Departures. Those of `dcd`.
"""

from dataclasses import dataclass

from partwise.problem import Problem
from partwise.solvers.engine.registry import register
from partwise.solvers.working_sets.base import CoordinateDescent, DCDState


@register(place=22)
@dataclass(frozen=True)
class DCDLight(CoordinateDescent):
    """DCD-Light (see the module's docstring)."""

    name = "dcd-light"

    def step(self, problem: Problem, state: DCDState) -> None:
        state.gain = self.visit(problem, state).gap_estimate
        state.epoch += 1
