"""What a segment model says of labellings and expected counts: segments with probabilities, marginals of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.models.base import Labellings, Reading
from partwise.models.segments.spans import Span
from partwise.support.arrays import Floats, Ints, pointers

if TYPE_CHECKING:
    from partwise.models.segments.model import SegmentModel


def best_spans(
    model: SegmentModel, reading: Reading, labellings: Labellings, temperature: float | None
) -> list[list[Span]]:
    """The segments of the best labellings that are not O; temperature None: without probabilities."""
    n = reading.batch.n_examples
    found = model.segments_of(reading, np.arange(n), labellings)
    firsts, sizes, starts = found.firsts, found.sizes, pointers(found.lengths)
    owner = np.searchsorted(starts, firsts, side="right") - 1
    bounds, inner = np.searchsorted(owner, np.arange(n + 1)), ~model.outside[found.types[firsts]]
    every: list[list[Span]] = []
    for i in range(n):
        own = np.flatnonzero(inner[bounds[i] : bounds[i + 1]]) + bounds[i]
        begins, labels = firsts[own] - starts[i], found.types[firsts[own]]
        ends = begins + sizes[own]
        values: list[Any] = [None] * len(begins)
        if temperature is not None:
            values = segment_probabilities(model, reading, i, begins, ends, labels, temperature).tolist()
        rows = zip(labels.tolist(), begins.tolist(), ends.tolist(), values, strict=True)
        every.append([Span(str(model.types.names[b]), s, t, p) for b, s, t, p in rows])
    return every


def segment_probabilities(
    model: SegmentModel, reading: Reading, i: int, begins: Ints, ends: Ints, labels: Ints, temperature: float
) -> Floats:
    """Of segments of example i of the batch, in the order of ends."""
    structure: Any = reading.batch.structure
    scores = reading.batch.features.scores(i, model.weights)
    found: Floats = structure.segment_probabilities(i, scores, begins, ends, labels, temperature)
    return found


def label_marginals(model: SegmentModel, reading: Reading, counts: Floats) -> list[Floats]:
    """Arrays of shape (length, n_labels), labels in IOB2, from the expected counts of `inside` and `first`."""
    offsets, width, numbers = (
        reading.batch.structure.slot_offsets().tolist(),
        model.width,
        model.types.numbers(model.classes),
    )
    arrays = []
    for start, n in zip(offsets, reading.source.rows.lengths.tolist(), strict=False):
        inside, first = counts[start : start + 2 * n * width].reshape(2, n, width)[:, :, : model.n_types]
        array = np.zeros((n, len(model.classes)))
        later = numbers[:, 1] >= 0
        array[:, numbers[later, 1]] = np.maximum(inside - first, 0.0)[:, later]
        array[:, numbers[:, 0]] = first
        arrays.append(array)
    found: list[Floats] = reading.spread(arrays, lambda: np.empty((0, len(model.classes))))
    return found
