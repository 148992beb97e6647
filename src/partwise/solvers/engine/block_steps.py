"""Solvers that can raise the dual of a part of the examples while the dual variables of the others stay.

To them the others are a constant vector: a problem with a shift (`Problem.with_shift`). What they keep between two
visits to a part follows from its dual variables, but for vectors with a number per weight, which follow from all.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

from partwise.problem import DualPoint, Problem
from partwise.solvers.engine.base import Certified
from partwise.solvers.online.base import OnlineSolver, OnlineState

S = TypeVar("S", bound=OnlineState)


class InBlocks(NamedTuple):
    """How a solver works on parts: the solver that visits one, and the proximity around all of them (`eg_prox`)."""

    inner: "BlockSolver[OnlineState]"
    proximity: str | float = 0.0


@dataclass(frozen=True)
class BlockSolver(OnlineSolver[S], ABC):
    """A solver for parts. A step adds what D gained to `state.raised`."""

    #: The types that its states may have, and their fields with a number per weight. `weights` are w(alpha); others are
    #: zero where parts are visited.
    state_types: ClassVar[tuple[type[OnlineState], ...]]
    vectors: ClassVar[frozenset[str]] = frozenset({"weights"})

    @abstractmethod
    def dual_point(self, problem: Problem, state: S) -> DualPoint:
        """The state's dual point, which shares its arrays."""

    def certificate(self, problem: Problem, state: S) -> Certified:
        point = self.dual_point(problem, state)
        return Certified(*problem.certify(point), point)

    def in_blocks(self) -> InBlocks | None:
        return InBlocks(self)  # type: ignore[arg-type]
