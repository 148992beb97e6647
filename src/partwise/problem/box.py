"""The dual with an l1 term: a box for u, and a plane's best multiple (see `problem`)."""

import numpy as np

from partwise._core import dot
from partwise.support.arrays import Floats


def dual_of_box(u: Floats, b: float, l1: float, l2: float) -> float:
    """max over 0 <= s <= 1 of s b - R*(s u), a concave function of s."""
    far = np.abs(u[np.abs(u) > l1])  # the others are inside for every s
    if not far.size:
        return b
    inside = l1 / float(far.max())

    def value(s: float) -> float:
        excess = np.maximum(s * far - l1, 0.0)
        return s * b - (dot(excess, excess) / (2.0 * l2) if s > inside else 0.0)

    if l2 == 0 or b <= 0:
        return value(inside) if b > 0 else 0.0
    low, high = inside, 1.0  # below `inside` D rises with s
    for _ in range(60):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (left, high) if value(left) < value(right) else (low, right)
    return max(value(inside), value(1.0), value(0.5 * (low + high)))
