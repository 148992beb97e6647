"""Theorems of the papers as checks of runs, which can be told to go wrong.

Each check takes a `factor` on the solver's steps: 1 is the library's own run, 0 one that stands still, another number
one with a wrong step. `Broken` is raised where the theorem's inequality does not hold, and by nothing else: a check
that passes at 1 and does not raise it elsewhere says nothing about the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from helpers.small_problems import Small
from partwise.methods import eg_qp

EXACT = 1e-9  # rounding; every inequality here holds in exact arithmetic
STEADY = 0.75  # of a linear rate: see `contracts`


class Broken(AssertionError):
    """An inequality that a theorem promises does not hold."""


def at_most(left: float, right: float, what: str) -> None:
    if not left <= right + EXACT * (1.0 + abs(right)):
        raise Broken(f"{what}: {left} > {right}")


def contracts(distances: list[float], most: float, what: str) -> None:
    """Distances from the optimum never rise, and fall by a factor of at most `most` per step, not less and less so.

    Of a power of the number of steps the last third of the run would bring log(3/2) / log(2) = 0.58 of what the middle
    third brings, whatever the power; of a constant factor it brings as much. `STEADY` lies between the two.
    """
    floor = 1e-11 * (1.0 + distances[0])
    kept = [d for d in distances if d > floor]
    for before, after in zip(kept[:-1], kept[1:], strict=True):
        at_most(after, before, what)
    last = len(kept) - 1
    if last < 6:
        raise ValueError(f"{what}: {last} steps are too few to tell a rate")
    at_most((kept[last] / kept[0]) ** (1.0 / last), most, what)
    third, two_thirds, end = np.interp([last / 3, 2 * last / 3, last], range(last + 1), np.log(kept))
    at_most(STEADY * (third - two_thirds), two_thirds - end, f"{what}: the last third")


def grows_at_most(passes: list[int], goals: list[float], order: Callable[[float], float], what: str) -> None:
    """Passes from each goal that was reached to the next grow by no more than `order` does, up to whole passes."""
    for k in range(1, len(passes)):
        at_most(passes[k] - 1, passes[k - 1] * order(goals[k]) / order(goals[k - 1]), f"{what}, goal {goals[k]:.2g}")


@dataclass(frozen=True)
class Theorem:
    """check(factor); wrong: factors of steps that are wrong, which it must find out."""

    check: Callable[[float], None]
    wrong: tuple[float, ...]


#: (name, theorem): what a module of this folder gives.
Named = Iterator[tuple[str, Theorem]]


def of(check: Callable[..., None], *args: Any) -> Callable[[float], None]:
    """The check of these cases; those that are partial functions are made when it runs."""
    return lambda factor: check(*(arg() if isinstance(arg, partial) else arg for arg in args), factor)


def a_small(kind: str, loss: str, l2: float, seed: int = 1, weighted: bool = True, n: int = 5) -> partial[Small]:
    return partial(Small, kind, loss, l2=l2, seed=seed, weighted=weighted, plain=True, n=n)


def best_point(small: Small) -> tuple[list[np.ndarray], float]:
    """Distributions near the best ones, and a bound of the best dual value."""
    dense = small.dense
    sizes, omega = [len(e) for e in dense.examples], dense.sample_weight
    psi = np.concatenate([o * dense.psi(i) for i, o in enumerate(omega)])
    costs = np.concatenate([o * dense.label_costs(i) for i, o in enumerate(omega)])
    found = eg_qp(
        psi @ psi.T / dense.l2,
        -costs,
        sizes,
        temperature=dense.temperature * omega,
        step_size="search",
        tol=1e-9 if dense.temperature else 1e-6,
    )
    return np.split(found.alpha, np.cumsum(sizes)[:-1]), -found.lower_bound
