"""Constraints on segments, said by labels in IOB2: masks of slots, and where segments must begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.models.base import Reading
from partwise.models.constraints import as_booleans
from partwise.models.sequences.constraints import label_masks, no_labelling
from partwise.support.arrays import Booleans, Bytes, Ints

if TYPE_CHECKING:
    from partwise.models.segments.model import SegmentModel


def constrain_segments(model: SegmentModel, reading: Reading, allowed: Any, allowed_transitions: Any) -> None:
    """B-X at a position: a segment X begins there; I-X: one goes on.

    Which labels may follow which are pairs of types, and lengths.
    """
    n_labels, structure = len(model.classes), reading.batch.structure
    if isinstance(allowed_transitions, str):
        raise ValueError(
            f"allowed_transitions={allowed_transitions!r}: segments keep to a scheme by themselves; give an array"
        )
    pairs = None if allowed_transitions is None else as_booleans(allowed_transitions, (n_labels, n_labels))
    if allowed_transitions is not None and pairs is None:
        raise ValueError(f"allowed_transitions must be a boolean array of shape ({n_labels}, {n_labels})")
    rows = label_masks(allowed, reading.source.lengths, model.classes)
    numbers, n, width = model.types.numbers(model.classes), model.n_types, model.width
    edges, lengths = (None, None) if pairs is None else _tables(model, numbers, pairs)
    for i, number in enumerate(reading.numbers.tolist()):
        own = rows[number]
        if own is None and edges is None:
            continue
        length = int(reading.source.rows.lengths[i])
        mask: Bytes = np.ones((structure.num_slots(i) // width, width), dtype=np.uint8)
        if edges is not None and lengths is not None:
            start = 3 * length
            mask[start : start + model.max_length, :n] = lengths
            mask[start + model.max_length : start + model.max_length + n, :n] = edges
        joined = None
        if own is not None:
            begins = own[:, numbers[:, 0]]
            later = np.where(numbers[:, 1] >= 0, own[:, numbers[:, 1]], False)
            mask[:length, :n] = begins | later
            mask[length : 2 * length, :n] = begins
            joined = np.ones((length, width), dtype=np.uint8)
            joined[:, :n] = later
        try:
            structure.set_mask(i, mask.ravel())
            if joined is not None:
                structure.set_continuation(i, joined.ravel())  # type: ignore[attr-defined]
        except ValueError as error:
            raise no_labelling(number, error) from None


def _tables(model: SegmentModel, numbers: Ints, pairs: Booleans) -> tuple[Booleans, Booleans]:
    """(type, next type) and (length, type) that these pairs of labels leave."""
    begin, later = numbers.T
    has_later = (later >= 0) & ~model.outside
    after_one = pairs[np.ix_(begin, begin)]  # a segment of one position, then one that begins
    after_more = np.where(has_later[:, None], pairs[np.ix_(later, begin)], after_one)
    differ = np.argwhere(after_one != after_more)
    if len(differ):
        a, b = (model.type_name(k) for k in differ[0].tolist())
        raise ValueError(f"allowed_transitions: B-{a} and I-{a} differ before {b}, which segments cannot tell apart")
    lengths = np.ones((model.max_length, model.n_types), dtype=bool)
    two = np.where(has_later, pairs[begin, later], True)
    more = np.where(has_later, pairs[later, later], True)
    lengths[1:] &= two
    lengths[2:] &= two & more
    return after_one, lengths
