"""The search direction of limited-memory BFGS: the two-loop recursion of Nocedal 1980 (see Liu and Nocedal 1989)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def two_loop(gradient: Floats, pairs: Sequence[tuple[Floats, Floats]]) -> Floats:
    """-H gradient, with H from pairs (s: step, y: change of gradient), oldest first, and (s'y / y'y) I of the last."""
    q, alphas = gradient.copy(), []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q -= alphas[-1] * y
    if pairs:
        s, y = pairs[-1]
        q *= s @ y / (y @ y)
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        q += (alpha - y @ q / (s @ y)) * s
    return -q
