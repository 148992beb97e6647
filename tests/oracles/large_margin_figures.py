"""Figures 2, 3 and 5 of Bartlett et al. 2004, "Large margin methods for structured classification", and Theorem 1.

The paper minimises 1/2 |w|^2 + C sum_i loss_i, so its C is 1 / l2 here. Its step, `eta` below, is the step of Collins
et al. 2008 divided by C. The figures are for the hinge with sample weights 1; functions for other temperatures say so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .objective import DenseProblem

Floats = NDArray[np.float64]


def quadratic(A: Floats, b: Floats, alpha: Floats) -> float:
    """The objective of the quadratic program, Q(alpha) = b'alpha + alpha'A alpha / 2."""
    return float(b @ alpha + 0.5 * alpha @ A @ alpha)


def figure_2(A: Floats, b: Floats, sizes: Sequence[int], first: Floats, eta: float, n_steps: int) -> list[Floats]:
    """EG for a quadratic program over a product of simplices. Return every iterate, including the start."""
    ends = np.cumsum([0, *sizes])
    iterates = [np.array(first, dtype=float)]
    for _ in range(n_steps):
        s = b + A @ iterates[-1]
        new = iterates[-1].copy()
        for j, k in zip(ends[:-1], ends[1:], strict=True):
            new[j:k] *= np.exp(-eta * (s[j:k] - s[j:k].min()))  # adding a constant in a block changes nothing
            new[j:k] /= new[j:k].sum()
        iterates.append(new)
    return iterates


def divergence(u: Floats, v: Floats) -> float:
    """Sum over blocks of the KL divergence."""
    some = u > 0
    return float((u[some] * np.log(u[some] / v[some])).sum())


def theorem_1(eta: float, B: float, largest_eigenvalue: float, T: int) -> tuple[float, float]:
    """Factors f, g: mean of Q(alpha^1), ..., Q(alpha^T) <= Q(u) + f D(u, alpha^1) + g (Q(alpha^1) -
    Q(alpha^(T+1)))."""
    e = np.exp(eta * B)
    factor = (e - 1 - eta * B) / (eta**2 * B**2 * (1 - eta * (B + largest_eigenvalue) * e))
    return 1 / (eta * T), factor / T


def gradient_range(A: Floats, b: Floats, sizes: Sequence[int], within_blocks: bool = False) -> float:
    """B = max over the feasible set of (largest - smallest component of the gradient), found by trying all pairs.

    within_blocks: compare only components of the same block; the proof of Theorem 1 needs no more.
    """
    ends = np.cumsum([0, *sizes])
    block = np.repeat(np.arange(len(sizes)), sizes)
    largest = 0.0
    for p in range(len(b)):
        for q in range(len(b)):
            if within_blocks and block[p] != block[q]:
                continue
            rise = A[p] - A[q]
            reach = sum(rise[j:k].max() for j, k in zip(ends[:-1], ends[1:], strict=True))
            largest = max(largest, b[p] - b[q] + reach)
    return largest


def figure_3(problem: DenseProblem, scores: Sequence[Floats], eta: float, n_steps: int) -> list[list[Floats]]:
    """EG on part scores theta_{i,r}. Return every iterate, including the start."""
    C = 1.0 / problem.l2
    iterates = [[np.array(x) for x in scores]]
    for _ in range(n_steps):
        mu = [e.probabilities(s) @ e.counts for e, s in zip(problem.examples, iterates[-1], strict=True)]
        features = _summed(problem, mu)
        iterates.append(
            [
                theta + eta * C * (cost + C * matrix @ features)
                for theta, cost, matrix in zip(iterates[-1], problem.cost, problem.matrices, strict=True)
            ]
        )
    return iterates


def figure_5(problem: DenseProblem, eta: float, n_steps: int, as_printed: bool = False) -> list[Floats]:
    """The primal form: z^1 = 0, z^2, ... As printed, each example overwrites what the examples before it added."""
    C = 1.0 / problem.l2
    zs = [np.zeros(problem.dim)]
    for t in range(n_steps):
        z, following = zs[-1], zs[-1].copy()
        for i, example in enumerate(problem.examples):
            theta = eta * C * t * problem.cost[i] + eta * C**2 * problem.matrices[i] @ z
            mu = example.probabilities(theta) @ example.counts
            change = problem.matrices[i].T @ (problem.gold[i] - mu)
            following = z + change if as_printed else following + change
        zs.append(following)
    return zs


def figure_5_weights(problem: DenseProblem, eta: float, zs: Sequence[Floats]) -> list[Floats]:
    """The weights of each round except the last: w = C (z^(t+1) - z^t)."""
    return [(b - a) / problem.l2 for a, b in zip(zs[:-1], zs[1:], strict=True)]


def log_loss_twin(problem: DenseProblem, step: float, n_steps: int) -> list[Floats]:
    """The primal form for the log loss: part scores A_i z, z <- (1 - step) z + step w.

    Here `step` is the step of Collins et al. 2008.
    """
    zs = [np.zeros(problem.dim)]
    for _ in range(n_steps):
        mu = [
            e.probabilities(matrix @ zs[-1]) @ e.counts
            for e, matrix in zip(problem.examples, problem.matrices, strict=True)
        ]
        w = _summed(problem, mu) / problem.l2
        zs.append((1.0 - step) * zs[-1] + step * w)
    return zs


def _summed(problem: DenseProblem, mu: Sequence[Floats]) -> Floats:
    """The sum of omega_i A_i'(g_i - mu_i)."""
    parts = zip(problem.sample_weight, problem.matrices, problem.gold, mu, strict=True)
    return sum((o * matrix.T @ (g - m) for o, matrix, g, m in parts), np.zeros(problem.dim))
