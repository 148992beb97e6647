"""What solvers that visit one example at a time share: the order of visits, the weights that follow them."""

from abc import ABC
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

import numpy as np

from partwise.problem import Problem
from partwise.solvers.engine.certificate_schedule import ScheduledSolver
from partwise.solvers.engine.options import one_of, option
from partwise.solvers.engine.state import State
from partwise.support.arrays import Floats, Ints

Order = Literal["random", "permuted", "cyclic"]


@dataclass(kw_only=True)
class OnlineState(State):
    """weights: (d,). rng: the generator that draws the order of visits.

    raised: what D has gained in steps since the state was made or read, of solvers that work on parts (`BlockSolver`).
    """

    weights: Floats
    rng: np.random.Generator
    raised: float = field(default=0.0, init=False)


S = TypeVar("S", bound=OnlineState)


@dataclass(frozen=True)
class OnlineSolver(ScheduledSolver[S], ABC):
    """A solver whose epoch visits examples one by one."""

    order: Order = option(
        "permuted",
        "order of visits: random (with replacement), permuted (once per pass) or cyclic",
        one_of(*get_args(Order)),
    )

    def draw_order(self, problem: Problem, rng: np.random.Generator) -> Ints:
        """Return the examples of one pass, in the order of their visits."""
        active = problem.active
        if self.order == "random":
            return active[rng.integers(len(active), size=len(active))]
        return rng.permutation(active) if self.order == "permuted" else active

    def weights(self, problem: Problem, state: S) -> Floats:
        return state.weights.copy()


def drawn_by_gap(examples: Ints, gaps: Floats, uniform: float, rng: np.random.Generator) -> Ints:
    """Draw as many visits as there are examples: a share `uniform` uniformly, the others in proportion to the gaps.

    Draws are at even distances of the cumulated chances: each example is drawn as often as its chance says, rounded up
    or down.
    """
    n = len(examples)
    chances = np.cumsum((1 - uniform) * gaps / gaps.sum() + uniform / n)
    draws = np.searchsorted(chances, (rng.random() + np.arange(n)) / n * chances[-1], side="right")
    return rng.permutation(examples[np.minimum(draws, n - 1)])
