"""Blocks of dense rows give NumPy's products, in single precision too, and gradients cost little more than values."""

from __future__ import annotations

import time

import numpy as np
import pytest

from partwise import MaxentClassifier, Problem, SequenceTagger
from partwise.features import DenseSegment, LinearMap, chain_map, multiclass_map
from partwise.model_files.parts import ModelParts
from partwise.models.partition import EncodedRows
from partwise.models.readers import ColumnReader, Sequences
from partwise.problem.dual_points import DualPoint
from partwise.problem.losses import get_loss
from partwise.problem.penalties import L2
from partwise.structures import Chain, Multiclass, padded_width

# Inputs and labels: sequences and rows shorter and longer than the core's blocks; numbers of labels with and without a
# kernel compiled for their width.
SIZES = [(3, 3), (130, 3), (600, 9), (1, 30), (301, 200)]
LENGTHS = np.array([1, 40, 2, 17, 1, 1], dtype=np.int64)
POINTERS = np.concatenate([[0], np.cumsum(LENGTHS)])


def segment(rows, n_labels, pointers=POINTERS):
    return LinearMap([DenseSegment(rows, pointers, n_labels, padded_width(n_labels))])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n_inputs", "n_labels"), SIZES)
def test_blocks_are_plain_products(n_inputs, n_labels, dtype, rng):
    rows = rng.normal(size=(int(LENGTHS.sum()), n_inputs)).astype(dtype)
    features, width = segment(rows, n_labels), padded_width(n_labels)
    weights, wide = rng.normal(size=(n_inputs, width)), rows.astype(np.float64)
    for i, (start, stop) in enumerate(zip(POINTERS, POINTERS[1:], strict=False)):
        x, slots = wide[start:stop], rng.normal(size=(stop - start, width))
        expected = x.T @ slots
        np.testing.assert_allclose(features.scores(i, weights.ravel()), (x @ weights).ravel(), atol=1e-12)
        after = weights.ravel().copy()
        features.add_transpose(i, slots.ravel(), 0.7, after)
        np.testing.assert_allclose(after, (weights + 0.7 * expected).ravel(), atol=1e-12)
        projected = features.project(i, slots.ravel())
        np.testing.assert_allclose(projected.values, expected.ravel(), atol=1e-12)
        assert features.transpose_norm2(i, slots.ravel()) == pytest.approx(float((expected**2).sum()), rel=1e-12)
        assert features.psi2_bound(i) == pytest.approx(2.0 * float((np.abs(x).sum(axis=0) ** 2).sum()), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n_inputs", "n_labels"), SIZES)
def test_sums_over_examples_are_plain_products(n_inputs, n_labels, dtype, rng):
    n = 150
    rows = rng.normal(size=(n, n_inputs)).astype(dtype)
    structure = Multiclass(n, n_labels)
    gold = rng.integers(0, n_labels, n)
    problem = Problem(multiclass_map(structure, rows), structure, structure.encode(gold), get_loss("log"), L2(1.0))
    counts = rng.random((n, structure.width))
    point = DualPoint.of_counts(counts.ravel(), np.ones(n), np.zeros(n))
    directions = np.eye(structure.width)[gold] - counts
    expected = rows.astype(np.float64).T @ directions
    np.testing.assert_allclose(problem.dual_terms(point)[0], expected.ravel(), atol=1e-11)


@pytest.mark.parametrize(("n_inputs", "n_labels"), SIZES)
def test_a_row_has_the_same_scores_alone(n_inputs, n_labels, rng):
    rows = rng.normal(size=(40, n_inputs))
    weights = rng.normal(size=n_inputs * padded_width(n_labels))
    together, alone = segment(rows, n_labels, np.array([0, 40])), segment(rows, n_labels, np.arange(41))
    each = [alone.scores(i, weights) for i in range(40)]
    np.testing.assert_array_equal(together.scores(0, weights), np.concatenate(each))


@pytest.mark.parametrize(("n_inputs", "n_labels"), SIZES)
def test_single_precision_rows_act_like_doubles_of_the_same_values(n_inputs, n_labels, rng):
    rows = rng.normal(size=(int(LENGTHS.sum()), n_inputs)).astype(np.float32)
    narrow, wide = segment(rows, n_labels), segment(rows.astype(np.float64), n_labels)
    weights = rng.normal(size=narrow.num_weights)
    for i in range(len(LENGTHS)):
        slots = rng.normal(size=narrow.num_slots(i))
        np.testing.assert_array_equal(narrow.scores(i, weights), wide.scores(i, weights))
        sums = weights.copy(), weights.copy()
        narrow.add_transpose(i, slots, 0.3, sums[0])
        wide.add_transpose(i, slots, 0.3, sums[1])
        np.testing.assert_array_equal(*sums)


def sentences(rng, dtype):
    lengths = rng.integers(1, 20, 30)
    y = [rng.integers(0, 3, n) for n in lengths]
    return [(rng.normal(size=(len(labels), 20)) + labels[:, None]).astype(dtype) for labels in y], y


@pytest.mark.parametrize("solver", ["lbfgs", "sdca", "eg"])
def test_a_tagger_gives_the_same_result_in_single_precision(solver, rng):
    X, y = sentences(rng, np.float32)
    narrow = SequenceTagger(solver=solver, tol=1e-3, random_state=0).fit(X, y)
    wide = SequenceTagger(solver=solver, tol=1e-3, random_state=0).fit([x.astype(np.float64) for x in X], y)
    assert narrow.state_features_ == wide.state_features_
    assert (narrow.result_.primal, narrow.result_.dual) == (wide.result_.primal, wide.result_.dual)
    assert narrow.predict(X) == wide.predict(X)


@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_a_classifier_gives_the_same_result_in_single_precision(penalize_intercept, rng):
    X = rng.normal(size=(60, 7)).astype(np.float32)
    y = rng.integers(0, 3, 60)
    options = {"penalize_intercept": penalize_intercept, "random_state": 0}
    narrow = MaxentClassifier(**options).fit(X, y)
    wide = MaxentClassifier(**options).fit(X.astype(np.float64), y)
    np.testing.assert_array_equal(narrow.coef_, wide.coef_)
    assert (narrow.result_.primal, narrow.result_.dual) == (wide.result_.primal, wide.result_.dual)
    np.testing.assert_array_equal(narrow.decision_function(X), wide.decision_function(X))


def test_single_precision_is_kept(rng):
    X, _ = sentences(rng, np.float32)
    rows = ColumnReader().read(Sequences.of(X))
    assert rows.table.dtype == rows.with_ones().table.dtype == np.float32
    assert ColumnReader().read(Sequences.of([*X, X[0].astype(np.float64)])).table.dtype == np.float64
    assert ColumnReader().read(Sequences.of([x.astype(np.float16) for x in X])).table.dtype == np.float64
    assert rows.attributes().values.dtype == np.float64
    labels = np.zeros(rows.n_rows, dtype=np.int64)
    half = EncodedRows.of(rows, labels).cut(0, 15)
    assert EncodedRows.joined([half, half]).rows.table.dtype == np.float32
    parts = ModelParts("examples", {}, half.to_arrays())  # the arrays of a partition's file
    np.testing.assert_array_equal(EncodedRows.from_parts(parts, 20, 3).rows.table, half.rows.table, strict=True)


def test_rows_are_not_copied():
    rows = np.zeros((2, 3), dtype=np.float32)
    features = chain_map(Chain(np.array([2], dtype=np.int64), 3), rows)
    rows[:] = 1.0
    assert features.scores(0, np.ones(features.num_weights))[0] == 3.0


def test_a_gradient_costs_little_more_than_two_values(rng):
    structure = Chain(np.full(200, 15, dtype=np.int64), 9)
    gold = structure.encode(rng.integers(0, 9, 3000))
    problem = Problem(chain_map(structure, rng.normal(size=(3000, 512))), structure, gold, get_loss("log"), L2(1.0))
    w = rng.normal(size=problem.n_weights)

    def least(work):
        seconds = []
        for _ in range(7):
            begin = time.process_time()
            work(w)
            seconds.append(time.process_time() - begin)
        return min(seconds)

    # A value takes one product with the rows, a gradient takes two. A gradient that also computed each example's part
    # of itself would take four.
    assert least(problem.value_and_gradient) < 3.5 * least(problem.value)
