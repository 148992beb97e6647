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
from smallproblems import Small

from partwise.methods import eg_qp

EXACT = 1e-9  # rounding; every inequality here holds in exact arithmetic


class Broken(AssertionError):
    """An inequality that a theorem promises does not hold."""


def at_most(left: float, right: float, what: str) -> None:
    if not left <= right + EXACT * (1.0 + abs(right)):
        raise Broken(f"{what}: {left} > {right}")


def contracts(distances: list[float], most: float, what: str) -> None:
    """Distances from the optimum fall by a factor of at most `most` per step, on average from the first to the last."""
    floor = 1e-11 * (1.0 + distances[0])
    kept = [d for d in distances if d > floor]
    steps = len(kept) - 1 if len(kept) == len(distances) else len(kept)
    mean = (max(distances[steps], floor) / distances[0]) ** (1.0 / steps)
    at_most(mean, most, what)
    for before, after in zip(kept[:-1], kept[1:], strict=True):
        at_most(after, before, what)


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
