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

    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 1000
    #: Passes between certificates, at most, while few passes were made.
    seldom: ClassVar[int] = 5

    check_every: int | None = option(
        None, "passes between certificates; by default when the gap may be near tol", at_least(1)
    )

    def check_due(self, state: S, tol: float) -> bool:
        """Return whether the gap may be within tol, or `seldom` passes or a twentieth of all were made without a look.

        The gap is guessed to have shrunk as much as the solver's own measure of progress since the last certificate.
        """
        since = state.epoch - state.checked_epoch
        if self.check_every is not None:
            return since >= self.check_every
        if since >= max(self.seldom, state.epoch // 20):
            return True
        return self.guess_gap(state) <= tol * abs(self.guess_primal(state))

    def guess_gap(self, state: S) -> float:
        """Return about how large the gap is."""
        return state.checked_gap * state.gain / state.checked_gain if state.checked_gain else state.gain

    def guess_primal(self, state: S) -> float:
        """Return about how large the primal value is: as in the last certificate, or the dual value if there is one."""
        dual: float = getattr(state, "dual", 0.0)
        return state.checked_primal or dual
