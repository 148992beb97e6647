"""Trust-region Newton (Lin, Weng, Keerthi 2008, Algorithms 1 and 2; Lin, Moré 1999) on explicit matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .objective import DenseProblem

Floats = NDArray[np.float64]


def tron(problem: DenseProblem, w: Floats, steps: int, xi: float = 0.1) -> list[tuple[Floats, float, int]]:
    """Return (weights, radius, number of products so far) after each step."""
    radius, trail, products = float(np.linalg.norm(problem.gradient(w))), [], 0
    for k in range(steps):
        f, g, H = problem.primal(w), problem.gradient(w), problem.hessian(w)
        s, r, d = np.zeros_like(w), -g, -g
        while np.linalg.norm(r) > xi * np.linalg.norm(g):
            products += 1
            alpha = (r @ r) / (d @ H @ d)
            if np.linalg.norm(s + alpha * d) > radius:
                a, b, c = d @ d, 2 * s @ d, s @ s - radius**2
                tau = (-b + np.sqrt(b * b - 4 * a * c)) / (2 * a)
                s, r = s + tau * d, r - tau * H @ d
                break
            s, old, r = s + alpha * d, r @ r, r - alpha * H @ d
            d = r + (r @ r) / old * d
        length, change, model = np.linalg.norm(s), problem.primal(w + s) - f, g @ s + s @ H @ s / 2
        if k == 0:
            radius = min(radius, length)
        alpha = max(0.25, -0.5 * (g @ s) / (change - g @ s)) if change - g @ s > 0 else 4.0
        rho = change / model
        if rho < 1e-4:
            radius = min(alpha * length, 0.5 * radius)
        elif rho < 0.25:
            radius = max(0.25 * radius, min(alpha * length, 0.5 * radius))
        elif rho < 0.75:
            radius = max(0.25 * radius, min(alpha * length, 4 * radius))
        else:
            radius = max(radius, min(alpha * length, 4 * radius))
        w = w + s if rho > 1e-4 else w
        trail.append((w, radius, products))
    return trail
