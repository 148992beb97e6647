"""Algorithms 1 to 3 and Table 1 of Huang et al. 2010, "Iterative Scaling and Coordinate Descent Methods for Maximum
Entropy Models".

Labellings are enumerated: f[i] is the matrix of f_t(x_i, y), one row per labelling. ~P(x) is omega_i, 1 / sigma^2 is
l2, and z becomes z / tau inside the exponentials (tau = 1 in the paper). Names of the functions A_t: "gis", "iis",
"scgis", "cd", and "log" for the bound (39).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from .objective import DenseProblem

Floats = NDArray[np.float64]


class Maxent:
    """The quantities of Table 1 at weights w."""

    def __init__(self, problem: DenseProblem, w: Floats) -> None:
        self.w, self.l2, self.tau, self.omega = np.array(w), problem.l2, problem.temperature, problem.sample_weight
        self.f = [e.counts @ matrix for e, matrix in zip(problem.examples, problem.matrices, strict=True)]
        self.p = [problem.oracle(i, self.w)[2] for i in range(problem.n)]
        gold = [g @ matrix for g, matrix in zip(problem.gold, problem.matrices, strict=True)]
        self.empirical = sum(o * g for o, g in zip(self.omega, gold, strict=True))
        self.largest_sum = max(float(f.sum(axis=1).max()) for o, f in zip(self.omega, self.f, strict=True) if o)

    def column(self, t: int) -> list[tuple[float, Floats, Floats, Floats]]:
        """(omega, P(y|x), f_t(x, y), f#(x, y)) of the contexts in Omega_t. ~P is 0 for contexts without data."""
        all_rows = zip(self.omega, self.p, self.f, strict=True)
        return [(o, p, f[:, t], f.sum(axis=1)) for o, p, f in all_rows if o and f[:, t].any()]

    def expectation(self, t: int) -> float:
        return float(sum(o * p @ f for o, p, f, _ in self.column(t)))

    def highest(self, t: int) -> float:
        """f#_t, the maximum over all contexts (1 if that is 0)."""
        return max(float(f[:, t].max()) for f in self.f) or 1.0

    def value(self, name: str, t: int, z: float) -> float:
        """The value A_t(z) of the function `name`."""
        s = z / self.tau
        column, q = self.column(t), self.l2 * (self.w[t] * z + z * z / 2) - z * self.empirical[t]
        if name in ("gis", "scgis"):
            steep = self.largest_sum if name == "gis" else self.highest(t)
            return q + self.tau * np.expm1(s * steep) / steep * self.expectation(t)
        if name == "iis":
            sums = [o * (p * f) @ np.divide(np.expm1(s * a), a, where=a > 0, out=0 * a) for o, p, f, a in column]
            return q + self.tau * float(sum(sums))
        if name == "cd":
            return q + self.tau * float(sum(o * np.log1p(p @ np.expm1(s * f)) for o, p, f, _ in column))
        mass, steep = sum(o for o, _, _, _ in column), self.highest(t)
        if not mass:
            return q
        return q + self.tau * mass * np.log1p(np.expm1(s * steep) / (steep * mass) * self.expectation(t))

    def third_order(self, t: int, z: float) -> float:
        """A bound on A_t(z) of "cd" that is not in the paper, from the derivatives at 0 and the feature's range."""
        column = self.column(t)
        if not column:
            return self.value("cd", t, z)
        reach = max(0.0, *(f[:, t].max() for f in self.f)) - min(0.0, *(f[:, t].min() for f in self.f))
        variance = sum(o * (p @ f**2 - (p @ f) ** 2) for o, p, f, _ in column)
        q, x = self.l2 * (self.w[t] * z + z * z / 2) - z * self.empirical[t], reach * abs(z) / self.tau
        return q + z * self.expectation(t) + self.tau * variance * (np.expm1(x) - x) / reach**2

    def derivatives(self, name: str, t: int, z: float) -> tuple[float, float]:
        """The derivatives A_t'(z) and A_t''(z): equations (27), (28), (30) and (31)."""
        s, first, second = z / self.tau, self.l2 * (self.w[t] + z) - self.empirical[t], self.l2
        column = self.column(t)
        if name in ("gis", "scgis"):
            steep = self.largest_sum if name == "gis" else self.highest(t)
            growth = self.expectation(t) * np.exp(s * steep)
            return first + growth, second + steep * growth / self.tau
        if name == "iis":
            growth = [(o * p * f * np.exp(s * a), a) for o, p, f, a in column]
            return first + sum(g.sum() for g, _ in growth), second + sum(g @ a for g, a in growth) / self.tau
        if name == "cd":
            for o, p, f, _ in column:
                moved = p * np.exp(s * f)
                moved /= moved.sum()
                first += o * (moved @ f)
                second += o * (moved @ f**2 - (moved @ f) ** 2) / self.tau
            return first, second
        if not column:
            return first, second
        mass, steep = sum(o for o, _, _, _ in column), self.highest(t)
        q = self.expectation(t) / (steep * mass)
        share = q * np.exp(s * steep) / (1 - q + q * np.exp(s * steep))
        return first + mass * steep * share, second + mass * steep**2 * share * (1 - share) / self.tau

    def minimum(self, name: str, t: int, tol: float = 1e-5) -> float:
        """The z that minimises A_t, by Newton's method (26), or by the closed form (25) where there is no penalty."""
        e, expected = self.empirical[t], self.expectation(t)
        if not self.column(t):  # only the penalty depends on this weight
            return -self.w[t] if self.l2 > 0 else 0.0
        if self.l2 == 0 and name in ("gis", "scgis"):
            return self.tau / (self.largest_sum if name == "gis" else self.highest(t)) * np.log(e / expected)
        if name == "log":  # A_t' is not convex here, and Newton's method without safeguards may oscillate
            return float(brentq(lambda z: self.derivatives(name, t, z)[0], -60 * self.tau, 60 * self.tau, xtol=1e-14))
        # The root is not above this value, so the first step need not be either (section 2.4: Newton's method may
        # diverge).
        ceiling, room = np.inf, e - self.l2 * self.w[t]
        if room > expected > 0:
            sums = [a[f > 0].min() for _, p, f, a in self.column(t)]
            steep = {"gis": self.largest_sum, "scgis": self.highest(t), "iis": min(sums)}[name]
            ceiling = self.tau / steep * np.log(room / expected)
        z = 0.0
        for step in range(100):
            first, second = self.derivatives(name, t, z)
            if step and abs(first) <= tol:
                break
            z = min(z - first / second, ceiling)
        return z


def parallel(problem: DenseProblem, name: str, w: Floats, tol: float = 1e-5) -> Floats:
    """One iteration of Algorithm 2: all weights at once."""
    at = Maxent(problem, w)
    return w + np.array([at.minimum(name, t, tol) for t in range(problem.dim)])


def sequential(problem: DenseProblem, name: str, w: Floats, order: Sequence[int], tol: float = 1e-5) -> Floats:
    """One iteration of Algorithm 1: the weights in `order`, one after the other."""
    w = np.array(w)
    for t in order:
        w[t] += Maxent(problem, w).minimum(name, t, tol)
    return w


def coordinate_descent(
    problem: DenseProblem, w: Floats, order: Sequence[int], beta: float, gamma: float, bound: str = "none"
) -> tuple[Floats, int]:
    """One iteration of Algorithm 3, with step 2' unless `bound` is "none". Weights, and number of evaluations of A_t.

    "paper": step 2' with (39), if no feature is negative. "third-order": with the bound `third_order` as well.
    """
    w, evaluations = np.array(w), 0
    for t in order:
        at = Maxent(problem, w)
        first, second = at.derivatives("cd", t, 0.0)
        z = -first / second if first else 0.0
        while abs(z) > 1e-13:
            bounds = [at.third_order(t, z)] if bound == "third-order" else []
            if bound != "none" and min(f[:, t].min() for f in at.f) >= 0:
                bounds.append(at.value("log", t, z))
            if bounds and min(bounds) <= gamma * z * first:
                break
            evaluations += 1
            if at.value("cd", t, z) <= gamma * z * first:
                break
            z *= beta
        w[t] += z
    return w, evaluations


def exact_descent(problem: DenseProblem, w: Floats, order: Sequence[int], tol: float = 1e-10) -> Floats:
    """One iteration of Algorithm 1 with (8), whose sub-problems are solved by bisection on A_t'."""
    w = np.array(w)
    for t in order:
        at = Maxent(problem, w)
        low, high = -64.0, 64.0
        while high - low > tol:
            middle = (low + high) / 2
            low, high = (middle, high) if at.derivatives("cd", t, middle)[0] < 0 else (low, middle)
        w[t] += (low + high) / 2
    return w
