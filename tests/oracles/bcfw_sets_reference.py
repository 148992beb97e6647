"""Block-coordinate Frank-Wolfe with working sets of labellings, over enumerated labellings.

Pairwise steps and gap sampling follow Osokin et al. 2016. Sweeps over cached planes follow Shah et al. 2015: they
continue while the dual rises faster per unit of work than it did on average. Work is counted instead of time, in
numbers of the feature rows of those slots in which labellings of a working set differ from gold.

x_i: the coefficients of example i's labellings. kept[i]: the labellings in its working set. found[i][y]: the last epoch
in which labelling y was the oracle's answer or had a coefficient. An exact step leaves two labellings with equal values
up to rounding; among equal values the first in the working set's order counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .objective import DenseProblem

Floats = NDArray[np.float64]
#: Work of the oracle per slot; work of adding a labelling, as a multiple of `size` of its example.
SLOT, NEW = 2, 4


@dataclass
class SetState:
    problem: DenseProblem
    xs: list[Floats]
    kept: list[list[int]]
    found: list[dict[int, int]]
    gaps: Floats
    average: Floats
    epoch: int = 0
    sweeps: int = 0
    work: int = 0

    def size(self, i: int) -> int:
        """Count the numbers in the rows of slots in which a kept labelling of example i differs from gold."""
        p = self.problem
        differs = (p.examples[i].counts[self.kept[i]] != p.gold[i]).any(axis=0)
        return int(np.count_nonzero(p.matrices[i][differs]))

    @property
    def weights(self) -> Floats:
        p = self.problem
        return (
            sum((o * x @ p.psi(i) for i, (o, x) in enumerate(zip(p.sample_weight, self.xs, strict=True))), 0.0) / p.l2
        )

    def dual(self) -> float:
        p, w = self.problem, self.weights
        value = -0.5 * p.l2 * float(w @ w)
        for i, (o, x) in enumerate(zip(p.sample_weight, self.xs, strict=True)):
            value += o * (float(x @ p.label_costs(i)) - (x.sum() ** 2 / 4 if p.link == "squared" else 0.0))
        return value

    def values(self, i: int) -> Floats:
        """Return v_y for all labellings y."""
        return self.problem.label_costs(i) - self.problem.psi(i) @ self.weights


def start(problem: DenseProblem) -> SetState:
    """Start from the gold labellings, or from empty sets under the squared link."""
    xs = [np.zeros(len(e)) for e in problem.examples]
    kept: list[list[int]] = [[] for _ in xs]
    if problem.link == "identity":
        kept = [
            [int(np.all(e.counts == g, axis=1).argmax())] for e, g in zip(problem.examples, problem.gold, strict=True)
        ]
        for x, (gold,) in zip(xs, kept, strict=True):
            x[gold] = 1.0
    found = [dict.fromkeys(own, 0) for own in kept]
    return SetState(problem, xs, kept, found, np.zeros(problem.n), np.zeros(problem.dim))


def _noise(values: Floats) -> float:
    return 1e-11 * max(1.0, float(abs(values).max()))


def _first_largest(among: Sequence[int], values: Floats, noise: float) -> int:
    largest = values[list(among)].max()
    return next(y for y in among if values[y] >= largest - noise)


def _pairwise(state: SetState, i: int, noise: float) -> bool:
    x, kept, v, psi = state.xs[i], state.kept[i], state.values(i), state.problem.psi(i)
    to = _first_largest(kept, v, noise)
    away = _first_largest([y for y in kept if x[y] > 0], -v, noise)
    slope = v[to] - v[away]
    if slope <= noise:
        return False
    curvature = state.problem.sample_weight[i] / state.problem.l2 * float(((psi[to] - psi[away]) ** 2).sum())
    gamma = min(slope / curvature, x[away]) if curvature > 0 else x[away]
    x[to], x[away] = x[to] + gamma, (0.0 if gamma == x[away] else x[away] - gamma)
    return True


def _towards(state: SetState, i: int, noise: float) -> bool:
    x, kept, v, psi = state.xs[i], state.kept[i], state.values(i), state.problem.psi(i)
    corner = np.zeros(len(x))
    corner[_first_largest(kept, v, noise)] = 1.0
    slope = float((corner - x) @ v)
    if slope <= noise:
        return False
    curvature = state.problem.sample_weight[i] / state.problem.l2 * float((((corner - x) @ psi) ** 2).sum())
    gamma = min(slope / curvature, 1.0) if curvature > 0 else 1.0
    x[:] = (1 - gamma) * x + gamma * corner
    return True


def _coordinate(state: SetState, i: int, noise: float) -> bool:
    x, v, psi = state.xs[i], state.values(i), state.problem.psi(i)
    best, step, most = -1, 0.0, 0.0
    for y in state.kept[i]:
        slope = v[y] - x.sum() / 2
        curvature = state.problem.sample_weight[i] / state.problem.l2 * float(psi[y] @ psi[y]) + 0.5
        d = max(slope / curvature, -x[y])
        gain = d * slope - d * d * curvature / 2
        if abs(slope) > noise and gain > most:
            best, step, most = y, d, gain
    if best < 0:
        return False
    x[best] = 0.0 if step == -x[best] else x[best] + step
    return True


def _search(state: SetState, i: int, violators: int) -> None:
    """Add the best labelling to the working set, and the next best ones whose values are above the block's level."""
    x, kept, v = state.xs[i], state.kept[i], state.values(i)
    level = x.sum() / 2 if state.problem.link == "squared" else float(x @ v)
    level += 1e-9 * max(1.0, abs(float(v.max())))  # in a solved block all values equal the level, up to rounding
    best = [int(y) for y in np.argsort(-v, kind="stable")[:violators]]
    state.work += SLOT * violators * len(state.problem.cost[i])
    for y in [best[0], *(y for y in best[1:] if v[y] > level)]:
        if y not in kept:
            kept.append(y)
            state.work += NEW * state.size(i)
        state.found[i][y] = state.epoch


