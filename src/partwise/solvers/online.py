"""What solvers that visit one example at a time share: the order of visits and when to look at the gap."""

from abc import ABC
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from .base import Solver, option
from .state import State

Ints = NDArray[np.int64]
Order = Literal["random", "permuted", "cyclic"]


@dataclass(kw_only=True)
class OnlineState(State):
    """The generator that draws the order of visits."""

    rng: np.random.Generator


S = TypeVar("S", bound=OnlineState)


@dataclass(frozen=True)
class OnlineSolver(Solver[S], ABC):
    """A solver whose epoch visits examples one by one and whose certificate costs about half a pass."""

    order: Order = option("permuted", "order of visits: random (with replacement), permuted (anew each pass) or cyclic")
    check_every: int | None = option(None, "passes between certificates; by default when the gap may be near tol")

    def __post_init__(self) -> None:
        if self.order not in get_args(Order):
            raise ValueError(f"order must be one of {', '.join(get_args(Order))}, got {self.order!r}")
        if self.check_every is not None and self.check_every < 1:
            raise ValueError(f"check_every must be at least 1, got {self.check_every}")

    def draw_order(self, problem: Problem, rng: np.random.Generator) -> Ints:
        """The examples of one pass, in the order of their visits."""
        active = problem.active
        if self.order == "random":
            return active[rng.integers(len(active), size=len(active))]
        return rng.permutation(active) if self.order == "permuted" else active

    def check_due(self, state: S, tol: float) -> bool:
        """At least every fifth pass (twentieth part of the run), and as soon as the gap may be within tol.

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
