"""Solvers whose certificate costs about half a pass: it is issued when the gap may be near the tolerance."""

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from partwise.solvers.engine.base import Solver
from partwise.solvers.engine.options import at_least, option
from partwise.solvers.engine.state import State

S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class ScheduledSolver(Solver[S], ABC):
    """A solver that guesses from its own measure of progress (`state.gain`) when to look at the gap."""

    #: Passes between certificates, at most, while few passes were made.
    seldom: ClassVar[int] = 5

    check_every: int | None = option(
        None, "passes between certificates; by default when the gap may be near tol", at_least(1)
    )

    def check_due(self, state: S, tol: float) -> bool:
        """At least every max(`seldom`, passes made / 20) passes, and as soon as the gap may be within tol.

        The gap is guessed to have shrunk as much as the solver's own measure of progress since the last certificate.
        """
        since = state.epoch - state.checked_epoch
        if self.check_every is not None:
            return since >= self.check_every
        if since >= max(self.seldom, state.epoch // 20):
            return True
        return self.guess_gap(state) <= tol * abs(self.guess_primal(state))

    def guess_gap(self, state: S) -> float:
        """About how large the gap is."""
        return state.checked_gap * state.gain / state.checked_gain if state.checked_gain else state.gain

    def guess_primal(self, state: S) -> float:
        """About how large the primal value is."""
        return state.checked_primal