def visits(state: SetState, order: Sequence[int], solver: Any, gaps: Floats, *, search: bool) -> float:
    """Visit examples and return the rise of D. Each example's gap before its step is stored in `gaps`."""
    before = state.dual()
    state.work = 0
    for i in order:
        x, kept, found, v = state.xs[i], state.kept[i], state.found[i], state.values(i)
        squared = state.problem.link == "squared"
        if search:
            _search(state, i, solver.violators)
        elif len(kept) < (1 if squared else 2):
            gaps[i] = 0.0
            continue
        else:
            state.work += state.size(i)
        worst = v.max() if search else v[kept].max()
        share = (max(worst, 0.0) ** 2 if squared else worst) - x @ v + (x.sum() ** 2 / 4 if squared else 0.0)
        gaps[i] = state.problem.sample_weight[i] * max(share, 0.0)
        step = _coordinate if squared else _pairwise if solver.pairwise else _towards
        noise = _noise(v[kept])
        for k in range(solver.steps):
            if not step(state, i, noise):
                break
            if k == 0:
                state.work += state.size(i)
        found.update({y: state.epoch for y in kept if x[y] > 0})
        state.kept[i] = [y for y in kept if x[y] > 0 or found[y] > state.epoch - solver.keep]
    return state.dual() - before


def gap_order(gaps: Floats, rng: np.random.Generator) -> list[int]:
    """Draw examples by systematic sampling: nine tenths of the probability in proportion to gaps, one tenth uniform."""
    n = len(gaps)
    chances = 0.9 * gaps / gaps.sum() + 0.1 / n
    first, order, reached, at = rng.random(), [], chances[0], 0
    for k in range(n):
        while reached <= (first + k) / n and at < n - 1:
            at += 1
            reached += chances[at]
        order.append(at)
    return [int(i) for i in rng.permutation(order)]


def epoch(state: SetState, solver: Any, rng: np.random.Generator) -> None:
    """Make a pass with the oracle, and the sweeps after it."""
    n = state.problem.n
    sampled = solver.gap_sampling and state.epoch % 10 > 0
    order = gap_order(state.gaps, rng) if sampled else rng.permutation(n)
    state.epoch += 1
    counted = solver.sweep_cost is None
    gain = visits(state, order, solver, state.gaps, search=True)
    cost = float(state.work) if counted else 1.0
    state.average = 0.8 * state.average + 0.2 * state.weights
    gaps = np.zeros(n)
    for k in range(solver.cached_sweeps):
        order = rng.permutation(n)
        if counted and k % 4 > 0:  # every fourth sweep visits all examples
            order = np.array([i for i in order if gaps[i] > 0.5 * gaps.mean()], dtype=np.int64)
        last = visits(state, order, solver, gaps, search=False)
        state.average = 0.8 * state.average + 0.2 * state.weights
        state.sweeps += 1
        own = float(state.work) if counted else solver.sweep_cost
        gain, cost = gain + last, cost + own
        if last * cost <= gain * own:
            break
