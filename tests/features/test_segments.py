"""Segments, alone and stacked, equal matrices that are built from the raw input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from oracles.enumerate import enumeration_of
from oracles.features import attribute_matrix, block_diagonal, check_shrunk, check_slot_rows, dense_matrix, slot_matrix
from oracles.objective import matrix_of
from oracles.problems import random_rows
from partwise import _core


@dataclass
class Stack:
    """A feature map over a structure, and the matrices A_i from the raw input.

    Weights without a pair (padding, masked) and padded slots are always 0; `real` and `real_slots` mark the others.
    """

    features: Any
    structure: Any
    matrices: list[NDArray[np.float64]]
    real: NDArray[np.bool_]
    real_slots: list[NDArray[np.bool_]]
    rng: np.random.Generator

    def weights(self):
        return self.rng.normal(size=self.features.num_weights) * self.real

    def slots(self, i, density=1.0):
        free = self.real_slots[i] & (self.rng.random(len(self.real_slots[i])) < density)
        return self.rng.normal(size=len(free)) * free


def random_layout(rng, kind, n_attributes, n_labels, width, rows):
    if kind == "dense":
        return _core.RowLayout.dense(n_attributes, n_labels, width)
    if kind == "observed":
        row_ptr, attributes, _ = rows
        labels = rng.integers(0, n_labels, len(row_ptr) - 1).astype(np.int64)
        return _core.RowLayout.observed(n_attributes, n_labels, width, row_ptr, attributes, labels)
    columns = [np.flatnonzero(rng.random(n_labels) < rng.choice([0.3, 0.8])) for _ in range(n_attributes)]
    indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(np.int64)
    return _core.RowLayout.from_pairs(n_attributes, n_labels, width, indptr, np.concatenate(columns).astype(np.int64))


@st.composite
def stacks(draw):
    """Draw a chain with attributes, dense input or slots, tied transitions (perhaps masked), and perhaps ends."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels = draw(st.sampled_from([2, 3, 7]))  # 7 labels pad to 8 columns
    ends = draw(st.booleans())
    lengths = rng.integers(1, 4, 3).astype(np.int64)
    chain = _core.Chain(lengths, n_labels, ends=ends)
    width = chain.width
    example_ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    kind = draw(st.sampled_from(["dense", "observed", "pairs", "inputs", "slots"]))
    if kind == "inputs":
        inputs = rng.normal(size=(int(lengths.sum()), 3)).astype(draw(st.sampled_from([np.float64, np.float32])))
        segments = [_core.DenseSegment(inputs, example_ptr, n_labels, width)]
        blocks = [[dense_matrix(inputs, example_ptr, n_labels, width, i)] for i in range(3)]
        real = np.tile(np.arange(width) < n_labels, 3)
    elif kind == "slots":
        slot_ptr = example_ptr * width
        rows = random_rows(rng, int(slot_ptr[-1]), 5, values=draw(st.booleans()))
        parts = draw(st.sampled_from([None, int(lengths.max())]))
        segments = [_core.SlotSegment(5, slot_ptr, *rows, uses=draw(st.integers(1, 2)), parts=parts)]
        blocks = [[slot_matrix(5, slot_ptr, *rows, i)] for i in range(3)]
        real = np.ones(5, dtype=bool)
    else:
        rows = random_rows(rng, int(lengths.sum()), 4, values=draw(st.booleans()))
        layout = random_layout(rng, kind, 4, n_labels, width, rows)
        segments = [_core.AttributeSegment(layout, example_ptr, *rows, once=draw(st.booleans()))]
        blocks = [[attribute_matrix(layout, example_ptr, *rows, i)] for i in range(3)]
        real = layout.pack(np.ones(layout.num_pairs)) > 0
    mask = (rng.random(n_labels * width) < 0.6).astype(np.uint8) if draw(st.booleans()) else None
    segments.append(_core.SharedSegment(n_labels * width, lengths - 1, mask))
    kept = np.ones(n_labels * width) if mask is None else mask.astype(np.float64)
    if ends:
        segments.append(_core.SharedSegment(2 * width, np.full(3, 2, dtype=np.int64)))
        kept = np.append(kept, np.ones(2 * width))
    matrices = [block_diagonal([*b, np.diag(kept)]) for b in blocks]
    real_slots = [np.append(np.tile(np.arange(width) < n_labels, t), np.ones(len(kept), dtype=bool)) for t in lengths]
    return Stack(_core.LinearMap(segments), chain, matrices, np.append(real, kept > 0), real_slots, rng)


