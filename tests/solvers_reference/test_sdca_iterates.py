"""The core's exact blocks have the iterates of a root finder of SciPy, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from oracles.problems import make_case
from oracles.sdca_reference import best_block, exact_blocks
from partwise import _core
from partwise.features import maxent_matrix_map

LOSSES = ["log", "softmax-margin", "smoothed-hinge"]


class State:
    """The arrays that sdca_epoch updates in place."""

    def __init__(self, objective, scores, l2, curvatures=None):
        everyone = np.arange(objective.num_examples)
        self.objective, self.l2 = objective, l2
        self.curvatures = _core.slot_curvatures(objective, everyone) if curvatures is None else curvatures
        self.scores = scores.copy()
        self.entropies = _core.sdca_start(objective, 300.0, self.scores)
        self.gains = np.zeros(objective.num_examples)
        self.weights = objective.dual_terms_gibbs(self.scores)[0] / l2

    @property
    def marginals(self):
        return self.objective.marginals_of_scores(self.scores)[0]

    def run(self, order):
        names = ("curvatures", "weights", "scores", "entropies", "gains")
        state = _core.SdcaState(self.objective, **{name: getattr(self, name) for name in names})
        return _core.sdca_epoch(state, np.array(order, dtype=np.int64), _core.SdcaOptions(l2=self.l2))

    def dual(self):
        u, b = self.objective.dual_terms_slots(self.marginals, None, self.entropies)
        return b - u @ u / (2 * self.l2)


def start(case, scale, rng):
    return np.concatenate([scale * rng.normal(size=e.counts.shape[1]) * e.used for e in case.examples])


@pytest.mark.parametrize("l2", [1e-4, 0.5, 100.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_iterates(loss, l2, rng):
    case = make_case("multiclass", seed=41, n=6, plain=True)
    problem = case.dense(loss, l2)
    scores = start(case, 3.0, rng)
    state = State(case.objective(loss), scores, l2)
    order = rng.integers(0, case.n, 20)
    us = [e.probabilities(s) for e, s in zip(case.examples, case.split(scores), strict=True)]
    before = state.dual()
    report = state.run(order)
    us = exact_blocks(problem, us, order)
    np.testing.assert_allclose(state.marginals, problem.slots(us), atol=1e-9)
    np.testing.assert_allclose(state.entropies, problem.entropies(us), atol=1e-8)
    np.testing.assert_allclose(state.weights, problem.weights(us), atol=1e-8 / min(l2, 1.0))
    assert report.visits == 20
    assert report.dual_gain == pytest.approx(state.dual() - before, rel=1e-9)


@given(seed=st.integers(0, 10**6), l2=st.floats(1e-6, 1e3), scale=st.floats(0, 60))
def test_every_visit_is_the_maximum(seed, l2, scale):
    """From any start, a visit does not lower the dual, and no other distribution of the visited example is better."""
    case = make_case("multiclass", seed=seed, n=3, plain=True)
    rng = np.random.default_rng(seed)
    state = State(case.objective("log"), start(case, scale, rng), l2)
    for i in (0, 1, 2, 0):
        old = state.marginals.copy()
        theta = state.weights.copy()
        before = state.dual()
        state.run([i])
        assert state.dual() >= before - 1e-12 * (1 + abs(before))
        t = case.features.scores(i, theta)[:3]
        rho = case.sample_weight[i] * state.curvatures[4 * i : 4 * i + 3] / l2
        best = best_block(t, old[4 * i : 4 * i + 3], rho)
        np.testing.assert_allclose(state.marginals[4 * i : 4 * i + 3], best, atol=1e-7)


def test_masks_and_padding_stay_at_zero(rng):
    case = make_case("multiclass", seed=3, n=2, plain=True)
    gold = case.gold[1]
    allowed = np.array([1, 1, 0, 0], dtype=np.uint8)
    allowed[gold[1]] = 1
    case.structure.set_mask(1, allowed)
    state = State(case.objective("log"), np.zeros(8), 0.5)
    state.run([0, 1] * 5)
    assert state.marginals[3] == 0
    assert np.all((state.marginals[4:] > 0) == (allowed > 0))
    assert np.all((state.curvatures[4:] >= 0) == (allowed > 0))
    assert np.all(state.scores[4:][allowed == 0] == 0)
    np.testing.assert_allclose(state.marginals.reshape(2, 4).sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(
        (np.exp(state.scores) * (state.curvatures >= 0)).reshape(2, 4).sum(axis=1), 1.0, rtol=1e-12
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_start_is_the_logarithm_of_the_distribution(rng, n_jobs):
    case = make_case("multiclass", seed=5, n=4, plain=True)
    objective = case.objective("log")
    scores = start(case, 3.0, rng)
    marginals, entropies = objective.marginals_of_scores(scores)
    logs = scores + 7.0 * np.repeat(rng.normal(size=4), 4)  # equal up to a constant per example
    np.testing.assert_allclose(_core.sdca_start(objective, 300.0, logs, n_jobs), entropies, rtol=1e-12)
    there = marginals > 0
    np.testing.assert_allclose(logs[there], np.log(marginals[there]), rtol=1e-11, atol=1e-12)
    assert np.all(logs[~there] == 0)
    # the score of the gold slot is the origin, and differences from it are clipped
    near = scores.copy()
    _core.sdca_start(objective, 0.5, near)
    gold = np.arange(0, 16, 4) + case.gold[1]
    away = (near - np.repeat(near[gold], 4))[there]
    assert np.abs(away).max() == pytest.approx(0.5)
    np.testing.assert_allclose(away, np.clip(scores - np.repeat(scores[gold], 4), -0.5, 0.5)[there], atol=1e-12)


def test_curvatures_are_the_norms_of_slots(rng):
    """Each feature belongs to one label. Attributes repeat within rows, and their values differ greatly in size."""
    n, n_labels, n_attributes = 30, 5, 40
    pairs = [np.flatnonzero(rng.random(n_labels) < 0.5) for _ in range(n_attributes)]
    pair_ptr = np.concatenate([[0], np.cumsum([len(p) for p in pairs])]).astype(np.int64)
    layout = _core.RowLayout.from_pairs(n_attributes, n_labels, 8, pair_ptr, np.concatenate(pairs).astype(np.int64))
    row_ptr = np.arange(0, 6 * n + 1, 6, dtype=np.int64)
    attributes = rng.integers(n_attributes, size=6 * n)
    values = 10.0 ** rng.integers(-6, 7, size=n).repeat(6) * rng.normal(size=6 * n)
    segment = _core.AttributeSegment(layout, np.arange(n + 1, dtype=np.int64), row_ptr, attributes, values)
    structure = _core.Multiclass(n, n_labels)
    gold = structure.encode(np.zeros(n, dtype=np.int64))
    features = _core.LinearMap([segment])
    objective = _core.Objective(structure, features, *gold, 1.0, 0.0, "identity")
    found = _core.slot_curvatures(objective, np.arange(n)).reshape(n, 8)
    unit = np.eye(8)
    expected = [[features.transpose_norm2(i, unit[a]) for a in range(n_labels)] for i in range(n)]
    np.testing.assert_allclose(found[:, :n_labels], expected, rtol=1e-12)
    assert np.all(found[:, n_labels:] == -1)


@pytest.mark.parametrize("pair", [(0, 1), (0, 144), (17, 161), (39, 183)])
def test_one_feature_shared_by_two_labels_is_detected(pair, rng):
    """Labels 144 apart (a Fibonacci number) are included: the core's probe vector has nearly equal entries for them."""
    n, n_labels, n_own = 3, 184, 50
    own = sparse.kron(rng.uniform(0.5, 1.5, size=(n, n_own)), sparse.eye(n_labels))
    shared = np.zeros((n, n_labels, 1))
    structure = _core.Multiclass(n, n_labels)

    def curvatures():
        features = maxent_matrix_map(structure, sparse.csr_array(sparse.hstack([own, shared.reshape(-1, 1)])))
        gold = structure.encode(np.zeros(n, dtype=np.int64))
        return _core.slot_curvatures(_core.Objective(structure, features, *gold, 1.0, 0.0, "identity"), np.arange(n))

    shared[2, pair[0]] = 1.0
    assert curvatures() is not None
    shared[2, pair[1]] = 1.0
    assert curvatures() is None


