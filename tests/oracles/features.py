"""Feature matrices built from the raw input of segments, without computing scores in the core."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def pair_positions(layout: Any) -> dict[tuple[int, int], int]:
    """The position of the weight of each (attribute, column) pair, found by packing the values 1, 2, 3, ..."""
    indptr, columns = layout.pairs()
    packed = layout.pack(np.arange(1.0, layout.num_pairs + 1))
    where = {int(v) - 1: k for k, v in enumerate(packed) if v != 0}
    positions = {}
    for a in range(layout.num_attributes):
        for k in range(indptr[a], indptr[a + 1]):
            positions[a, int(columns[k])] = where[k]
    return positions


def attribute_matrix(
    layout: Any, example_ptr: Ints, row_ptr: Ints, attributes: Ints, values: Floats | None, i: int
) -> Floats:
    """A_i of an AttributeSegment: the row of slot (p, column) holds the sums of values of each attribute of row p."""
    positions = pair_positions(layout)
    rows = range(example_ptr[i], example_ptr[i + 1])
    matrix = np.zeros((len(rows) * layout.width, layout.num_weights))
    for local, p in enumerate(rows):
        for k in range(row_ptr[p], row_ptr[p + 1]):
            for column in range(layout.n_columns):
                position = positions.get((int(attributes[k]), column))
                if position is not None:
                    matrix[local * layout.width + column, position] += 1.0 if values is None else values[k]
    return matrix


def dense_matrix(rows: Floats, example_ptr: Ints, n_columns: int, width: int, i: int) -> Floats:
    """A_i of a DenseSegment: weight (j, a) is at j * width + a."""
    mine = rows[example_ptr[i] : example_ptr[i + 1]]
    matrix = np.zeros((len(mine) * width, rows.shape[1] * width))
    for p, row in enumerate(mine):
        for j, x in enumerate(row):
            for a in range(n_columns):
                matrix[p * width + a, j * width + a] = x
    return matrix


def slot_matrix(
    num_weights: int, slot_ptr: Ints, row_ptr: Ints, features: Ints, values: Floats | None, i: int
) -> Floats:
    """A_i of a SlotSegment: the row of a slot holds the sums of values of each of its features."""
    slots = range(slot_ptr[i], slot_ptr[i + 1])
    matrix = np.zeros((len(slots), num_weights))
    for row, r in zip(matrix, slots, strict=True):
        for k in range(row_ptr[r], row_ptr[r + 1]):
            if features[k] >= 0:
                row[features[k]] += 1.0 if values is None else values[k]
    return matrix


def observed_pairs(
    n_attributes: int, row_ptr: Ints, attributes: Ints, labels: Ints, min_count: int
) -> tuple[list[list[int]], dict[tuple[int, int], int]]:
    """For each attribute the columns in which it occurs at least min_count times, and all counts."""
    seen: dict[tuple[int, int], int] = {}
    for p, label in enumerate(labels):
        for a in attributes[row_ptr[p] : row_ptr[p + 1]]:
            if a >= 0:
                seen[int(a), int(label)] = seen.get((int(a), int(label)), 0) + 1
    table = [sorted(c for (b, c), n in seen.items() if b == a and n >= min_count) for a in range(n_attributes)]
    return table, seen


def block_diagonal(blocks: list[Floats]) -> Floats:
    """Stack the matrices of segments: each segment maps its own weights to its own slots."""
    matrix = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)))
    row = column = 0
    for block in blocks:
        matrix[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return matrix


def check_shrunk(features: Any, i: int, slots: Floats, v: Floats, rng: np.random.Generator) -> None:
    """Check add_transpose_shrunk for A_i' slots: u, w = soft(u, l1) / l2, and the rise of |soft(u, l1)|^2 / (2 l2)."""
    l1, l2 = 0.8, 0.6

    def soft(u: Floats) -> Floats:
        return np.sign(u) * np.maximum(np.abs(u) - l1, 0.0)

    plane = rng.normal(size=features.num_weights) * (v != 0)
    weights = soft(plane) / l2
    for scale in (1.7, -0.2, 40.0):
        before, w = plane.copy(), weights.copy()
        q, dot = features.add_transpose_shrunk(i, slots, scale, l1, l2, plane, weights)
        np.testing.assert_allclose(plane, before + scale * v, atol=1e-11)
        np.testing.assert_allclose(weights, soft(plane) / l2, rtol=1e-12, atol=1e-12)
        assert dot == pytest.approx(float(w @ v), rel=1e-9, abs=1e-10)
        rise = (soft(plane) @ soft(plane) - soft(before) @ soft(before)) / (2 * l2)
        assert scale * dot + scale**2 / (2 * l2) * q == pytest.approx(rise, rel=1e-9, abs=1e-9)
        assert -1e-12 <= q <= float(v @ v) * (1 + 1e-12) + 1e-12


def check_slot_rows(features: Any, i: int, slots: NDArray[np.int64], matrix: Floats) -> None:
    """Check that `slot_rows` returns the rows of the matrix (slots x weights), without zeros or repeated weights."""
    rows = features.slot_rows(i, slots)
    assert len(rows) == len(slots)
    for r, row in zip(slots, rows, strict=True):
        assert len(set(row.indices.tolist())) == len(row.indices)
        assert np.all(row.values != 0)
        dense = np.zeros(features.num_weights)
        dense[row.indices] = row.values
        np.testing.assert_allclose(dense, matrix[r], atol=1e-13)
