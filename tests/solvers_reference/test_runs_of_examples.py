"""Sums over many short examples, which the core computes in runs, and the Hessian's diagonal, equal NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, logsumexp

from oracles.problems import make_case
from partwise import Problem
from partwise.features import maxent_map, multiclass_map
from partwise.structures import Multiclass

L2 = 0.3


def data(rng, n, n_labels, values):
    """Draw rows of 0 to 30 features (more than one block of lengths), labels, and weights, some of which are 0."""
    X = (rng.random((n, 40)) < rng.random((n, 1)) * 0.75) * (rng.normal(size=(n, 40)) if values else 1.0)
    return X, rng.integers(0, n_labels, n), rng.random(n) * (rng.random(n) < 0.9)


def problem_of(X, y, n_labels, weight=None, make=multiclass_map):
    structure = Multiclass(len(y), n_labels)
    features = make(structure, csr_matrix(X))
    return Problem(features, structure, structure.encode(y), "log", L2, sample_weight=weight)


def unpacked(problem, w):
    """Reshape w to (inputs, labels)."""
    return w.reshape(-1, problem.sums.in_memory()[0].structure.width)[
        :, : problem.sums.in_memory()[0].structure.n_labels
    ]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_more_weights_than_are_added_up_at_a_time(n_jobs, rng):
    """The core adds up a long gradient in parts, each over blocks of examples; all parts must be there."""
    n, n_labels, n_attributes = 300, 4, 15_000
    X = csr_matrix((np.ones(n * 40), rng.integers(0, n_attributes, n * 40), np.arange(0, n * 40 + 1, 40)))
    X.resize(n, n_attributes)
    X.sum_duplicates()
    y = rng.integers(0, n_labels, n)
    problem = problem_of(X, y, n_labels).with_n_jobs(n_jobs)
    W = rng.normal(size=(n_attributes, n_labels))
    p = np.exp(log_softmax(X @ W, axis=1))
    expected = X.T @ (p - np.eye(n_labels)[y]) + L2 * W
    np.testing.assert_allclose(problem.value_and_gradient(W.ravel())[1], expected.ravel(), atol=1e-11)


@pytest.mark.parametrize("make", [multiclass_map, maxent_map])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_labels", [2, 3, 7, 20, 60])
def test_against_numpy(n_labels, weighted, values, make, rng):
    n = 1200
    X, y, weight = data(rng, n, n_labels, values)
    weight = weight if weighted else np.ones(n)
    problem = problem_of(X, y, n_labels, weight, make)
    w, v = rng.normal(size=(2, problem.n_weights)) * (
        np.arange(problem.n_weights) % problem.sums.in_memory()[0].structure.width < n_labels
    )
    W, V = unpacked(problem, w), unpacked(problem, v)
    scores = X @ W
    losses = logsumexp(scores, axis=1) - scores[np.arange(n), y]
    p = np.exp(log_softmax(scores, axis=1))
    expected = float(weight @ losses) + 0.5 * L2 * float(w @ w)
    value, gradient = problem.value_and_gradient(w)
    assert problem.value(w) == pytest.approx(expected, rel=1e-12)
    assert value == pytest.approx(expected, rel=1e-12)
    residual = weight[:, None] * (p - np.eye(n_labels)[y])
    np.testing.assert_allclose(unpacked(problem, gradient), X.T @ residual + L2 * W, rtol=1e-9, atol=1e-9)

    marginals = np.zeros(n * problem.sums.in_memory()[0].structure.width)
    problem.value_and_gradient(w, marginals)
    found = marginals.reshape(n, -1)[:, :n_labels]
    np.testing.assert_allclose(found[weight > 0], p[weight > 0], rtol=1e-12, atol=1e-300)
    change = X @ V
    middle = weight[:, None] * p * (change - (p * change).sum(axis=1, keepdims=True))
    variance = np.tile((p * (1 - p)).mean(axis=1, keepdims=True), n_labels)
    diagonal = (X * X).T @ (weight[:, None] * variance) + L2
    for hessian in (problem.hessian(w), problem.hessian(w, marginals=marginals)):
        np.testing.assert_allclose(unpacked(problem, hessian(v)), X.T @ middle + L2 * V, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(unpacked(problem, hessian.diagonal()), diagonal, rtol=1e-9, atol=1e-9)


def test_probabilities_of_two_labels_near_zero():
    # the probability e^-300 must not become 0, as it would if computed as 1 - p
    structure = Multiclass(1, 2)
    for gap in (0.0, 5.0, 300.0, 700.0):
        value, p, entropy = structure.log_partition(0, np.array([gap, 0.0, 0.0, 0.0]), 1.0)
        assert value == pytest.approx(gap + np.log1p(np.exp(-gap)), rel=1e-15)
        assert p[1] == pytest.approx(np.exp(-gap) / (1 + np.exp(-gap)), rel=1e-13)
        assert p[0] == pytest.approx(1 / (1 + np.exp(-gap)), rel=1e-15)
        assert entropy == pytest.approx(np.log1p(np.exp(-gap)) + gap * p[1], rel=1e-12, abs=1e-300)


def test_sum_of_the_diagonal_is_that_of_the_enumerated_matrix(rng):
    # each example's variances are spread evenly over its labels
    case = make_case("multiclass", seed=3)
    problem = Problem(case.features, case.structure, case.gold, "log", L2, sample_weight=case.sample_weight)
    w = rng.normal(size=problem.n_weights)
    expected = unpacked(problem, np.diag(case.dense("log", L2).hessian(w)))
    found = unpacked(problem, problem.hessian(w).diagonal())
    np.testing.assert_allclose(found, np.tile(found[:, :1], found.shape[1]), rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), expected.sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("kind", ["chain-tied", "chain-untied"])
def test_diagonal_of_other_structures_uses_expected_counts(kind, rng):
    case = make_case(kind, seed=3)
    problem = Problem(case.features, case.structure, case.gold, "log", L2, sample_weight=case.sample_weight)
    w = rng.normal(size=problem.n_weights)
    marginals = np.zeros(int(case.structure.slot_offsets()[-1]))
    problem.value_and_gradient(w, marginals)
    offsets = case.structure.slot_offsets()
    expected = np.full(problem.n_weights, L2)
    for i, omega in enumerate(problem.sample_weight):
        if omega == 0:
            continue
        for r, mu in enumerate(marginals[offsets[i] : offsets[i + 1]]):
            unit = np.zeros(offsets[i + 1] - offsets[i])
            unit[r] = 1.0
            row = np.zeros(problem.n_weights)
            case.features.add_transpose(i, unit, 1.0, row)
            expected += omega * mu * row**2
    np.testing.assert_allclose(problem.hessian(w).diagonal(), expected, rtol=1e-9, atol=1e-9)


class TestParts:
    def test_a_sample_of_equal_examples_has_the_whole_hessian(self, rng):
        n = 20_000
        X, weight = np.tile(rng.normal(size=(1, 5)), (n, 1)), np.tile([2.0, 0.5], n // 2)
        problem = problem_of(X, np.zeros(n, dtype=int), 3, weight)
        w, v = rng.normal(size=(2, problem.n_weights))
        whole, part = problem.hessian(w), problem.hessian(w, every=4)
        assert part.partial
        assert not whole.partial
        np.testing.assert_allclose(part(v), whole(v), rtol=1e-9)
        np.testing.assert_allclose(part.diagonal(), whole.diagonal(), rtol=1e-9)

    def test_small_problems_use_all_examples(self, rng):
        X, y, _ = data(rng, 50, 3, True)
        problem = problem_of(X, y, 3)
        w, v = rng.normal(size=(2, problem.n_weights))
        part = problem.hessian(w, every=4)
        assert not part.partial
        np.testing.assert_array_equal(part(v), problem.hessian(w)(v))

    def test_bad_input(self, rng):
        X, y, _ = data(rng, 50, 3, True)
        problem = problem_of(X, y, 3)
        w = np.zeros(problem.n_weights)
        with pytest.raises(ValueError, match="every"):
            problem.hessian(w, every=0)
        with pytest.raises(ValueError, match="marginals"):
            problem.hessian(w, marginals=np.zeros(3))
        chain = make_case("chain-tied", seed=3)
        other = Problem(chain.features, chain.structure, chain.gold, "log", L2)
        with pytest.raises(ValueError, match="one part"):
            other.hessian(np.zeros(other.n_weights), marginals=np.zeros(int(chain.structure.slot_offsets()[-1])))
