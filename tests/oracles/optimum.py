"""Two bounds of the minimum of an enumerated objective, in extended precision and without the library.

    P(w) = sum_j [q_j / 2 w_j^2 + l1_j |w_j|] + sum_i omega_i phi(t_i),    t_i = smax_tau over y of c_y - <psi_y, w>

Temperature 0 (without an l1 term): a primal-dual interior-point method. Every labelling has a multiplier lambda_y > 0
(a part of omega_i s_i) and a slack z_y = xi_i - c_y + <psi_y, w>, and all products lambda_y z_y go to zero together.

Temperature above 0: Newton's method, damped. l1 |w_j| is smoothed to min over s of l1 s - mu log(s^2 - w_j^2), and mu
goes to zero.

Both bounds are computed from the final weights and distributions alone, so that they hold even if a method fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.problem.penalties import Penalty

from .objective import DenseProblem

LONG = np.longdouble
Long = NDArray[np.longdouble]
#: Whether long double is so much more precise than double that the bounds can judge the library's results.
EXTENDED = bool(np.finfo(LONG).eps < 1e-3 * np.finfo(np.float64).eps)
#: Maximum numbers of interior-point steps and of Newton steps.
STEPS, NEWTON_STEPS = 100, 100
#: The share of the way to the boundary that an interior-point step goes, and the relative gap at which to stop.
SHARE, ENOUGH = LONG(0.995), LONG(1e-18)
#: Values of the smoothing parameter mu of an l1 term.
SMOOTHINGS = [LONG(10) ** -k for k in range(3, 31, 2)]
#: Temperatures to try, as multiples of the problem's temperature.
HEATS = (1, 1e4, 1e3, 1e2, 1e1, 3, 1)
TINY = np.finfo(LONG).tiny * 1e30


@dataclass(frozen=True)
class Enumerated:
    """All labellings, concatenated: costs (N,), differences psi (N, d), where each example starts, sample weights.

    quadratic: q_j. l1: a number for each weight. box: bound at some minimum of the absolute values of weights that have
    neither penalty, 0 if unknown; such weights are intercepts, one for each label.
    """

    cost: Long
    psi: Long
    starts: NDArray[np.intp]
    omega: Long
    temperature: float
    squared: bool
    quadratic: Long
    l1: Long
    box: LONG

    @classmethod
    def of(cls, dense: DenseProblem, slack: bool = False) -> Enumerated:
        """Convert a problem. slack: slack rescaling, where costs multiply the margin violation."""
        psi, cost = [], []
        for example, matrix, gold, own in zip(dense.examples, dense.matrices, dense.gold, dense.cost, strict=True):
            cost.append(LONG(dense.cost_scale) * (example.counts.astype(LONG) @ own.astype(LONG)))
            psi.append((gold - example.counts).astype(LONG) @ matrix.astype(LONG))
        if slack:
            psi = [c[:, None] * each for c, each in zip(cost, psi, strict=True)]
        return cls(
            np.concatenate(cost),
            np.concatenate(psi),
            np.concatenate([[0], np.cumsum([len(each) for each in cost])[:-1]]).astype(np.intp),
            dense.sample_weight.astype(LONG),
            dense.temperature,
            dense.link == "squared",
            np.full(dense.dim, LONG(dense.l2)),
            np.zeros(dense.dim, dtype=LONG),
            LONG(0),
        )

    def under(self, penalty: Penalty) -> Enumerated:
        """The same losses under another penalty. The bound on free weights is four times the library's."""
        quadratic, l1 = (np.full(len(self.quadratic), LONG(each)) for each in (penalty.strength, penalty.l1))
        if penalty.free is None:
            return replace(self, quadratic=quadratic, l1=l1)
        quadratic[penalty.free.start : penalty.free.stop] = l1[penalty.free.start : penalty.free.stop] = 0
        box = LONG(4 * penalty.free.bound(penalty.l1, penalty.strength))
        return replace(self, quadratic=quadratic, l1=l1, box=box)

    @property
    def owner(self) -> NDArray[np.intp]:
        return np.repeat(np.arange(len(self.starts)), np.diff([*self.starts, len(self.cost)]))

    def margins(self, w: Any) -> tuple[Long, Long]:
        """t of every example, and distributions that attain t."""
        values = self.cost - self.psi @ np.asarray(w, dtype=LONG)
        best = np.maximum.reduceat(values, self.starts)
        below = values - best[self.owner]
        if self.temperature == 0:
            hits = (below == 0).astype(LONG)
            return best, hits / np.add.reduceat(hits, self.starts)[self.owner]
        tau = LONG(self.temperature)
        ratios = np.exp(below / tau)
        # Marks one best labelling of each example, whose term 1 is added by log1p
        first = np.zeros(len(below), dtype=bool)
        at_best = np.flatnonzero(below == 0)
        first[at_best[np.unique(self.owner[at_best], return_index=True)[1]]] = True
        rest = np.add.reduceat(np.where(first, LONG(0), ratios), self.starts)
        return best + tau * np.log1p(rest), ratios / np.add.reduceat(ratios, self.starts)[self.owner]

    def losses(self, w: Any) -> LONG:
        t, _ = self.margins(w)
        return (self.omega * (np.maximum(t, LONG(0)) ** 2 if self.squared else t)).sum()

    def primal(self, w: Any) -> LONG:
        w = np.asarray(w, dtype=LONG)
        return (self.quadratic * w * w).sum() / 2 + (self.l1 * np.abs(w)).sum() + self.losses(w)

    def size(self, w: Any) -> LONG:
        """The magnitude of the numbers whose sums and differences give the losses at w."""
        values = self.temperature + np.abs(self.cost) + np.abs(self.psi) @ np.abs(np.asarray(w, dtype=LONG))
        sizes = np.maximum.reduceat(values, self.starts)
        return (self.omega * (sizes**2 if self.squared else sizes)).sum()

    def plane(self, p: Long, mass: Long) -> tuple[Long, LONG]:
        """The plane (u, b) of distributions p and masses."""
        each = (self.omega * mass)[self.owner] * p
        entropy = -np.where(p > 0, p * np.log(np.where(p > 0, p, LONG(1))), LONG(0))
        b = (each * self.cost).sum() + LONG(self.temperature) * ((self.omega * mass)[self.owner] * entropy).sum()
        if self.squared:
            b -= (self.omega * mass * mass).sum() / 4
        return each @ self.psi, b

    def dual(self, u: Long, b: LONG) -> LONG:
        """The dual value b - R*(u) of a plane (R*: the penalty's conjugate); with an l1 term, of a better multiple."""
        bounded = self.l1 > 0
        inside = min([LONG(1), *((1 - ENOUGH) * self.l1[bounded] / np.maximum(np.abs(u[bounded]), TINY))])
        return max(share * b - self._conjugate(share * u) for share in {LONG(1), inside})

    def _conjugate(self, u: Long) -> LONG:
        excess = np.maximum(np.abs(u) - self.l1, LONG(0))
        curved = self.quadratic > 0
        loose = ~curved & (self.l1 == 0) & (self.box > 0)
        if excess[~curved & ~loose].any():
            return LONG(np.inf)
        return (excess[curved] ** 2 / self.quadratic[curved]).sum() / 2 + self.box * excess[loose].sum()


