"""The divergence between two coins, and its inverse."""

from __future__ import annotations

import math


def kl(q: float, p: float) -> float:
    """KL(q || p) = q ln(q / p) + (1 - q) ln((1 - q) / (1 - p)) of coins that fall heads with probability q and p."""
    _check("q", q)
    _check("p", p)
    return _term(q, p) + _term(1.0 - q, 1.0 - p)


def kl_inverse(q: float, epsilon: float) -> float:
    """The largest p with KL(q || p) <= epsilon: how large a mean may be of which q was observed.

    The answer is rounded up by at most 1e-12. It is at most q + sqrt(2 q epsilon) + 2 epsilon (Bartlett et al. 2004,
    equation 6).
    """
    _check("q", q)
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon}")
    low, high = q, 1.0  # KL rises with p above q
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if kl(q, middle) <= epsilon else (low, middle)
    return high


def _term(a: float, b: float) -> float:
    if a == 0.0:
        return 0.0
    return a * math.log1p((a - b) / b) if b > 0.0 else math.inf  # a near b: a logarithm of a / b loses digits


def _check(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")
