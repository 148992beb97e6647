"""Algorithms 1 and 2 of Zhang et al. 2011, "Accelerated Training of Max-Margin Markov Networks with Kernels", on
enumerated problems.

The paper's alpha^i sums to 1/n. Here example i's alpha sums to omega_i and lambda is l2, so mu_1 = (sum omega) max
|psi|^2 / l2. Algorithm 1 keeps a distribution over all labellings, Algorithm 2 expected counts; both follow the paper's
listings line by line.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .enumerate import log_sum_exp, softmax
from .objective import DenseProblem

Floats = NDArray[np.float64]


def smoothed(problem: DenseProblem, w: Floats, mu: float) -> float:
    """The smoothed objective J_mu(w), equation 8 with (29) of Zhang et al. 2011."""
    total = 0.5 * problem.l2 * float(w @ w)
    for i, omega in enumerate(problem.sample_weight):
        logs = (problem.label_costs(i) - problem.psi(i) @ w) / mu
        total += omega * mu * (log_sum_exp(logs) - np.log(len(logs)))
    return total


def spread(problem: DenseProblem) -> float:
    """The largest value of the prox-function: sum of omega log |Y|."""
    return float(sum(o * np.log(len(e)) for o, e in zip(problem.sample_weight, problem.examples, strict=True)))


def first_mu(problem: DenseProblem, psi2: float | None = None) -> float:
    """L / sigma: the largest |psi|^2 (or the given bound `psi2`) over l2, times the sum of weights."""
    largest = problem.a_max() if psi2 is None else psi2 / problem.l2
    return float(np.sum(problem.sample_weight)) * largest


def algorithm_1(problem: DenseProblem, psi2: float | None = None) -> Iterator[tuple[Floats, list[Floats], float]]:
    """Yield (w_k, alpha_k as one distribution per example, mu_k)."""
    n = range(problem.n)

    def gradient(alpha: list[Floats], i: int) -> Floats:  # (37)
        return problem.label_costs(i) - problem.psi(i) @ problem.weights(alpha)

    def project(alpha: list[Floats], directions: list[Floats]) -> list[Floats]:  # (39)
        with np.errstate(divide="ignore"):  # probabilities that underflow stay 0
            return [softmax(np.log(a) - d) for a, d in zip(alpha, directions, strict=True)]

    uniform = [np.full(len(e), 1.0 / len(e)) for e in problem.examples]
    mu = first_mu(problem, psi2)
    w = problem.weights(uniform)
    alpha = project(uniform, [-gradient(uniform, i) / mu for i in n])
    k = 1
    while True:
        yield w, alpha, mu
        tau = 2.0 / (k + 3)
        answer = [softmax((problem.label_costs(i) - problem.psi(i) @ w) / mu) for i in n]  # (38)
        hat = [(1 - tau) * a + tau * b for a, b in zip(alpha, answer, strict=True)]
        w = (1 - tau) * w + tau * problem.weights(hat)
        tilde = project(answer, [-tau / ((1 - tau) * mu) * gradient(hat, i) for i in n])
        alpha = [(1 - tau) * a + tau * b for a, b in zip(alpha, tilde, strict=True)]
        mu = (1 - tau) * mu
        k += 1


def algorithm_2(problem: DenseProblem, psi2: float | None = None) -> Iterator[tuple[Floats, list[Floats], float]]:
    """Yield (w_k, marginals of alpha_k as expected counts per example, mu_k)."""
    n = range(problem.n)

    def feature_mean(marginals: list[Floats]) -> Floats:  # (35), summed over examples
        pairs = [problem.matrices[i].T @ (problem.gold[i] - marginals[i]) for i in n]
        return sum((o * v for o, v in zip(problem.sample_weight, pairs, strict=True)), np.zeros(problem.dim))

    def marginals_of(i: int, potentials: Floats) -> Floats:  # of the distribution with these potentials of parts, (33)
        example = problem.examples[i]
        return softmax(example.counts @ potentials) @ example.counts

    cost = [problem.cost_scale * c for c in problem.cost]
    mu = first_mu(problem, psi2)
    start = [marginals_of(i, np.zeros(e.counts.shape[1])) for i, e in enumerate(problem.examples)]
    mean = feature_mean(start)
    w = mean / problem.l2
    # equation (40) from alpha_0, whose potentials are 0, with eta = -1 / mu
    alpha = [marginals_of(i, (cost[i] + problem.matrices[i] @ mean / problem.l2) / mu) for i in n]
    k = 1
    while True:
        yield w, alpha, mu
        tau = 2.0 / (k + 3)
        answer = [marginals_of(i, (cost[i] + problem.matrices[i] @ w) / mu) for i in n]
        hat = [(1 - tau) * a + tau * b for a, b in zip(alpha, answer, strict=True)]
        mean = feature_mean(hat)
        eta = -tau / ((1 - tau) * mu)
        tilde = []
        for i in n:
            old = (cost[i] + problem.matrices[i] @ w) / mu
            tilde.append(marginals_of(i, old - eta * cost[i] - eta / problem.l2 * (problem.matrices[i] @ mean)))  # (40)
        w = (1 - tau) * w + tau / problem.l2 * mean
        alpha = [(1 - tau) * a + tau * b for a, b in zip(alpha, tilde, strict=True)]
        mu = (1 - tau) * mu
        k += 1
