"""Solvers whose certificate costs about half a pass: it is issued when the gap may be near the tolerance."""

from abc import ABC
from dataclasses import dataclass
from typing import TypeVar

from .base import Solver, option
from .state import State

S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class ScheduledSolver(Solver[S], ABC):
    """A solver that guesses from its own measure of progress (`state.gain`) when to look at the gap."""

    check_every: int | None = option(None, "passes between certificates; by default when the gap may be near tol")

    def __post_init__(self) -> None:
        if self.check_every is not None and self.check_every < 1:
            raise ValueError(f"check_every must be at least 1, got {self.check_every}")

    def check_due(self, state: S, tol: float) -> bool:
        """At least every max(5, passes made / 20) passes, and as soon as the gap may be within tol.

        The gap is guessed to have shrunk as much as the solver's own measure of progress since the last certificate.
        """
        since = state.epoch - state.checked_epoch
        if self.check_every is not None:
            return since >= self.check_every
        if since >= max(5, state.epoch // 20):
            return True
        guess = state.gain if not state.checked_gain else state.checked_gap * state.gain / state.checked_gain
        return guess <= tol * abs(self.guess_primal(state))

    def guess_primal(self, state: S) -> float:
        """About how large the primal value is."""
        return state.checked_primal
