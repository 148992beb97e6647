"""Extragradient with entropic projections (Taskar et al. 2006) and a fixed step, over enumerated labellings.

The problem is: min over w, max over distributions p of l2/2 |w|^2 + sum_i omega_i p_i'(costs_i - psi_i w).
The prox-function is prox/2 |w|^2 + sum_i omega_i KL(p_i || uniform).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .enumerate import softmax
from .objective import DenseProblem

Floats = NDArray[np.float64]


def extragradient(problem: DenseProblem, eta: float, prox: float) -> Iterator[tuple[Floats, Floats, list[Floats]]]:
    """Yield after each step: w, and the averages over the look-ahead points of w and of the distributions."""
    n = range(problem.n)

    def moved(w: Floats, p: list[Floats], at_w: Floats, at_p: list[Floats]) -> tuple[Floats, list[Floats]]:
        """Project (w, p) along the operator, which is evaluated at another point."""
        gradient = problem.l2 * at_w - problem.direction(at_p)
        gains = [problem.label_costs(i) - problem.psi(i) @ at_w for i in n]
        return w - eta / prox * gradient, [softmax(np.log(p[i]) + eta * gains[i]) for i in n]

    w, p = np.zeros(problem.dim), [np.full(len(e), 1.0 / len(e)) for e in problem.examples]
    sum_w, sum_p, k = np.zeros(problem.dim), [np.zeros(len(e)) for e in problem.examples], 0
    while True:
        ahead = moved(w, p, w, p)
        w, p = moved(w, p, *ahead)
        k += 1
        sum_w, sum_p = sum_w + ahead[0], [s + q for s, q in zip(sum_p, ahead[1], strict=True)]
        yield w, sum_w / k, [s / k for s in sum_p]
