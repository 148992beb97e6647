"""Label sequences to numbers and back."""

from __future__ import annotations

from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.arrays import Ints
from partwise.model_files.values import object_array, string_array
from partwise.models.sequences.inputs import Sequences


def flatten_labels(labels: Sequences, lengths: Ints) -> list[Any]:
    """All labels end to end, after checking that they fit sequences of these lengths."""
    if len(labels.items) != len(lengths):
        raise ValueError(f"X has {len(lengths)} sequences but y has {len(labels.items)}")
    label_lengths = labels.lengths("y")
    wrong = np.flatnonzero(label_lengths != lengths)
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(f"sequence {labels.numbers[i]} has {lengths[i]} positions but {label_lengths[i]} labels")
    return list(chain.from_iterable(labels.items))


def make_classes(flat: list[Any], labels: Sequences, lengths: Ints) -> NDArray[Any]:
    """The distinct labels, sorted; labels of unlike types are sorted by type first."""
    try:
        distinct = set(flat)
    except TypeError:
        row = next(row for row, label in enumerate(flat) if not _hashable(label))
        raise ValueError(f"y: {labels.where(lengths, row)}: label {flat[row]!r} is not hashable") from None
    if any(map(_missing, distinct)):
        row = next(row for row, label in enumerate(flat) if _missing(label))
        raise ValueError(f"y: {labels.where(lengths, row)}: label missing ({flat[row]!r})")
    plain = [label.item() if isinstance(label, np.generic) else label for label in distinct]
    try:
        plain.sort()
    except TypeError:
        plain.sort(key=lambda label: (type(label).__name__, repr(label)))
    return label_array(plain)


def label_array(plain: list[Any]) -> NDArray[Any]:
    """One-dimensional array of labels; of objects where NumPy's own types would change a label or take much memory."""
    if all(isinstance(label, str) for label in plain):
        return string_array(plain)
    if all(type(label) is int for label in plain):
        array = np.array(plain)
        if array.dtype.kind == "i":
            return array
    return object_array(plain)


def encode_flat(flat: list[Any], classes: NDArray[Any]) -> Ints:
    """Indices into `classes`; -1 for a label that is not among them."""
    index = {label: i for i, label in enumerate(classes.tolist())}
    return np.fromiter(map(index.get, flat, repeat(-1)), dtype=np.int64, count=len(flat))


def label_lists(indices: Ints, classes: NDArray[Any], lengths: Ints) -> list[list[Any]]:
    """The labels that these indices into `classes` stand for, cut into sequences."""
    labels = classes.astype(object)  # one string per label: of an array of strings it would be one per position
    return split(labels[indices].tolist(), lengths)


def split(values: Any, lengths: Ints) -> list[Any]:
    """Cut a list or an array of all positions' values into sequences."""
    ends = np.cumsum(lengths).tolist()
    return [values[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


def _missing(label: Any) -> bool:
    return label is None or bool(label != label)  # NaN alone differs from itself


def _hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True
