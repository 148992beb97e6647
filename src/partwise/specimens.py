"""Specimens: tiny batches of every kind of problem, which are asked for their capabilities (`compatibility_table`).

A structure's file in `structures`, or a feature map's in `features` or `kernels`, registers its own:

    @specimen("Chain")
    def chain() -> LabelledBatch:
        ...

They are found by themselves; there is no list of them.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from partwise.problem import LabelledBatch, Problem
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2, Penalty

Maker = Callable[[], LabelledBatch]

#: Packages whose modules may register specimens, in the order of the table.
PACKAGES = ("partwise.structures", "partwise.features.kernels", "partwise.features")
#: The penalty of specimens that are not about penalties.
USUAL = L2(1.0)

_FOUND: dict[str, "Specimen"] = {}


@dataclass(frozen=True)
class Specimen:
    """A kind of problem: what it is called, what makes a batch of it, a penalty, and how many batches it has."""

    name: str
    make: Maker
    penalty: Penalty
    batches: int

    def problem(self, loss: Loss) -> Problem:
        """A problem of this kind."""
        return Problem.of([self.make() for _ in range(self.batches)], loss, self.penalty)


def specimen(name: str, *, penalty: Penalty = USUAL, batches: int = 1) -> Callable[[Maker], Maker]:
    """Register a function that makes a tiny batch. Of several above one function the lowest comes first."""

    def register(make: Maker) -> Maker:
        _FOUND[name] = Specimen(name, make, penalty, batches)
        return make

    return register


def all_specimens() -> dict[str, Specimen]:
    """Specimens by name."""
    for package in PACKAGES:
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    return _FOUND