@dataclass(frozen=True)
class Optimum:
    """Bounds of the minimum of P: lower <= min P <= upper = P(weights)."""

    lower: LONG
    upper: LONG
    weights: Long


def optimum(problem: Enumerated, *starts: Any) -> Optimum:
    """Compute bounds of the minimum. starts: weights to begin from, if they help."""
    d = len(problem.quadratic)
    weights = min([np.zeros(d, dtype=LONG), *(np.asarray(w, dtype=LONG) for w in starts)], key=problem.primal)
    if problem.temperature == 0:
        found = _interior(problem)
        best = weights if problem.primal(weights) < found.upper else found.weights
        return Optimum(max(found.lower, touching(problem, best)), problem.primal(best), best)
    found = Optimum(touching(problem, weights), problem.primal(weights), weights)
    for heat in HEATS:  # first from weights near the minimum; if that fails, from higher temperatures down
        warmer = replace(problem, temperature=heat * problem.temperature)
        for smoothing in SMOOTHINGS if problem.l1.any() else [LONG(0)]:
            weights, met = _descended(warmer, weights, smoothing, Optimum(-LONG(np.inf), LONG(np.inf), weights))
            if heat == 1:
                upper = min(found, met, key=lambda each: each.upper)
                found = Optimum(max(found.lower, met.lower), upper.upper, upper.weights)
        if heat == 1 and found.upper - found.lower <= 1e3 * ENOUGH * found.upper:
            break
    return found


