"""Block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013, Algorithm 3) over enumerated labellings, for the hinge.

y = argmax <counts(y), theta_i + c_i>, d = counts(y) - mu_i, gamma = clip(gap_i / (omega_i^2 |A_i'd|^2 / l2), 0, 1),
mu_i += gamma d, average = k/(k + 2) average + 2/(k + 2) w.

For the squared hinge the mass is free: x_i = s_i p_i <- a x_i + b e_y with the best a, b >= 0 (`bcfw_squared`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .objective import DenseProblem

Floats = NDArray[np.float64]


@dataclass
class BcfwState:
    """Distributions over labellings, the weights, and weighted averages of both."""

    ps: list[Floats]
    weights: Floats
    average_weights: Floats
    average_ps: list[Floats]
    steps: int = 0
    gaps: list[float] = field(default_factory=list)


def start(problem: DenseProblem) -> BcfwState:
    """Put all mass on the gold labellings: w = 0 and D = 0."""
    ps = [np.all(e.counts == g, axis=1).astype(float) for e, g in zip(problem.examples, problem.gold, strict=True)]
    zero = np.zeros(problem.dim)
    return BcfwState(ps, zero, zero, [p.copy() for p in ps])


def bcfw(problem: DenseProblem, state: BcfwState, order: Sequence[int]) -> BcfwState:
    """Visit the examples in `order`; update the state in place."""
    for i in order:
        omega, p, psi = problem.sample_weight[i], state.ps[i], problem.psi(i)
        gains = problem.label_costs(i) - psi @ state.weights  # kappa cost + theta (counts - gold), for every labelling
        corner = np.zeros(len(p))
        corner[int(gains.argmax())] = 1.0
        direction = corner - p
        gap = omega * float(direction @ gains)
        curvature = omega**2 * float(((direction @ psi) ** 2).sum()) / problem.l2
        gamma = min(max(gap / curvature, 0.0), 1.0) if curvature > 0 else float(gap > 0)
        state.gaps.append(gap)
        state.ps[i] = p + gamma * direction
        state.weights = state.weights + gamma * omega / problem.l2 * (direction @ psi)
        keep = state.steps / (state.steps + 2.0)
        state.average_weights = keep * state.average_weights + (1.0 - keep) * state.weights
        state.average_ps = [keep * a + (1.0 - keep) * b for a, b in zip(state.average_ps, state.ps, strict=True)]
        state.steps += 1
    return state


def bcfw_squared(problem: DenseProblem, xs: Sequence[Floats], order: Sequence[int]) -> list[Floats]:
    """Visit the examples in `order` for the squared link; x_i = s_i p_i is the mass s_i times the distribution p_i."""
    xs = [np.array(x) for x in xs]
    for i in order:
        w = problem.weights(*_split(xs))
        corner = np.zeros(len(xs[i]))
        corner[int((problem.label_costs(i) - problem.psi(i) @ w).argmax())] = 1.0
        a, b = _best_pair(partial(_dual_along, problem, xs, i, corner))
        xs[i] = a * xs[i] + b * corner
    return xs


def _dual_along(problem: DenseProblem, xs: Sequence[Floats], i: int, corner: Floats, a: float, b: float) -> float:
    """D after example i's x_i is replaced by a x_i + b corner."""
    return problem.dual(*_split([*xs[:i], a * xs[i] + b * corner, *xs[i + 1 :]]))


def _split(xs: Sequence[Floats]) -> tuple[list[Floats], Floats]:
    """Split x = s p into (p, s); where s = 0, p is arbitrary."""
    mass = np.array([x.sum() for x in xs])
    return [x / s if s > 0 else np.full(len(x), 1.0 / len(x)) for x, s in zip(xs, mass, strict=True)], mass


def _best_pair(dual: Callable[[float, float], float]) -> tuple[float, float]:
    """argmax over a, b >= 0 of a concave quadratic given by its values: the free maximum, or the best on an edge."""
    points = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (2.0, 0.0), (0.0, 2.0), (1.0, 1.0)]
    design = [[1.0, a, b, a * a, b * b, a * b] for a, b in points]
    _, fa, fb, faa, fbb, fab = np.linalg.solve(np.array(design), np.array([dual(a, b) for a, b in points]))
    hessian = np.array([[2 * faa, fab], [fab, 2 * fbb]])
    candidates = [(max(0.0, -fa / (2 * faa)) if faa < -1e-14 else 1.0, 0.0), (0.0, max(0.0, -fb / (2 * fbb)))]
    if np.linalg.det(hessian) > 1e-10 * faa * fbb:
        free = np.linalg.solve(hessian, [-fa, -fb])
        if free.min() >= 0:
            candidates.append((float(free[0]), float(free[1])))
    return max(candidates, key=lambda z: dual(*z))
