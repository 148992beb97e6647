"""Dual coordinate descent for the squared hinge, one update per call of the oracle (DCD-Light).

Problem and update. Those of `dcd`; an epoch is its second half alone: for all examples, in random order, ask the
oracle,
let its answer join the working set if it violates by delta or more, and update the working set once.

Stopping rule. gap = P(w) - D <= tol |P|, recomputed from the working sets; checked when it may be near, at least
every fifth pass (after pass 100: every twentieth part of the passes made).

Source. Chang and Yih 2013: Algorithms 1 and 2. Departures: those of `dcd`.
"""

from dataclasses import dataclass
from typing import ClassVar

from partwise.problem import Problem
from partwise.solvers.engine.registry import register
from partwise.solvers.working_sets.dcd import CoordinateDescent, DCDState


@register(place=22)
@dataclass(frozen=True)
class DCDLight(CoordinateDescent):
    """DCD-Light (see the module's docstring)."""

    name: ClassVar[str] = "dcd-light"

    def step(self, problem: Problem, state: DCDState) -> None:
        state.gain = self.visit(problem, state).gap_estimate
        state.epoch += 1