def touching(problem: Enumerated, w: Long) -> LONG:
    """D of the oracle's answer at w."""
    t, p = problem.margins(w)
    mass = 2 * np.maximum(t, LONG(0)) if problem.squared else np.ones_like(t)
    return problem.dual(*problem.plane(p, mass))


def _descended(problem: Enumerated, w: Long, smoothing: LONG, found: Optimum) -> tuple[Long, Optimum]:
    """Newton's method on the objective with a smoothed l1 term. Return the last weights and the best bounds met."""
    mu = smoothing * problem.l1
    value = _smoothed(problem, w, mu)
    for _ in range(NEWTON_STEPS):
        step, decrease = _newton(problem, w, mu)
        length = LONG(1)
        while length > 1e-9:
            after = _smoothed(problem, w - length * step, mu)
            if after < value - 1e-4 * length * decrease:
                break
            length /= 3
        other = w - length * step
        bounds = Optimum(touching(problem, other), problem.primal(other), other)
        upper = min(found, bounds, key=lambda each: each.upper)
        found = Optimum(max(found.lower, bounds.lower), upper.upper, upper.weights)
        if not after < value or found.upper - found.lower <= ENOUGH * found.upper or decrease <= ENOUGH * value:
            break
        w, value = other, after
    return w, found


def _smoothed(problem: Enumerated, w: Long, mu: Long) -> LONG:
    value = (problem.quadratic * w * w).sum() / 2 + problem.losses(w)
    used = mu > 0
    if used.any():
        l1, own = problem.l1[used], mu[used]
        far = own + np.sqrt(own**2 + (l1 * w[used]) ** 2)
        value += (far - own * np.log(2 * own * far / l1**2)).sum()
    return value


def _newton(problem: Enumerated, w: Long, mu: Long) -> tuple[Long, LONG]:
    """Return a step to subtract, and the decrease that it promises at first order."""
    t, p = problem.margins(w)
    slope = 2 * np.maximum(t, LONG(0)) if problem.squared else np.ones_like(t)
    each = (problem.omega * slope)[problem.owner] * p
    means = np.add.reduceat(p[:, None] * problem.psi, problem.starts)
    centred = problem.psi - means[problem.owner]
    gradient = problem.quadratic * w - (problem.omega * slope) @ means
    hessian = np.diag(problem.quadratic) + (centred.T * (each / LONG(problem.temperature))) @ centred
    if problem.squared:
        hessian = hessian + (means.T * (2 * problem.omega * (t > 0))) @ means
    if mu.any():
        root = np.sqrt(mu**2 + (problem.l1 * w) ** 2)
        far = np.maximum(mu + root, TINY)
        gradient = gradient + problem.l1**2 * w / far
        hessian = hessian + np.diag(problem.l1**2 * mu / np.maximum(root * far, TINY))
    step = solve(hessian, gradient)
    if problem.box > 0:  # adding a number to all free weights changes nothing, so keep their mean
        loose = (problem.quadratic == 0) & (problem.l1 == 0)
        step[loose] -= step[loose].mean()
    return (step, step @ gradient) if np.isfinite(step).all() else (gradient, gradient @ gradient)


