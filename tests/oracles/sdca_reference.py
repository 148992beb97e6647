"""Dual coordinate ascent whose blocks are maximised by SciPy's root finder, one label distribution at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import wrightomega

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
    """Visit the examples of `order`, each time with the block's maximum; labellings must be single slots."""
    us = [u.copy() for u in us]
    for i in order:
        matrix = problem.examples[i].counts @ problem.matrices[i]  # one row per labelling
        gram = matrix @ matrix.T
        assert np.allclose(gram, np.diag(np.diag(gram)))
        theta = matrix @ problem.weights(us)
        rho = problem.sample_weight[i] * np.diag(gram) / (problem.l2 * problem.temperature)
        us[i] = best_block((theta + problem.label_costs(i)) / problem.temperature, us[i], rho)
    return us
