"""The table of what fits what, from what solvers ask for and what problems of each kind offer.

Nothing is listed by hand: the kinds of problems are tiny ones, made here, which are asked for their capabilities.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import Chain, DenseSegment, LinearMap, Multiclass, ProjectiveTree, SpanningTree, Structure
from ..features import attribute_map, maxent_map
from ..kernels import kernel_map
from ..losses import LOSSES, Loss
from ..penalties import ElasticNet, Penalty
from ..problem import Problem
from .registry import SOLVERS, suitable_solvers

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class _MaxOracle(Structure):
    """A structure of one's own that can do the least: the two labels of one example."""

    def __init__(self) -> None:
        super().__init__(1)
        self.other = _one_label()

    def num_slots(self, i: int) -> int:
        return self.other.num_slots(i)

    def maximize(self, i: int, scores: Floats) -> tuple[float, Ints, Floats]:
        return self.other.maximize(i, scores)

    def cost(self, i: int, slots: Ints, counts: Floats) -> Floats:
        return self.other.cost(i, slots, counts)


class _BothOracles(_MaxOracle):
    """A structure of one's own that can do what most solvers need."""

    def log_partition(self, i: int, scores: Floats, temperature: float = 1.0) -> tuple[float, Floats, float]:
        return self.other.log_partition(i, scores, temperature)


def _one_label() -> Multiclass:
    return Multiclass(1, 2)


def _chain() -> Chain:
    return Chain(np.array([2], dtype=np.int64), 2)


def _problem(
    loss: Loss, like: Any, structure: Structure | None = None, penalty: Penalty | float = 1.0, kernel: bool = False
) -> Problem:
    """One example whose labels are all 0, with one dense input a row."""
    rows = 2 if isinstance(like, Chain) else 1
    inputs = np.ones((rows, 1))
    features = kernel_map(like, inputs, "rbf") if kernel else attribute_map(like, inputs)
    gold = like.encode(np.zeros(rows, dtype=np.int64))
    return Problem(features, like if structure is None else structure, gold, loss, penalty)


def _maxent(loss: Loss, l2: float = 1.0, value: float = 1.0) -> Problem:
    """The same with access by column."""
    like = _one_label()
    gold = like.encode(np.zeros(1, dtype=np.int64))
    return Problem(maxent_map(like, np.full((1, 1), value)), like, gold, loss, l2)


def _trees(loss: Loss, kind: type[ProjectiveTree] | type[SpanningTree]) -> Problem:
    """One sentence of three words with one dense input a word, whose four heads are a row of slots."""
    like = kind(np.array([3], dtype=np.int64))
    features = LinearMap([DenseSegment(np.ones((3, 1)), np.array([0, 3], dtype=np.int64), 4, 4)])
    return Problem(features, like, like.encode(np.array([0, 1, 1], dtype=np.int64)), loss, 1.0)


#: Kinds of problems: a small one of each, for a loss.
KINDS: dict[str, Callable[[Loss], Problem]] = {
    "Multiclass": lambda loss: _problem(loss, _one_label()),
    "Chain": lambda loss: _problem(loss, _chain()),
    "ProjectiveTree": lambda loss: _trees(loss, ProjectiveTree),
    "SpanningTree": lambda loss: _trees(loss, SpanningTree),
    "Multiclass, l2 = 0": lambda loss: _problem(loss, _one_label(), penalty=0.0),
    "Multiclass, l1 > 0": lambda loss: _problem(loss, _one_label(), penalty=ElasticNet(1.0)),
    "Chain, l2 = 0": lambda loss: _problem(loss, _chain(), penalty=0.0),
    "Multiclass with a kernel": lambda loss: _problem(loss, _one_label(), kernel=True),
    "Chain with a kernel": lambda loss: _problem(loss, _chain(), kernel=True),
    "Multiclass, maxent map": _maxent,
    "Multiclass, maxent map, l2 = 0": lambda loss: _maxent(loss, l2=0.0),
    "Multiclass, maxent map, negative features": lambda loss: _maxent(loss, value=-1.0),
    "Python structure with both oracles": lambda loss: _problem(loss, _one_label(), _BothOracles()),
    "Python structure with the maximum alone": lambda loss: _problem(loss, _one_label(), _MaxOracle()),
}


def fitting_solvers(loss: Loss, kind: str = "Chain") -> list[str]:
    """Names of the solvers that fit this loss on problems of this kind."""
    return suitable_solvers(KINDS[kind](loss))


def compatibility_table() -> str:
    """Which solver fits which loss, for each kind of problem; then what each solver needs."""
    blocks = []
    for kind in KINDS:
        cells = [[kind, *LOSSES]]
        fitting = [fitting_solvers(loss, kind) for loss in LOSSES.values()]
        cells += [[name, *("yes" if name in found else "-" for found in fitting)] for name in SOLVERS]
        blocks.append(_aligned(cells))
    needs = [f"{name} needs: {', '.join(sorted(cls.requires))}" for name, cls in SOLVERS.items()]
    return "\n\n".join([*blocks, "\n".join(needs)]) + "\n"


def _aligned(cells: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
