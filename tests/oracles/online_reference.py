"""Online methods over enumerated labellings: averaged perceptron, MIRA with hard constraints, SGD.

SGD is that of Collins et al. 2008 and of Chang and Yih 2013. Each method yields the weights after every visit; callers
that test averages take them naively.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .objective import DenseProblem

Floats = NDArray[np.float64]


def perceptron(problem: DenseProblem, w: Floats, order: Iterable[int]) -> Iterator[Floats]:
    """The perceptron of Collins 2002, Figure 1, with sample weights."""
    for i in order:
        y = int(np.argmax(problem.examples[i].counts @ (problem.matrices[i] @ w)))
        w = w + problem.sample_weight[i] * problem.psi(i)[y]
        yield w


def smallest_step(psi: Floats, need: Floats) -> Floats | None:
    """The shortest d with psi d >= need, by trying every set of tight constraints; None if no d satisfies them."""
    best = None
    for size in range(len(need) + 1):
        for tight in map(list, combinations(range(len(need)), size)):
            d = np.linalg.pinv(psi[tight]) @ need[tight] if tight else np.zeros(psi.shape[1])
            met = (psi @ d >= need - 1e-9 * (1 + np.abs(need))).all()
            if met and (best is None or d @ d < best @ best):
                best = d
    return best


def mira(problem: DenseProblem, w: Floats, order: Iterable[int], k: int) -> Iterator[Floats]:
    """MIRA as in Chang and Yih 2013, section 2.1."""
    for i in order:
        scores = problem.examples[i].counts @ (problem.matrices[i] @ w)
        best = np.argsort(-scores, kind="stable")[:k]
        best = best[(problem.psi(i)[best] != 0).any(axis=1)]  # no weights distinguish the other labellings from gold
        psi, costs = problem.psi(i)[best], problem.label_costs(i)[best]
        step = smallest_step(psi, costs - psi @ w)
        assert step is not None
        w = w + step
        yield w


def reciprocal(eta0: float, n: int, l2: float) -> Callable[[int], float]:
    """The step eta0 / (1 + k / n), as in Collins et al. 2008, section 7.1.3."""
    return lambda k: eta0 / (1 + k / n)


def power(eta0: float, n: int, l2: float) -> Callable[[int], float]:
    """Chang and Yih 2013, section 4.3; C = 1 / l2."""
    return lambda k: eta0 / (1 + eta0 * k * l2) ** 0.75


def bottou(eta0: float, n: int, l2: float) -> Callable[[int], float]:
    """The step of Bottou's SGD program, with lambda = l2 / n."""
    return lambda k: eta0 / (1 + eta0 * k * l2 / n) ** 0.75


def sgd(
    problem: DenseProblem, w: Floats, order: Iterable[int], eta: Callable[[int], float], n: int
) -> Iterator[Floats]:
    """Collins et al. 2008, section 7.1.3, with C = l2."""
    for k, i in enumerate(order):
        _, _, p = problem.oracle(i, w)
        gradient = -problem.sample_weight[i] * (p @ problem.psi(i)) + problem.l2 / n * w
        w = w - eta(k) * gradient
        yield w


def sgd_plane(problem: DenseProblem, iterates: list[Floats], order: list[int]) -> tuple[Floats, float]:
    """The plane (u, b) of the oracle's answers at all visits (temperature 0). iterates[k]: weights before visit k."""
    u, b = np.zeros(problem.dim), 0.0
    for w, i in zip(iterates, order, strict=True):
        _, _, p = problem.oracle(i, w)
        u += problem.sample_weight[i] * (p @ problem.psi(i))
        b += problem.sample_weight[i] * float(p @ problem.label_costs(i))
    return u, b
