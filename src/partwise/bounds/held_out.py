"""The bound that needs no theory of margins: losses on examples that training has not seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import beta

from partwise.bounds.kl import kl_inverse
from partwise.support.arrays import Floats


def held_out_bound(losses: Any, delta: float = 0.05) -> float:
    """With probability at least 1 - delta, what the expected loss is at most, given losses of held-out examples.

    Losses that are all 0 or 1: the exact binomial (Clopper-Pearson) bound. Others in [0, 1]: Chernoff's,
    KL(mean || p) <= ln(1 / delta) / n.
    """
    check_delta(delta)
    values: Floats = np.asarray(losses, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"a bound needs at least 2 losses, got an array of shape {values.shape}")
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("losses must be between 0 and 1")
    n, total = len(values), float(values.sum())
    if ((values == 0) | (values == 1)).all():
        return 1.0 if total == n else float(beta.ppf(1.0 - delta, total + 1.0, n - total))
    return kl_inverse(float(values.mean()), math.log(1.0 / delta) / n)


def check_delta(delta: float) -> None:
    """ValueError unless it is a probability of failure."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be above 0 and below 1, got {delta}")
