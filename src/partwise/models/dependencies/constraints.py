"""Constraints at prediction: which heads a word may have."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from partwise.models.constraints import ConstraintError
from partwise.support.arrays import Bytes


def arc_mask(value: object, number: int, name: str, n: int) -> Bytes | None:
    """Return which arcs are allowed, a byte per slot; None if all arcs are."""
    if value is None:
        return None
    mask = np.ones((n, n + 1), dtype=np.uint8)
    if isinstance(value, dict):
        for word, heads in value.items():
            choices = list(heads) if isinstance(heads, Collection) and not isinstance(heads, str) else [heads]
            numbers = [word, *choices]
            if not all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) and 0 <= x <= n for x in numbers):
                raise ValueError(f"allowed: {name}: {word!r}: {heads!r} are not numbers of words (there are {n})")
            if word == 0:
                raise ValueError(f"allowed: {name}: the root has no head")
            mask[word - 1] = 0
            mask[word - 1, choices] = 1
    else:
        array = np.asarray(value)
        if array.shape != (n, n + 1) or not (array.dtype == bool or np.isin(array, (0, 1)).all()):
            raise ValueError(f"allowed: {name} needs a boolean array of shape ({n}, {n + 1})")
        mask[:] = array
    np.fill_diagonal(mask[:, 1:], 0)
    short = np.flatnonzero(~mask.any(axis=1))
    if len(short):
        raise ConstraintError(f"allowed: {name}: word {short[0] + 1} has no head left", number, int(short[0]))
    return mask.ravel()