def test_curvatures_of_features_with_one_label_each():
    layout = _core.RowLayout.from_pairs(3, 3, 4, np.array([0, 1, 3, 4]), np.array([0, 0, 2, 1]))
    ptr = np.arange(3, dtype=np.int64)
    segment = _core.AttributeSegment(layout, ptr, np.array([0, 2, 4]), np.array([0, 1, 1, 2]), np.array([1.0, 2, 3, 4]))
    structure = _core.Multiclass(2, 3)
    gold = structure.encode(np.array([0, 2]))
    objective = _core.Objective(structure, _core.LinearMap([segment]), *gold, 1.0, 0.0, "identity")
    found = _core.slot_curvatures(objective, np.arange(2))
    np.testing.assert_allclose(found, [5, 0, 4, -1, 9, 16, 9, -1])
    state = State(objective, np.zeros(8), 0.3)
    before = state.dual()
    for _ in range(200):
        state.run([0, 1])
    assert state.dual() > before
    # P = D at the optimum
    assert 0.15 * state.weights @ state.weights + objective.value(state.weights) == pytest.approx(
        state.dual(), rel=1e-9
    )


def test_bad_input(rng):
    case = make_case("multiclass", seed=3, plain=True)
    objective = case.objective("log")
    state = State(objective, start(case, 1.0, rng), 1.0)
    with pytest.raises(ValueError, match=r"example \d: the curvatures given are not those"):
        State(objective, start(case, 1.0, rng), 1.0, state.curvatures * 2).run(range(4))
    with pytest.raises(ValueError, match="no example 99"):
        state.run([99])
    with pytest.raises(ValueError, match="curvatures has 3 values"):
        State(objective, start(case, 1.0, rng), 1.0, np.zeros(3)).run([0])
    with pytest.raises(ValueError, match="temperature above 0"):
        State(case.objective("hinge"), start(case, 1.0, rng), 1.0).run([0])
    chain = make_case("chain-tied", seed=3, plain=True)
    with pytest.raises(ValueError, match="several parts"):
        _core.slot_curvatures(chain.objective("log"), np.arange(2))
