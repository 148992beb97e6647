"""Constraints at prediction: which labels a position may have, and which may follow which."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.models.errors import ConstraintError
from partwise.models.sequences.schemes import LabelRule, named_rule
from partwise.support.arrays import Booleans, Ints


def no_labelling(number: int, error: ValueError, legal: bool = False) -> ConstraintError:
    """The structure's complaint about a mask, with the sequence's number; legal: whether labels keep to a scheme."""
    also = "; predictions keep to the scheme of the labels unless legal=False" if legal else ""
    return ConstraintError(f"sequence {number}: no labelling is allowed ({error}{also})", number)


def label_masks(allowed: Any, lengths: Ints, classes: NDArray[Any]) -> Sequence[Booleans | None]:
    """For each sequence (the empty ones too) a mask of shape (length, n_labels), or None for no constraint."""
    if allowed is None:
        return [None] * len(lengths)
    if isinstance(allowed, (str, dict)) or not hasattr(allowed, "__len__") or len(allowed) != len(lengths):
        raise ValueError(f"allowed must hold one entry for each of {len(lengths)} sequences")
    index = {label: i for i, label in enumerate(classes.tolist())}
    found = []
    for number, length in enumerate(lengths.tolist()):
        rows = _label_mask(allowed[number], number, length, index)
        if rows is not None and not rows.any(axis=1).all():
            position = int(np.argmin(rows.any(axis=1)))
            message = f"allowed: sequence {number}, position {position} has no label left"
            raise ConstraintError(message, number, position)
        found.append(rows)
    return found


def transition_rule(allowed: Any, classes: NDArray[Any]) -> LabelRule | None:
    """`allowed_transitions` of `SequenceTagger`: the name of a scheme, or a table of pairs."""
    if allowed is None or isinstance(allowed, str):
        return None if allowed is None else named_rule(allowed, tuple(classes.tolist()))
    n = len(classes)
    pairs = as_booleans(allowed, (n, n))
    if pairs is None:
        raise ValueError(f"allowed_transitions must be a boolean array of shape ({n}, {n}), or the name of a scheme")
    return LabelRule.of_pairs(pairs)


def as_booleans(value: Any, shape: tuple[int, ...]) -> Booleans | None:
    """An array of truth values of this shape, or None if it is none."""
    array = np.asarray(value)
    fits = array.shape == shape and (array.dtype == bool or (array.dtype.kind in "iu" and np.isin(array, (0, 1)).all()))
    return array.astype(bool) if fits else None


def _label_mask(value: Any, number: int, length: int, index: dict[Any, int]) -> Booleans | None:
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        mask = as_booleans(value, (length, len(index)))
        if mask is None:
            raise ValueError(f"allowed: sequence {number} needs a boolean array of shape ({length}, {len(index)})")
        return mask
    if not hasattr(value, "__len__"):
        raise ValueError(f"allowed: sequence {number} must have None, an array or a list, got {value!r}")
    if isinstance(value, (str, dict)) or len(value) != length:
        raise ValueError(f"allowed: sequence {number} has {length} positions but {len(value)} entries")
    mask = np.ones((length, len(index)), dtype=bool)
    for position, labels in enumerate(value):
        if labels is None:
            continue
        where = f"allowed: sequence {number}, position {position}"
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise ValueError(f"{where} must be None or a collection of labels, got {labels!r}")
        mask[position] = False
        for label in labels:
            if not isinstance(label, Hashable) or label not in index:
                raise ValueError(f"{where}: label {label!r} was not in the training data")
            mask[position, index[label]] = True
    return mask
