"""Which (attribute, column) pairs have a weight, and at which position."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.features import observed_pairs, pair_positions
from oracles.problems import random_rows
from partwise import _core

seeds = st.integers(0, 2**32 - 1)


def check_layout(layout, columns_of):
    """Check that pairs(), pack and unpack agree with the list of columns of each attribute."""
    indptr, columns = layout.pairs()
    assert [columns[a:b].tolist() for a, b in pairwise(indptr)] == columns_of
    assert layout.num_pairs == sum(map(len, columns_of)) == len(columns)
    assert layout.num_attributes == len(columns_of)
    assert layout.num_weights >= layout.num_pairs
    values = np.arange(1.0, layout.num_pairs + 1)
    packed = layout.pack(values)
    assert packed.shape == (layout.num_weights,)
    assert sorted(packed[packed != 0]) == values.tolist()  # each pair has one position, and padding is 0
    np.testing.assert_array_equal(layout.unpack(packed), values)
    rubbish = np.full(layout.num_weights, -7.0)
    rubbish[packed != 0] = packed[packed != 0]
    np.testing.assert_array_equal(layout.unpack(rubbish), values)  # padding is not read


@pytest.mark.parametrize(
    ("n_attributes", "n_columns", "width"), [(5, 3, 4), (1, 1, 4), (0, 3, 4), (7, 8, 8), (3, 13, 16)]
)
def test_dense(n_attributes, n_columns, width):
    layout = _core.RowLayout.dense(n_attributes, n_columns, width)
    assert (layout.n_columns, layout.width) == (n_columns, width)
    check_layout(layout, [list(range(n_columns))] * n_attributes)


@given(seeds, st.integers(0, 6), st.sampled_from([(1, 4), (3, 4), (5, 8), (20, 24), (70, 72)]))
def test_from_pairs(seed, n_attributes, shape):
    rng = np.random.default_rng(seed)
    n_columns, width = shape
    density = rng.random()
    columns_of = [np.flatnonzero(rng.random(n_columns) < density).tolist() for _ in range(n_attributes)]
    indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns_of])]).astype(np.int64)
    columns = np.array([c for row in columns_of for c in row], dtype=np.int64)
    layout = _core.RowLayout.from_pairs(n_attributes, n_columns, width, indptr, columns)
    check_layout(layout, columns_of)
    check_layout(
        _core.RowLayout.from_pairs(n_attributes, n_columns, width, indptr, columns.astype(np.uint16)), columns_of
    )
    values = rng.normal(size=len(columns))
    np.testing.assert_array_equal(layout.pack(values, 3), [*layout.pack(values), 0, 0, 0])
    with pytest.raises(ValueError):
        layout.pack(values, -1)


@given(seeds, st.integers(1, 6), st.integers(1, 3))
def test_observed(seed, n_attributes, min_count):
    rng = np.random.default_rng(seed)
    row_ptr, attributes, _ = random_rows(rng, 12, n_attributes, values=False)
    labels = rng.integers(0, 3, 12).astype(np.int64)
    layout = _core.RowLayout.observed(n_attributes, 3, 4, row_ptr, attributes, labels, min_count)
    columns_of, _ = observed_pairs(n_attributes, row_ptr, attributes, labels, min_count)
    check_layout(layout, columns_of)


def test_observed_by_hand():
    # rows {0, 1, 1}, {1}, {-1, 2} with labels 2, 0, 1
    row_ptr = np.array([0, 3, 4, 6])
    attributes = np.array([0, 1, 1, 1, -1, 2])
    labels = np.array([2, 0, 1])
    one = _core.RowLayout.observed(4, 3, 4, row_ptr, attributes, labels)
    assert set(pair_positions(one)) == {(0, 2), (1, 0), (1, 2), (2, 1)}
    two = _core.RowLayout.observed(4, 3, 4, row_ptr, attributes, labels, 2)
    assert set(pair_positions(two)) == {(1, 2)}


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.RowLayout.dense(-1, 3, 4),
        lambda: _core.RowLayout.dense(2, 0, 4),
        lambda: _core.RowLayout.dense(2, 5, 4),  # 5 columns, width 4
        lambda: _core.RowLayout.from_pairs(2, 3, 4, np.array([0, 1]), np.array([0])),  # pointers for one attribute
        lambda: _core.RowLayout.from_pairs(2, 3, 4, np.array([0, 2, 1]), np.array([0])),  # decreasing pointers
        lambda: _core.RowLayout.from_pairs(2, 3, 4, np.array([0, 1, 3]), np.array([0])),  # past the end
        lambda: _core.RowLayout.from_pairs(2, 3, 4, np.array([1, 1, 1]), np.array([0])),  # not from 0
        lambda: _core.RowLayout.from_pairs(1, 3, 4, np.array([0, 1]), np.array([3])),  # no column 3
        lambda: _core.RowLayout.from_pairs(1, 3, 4, np.array([0, 1]), np.array([-1])),
        lambda: _core.RowLayout.from_pairs(1, 3, 4, np.array([0, 2]), np.array([1, 0])),  # not ascending
        lambda: _core.RowLayout.from_pairs(1, 3, 4, np.array([0, 2]), np.array([1, 1])),  # repeated
        lambda: _core.RowLayout.observed(2, 3, 4, np.array([0, 1]), np.array([2]), np.array([0])),  # no attribute 2
        lambda: _core.RowLayout.observed(2, 3, 4, np.array([0, 1]), np.array([-2]), np.array([0])),
        lambda: _core.RowLayout.observed(2, 3, 4, np.array([0, 1]), np.array([1]), np.array([3])),  # no label 3
        lambda: _core.RowLayout.observed(2, 3, 4, np.array([0, 1]), np.array([1]), np.array([-1])),
        lambda: _core.RowLayout.observed(2, 3, 4, np.array([0, 1]), np.array([1]), np.array([0, 0])),  # two labels
        lambda: _core.RowLayout.observed(2, 3, 4, np.array([0, 2]), np.array([1]), np.array([0])),
    ],
)
def test_bad_layouts(call):
    with pytest.raises(ValueError, match=r"attribute|column|label|ptr|row"):
        call()


def test_pack_and_unpack_refuse_other_lengths():
    layout = _core.RowLayout.dense(2, 3, 4)
    with pytest.raises(ValueError, match="values"):
        layout.pack(np.zeros(layout.num_pairs + 1))
    with pytest.raises(ValueError, match="weights"):
        layout.unpack(np.zeros(layout.num_weights + 1))
