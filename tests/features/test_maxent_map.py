"""Maximum-entropy maps: rows and columns hold the same features for every way to make a map; equal contexts merge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from oracles.features import check_shrunk, check_slot_rows
from oracles.objective import matrix_of
from partwise import Problem
from partwise.features import (
    Attributes,
    MaxentMap,
    RowLayout,
    logistic_map,
    maxent_map,
    maxent_matrix_map,
    merge_contexts,
    multiclass_map,
)
from partwise.structures import Multiclass


def table_of(features: MaxentMap, n: int, width: int) -> np.ndarray:
    """f[i, r, t], built from the columns alone."""
    table = np.zeros((n, width, features.num_weights))
    for k in range(features.num_columns):
        weight, examples, slots, values = features.column(k)
        assert np.all(np.diff(examples) >= 0)
        np.add.at(table, (examples, slots, weight), values)
    return table


def check_rows_and_columns(features, structure, rng):
    """Check that rows and columns hold the same table, and that the row operations are products with it."""
    n, width = structure.num_examples, structure.width
    table = table_of(features, n, width)
    assert features.num_cells == np.count_nonzero(table)
    assert not table[:, structure.n_labels :].any()
    w = rng.normal(size=features.num_weights)
    padding = np.setdiff1d(np.arange(len(w)), [features.column(k)[0] for k in range(features.num_columns)])
    w[padding] = 0.0
    for i in range(n):
        matrix = matrix_of(features, i)
        kept = np.arange(structure.n_labels)
        np.testing.assert_allclose(matrix[kept], table[i][kept], atol=1e-12)
        np.testing.assert_allclose(features.scores(i, w, 2.0)[kept], 2 * table[i][kept] @ w, atol=1e-12)
        slots = rng.normal(size=width)
        slots[structure.n_labels :] = 0.0
        expected = table[i].T @ slots
        target = w.copy()
        features.add_transpose(i, slots, -0.5, target)
        np.testing.assert_allclose(target, w - 0.5 * expected, atol=1e-12)
        check_shrunk(features, i, slots, expected, rng)
        vector = features.project(i, slots)
        np.testing.assert_allclose(vector.dot(w), expected @ w, atol=1e-12)
        assert vector.norm2() == pytest.approx(expected @ expected, abs=1e-12)
        assert features.transpose_norm2(i, slots) == pytest.approx(expected @ expected, abs=1e-12)
        check_slot_rows(features, i, kept, table[i])
        pairs = table[i][:, None] - table[i][None]
        assert features.psi2_bound(i) >= (pairs[kept][:, kept] ** 2).sum(axis=2).max() - 1e-12
    return table


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    n_labels=st.integers(1, 5),
    n_attributes=st.integers(1, 4),
    values=st.sampled_from(["none", "ones", "any"]),
    layout=st.sampled_from(["all", "observed", "pairs"]),
)
def test_attributes(seed, n, n_labels, n_attributes, values, layout):
    """Maps of rows of attributes, some of them repeated, ignored or empty."""
    rng = np.random.default_rng(seed)
    structure = Multiclass(n, n_labels)
    sizes = rng.integers(0, 5, n)
    row_ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    attributes = rng.integers(-1, n_attributes, row_ptr[-1]).astype(np.int64)
    x = {"none": None, "ones": np.ones(row_ptr[-1]), "any": rng.choice([-1.0, 0.0, 0.5, 1.0], row_ptr[-1])}[values]
    rows = Attributes(row_ptr, attributes, n_attributes, x)
    options = {}
    if layout == "observed":
        labels = rng.integers(0, n_labels, n)
        options["layout"] = RowLayout.observed(n_attributes, n_labels, structure.width, row_ptr, attributes, labels)
    elif layout == "pairs":
        options["pairs"] = rng.integers(0, n_attributes, 3), rng.integers(0, n_labels, 3)
    features = maxent_map(structure, rows, **options)
    table = check_rows_and_columns(features, structure, rng)
    used = table[table != 0]
    assert features.binary == bool(np.all(used == 1.0))
    has = features.capabilities()
    assert {"explicit weights", "column access"} <= has
    # an attribute without pairs has no features, so it cannot make the map negative
    assert ("non-negative features" in has) == bool(np.all(used >= 0))
    assert ("binary features" in has) == features.binary
    # a map of the same rows without column access
    if layout != "pairs":
        plain = multiclass_map(structure, rows, **options)
        w = rng.normal(size=plain.num_weights)
        for i in range(n):
            np.testing.assert_allclose(features.scores(i, w), plain.scores(i, w), atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4), n_labels=st.integers(1, 4), n_features=st.integers(1, 5))
def test_matrix(seed, n, n_labels, n_features):
    rng = np.random.default_rng(seed)
    structure = Multiclass(n, n_labels)
    dense = rng.choice([0.0, 0.0, 1.0, -2.0, 0.5], size=(n * n_labels, n_features))
    features = maxent_matrix_map(structure, sparse.csr_array(dense))
    table = check_rows_and_columns(features, structure, rng)
    np.testing.assert_array_equal(table[:, :n_labels].reshape(n * n_labels, -1), dense)
    assert features.num_columns == n_features
    assert features.binary == bool(np.all(dense[dense != 0] == 1))
    assert ("non-negative features" in features.capabilities()) == bool(np.all(dense >= 0))


def test_a_matrix_can_express_the_features_of_attributes(rng):
    n, n_labels, n_attributes = 6, 3, 4
    x = rng.random((n, n_attributes)) * (rng.random((n, n_attributes)) < 0.6)
    structure = Multiclass(n, n_labels)
    rows = np.zeros((n, n_labels, n_attributes, n_labels))
    for y in range(n_labels):
        rows[:, y, :, y] = x
    one = maxent_map(structure, x)
    two = maxent_matrix_map(structure, rows.reshape(n * n_labels, -1))
    layout = RowLayout.dense(n_attributes, n_labels, structure.width)
    w = rng.normal(size=n_attributes * n_labels)
    gold = structure.encode(np.array([0, 1, 2, 0, 1, 2]))
    a = Problem(one, structure, gold, "log", 1.0).value(layout.pack(w))
    assert Problem(two, structure, gold, "log", 1.0).value(w) == pytest.approx(a, rel=1e-14)


def test_logistic_regression_has_one_weight_vector(rng):
    structure = Multiclass(5, 2)
    x = rng.normal(size=(5, 3))
    features = logistic_map(structure, x)
    assert features.num_columns == 3
    table = check_rows_and_columns(features, structure, rng)
    assert not table[:, 0].any()
    with pytest.raises(ValueError, match="two labels, the structure has 3"):
        logistic_map(Multiclass(5, 3), x)


def test_features_have_names():
    structure = Multiclass(2, 3)
    features = maxent_map(structure, np.array([[1.0, 0.0], [0.0, -1.0]]))
    assert features.describe(1) == "feature 1 (attribute 0, label 1)"
    assert features.lacks("non-negative features") == "feature 4 (attribute 1, label 0) has a negative value"
    assert features.lacks("column access") == ""
    assert maxent_matrix_map(structure, np.eye(6)).describe(5) == "feature 5"
    assert multiclass_map(structure, np.eye(2)).describe(5) == "weight 5"
    assert multiclass_map(structure, np.eye(2)).lacks("column access") == ""
    with pytest.raises(ValueError, match="no weight 99"):
        features.describe(99)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: maxent_map(s, np.ones((3, 2))), "3 rows of input, the structure has 2"),
        (lambda s: maxent_map(s, np.ones(2)), "two-dimensional"),
        (lambda s: maxent_map(s, np.ones((2, 2)), pairs=([0, 2], [0, 0])), r"pair 1: attribute 2 is not in \[0, 2\)"),
        (lambda s: maxent_map(s, np.ones((2, 2)), pairs=([0, 1], [0, 3])), r"pair 1: label 3 is not in \[0, 3\)"),
        (lambda s: maxent_map(s, np.ones((2, 2)), pairs=([0, 1], [0])), "shape"),
        (
            lambda s: maxent_map(s, np.ones((2, 2)), pairs=([0], [0]), layout=RowLayout.dense(2, 3, s.width)),
            "not both",
        ),
        (lambda s: maxent_map(s, np.ones((2, 2)), layout=RowLayout.dense(2, 4, 4)), "4 labels, the structure 3"),
        (lambda s: maxent_map(s, np.full((2, 2), np.nan)), "NaN or infinite"),
        (lambda s: maxent_matrix_map(s, np.ones((5, 2))), "5 rows, 2 examples with 3 labels"),
        (lambda s: maxent_matrix_map(s, np.full((6, 2), np.inf)), "NaN or infinite"),
        (lambda s: MaxentMap.of_matrix(3, 4, 2, np.array([0, 1]), np.array([0])), "row for every label"),
        (lambda s: MaxentMap.of_matrix(1, 4, 2, np.array([0, 1]), np.array([2])), "feature 2 is out of range"),
        (lambda s: MaxentMap.of_matrix(1, 0, 2, np.array([0, 1]), np.array([1])), "at least one slot"),
        (lambda s: MaxentMap.of_matrix(1, 4, 2, np.array([0, 2]), np.array([1])), "cell_ptr"),
        (lambda s: MaxentMap.of_matrix(1, 4, 2, np.array([0, 1]), np.array([1]), np.ones(2)), "values has 2"),
        (lambda s: MaxentMap(RowLayout.dense(2, 3, 4), np.zeros(0, dtype=np.int64), np.array([1])), "row_ptr"),
        (lambda s: MaxentMap(RowLayout.dense(2, 3, 4), np.array([0, 1]), np.array([2])), "attribute 2"),
        (lambda s: maxent_map(s, np.ones((2, 2))).column(6), "no column 6"),
    ],
)
def test_contexts_that_do_not_fit_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build(Multiclass(2, 3))


class TestMerging:
    def test_by_hand(self):
        rows = Attributes(np.array([0, 2, 4, 5, 7, 7, 7, 8]), np.array([3, 1, 1, 3, 1, 3, 1, -1]), 4)
        merged = merge_contexts(rows, [0, 0, 0, 1, 2, 2, 2], [1, 2, 4, 8, 16, 32, 64])
        # Rows without frequent attributes come first; a row that holds only ignored attributes counts as empty.
        assert merged.rows.row_ptr.tolist() == [0, 0, 1, 3, 5]
        assert merged.rows.attributes.tolist() == [1, 1, 3, 1, 3]
        assert merged.labels.tolist() == [2, 0, 0, 1]
        assert merged.sample_weight.tolist() == [112, 4, 3, 8]
        assert merged.index.tolist() == [2, 2, 1, 3, 0, 0, 0]

    def test_rows_that_share_frequent_attributes_are_neighbours(self):
        # Attribute 2 is the most frequent, then 0, then 1.
        rows = [[2, 0], [1], [2], [0], [2, 0, 1], [], [2, 1], [2]]
        row_ptr = np.cumsum([0, *map(len, rows)])
        merged = merge_contexts(Attributes(row_ptr, np.concatenate(rows).astype(np.int64), 3), np.arange(8))
        assert merged.labels.tolist() == [5, 1, 3, 2, 7, 6, 0, 4]

    @given(seed=st.integers(0, 2**32 - 1), values=st.booleans(), weighted=st.booleans())
    def test_the_objective_is_the_same(self, seed, values, weighted):
        rng = np.random.default_rng(seed)
        x = (rng.random((40, 3)) < 0.5) * (rng.choice([1.0, 2.5], size=(40, 3)) if values else 1.0)
        labels = rng.integers(0, 3, 40)
        weight = rng.random(40) if weighted else None
        contexts = merge_contexts(x, labels, weight)
        assert len(contexts.labels) == len(np.unique(np.column_stack([x, labels]), axis=0)) < 40
        assert contexts.rows.values is None or values
        structure, small = Multiclass(40, 3), Multiclass(len(contexts.labels), 3)
        full = Problem(maxent_map(structure, x), structure, structure.encode(labels), "log", 0.5, sample_weight=weight)
        less = Problem(
            maxent_map(small, contexts.rows),
            small,
            small.encode(contexts.labels),
            "log",
            0.5,
            sample_weight=contexts.sample_weight,
        )
        w = rng.normal(size=full.n_weights)
        assert less.value(w) == pytest.approx(full.value(w), rel=1e-12)
        np.testing.assert_array_equal(labels, contexts.labels[contexts.index])

    def test_shapes(self):
        with pytest.raises(ValueError, match="labels of shape"):
            merge_contexts(np.eye(3), [0, 1])
        with pytest.raises(ValueError, match="weights of shape"):
            merge_contexts(np.eye(3), [0, 1, 2], [1.0])