def _interior(problem: Enumerated) -> Optimum:
    """An interior-point method, with a predictor and a corrector in each step."""
    assert problem.temperature == 0
    assert not problem.l1.any()
    keep = problem.omega > 0
    rows = keep[problem.owner]
    psi, cost, omega = problem.psi[rows], problem.cost[rows], problem.omega[keep]
    sizes = np.diff([*problem.starts, len(problem.cost)])[keep]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
    own = np.repeat(np.arange(len(sizes)), sizes)
    curve = 2 * omega if problem.squared else np.zeros_like(omega)
    w = np.zeros(len(problem.quadratic), dtype=LONG)
    xi = np.maximum.reduceat(cost, starts) + np.add.reduceat(np.abs(cost), starts) + 1
    lam = ((curve * xi if problem.squared else omega) / sizes)[own]
    best, idle = Optimum(-LONG(np.inf), LONG(np.inf), w), 0

    def bounds() -> Optimum:
        total = np.add.reduceat(lam, starts)
        p, mass = np.zeros(len(problem.cost), dtype=LONG), np.zeros(len(problem.omega), dtype=LONG)
        p[rows] = lam / total[own]
        mass[keep] = total / omega if problem.squared else LONG(1)
        return Optimum(problem.dual(*problem.plane(p, mass)), problem.primal(w), w)

    def direction(product: Long) -> tuple[Long, ...]:
        """The changes of w, xi, lambda and z after which lambda z is the given product."""
        weight, r = lam / z, product / z - lam
        total = np.add.reduceat(weight, starts)
        means = np.add.reduceat(weight[:, None] * psi, starts) / total[:, None]
        centred = psi - means[own]
        matrix = np.diag(problem.quadratic) + (centred.T * weight) @ centred
        matrix = matrix + (means.T * (total * curve / (curve + total))) @ means
        slope = curve * xi if problem.squared else omega
        r_xi = np.add.reduceat(lam + r, starts) - slope
        right = (lam + r) @ psi - problem.quadratic * w - (r_xi * total / (curve + total)) @ means
        dw = solve(matrix, right)
        dxi = (r_xi - total * (means @ dw)) / (curve + total)
        dz = dxi[own] + psi @ dw
        return dw, dxi, r - weight * dz, dz

    def longest(dlam: Long, dz: Long) -> LONG:
        out = LONG(1)
        for value, change in ((lam, dlam), (z, dz)):
            falling = change < 0
            if falling.any():
                out = min(out, SHARE * (value[falling] / -change[falling]).min())
        return out

    for _ in range(STEPS):
        z = xi[own] - cost + psi @ w
        z = np.maximum(z, LONG(1e-30) * (1 + np.abs(xi[own]) + np.abs(cost)))
        found = bounds()
        idle = 0 if found.upper - found.lower < LONG(0.9) * (best.upper - best.lower) else idle + 1
        upper = min(best, found, key=lambda each: each.upper)
        best = Optimum(max(best.lower, found.lower), upper.upper, upper.weights)
        if idle > 15 or best.upper - best.lower <= ENOUGH * abs(best.upper):
            break
        mu = (lam * z).mean()
        _, _, dlam, dz = direction(np.zeros_like(lam))
        length = longest(dlam, dz)
        after = ((lam + length * dlam) * (z + length * dz)).mean()
        dw, dxi, step, dz = direction(max((after / mu) ** 3, LONG(1e-8)) * mu - dlam * dz)
        if not np.isfinite(dw).all():
            break
        length = longest(step, dz)
        w, xi, lam = w + length * dw, xi + length * dxi, lam + length * step
    return best


def solve(matrix: Long, right: Long) -> Long:
    """Gaussian elimination of a positive definite system, scaled to a diagonal of ones (LAPACK has no long double)."""
    size = len(right)
    scale = 1 / np.sqrt(np.maximum(np.diag(matrix), TINY))
    a = np.empty((size, size + 1), dtype=LONG)
    a[:, :size] = matrix * scale * scale[:, None]
    a[:, size] = right * scale
    x = np.zeros(size, dtype=LONG)
    with np.errstate(all="ignore"):
        for k in range(size):
            if not a[k, k] > LONG(1e-19):
                a[k, k] = LONG(1e30)  # make no step along a direction without curvature
            a[k + 1 :, k:] -= np.outer(a[k + 1 :, k] / a[k, k], a[k, k:])
        for k in reversed(range(size)):
            x[k] = (a[k, size] - a[k, k + 1 : size] @ x[k + 1 :]) / a[k, k]
    return x * scale
