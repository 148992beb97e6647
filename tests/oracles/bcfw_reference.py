"""Block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013, Algorithm 3) over enumerated labellings, for the hinge.

y = argmax <counts(y), theta_i + c_i>, d = counts(y) - mu_i, gamma = clip(gap_i / (omega_i^2 |A_i'd|^2 / l2), 0, 1),
mu_i += gamma d, average = k/(k + 2) average + 2/(k + 2) w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .objective import DenseProblem

Floats = NDArray[np.float64]


@dataclass
class BcfwState:
    """Distributions over labellings, weights, and the weighted average of both."""

    ps: list[Floats]
    weights: Floats
    average_weights: Floats
    average_ps: list[Floats]
    steps: int = 0
    gaps: list[float] = field(default_factory=list)


def start(problem: DenseProblem) -> BcfwState:
    """All mass on the gold labellings: w = 0 and D = 0."""
    ps = [np.all(e.counts == g, axis=1).astype(float) for e, g in zip(problem.examples, problem.gold, strict=True)]
    zero = np.zeros(problem.dim)
    return BcfwState(ps, zero, zero, [p.copy() for p in ps])


def bcfw(problem: DenseProblem, state: BcfwState, order: Sequence[int]) -> BcfwState:
    """Run over the examples in `order`, in place."""
    for i in order:
        omega, p, psi = problem.sample_weight[i], state.ps[i], problem.psi(i)
        gains = problem.label_costs(i) - psi @ state.weights  # kappa cost + theta (counts - gold) of every labelling
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
