"""The benchmarks' independent computation of the objective against enumeration of all labellings."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from benchmarks.objective import (
    ChainData,
    ChainLoss,
    chain_log_loss,
    chain_objective,
    chain_primal,
    multiclass_objective,
)


def slow_log_loss(emissions, transitions, gold):
    """Return -log p(gold) of one sequence, by enumeration."""
    length, n_labels = emissions.shape

    def score(path):
        total = sum(emissions[t, a] for t, a in enumerate(path))
        return total + sum(transitions[a, b] for a, b in itertools.pairwise(path))

    every = np.array([score(path) for path in itertools.product(range(n_labels), repeat=length)])
    top = every.max()
    return top + np.log(np.exp(every - top).sum()) - score(gold)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 30.0]),
)
def test_chain_log_loss(lengths, n_labels, seed, scale):
    rng = np.random.default_rng(seed)
    emissions = scale * rng.standard_normal((sum(lengths), n_labels))
    transitions = scale * rng.standard_normal((n_labels, n_labels))
    gold = rng.integers(n_labels, size=sum(lengths))
    expected, at = 0.0, 0
    for length in lengths:
        if length:
            expected += slow_log_loss(emissions[at : at + length], transitions, gold[at : at + length])
        at += length
    assert chain_log_loss(emissions, transitions, gold, np.array(lengths)) == pytest.approx(
        expected, rel=1e-10, abs=1e-9
    )


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.sampled_from([ChainLoss(), ChainLoss(0.0, 1.0), ChainLoss(0.3, 1.0), ChainLoss(0.0, 1.5, True), ChainLoss(2.0)]),
)
def test_chain_losses(lengths, n_labels, seed, loss):
    rng = np.random.default_rng(seed)
    # each token has its own attribute, so the scores of tokens are the weights
    state = rng.standard_normal((sum(lengths), n_labels))
    transitions = rng.standard_normal((n_labels, n_labels))
    gold = rng.integers(n_labels, size=sum(lengths))
    expected, at = 0.5 * 3.0 * ((state**2).sum() + (transitions**2).sum()), 0
    for length in lengths:
        scores, right = state[at : at + length], gold[at : at + length]
        paths = [np.array(path) for path in itertools.product(range(n_labels), repeat=length)]
        score = lambda path: scores[np.arange(length), path].sum() + transitions[path[:-1], path[1:]].sum()  # noqa: B023, E731
        every = np.array([score(path) + loss.cost * (path != right).sum() for path in paths])
        top = every.max()
        if loss.temperature:
            top += loss.temperature * np.log(np.exp((every - top) / loss.temperature).sum())
        violation = top - score(right)
        expected += max(violation, 0.0) ** 2 if loss.squared else violation
        at += length
    value = chain_primal(state, state, transitions, gold, np.array(lengths), 3.0, loss)
    assert value == pytest.approx(expected, rel=1e-10, abs=1e-9)


def test_more_sequences_than_a_batch():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 4, size=600)
    emissions = rng.standard_normal((lengths.sum(), 3))
    transitions = rng.standard_normal((3, 3))
    gold = rng.integers(3, size=lengths.sum())
    ends = np.cumsum(lengths)
    expected = sum(
        slow_log_loss(emissions[end - n : end], transitions, gold[end - n : end])
        for n, end in zip(lengths, ends, strict=True)
    )
    assert chain_log_loss(emissions, transitions, gold, lengths) == pytest.approx(expected, rel=1e-12)


def test_chain_objective_from_named_weights():
    data = ChainData.from_strings([[["a", "b", "b"], ["a"]], [["c"]]], [["X", "Y"], ["Y"]])
    assert data.labels == ["X", "Y"]
    state = {("a", "X"): 0.5, ("b", "X"): -1.0, ("b", "Y"): 2.0, ("c", "Y"): 0.25}
    hops = {("X", "Y"): 1.5, ("Y", "Y"): -0.5}
    # attribute b occurs twice and counts twice
    first = np.array([[0.5 - 2.0, 4.0], [0.5, 0.0]])
    transitions = np.array([[0.0, 1.5], [0.0, -0.5]])
    loss = slow_log_loss(first, transitions, (0, 1)) + slow_log_loss(np.array([[0.0, 0.25]]), transitions, (1,))
    penalty = 0.5 * 3.0 * sum(value**2 for value in [*state.values(), *hops.values()])
    value = chain_objective(data, data.state_matrix(state), data.transition_matrix(hops), 3.0)
    assert value == pytest.approx(loss + penalty, rel=1e-12)


@given(arrays(float, (4, 3), elements=st.floats(-5, 5)), arrays(float, (2, 3), elements=st.floats(-5, 5)))
def test_multiclass_objective(X, weights):
    y = np.array([0, 1, 1, 0])
    probabilities = np.exp(X @ weights.T)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    expected = 0.7 * (weights**2).sum() / 2 - np.log(probabilities[np.arange(4), y]).sum()
    assert multiclass_objective(X, y, weights, 0.7) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(arrays(float, (4, 3), elements=st.floats(-5, 5)), arrays(float, 3, elements=st.floats(-5, 5)))
def test_two_labels_have_one_weight_vector(X, weights):
    y = np.array([0, 1, 1, 0])
    expected = np.log1p(np.exp(np.where(y == 1, -1, 1) * (X @ weights))).sum() + 0.35 * weights @ weights
    assert multiclass_objective(X, y, weights[None], 0.7) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    sparse = csr_array(X)
    assert multiclass_objective(sparse, y, weights[None], 0.7) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_crfsuite_reports_the_same_objective(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    rng = np.random.default_rng(1)
    X = [[[f"w{rng.integers(6)}", f"v{rng.integers(3)}"] for _ in range(rng.integers(1, 6))] for _ in range(30)]
    y = [[str(rng.integers(3)) for _ in x] for x in X]
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"c1": 0.0, "c2": 0.25}, verbose=False)
    for sequence, labels in zip(X, y, strict=True):
        trainer.append(sequence, labels)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    info = tagger.info()
    tagger.close()
    data = ChainData.from_strings(X, y)
    value = chain_objective(data, data.state_matrix(info.state_features), data.transition_matrix(info.transitions), 0.5)
    assert value == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-6)
