"""Small translations between a tagger's options, its slots and its labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise._core import Chain, HistoryChain
from partwise.estimators.inputs import ColumnReader, Floats, Ints, NameReader
from partwise.estimators.templates import TemplateReader

Booleans = NDArray[np.bool_]


Reader = NameReader | ColumnReader | TemplateReader


def edge_ids(chosen: Any, reader: Reader) -> Ints | None:
    """Attribute -> edge attribute, counted from 1, or -1; None for transitions tied together.

    Attributes of a template's B lines are edge attributes whatever is chosen.
    """
    given = reader.edge_attributes() if isinstance(reader, TemplateReader) else None
    if chosen is None and given is None:
        return None
    picked = np.zeros(reader.n_attributes, dtype=bool) if chosen is None else _picked(chosen, reader)
    if given is not None:
        picked |= given
    return np.where(picked, np.cumsum(picked), -1).astype(np.int64)


def _picked(chosen: Any, reader: Reader) -> Booleans:
    if not (chosen == "all" if isinstance(chosen, str) else isinstance(chosen, Iterable)):
        raise ValueError(f"transition_features must be None, 'all' or a list, got {chosen!r}")
    if isinstance(reader, ColumnReader):
        n_attributes = reader.n_features or 0
        picked = np.full(n_attributes, isinstance(chosen, str))
        for column in () if isinstance(chosen, str) else chosen:
            if not isinstance(column, (int, np.integer)) or not 0 <= column < n_attributes:
                raise ValueError(f"transition_features: {column!r} is not a column of {n_attributes}")
            picked[column] = True
    else:
        prefixes = ("",) if isinstance(chosen, str) else tuple(chosen)
        if not all(isinstance(prefix, str) for prefix in prefixes):
            raise ValueError(f"transition_features must be prefixes of attribute names, got {chosen!r}")
        assert reader.vocabulary is not None
        picked = reader.vocabulary.starts_with(prefixes).astype(bool)
    return picked


def label_rows(structure: Chain | HistoryChain, lengths: Ints, values: Floats) -> list[Floats]:
    """The rows of labels cut out of slot vectors of all examples: (length, n_labels) a sequence."""
    width, n_labels = structure.width, structure.n_labels
    starts = iter(structure.slot_offsets().tolist())
    return [
        values[(start := next(starts)) : start + length * width].reshape(length, width)[:, :n_labels].copy()
        if length
        else np.empty((0, n_labels))
        for length in lengths.tolist()
    ]


def labels_of(slots: Ints, length: int, width: int) -> Ints:
    """The labels of one labelling, from the slots it uses."""
    return np.sort(slots[slots < length * width]) % width
