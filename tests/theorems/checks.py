"""What the checks of theorems share. A check runs a solver and tests the inequality that a paper proves.

Each check takes a `factor` by which the solver's steps are multiplied: 1 is the library's own run, 0 a run that stands
still, another number a run with wrong steps. A check raises `Broken` only if the inequality does not hold. It tells
something about the solver only if it passes at 1 and raises `Broken` at 0 and at wrong factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from helpers.small_problems import Small
from partwise.methods import eg_qp

EXACT = 1e-9  # allowance for rounding: every inequality here holds in exact arithmetic
STEADY = 0.75  # how steady a linear rate must be: see `contracts`


class Broken(AssertionError):
    """An inequality that a theorem promises does not hold."""


def at_most(left: float, right: float, what: str) -> None:
    if not left <= right + EXACT * (1.0 + abs(right)):
        raise Broken(f"{what}: {left} > {right}")


def contracts(distances: list[float], most: float, what: str) -> None:
    """Check a linear rate: distances never rise, and fall by a factor of at most `most` per step, to the end.

    At a linear rate the last third of a run lowers the logarithm of the distance as much as the middle third does. If
    the distance falls only like a power of the number of steps, the last third brings log(3/2) / log(2) = 0.58 of the
    middle third, whatever the power. `STEADY` lies between 0.58 and 1.
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
    """Check that the passes grow from one goal to the next by no more than the factor by which `order` grows."""
    for k in range(1, len(passes)):
        at_most(passes[k] - 1, passes[k - 1] * order(goals[k]) / order(goals[k - 1]), f"{what}, goal {goals[k]:.2g}")


@dataclass(frozen=True)
class Theorem:
    """A check, which takes the factor of the steps, and wrong factors at which it must raise `Broken`."""

    check: Callable[[float], None]
    wrong: tuple[float, ...]


#: What `theorems` of each module here yields: names and theorems.
Named = Iterator[tuple[str, Theorem]]


def of(check: Callable[..., None], *args: Any) -> Callable[[float], None]:
    """Bind a check's arguments. An argument that is a partial function is called when the check runs."""
    return lambda factor: check(*(arg() if isinstance(arg, partial) else arg for arg in args), factor)


def a_small(kind: str, loss: str, l2: float, seed: int = 1, weighted: bool = True, n: int = 5) -> partial[Small]:
    return partial(Small, kind, loss, l2=l2, seed=seed, weighted=weighted, plain=True, n=n)


def best_point(small: Small) -> tuple[list[np.ndarray], float]:
    """Return distributions near a dual optimum, and an upper bound of the dual values."""
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
