"""OWL-QN: Algorithm 1 of Andrew and Gao 2007 ("Scalable training of L1-regularized log-linear models")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .lbfgs_reference import two_loop

Floats = NDArray[np.float64]


def pseudo_gradient(x: Floats, gradient: Floats, C: float) -> Floats:
    """Equation (4): the left or the right partial derivative if moving to that side lowers f, else 0."""
    out = np.empty_like(x)
    for j in range(len(x)):
        left = gradient[j] + (C * np.sign(x[j]) if x[j] != 0 else -C)
        right = gradient[j] + (C * np.sign(x[j]) if x[j] != 0 else C)
        out[j] = left if left > 0 else (right if right < 0 else 0.0)
    return out


def project(x: Floats, y: Floats) -> Floats:
    """The projection pi(x; y): x_j where its sign equals that of y_j, else 0."""
    return np.where(np.sign(x) == np.sign(y), x, 0.0)


def owlqn(
    loss: Callable[[Floats], tuple[float, Floats]], dim: int, C: float, memory: int, n_steps: int
) -> tuple[list[Floats], int]:
    """Return the iterates from x = 0 on and the number of evaluations. loss: value and gradient of the smooth part."""
    x, pairs = np.zeros(dim), []
    value, gradient = loss(x)
    iterates, evaluations = [x], 1
    for _ in range(n_steps):
        v = -pseudo_gradient(x, gradient, C)
        p = project(two_loop(-v, pairs[-memory:]), v)
        xi = np.where(x != 0, np.sign(x), np.sign(v))
        alpha = 1.0 if pairs else 1.0 / np.linalg.norm(v)
        while True:
            new = project(x + alpha * p, xi)
            new_value, new_gradient = loss(new)
            evaluations += 1
            if new_value + C * np.abs(new).sum() <= value + C * np.abs(x).sum() - 1e-4 * v @ (new - x):
                break
            alpha *= 0.5
        pairs.append((new - x, new_gradient - gradient))
        x, value, gradient = new, new_value, new_gradient
        iterates.append(x)
    return iterates, evaluations
