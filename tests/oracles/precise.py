"""The objective in extended precision, without cancellation, and its minimum: what certificates are held against.

Margins are sums of psi_y = A'(g - counts(y)), formed first, so that nothing large is subtracted from anything large:

    t_i(w) = smax over labellings y of cost_y - <psi_y, w>
"""

from __future__ import annotations

import numpy as np

from .objective import DenseProblem

LONG = np.longdouble
#: Digits beyond those of a double that the oracle must have to be one.
EXTENDED = np.finfo(LONG).eps < 1e-3 * np.finfo(np.float64).eps


class PreciseProblem:
    """A DenseProblem in extended precision."""

    def __init__(self, dense: DenseProblem) -> None:
        self.dense = dense
        self.l2 = LONG(dense.l2)
        self.tau = LONG(dense.temperature)
        self.omega = dense.sample_weight.astype(LONG)
        self.psi = []
        self.cost = []
        for i, example in enumerate(dense.examples):
            counts, matrix = (dense.gold[i] - example.counts).astype(LONG), dense.matrices[i].astype(LONG)
            self.psi.append(counts @ matrix)
            self.cost.append(LONG(dense.cost_scale) * (example.counts.astype(LONG) @ dense.cost[i].astype(LONG)))

    def primal(self, w: np.ndarray) -> np.longdouble:
        return self._all(np.asarray(w, dtype=LONG))[0]

    def minimum(self, *starts: np.ndarray, steps: int = 60) -> np.longdouble:
        """The least value found from the best of these weights on: by Newton's method, damped, at temperature > 0."""
        w = min((np.asarray(start, dtype=LONG) for start in starts), key=self.primal)
        value = self.primal(w)
        if self.tau == 0:
            return value
        for _ in range(steps):
            _, gradient, hessian = self._all(w)
            step = _solve(hessian, gradient)
            if not np.isfinite(step).all():  # conditions beyond extended precision
                break
            length = LONG(1)
            while length > 1e-6 and not self.primal(w - length * step) < value:
                length /= 2
            if length <= 1e-6:
                break
            w = w - length * step
            value = self.primal(w)
        return value

    def _all(self, w: np.ndarray) -> tuple[np.longdouble, np.ndarray, np.ndarray]:
        value, gradient = self.l2 / 2 * (w @ w), self.l2 * w
        hessian = self.l2 * np.eye(len(w), dtype=LONG)
        squared = self.dense.link == "squared"
        for omega, psi, cost in zip(self.omega, self.psi, self.cost, strict=True):
            margins = cost - psi @ w
            best = margins.argmax()
            if self.tau == 0:
                t, p = margins[best], np.eye(len(margins), dtype=LONG)[best]
            else:
                ratios = np.exp((margins - margins[best]) / self.tau)
                others = ratios.copy()
                others[best] = 0
                t, p = margins[best] + self.tau * np.log1p(others.sum()), ratios / ratios.sum()
            if squared:
                t = max(t, LONG(0))
            slope = 2 * t if squared else LONG(1)
            value = value + omega * (t * t if squared else t)
            mean = p @ psi
            gradient = gradient - omega * slope * mean
            if self.tau > 0:
                centred = psi - mean
                hessian = hessian + omega * slope / self.tau * (centred.T * p) @ centred
                if squared:
                    hessian = hessian + 2 * omega * np.outer(mean, mean)
        return value, gradient, hessian


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gaussian elimination (LAPACK knows doubles only) of a positive definite system."""
    a = np.concatenate([matrix, right[:, None]], axis=1)
    x = np.zeros(len(a), dtype=LONG)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(len(a)):
            a[k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k])
        for k in reversed(range(len(a))):
            x[k] = (a[k, -1] - a[k, k + 1 : -1] @ x[k + 1 :]) / a[k, k]
    return x
