"""What solvers that visit one example at a time share: the order of visits, the weights that follow the visits.

Some of them (`BlockSolver`) can raise the dual of a part of the examples while the dual variables of the others stay:
these are a constant vector, a shift of the problem (`Problem.with_shift`). Between two visits to a part its state
follows from its dual variables, except for vectors with a number per weight, which follow from all dual variables.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from partwise.problem import DualPoint, Part, Problem
from partwise.solvers.engine.base import Certified, ScheduledSolver
from partwise.solvers.engine.options import one_of, option
from partwise.solvers.engine.state import State
from partwise.support.arrays import Floats, Ints

Order = Literal["random", "permuted", "cyclic"]


@dataclass(kw_only=True)
class OnlineState(State):
    """rng: the generator that draws the order of visits. raised: the gain of D since the state was made or read."""

    weights: Floats
    rng: np.random.Generator
    raised: float = field(default=0.0, init=False)


S = TypeVar("S", bound=OnlineState)


@dataclass(frozen=True)
class OnlineSolver(ScheduledSolver[S]):
    """A solver whose epoch visits examples one by one."""

    order: Order = option(
        "permuted", "order of visits: random (with replacement), permuted (once per pass) or cyclic", one_of(Order)
    )

    def draw_order(self, problem: Problem, rng: np.random.Generator) -> Ints:
        """Return the examples of one pass, in the order of their visits."""
        active = problem.active
        if self.order == "random":
            return active[rng.integers(len(active), size=len(active))]
        return rng.permutation(active) if self.order == "permuted" else active


class InBlocks(NamedTuple):
    """How a solver works on parts: the solver that visits one, and the proximity around all of them (`eg_prox`)."""

    inner: "BlockSolver[OnlineState]"
    proximity: str | float = 0.0


@dataclass(frozen=True)
class BlockSolver(OnlineSolver[S]):
    """A solver for parts of the examples. A step adds what D gained to `state.raised`."""

    #: Types of its states, and their fields with a number per weight: w(alpha), and others, zero in work on parts.
    state_types: ClassVar[tuple[type[OnlineState], ...]]
    vectors: ClassVar[frozenset[str]] = frozenset({"weights"})

    @abstractmethod
    def dual_point(self, problem: Problem, state: S) -> DualPoint:
        """Return the state's dual point, which shares its arrays."""

    def certificate(self, problem: Problem, state: S) -> Certified:
        point = self.dual_point(problem, state)
        return Certified(*problem.certify(point), point)

    def in_blocks(self) -> InBlocks | None:
        return InBlocks(self)  # type: ignore[arg-type]


def views(part: Part, state: object, slots: tuple[str, ...], examples: tuple[str, ...]) -> dict[str, Floats]:
    """Return a batch's parts of a state's arrays: of those with numbers per slot, and of those with one per example."""
    found = {name: getattr(state, name)[part.slots] for name in slots}
    return found | {name: getattr(state, name)[part.examples] for name in examples}


def drawn_by_gap(examples: Ints, gaps: Floats, uniform: float, rng: np.random.Generator) -> Ints:
    """Draw as many visits as there are examples: a share `uniform` uniformly, the others in proportion to the gaps.

    Draws are at even distances of the cumulated chances: each example is drawn as often as its chance says, rounded.
    """
    n = len(examples)
    chances = np.cumsum((1 - uniform) * gaps / gaps.sum() + uniform / n)
    draws = np.searchsorted(chances, (rng.random() + np.arange(n)) / n * chances[-1], side="right")
    return rng.permutation(examples[np.minimum(draws, n - 1)])
