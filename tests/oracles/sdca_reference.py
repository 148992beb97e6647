"""Dual coordinate ascent with SciPy's solvers, for exact blocks (one label distribution at a time) and for lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import wrightomega

from .enumerate import Enumeration
from .objective import DenseProblem

Floats = NDArray[np.float64]


def best_block(t: Floats, p: Floats, rho: Floats) -> Floats:
    """argmax over distributions q of <t, q> + H(q) - 1/2 sum_a rho_a (q_a - p_a)^2.

    log q + rho q = t + rho p - nu; with x = rho q this is x + log x = t + rho p - nu + log rho, Wright's omega.
    """
    target = t + rho * p

    def q_of(nu: float) -> Floats:
        some = rho > 0
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(
                some,
                wrightomega(target - nu + np.log(np.where(some, rho, 1.0))) / np.where(some, rho, 1.0),
                np.exp(np.minimum(target - nu, 700.0)),
            )

    low = float((target - rho).min()) - 1.0
    high = float(target.max()) + np.log(len(t)) + 1.0
    return q_of(brentq(lambda nu: q_of(nu).sum() - 1.0, low, high, xtol=1e-14, rtol=1e-15))


def exact_blocks(problem: DenseProblem, us: Sequence[Floats], order: Sequence[int]) -> list[Floats]:
    """Visit the examples of `order` and maximise over each block. Labellings must be single slots."""
    us = [u.copy() for u in us]
    for i in order:
        matrix = problem.examples[i].counts @ problem.matrices[i]  # has one row per labelling
        gram = matrix @ matrix.T
        assert np.allclose(gram, np.diag(np.diag(gram)))
        theta = matrix @ problem.weights(us)
        rho = problem.sample_weight[i] * np.diag(gram) / (problem.l2 * problem.temperature)
        us[i] = best_block((theta + problem.label_costs(i)) / problem.temperature, us[i], rho)
    return us


class Lines:
    """Le Priol et al. 2018, Algorithm 2, on chains whose labellings are enumerated.

    An example's state is a vector m of edge marginals. It stands for the distribution of largest entropy with these
    marginals, p(y) = prod_t m_t(y_t, y_{t+1}) / prod_{inner t} m_t(y_t).
    """

    def __init__(self, problem: DenseProblem, marginals: Sequence[Floats]) -> None:
        self.problem = problem
        self.marginals = [m.copy() for m in marginals]
        self.steps: list[float] = []
        self.gaps: list[float] = []

    @staticmethod
    def marginals_of(example: Enumeration, p: Floats) -> Floats:
        out = np.zeros(int(example.clique_offsets[-1]))
        for column in example.cliques.T:
            np.add.at(out, column, p)
        return out

    @staticmethod
    def distribution(example: Enumeration, m: Floats) -> Floats:
        """Return p(y) of every labelling."""
        labels, edges = example.labellings, example.cliques
        p = m[edges[:, 0]]
        for t in range(1, edges.shape[1]):
            block = m[example.clique_offsets[t - 1] : example.clique_offsets[t]]
            width = len(block) // (int(labels.max()) + 1)  # the rows of an edge's block are the labels at t - 1
            at = block.reshape(-1, width).sum(axis=0)[labels[:, t]]
            p = np.where(at > 0, p * m[edges[:, t]] / np.where(at > 0, at, 1.0), 0.0)
        return p

    def weights(self) -> Floats:
        return self.problem.weights([self.distribution(e, m) for e, m in self._pairs()])

    def dual(self) -> float:
        return self.problem.dual([self.distribution(e, m) for e, m in self._pairs()])

    def _pairs(self) -> list[tuple[Enumeration, Floats]]:
        return list(zip(self.problem.examples, self.marginals, strict=True))

    def visit(self, i: int) -> None:
        """Step towards q, the marginals of p_w: m_i <- m_i + g (q - m_i), where g maximises the dual on that line."""
        problem, example = self.problem, self.problem.examples[i]
        p_w = problem.oracle(i, self.weights())[2]
        m, d = self.marginals[i], self.marginals_of(example, p_w) - self.marginals[i]
        before = self.dual()

        def fall(g: float) -> float:
            self.marginals[i] = m + g * d
            return before - self.dual()

        found = minimize_scalar(fall, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
        self.marginals[i] = m + found.x * d
        self.steps.append(float(found.x))
        mine = self.distribution(example, m)
        used = (mine > 0) & (p_w > 0)  # at large scores p_w underflows where p does not
        divergence = float(mine[used] @ np.log(mine[used] / p_w[used])) if (p_w > 0).all() else np.nan
        self.gaps.append(float(problem.sample_weight[i]) * problem.temperature * divergence)