@given(stacks())
def test_scores_are_products_with_the_matrix(stack):
    features = stack.features
    assert features.num_examples == 3
    assert features.num_weights == sum(s.num_weights for s in features.segments)
    for i, matrix in enumerate(stack.matrices):
        assert features.num_slots(i) == stack.structure.num_slots(i) == matrix.shape[0]
        np.testing.assert_allclose(matrix_of(features, i)[:, stack.real], matrix[:, stack.real], atol=1e-14)
        assert not matrix[:, ~stack.real].any()
        w = stack.weights()
        np.testing.assert_allclose(features.scores(i, w), matrix @ w, atol=1e-12)
        np.testing.assert_allclose(features.scores(i, w, -0.3), -0.3 * matrix @ w, atol=1e-12)


@given(stacks())
def test_transpose_is_the_adjoint(stack):
    features = stack.features
    for i, matrix in enumerate(stack.matrices):
        w, slots = stack.weights(), stack.slots(i)
        before = stack.rng.normal(size=features.num_weights)
        after = before.copy()
        features.add_transpose(i, slots, 1.7, after)
        np.testing.assert_allclose(after, before + 1.7 * matrix.T @ slots, atol=1e-12)
        assert float(features.scores(i, w) @ slots) == pytest.approx(float((after - before) @ w) / 1.7, abs=1e-10)
        check_shrunk(features, i, slots, matrix.T @ slots, stack.rng)


@given(stacks(), st.sampled_from([0.2, 1.0]))
def test_project_merges_repeated_features_of_the_transpose(stack, density):
    features = stack.features
    for i, matrix in enumerate(stack.matrices):
        slots = stack.slots(i, density)
        expected = matrix.T @ slots
        vector = features.project(i, slots)
        assert len(set(vector.indices.tolist())) == len(vector.indices)
        dense = np.zeros(features.num_weights)
        dense[vector.indices] = vector.values
        np.testing.assert_allclose(dense, expected, atol=1e-12)
        norm2 = float(expected @ expected)
        assert vector.norm2() == pytest.approx(norm2, rel=1e-12, abs=1e-12)
        assert features.transpose_norm2(i, slots) == pytest.approx(norm2, rel=1e-12, abs=1e-12)
        w = stack.rng.normal(size=features.num_weights)
        assert vector.dot(w) == pytest.approx(float(expected @ w), abs=1e-11)
        target = w.copy()
        vector.axpy(-2.0, target)
        np.testing.assert_allclose(target, w - 2.0 * expected, atol=1e-12)


@given(stacks(), st.sampled_from([0.2, 1.0]))
def test_rows_of_slots(stack, density):
    features = stack.features
    for i, matrix in enumerate(stack.matrices):
        check_slot_rows(features, i, np.flatnonzero(stack.slots(i, density)), matrix)


@given(stacks())
def test_dot_of_two_projections(stack):
    features = stack.features
    slots = [stack.slots(i) for i in range(3)]
    vectors = [features.project(i, s) for i, s in enumerate(slots)]
    dense = [m.T @ s for m, s in zip(stack.matrices, slots, strict=True)]
    for i in range(3):
        for j in range(3):
            assert vectors[i].dot(vectors[j]) == pytest.approx(float(dense[i] @ dense[j]), abs=1e-10)


@given(stacks())
def test_bound_of_psi(stack):
    for i, matrix in enumerate(stack.matrices):
        features_of = enumeration_of(stack.structure, i).counts @ matrix  # (N, d)
        gram = features_of @ features_of.T
        largest = float((np.diag(gram)[:, None] + np.diag(gram)[None, :] - 2 * gram).max())
        assert stack.features.psi2_bound(i) >= largest * (1 - 1e-12)


