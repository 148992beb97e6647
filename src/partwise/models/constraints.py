"""Constraints at prediction that kinds of models share: which labels the rows of an example may have."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from typing import cast

import numpy as np

from partwise.support.arrays import Booleans


class ConstraintError(ValueError):
    """Constraints that leave a sequence (or a sentence) nothing to choose from; places are counted from 0."""

    def __init__(self, message: str, sequence: int, position: int | None = None) -> None:
        super().__init__(message)
        self.sequence, self.position = sequence, position

    def __reduce__(self) -> tuple[type[ConstraintError], tuple[str, int, int | None]]:
        return type(self), (str(self), self.sequence, self.position)


def check_entries(given: object, n: int, examples: str, name: str = "allowed") -> Sequence[object]:
    """Return the constraints of n examples; ValueError unless there is one entry for each of them."""
    if isinstance(given, (str, dict)) or not isinstance(given, Sized) or len(given) != n:
        raise ValueError(f"{name} must hold one entry for each of {n} {examples}")
    return cast(Sequence[object], given)


def as_booleans(value: object, shape: tuple[int, ...]) -> Booleans | None:
    """Return an array of truth values of this shape, or None if the value is not one."""
    array = np.asarray(value)
    fits = array.shape == shape and (array.dtype == bool or (array.dtype.kind in "iu" and np.isin(array, (0, 1)).all()))
    return array.astype(bool) if fits else None


def label_mask(
    value: object,
    index: Mapping[object, int],
    where: str,
    row: str,
    names: Sequence[object],
    forms: str = "an array or a list",
) -> Booleans:
    """Return which labels each row of an example may have, (rows, labels).

    value: an array of truth values; or for each row None (any label) or a collection of labels. index: the number of
    each label. The others are words of messages: the example, a row, the name of each row, and the expected forms.
    """
    shape = len(names), len(index)
    if isinstance(value, np.ndarray) and value.dtype != object:
        mask = as_booleans(value, shape)
        if mask is None:
            raise ValueError(f"{where} needs a boolean array of shape {shape}")
        return mask
    if not isinstance(value, Sized):
        raise ValueError(f"{where} must have None, {forms}, got {value!r}")
    if isinstance(value, (str, dict)) or len(value) != len(names):
        raise ValueError(f"{where} has {len(names)} {row}s but {len(value)} entries")
    mask = np.ones(shape, dtype=bool)
    for k, labels in enumerate(cast(Sequence[object], value)):
        if labels is None:
            continue
        place = f"{where}, {row} {names[k]!r}"
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise ValueError(f"{place} must be None or a collection of labels, got {labels!r}")
        mask[k] = False
        for label in labels:
            if not isinstance(label, Hashable) or label not in index:
                raise ValueError(f"{place}: label {label!r} was not in the training data")
            mask[k, index[label]] = True
    return mask


def check_choices(mask: Booleans, number: int, where: str, row: str, names: Sequence[object]) -> None:
    """ConstraintError, with the example's number, for a row that has no label left."""
    some = mask.any(axis=1)
    if not some.all():
        k = int(np.argmin(some))
        raise ConstraintError(f"{where}, {row} {names[k]!r} has no label left", number, k)
