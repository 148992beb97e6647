"""Constraints at prediction: which labels a position may have, and which may follow which."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise._core import Chain, HistoryChain
from partwise.estimators.inputs import Ints

Booleans = NDArray[np.bool_]


class ConstraintError(ValueError):
    """Constraints that leave a sequence (or a sentence) nothing to choose from; places are counted from 0."""

    def __init__(self, message: str, sequence: int, position: int | None = None) -> None:
        super().__init__(message)
        self.sequence, self.position = sequence, position


def set_masks(
    structure: Chain | HistoryChain, lengths: Ints, classes: NDArray[Any], allowed: Any, allowed_transitions: Any
) -> None:
    """Put `allowed` and `allowed_transitions` (see `SequenceTagger.predict`) on the structure.

    `lengths` are those of all sequences, the empty ones too, which the structure does not have.
    """
    if allowed is None and allowed_transitions is None:
        return
    n_labels = len(classes)
    pairs = None if allowed_transitions is None else _as_booleans(allowed_transitions, (n_labels, n_labels))
    if allowed_transitions is not None and pairs is None:
        raise ValueError(f"allowed_transitions must be a boolean array of shape ({n_labels}, {n_labels})")
    if allowed is not None and (isinstance(allowed, (str, dict)) or len(allowed) != len(lengths)):
        raise ValueError(f"allowed must hold one entry for each of {len(lengths)} sequences")
    index = {label: i for i, label in enumerate(classes.tolist())}
    if pairs is not None and isinstance(structure, HistoryChain):
        structure.set_follow(pairs.astype(np.uint8).ravel())  # each sequence's mask is checked together with it
    i = 0
    for number, length in enumerate(lengths.tolist()):
        rows = None if allowed is None else _label_mask(allowed[number], number, length, index)
        if rows is not None and not rows.any(axis=1).all():
            position = int(np.argmin(rows.any(axis=1)))
            message = f"allowed: sequence {number}, position {position} has no label left"
            raise ConstraintError(message, number, position)
        if length == 0:
            continue
        if rows is not None or pairs is not None:
            try:
                structure.set_mask(i, _slot_mask(structure, i, length, rows, pairs))
            except ValueError as error:
                raise ConstraintError(f"sequence {number}: no labelling is allowed ({error})", number) from None
        i += 1


def _as_booleans(value: Any, shape: tuple[int, ...]) -> Booleans | None:
    array = np.asarray(value)
    fits = array.shape == shape and (array.dtype == bool or (array.dtype.kind in "iu" and np.isin(array, (0, 1)).all()))
    return array.astype(bool) if fits else None


def _label_mask(value: Any, number: int, length: int, index: dict[Any, int]) -> Booleans | None:
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        mask = _as_booleans(value, (length, len(index)))
        if mask is None:
            raise ValueError(f"allowed: sequence {number} needs a boolean array of shape ({length}, {len(index)})")
        return mask
    if isinstance(value, (str, dict)) or len(value) != length:
        raise ValueError(f"allowed: sequence {number} has {length} positions but {len(value)} entries")
    mask = np.ones((length, len(index)), dtype=bool)
    for position, labels in enumerate(value):
        if labels is None:
            continue
        where = f"allowed: sequence {number}, position {position}"
        if isinstance(labels, str):
            raise ValueError(f"{where} must be None or a collection of labels, got {labels!r}")
        mask[position] = False
        for label in labels:
            if label not in index:
                raise ValueError(f"{where}: label {label!r} was not in the training data")
            mask[position, index[label]] = True
    return mask


def _slot_mask(
    structure: Chain | HistoryChain, i: int, length: int, rows: Booleans | None, pairs: Booleans | None
) -> NDArray[np.uint8]:
    """One byte a slot: label rows, then transitions (one block, or one an edge), then begin and end rows."""
    n_labels, width = structure.n_labels, structure.width
    mask = np.ones(structure.num_slots(i), dtype=np.uint8)
    if rows is not None:
        mask[: length * width].reshape(length, width)[:, :n_labels] = rows
    if pairs is not None and isinstance(structure, Chain):
        blocks = 1 if structure.tied else length - 1
        start = length * width
        table = mask[start : start + blocks * n_labels * width].reshape(blocks, n_labels, width)
        table[:, :, :n_labels] = pairs
    return mask