@given(stacks())
def test_bound_of_scores(stack):
    for i, matrix in enumerate(stack.matrices):
        features_of = enumeration_of(stack.structure, i).counts @ np.abs(matrix)  # (N, d)
        assert stack.features.reach(i) >= np.linalg.norm(features_of, axis=1).max() * (1 - 1e-12)
        assert stack.features.row_length >= (matrix != 0).sum(axis=1).max(initial=0)


@pytest.mark.parametrize("n_labels", [3, 7, 22, 61])  # 61: no kernel is compiled for this width
@pytest.mark.parametrize("per_row", [0, 5, 8, 20, 31, 90])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("kind", ["dense", "observed", "pairs"])
def test_segments_for_a_single_use_have_bit_identical_scores(kind, values, per_row, n_labels):
    rng = np.random.default_rng(per_row)
    lengths = np.array([3, 1, 0, 9])
    example_ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    row_ptr = np.concatenate([[0], np.cumsum(rng.integers(per_row // 2, per_row + 1, 13))]).astype(np.int64)
    attributes = rng.integers(-1, 40, row_ptr[-1]).astype(np.int64)  # many attributes repeat within their row
    rows = row_ptr, attributes, rng.normal(size=len(attributes)) if values else None
    layout = random_layout(rng, kind, 40, n_labels, -(-n_labels // 4) * 4, rows)
    segments = (_core.AttributeSegment(layout, example_ptr, *rows, once) for once in (False, True))
    kept, passing = (_core.LinearMap([segment]) for segment in segments)
    w = rng.normal(size=layout.num_weights) * 10.0 ** rng.integers(-8, 9, layout.num_weights)
    for i in range(4):
        np.testing.assert_array_equal(passing.scores(i, w), kept.scores(i, w))


def test_repeated_attributes_in_a_sentence_are_merged_before_squaring():
    # The same attribute is at both positions, twice at the first: |A'd|^2 = (2 + 1)^2, not 2^2 + 1^2 or 1 + 1 + 1.
    layout = _core.RowLayout.dense(2, 2, 4)
    segment = _core.AttributeSegment(layout, np.array([0, 2]), np.array([0, 2, 3]), np.array([1, 1, 1]))
    features = _core.LinearMap([segment])
    slots = np.zeros(8)
    slots[0] = slots[4] = 1.0
    assert features.transpose_norm2(0, slots) == pytest.approx(9.0)
    assert features.project(0, slots).norm2() == pytest.approx(9.0)
    slots[4] = -1.0
    assert features.transpose_norm2(0, slots) == pytest.approx(1.0)


def test_opposite_values_cancel():
    layout = _core.RowLayout.dense(1, 2, 4)
    rows = np.array([0, 2]), np.array([0, 0]), np.array([1.5, -1.5])
    features = _core.LinearMap([_core.AttributeSegment(layout, np.array([0, 1]), *rows)])
    assert features.transpose_norm2(0, np.array([1.0, -1.0, 0.0, 0.0])) == pytest.approx(0.0, abs=1e-15)
    assert not features.scores(0, np.ones(features.num_weights)).any()


def test_an_example_without_rows_has_no_slots_there():
    layout = _core.RowLayout.dense(1, 2, 4)
    segment = _core.AttributeSegment(layout, np.array([0, 0, 1]), np.array([0, 1]), np.array([0]))
    features = _core.LinearMap([segment])
    assert [features.num_slots(i) for i in range(2)] == [0, 4]
    assert features.transpose_norm2(0, np.zeros(0)) == 0.0


def test_columns_without_a_weight_take_no_gradient(rng):
    """A masked transition, and a pair that is not in the layout, keep weight 0 whatever the slots contain."""
    columns = np.array([0, 1, 3, 4, 5, 0, 7])  # one row with most columns, one row with few
    layout = _core.RowLayout.from_pairs(2, 8, 8, np.array([0, 5, 7]), columns)
    mask = np.array([1, 0, 1, 0], dtype=np.uint8)
    rows = _core.AttributeSegment(layout, np.array([0, 1]), np.array([0, 2]), np.array([0, 1]))
    features = _core.LinearMap([rows, _core.SharedSegment(4, np.ones(1, dtype=np.int64), mask)])
    slots = rng.uniform(1, 2, 12)
    w = np.zeros(features.num_weights)
    features.add_transpose(0, slots, 1.0, w)
    assert np.count_nonzero(w) == 7 + 2
    expected = float((slots[columns] ** 2).sum() + slots[8] ** 2 + slots[10] ** 2)
    assert features.transpose_norm2(0, slots) == pytest.approx(expected)
    assert features.project(0, slots).norm2() == pytest.approx(expected)


@pytest.mark.parametrize("n_rows", [1, 2])
def test_norm_of_single_rows_and_of_several(n_rows, rng):
    """Examples of one row, for which the core computes |A'd|^2 as |x|^2 |d|^2, and examples of several rows."""
    layout = _core.RowLayout.dense(4, 3, 4)
    row_ptr, attributes = 3 * np.arange(n_rows + 1), rng.integers(0, 4, 3 * n_rows)
    values = rng.normal(size=3 * n_rows)
    example_ptr = np.array([0, n_rows])
    features = _core.LinearMap([_core.AttributeSegment(layout, example_ptr, row_ptr, attributes, values)])
    slots = np.zeros((n_rows, 4))
    slots[:, :3] = rng.normal(size=(n_rows, 3))
    matrix = attribute_matrix(layout, example_ptr, row_ptr, attributes, values, 0)
    expected = float(((matrix.T @ slots.ravel()) ** 2).sum())
    assert features.transpose_norm2(0, slots.ravel()) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("n_rows", [1, 4])
def test_bounds_of_rows_that_are_used_several_times(once, values, n_rows, rng):
    """The bound covers |A'(y - z)|^2 for labellings that use a row at most `uses` times, and `parts` rows in total."""
    n_columns, width, n_attributes, uses, parts = 3, 4, 5, 2, 3
    # Attributes repeat within rows and between rows.
    sizes = rng.integers(1, 5, 2 * n_rows)
    row_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    attributes = rng.integers(-1, n_attributes, row_ptr[-1]).astype(np.int64)
    given = rng.normal(size=row_ptr[-1]) if values else None
    layout = _core.RowLayout.dense(n_attributes, n_columns, width)
    pointers = np.array([0, n_rows, 2 * n_rows], dtype=np.int64)
    limits = np.array([parts, parts + 1], dtype=np.int64)
    tight = _core.LinearMap([_core.AttributeSegment(layout, pointers, row_ptr, attributes, given, once, uses, limits)])
    loose = _core.LinearMap([_core.AttributeSegment(layout, pointers, row_ptr, attributes, given, once, uses)])
    for i, most in enumerate(limits.tolist()):
        seen = 0.0
        for _ in range(300):
            difference = np.zeros((n_rows, width))
            for sign in (1.0, -1.0):
                places = rng.permutation(np.repeat(np.arange(n_rows), uses))[: rng.integers(0, most + 1)]
                column = rng.integers(n_columns)  # rows that use one and the same column are the worst case
                for row in places:
                    difference[row, column if rng.random() < 0.9 else rng.integers(n_columns)] += sign
            seen = max(seen, tight.transpose_norm2(i, difference.ravel()))
        assert 0.0 < seen <= tight.psi2_bound(i) * (1 + 1e-12)
        assert tight.psi2_bound(i) <= loose.psi2_bound(i) * (1 + 1e-12)
    if n_rows > 1:
        assert tight.psi2_bound(0) < loose.psi2_bound(0)


def test_invalid_limits_on_the_use_of_rows_are_refused():
    layout = _core.RowLayout.dense(1, 2, 4)
    row_ptr, attributes = np.array([0, 1], dtype=np.int64), np.zeros(1, dtype=np.int64)
    for uses, parts, message in [
        (0, None, "uses must be at least 1"),
        (1, np.ones(2, dtype=np.int64), "parts must have one value per example"),
        (1, -np.ones(1, dtype=np.int64), "parts must not be negative"),
    ]:
        with pytest.raises(ValueError, match=message):
            _core.AttributeSegment(layout, row_ptr, row_ptr, attributes, None, False, uses, parts)
