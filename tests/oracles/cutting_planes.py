"""Cutting planes over enumerated labellings: one slack (Joachims et al. 2009, Algorithm 3), BMRM (Teo et al. 2010,
Algorithm 2) and n slacks (Tsochantaridis et al. 2005, Algorithm 1). The inner problem tries every set of planes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .objective import DenseProblem

Floats = NDArray[np.float64]


def best_mixture(slopes: Floats, offsets: Floats, l2: float) -> Floats:
    """argmax over the simplex of <b, x> - |U'x|^2 / (2 l2): the best feasible stationary point of a support."""
    m = len(offsets)
    quadratic = slopes @ slopes.T / l2
    size = max(np.abs(quadratic).max(), np.abs(offsets).max())
    quadratic, offsets = quadratic / size, offsets / size
    best, found = -np.inf, np.zeros(m)
    for used in chain.from_iterable(combinations(range(m), k) for k in range(1, m + 1)):
        some = list(used)
        k = len(some)
        system = np.block([[quadratic[np.ix_(some, some)], np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
        x = np.zeros(m)
        x[some] = np.linalg.lstsq(system, np.append(offsets[some], 1.0), rcond=None)[0][:k]
        value = float(offsets @ x - 0.5 * x @ quadratic @ x)
        if x.min() >= -1e-12 and abs(x.sum() - 1) < 1e-9 and value > best + 1e-12:
            best, found = value, x
    return found


def plane(problem: DenseProblem, w: Floats) -> tuple[Floats, float]:
    """Return the plane (u, b) that touches the losses at w."""
    ps, mass = problem.best_response(w)
    return problem.direction(ps, mass), problem.linear_part(ps, mass)


@dataclass
class Step:
    """A step: the weights where the oracle was asked, the model's minimum before, best weights and primal value."""

    asked: Floats
    model: float
    weights: Floats
    primal: float


def bundle_method(problem: DenseProblem, zero_plane: bool, mix: float = 1.0) -> Iterator[Step]:
    """One slack, which begins with the planes of gold and of w = 0, or BMRM, which begins with the second alone.

    zero_plane: whether to use the plane of gold. mix: how far to go from the best weights to the model's minimum.
    """
    weights = np.zeros(problem.dim)
    primal = problem.primal(weights)
    planes = [(np.zeros(problem.dim), 0.0)] if zero_plane else []
    planes.append(plane(problem, weights))
    while True:
        slopes, offsets = np.array([u for u, _ in planes]), np.array([b for _, b in planes])
        x = best_mixture(slopes, offsets, problem.l2)
        minimum = x @ slopes / problem.l2
        model = 0.5 * problem.l2 * float(minimum @ minimum) + float((offsets - slopes @ minimum).max())
        asked = (1 - mix) * weights + mix * minimum
        planes.append(plane(problem, asked))
        if problem.primal(asked) < primal:
            weights, primal = asked, problem.primal(asked)
        yield Step(asked, model, weights, primal)


@dataclass
class NSlack:
    """Weights, working sets (labellings of each example), and the largest violation in the pass that led there."""

    weights: Floats
    sets: list[list[int]]
    violation: float


def n_slack(problem: DenseProblem, epsilon: float) -> Iterator[NSlack]:
    """n slacks from the gold labellings; the problem of the working sets is solved after each pass over the data."""
    sets = [
        [int(np.flatnonzero(np.all(e.counts == g, axis=1))[0])]
        for e, g in zip(problem.examples, problem.gold, strict=True)
    ]
    w = np.zeros(problem.dim)
    while True:
        largest = 0.0
        for i, known in enumerate(sets):
            if problem.sample_weight[i] == 0:
                continue
            values = problem.label_costs(i) - problem.psi(i) @ w
            worst = int(values.argmax())
            violation = float(values[worst] - values[known].max())
            largest = max(largest, violation)
            if violation > epsilon:
                known.append(worst)
        w = _weights_of_sets(problem, sets)
        yield NSlack(w, [list(known) for known in sets], largest)


def _weights_of_sets(problem: DenseProblem, sets: list[list[int]]) -> Floats:
    """Return the weights of the best mixtures of these labellings, by a general optimiser for all coefficients."""
    omega = problem.sample_weight
    rows = np.concatenate([omega[i] * problem.psi(i)[known] for i, known in enumerate(sets)])
    costs = np.concatenate([omega[i] * problem.label_costs(i)[known] for i, known in enumerate(sets)])
    owner = np.repeat(np.arange(len(sets)), [len(known) for known in sets])
    blocks = (owner == np.arange(len(sets))[:, None]).astype(float)

    def negative_dual(x: Floats) -> tuple[float, Floats]:
        u = x @ rows
        return float(u @ u) / (2 * problem.l2) - float(costs @ x), rows @ u / problem.l2 - costs

    start = 1.0 / np.array([len(sets[i]) for i in owner])
    constraint = {"type": "eq", "fun": lambda x: blocks @ x - 1.0, "jac": lambda _: blocks}
    found = minimize(
        negative_dual,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(start),
        constraints=[constraint],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    weights: Floats = found.x @ rows / problem.l2
    return weights
