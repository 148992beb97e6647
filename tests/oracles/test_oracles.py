"""Checks of the oracles against each other, by identities that hold without the library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.bcfw_reference import _split, bcfw, bcfw_squared, start
from oracles.chain_reference import chain_best, chain_sums, join_slots, split_slots
from oracles.eg_figures import batch_eg, batch_step, online_eg, online_steps, part_eg
from oracles.enumerate import chain_slots, entropy, enumerate_chain, enumerate_multiclass
from oracles.objective import LOSSES, random_dual_point
from oracles.problems import KINDS, dense_problem

seeds = st.integers(0, 2**32 - 1)


def test_slots_of_a_chain_written_by_hand():
    # two labels in rows of 4, labelling 1 0 0; the slots are rows, one 2 x 4 table, a row for begin, a row for end
    assert chain_slots([1, 0, 0], 2, 4, tied=True, ends=True) == [1, 4, 8, 12 + 4, 12, 20 + 1, 24]
    assert chain_slots([1, 0, 0], 2, 4, tied=False, ends=False) == [1, 4, 8, 12 + 4, 20]
    assert enumerate_chain(3, 2, 4, tied=True).counts[0].tolist() == [1, 0, 0, 0] * 3 + [2] + [0] * 7


def test_masks_cut_labellings():
    mask = np.ones(12 + 8, dtype=np.uint8)
    mask[4] = 0  # forbids label 0 at position 1
    mask[12 + 4 + 1] = 0  # forbids label 1 after label 1
    left = enumerate_chain(3, 2, 4, tied=True, mask=mask).labellings.tolist()
    assert left == [[0, 1, 0]]
    assert enumerate_multiclass(3, 4, np.array([1, 0, 1, 1], dtype=np.uint8)).labellings.tolist() == [[0], [2]]


@given(seeds, st.integers(1, 4), st.integers(1, 3), st.booleans(), st.booleans(), st.sampled_from([0.2, 1.0, 3.0]))
def test_recursions_agree_with_enumeration(seed, length, n_labels, tied, ends, temperature):
    rng = np.random.default_rng(seed)
    example = enumerate_chain(length, n_labels, 4, tied, ends)
    scores = rng.normal(size=example.counts.shape[1]) * 3
    nodes, edges = split_slots(scores, length, n_labels, 4, tied, ends)
    sums = chain_sums(nodes, edges, temperature)
    value, expected, h = example.smax(scores, temperature)
    assert sums.value == pytest.approx(value, abs=1e-12)
    assert sums.entropy == pytest.approx(h, abs=1e-12)
    np.testing.assert_allclose(join_slots(sums, n_labels, 4, tied, ends), expected, atol=1e-13)
    best, labels = chain_best(nodes, edges)
    assert best == pytest.approx(example.maximum(scores)[0], abs=1e-12)
    assert labels == example.labellings[example.maximum(scores)[1]].tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
class TestDuality:
    def test_gradient_is_the_derivative(self, kind, loss):
        problem = dense_problem(kind, loss, seed=1)
        rng = np.random.default_rng(2)
        w, step = rng.normal(size=problem.dim), 1e-6
        numeric = [
            (problem.primal(w + step * e) - problem.primal(w - step * e)) / (2 * step) for e in np.eye(problem.dim)
        ]
        np.testing.assert_allclose(problem.gradient(w), numeric, rtol=1e-6, atol=1e-6)

    def test_every_dual_point_is_below_every_primal_point(self, kind, loss):
        problem = dense_problem(kind, loss, seed=3)
        rng = np.random.default_rng(4)
        for scale in (0.0, 0.3, 3.0):
            ps, mass = random_dual_point(problem, rng)
            dual = problem.dual(ps, mass)
            for w in (scale * rng.normal(size=problem.dim), problem.weights(ps, mass)):
                assert dual <= problem.primal(w) + 1e-10

    def test_the_gap_of_the_oracles_answer(self, kind, loss):
        # D at the best response is P(w) - |grad P(w)|^2 / (2 l2), for every loss.
        problem = dense_problem(kind, loss, seed=5)
        w = np.random.default_rng(6).normal(size=problem.dim)
        gradient = problem.gradient(w)
        dual = problem.dual(*problem.best_response(w))
        assert problem.primal(w) - dual == pytest.approx(float(gradient @ gradient) / (2 * problem.l2), rel=1e-9)

    def test_primal_is_convex_along_a_line(self, kind, loss):
        problem = dense_problem(kind, loss, seed=8)
        a, b = np.random.default_rng(9).normal(size=(2, problem.dim))
        middle = problem.primal((a + b) / 2)
        # P is strongly convex with constant l2
        chord = (problem.primal(a) + problem.primal(b)) / 2 - problem.l2 / 8 * float((a - b) @ (a - b))
        assert middle <= chord + 1e-10


@pytest.mark.parametrize("loss", ["log", "hinge", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
def test_figures_2_and_3_agree_and_figure_1_raises_the_dual(kind, loss):
    problem = dense_problem(kind, loss, seed=11, l2=3.0)
    rng = np.random.default_rng(12)
    scores = [0.1 * rng.normal(size=e.counts.shape[1]) for e in problem.examples]
    us = [e.probabilities(s) for e, s in zip(problem.examples, scores, strict=True)]
    order = rng.integers(0, problem.n, 60)
    iterates = online_eg(problem, us, online_steps(problem), order)
    s, w, _, visits, rejected = part_eg(problem, scores, online_steps(problem), order)
    for e, u, x in zip(problem.examples, iterates[-1], s, strict=True):
        np.testing.assert_allclose(e.probabilities(x), u, atol=1e-12)
    np.testing.assert_allclose(w, problem.weights(iterates[-1]), atol=1e-12)
    assert (visits, rejected) == (len(order), 0)
    batch = batch_eg(problem, us, batch_step(problem), 100)
    duals = [problem.dual(u) for u in batch]
    assert np.all(np.diff(duals) >= -1e-12)


@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
def test_batch_and_online_reach_one_optimum(loss):
    problem = dense_problem("chain-tied", loss, seed=11, l2=100.0)
    us = [np.full(len(e), 1.0 / len(e)) for e in problem.examples]
    ends = [
        batch_eg(problem, us, batch_step(problem), 60)[-1],
        online_eg(problem, us, online_steps(problem), [0, 1, 2, 3] * 20)[-1],
    ]
    gaps = [problem.primal(problem.weights(u)) - problem.dual(u) for u in ends]
    assert min(gaps) >= -1e-12
    assert max(gaps) <= 1e-6
    assert problem.dual(ends[0]) == pytest.approx(problem.dual(ends[1]), abs=1e-6)


def test_adaptive_steps_never_lower_the_dual():
    problem = dense_problem("chain-tied", "log", seed=13, l2=0.05)
    scores = [np.zeros(e.counts.shape[1]) for e in problem.examples]
    duals, rejections = [], 0
    steps = np.full(problem.n, 0.5)
    for k in [0, 1, 2, 3] * 5:
        scores, w, steps, _, rejected = part_eg(problem, scores, steps, [k], adaptive=True)
        us = [e.probabilities(s) for e, s in zip(problem.examples, scores, strict=True)]
        np.testing.assert_allclose(w, problem.weights(us), rtol=1e-10)
        duals.append(problem.dual(us))
        rejections += rejected
    assert np.all(np.diff(duals) >= -1e-12)
    assert rejections > 0  # otherwise the test would never halve a step


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
def test_bcfw_closes_the_gap(kind):
    problem = dense_problem(kind, "hinge", seed=17, l2=3.0)
    state = start(problem)
    assert problem.dual(state.ps) == pytest.approx(0.0, abs=1e-15)
    duals = [0.0]
    for _ in range(60):
        bcfw(problem, state, range(problem.n))
        duals.append(problem.dual(state.ps))
    assert np.all(np.diff(duals) >= -1e-12)
    np.testing.assert_allclose(state.weights, problem.weights(state.ps), atol=1e-12)
    np.testing.assert_allclose(state.average_weights, problem.weights(state.average_ps), atol=1e-12)
    assert problem.primal(state.weights) - duals[-1] <= 0.05 * problem.primal(np.zeros(problem.dim))


@pytest.mark.parametrize("kind", ["multiclass", "chain-tied"])
def test_squared_bcfw_closes_the_gap(kind):
    problem = dense_problem(kind, "squared-hinge", seed=18, l2=30.0)
    xs = [np.zeros(len(e)) for e in problem.examples]
    duals = [0.0]
    for _ in range(30):
        xs = bcfw_squared(problem, xs, range(problem.n))
        duals.append(problem.dual(*_split(xs)))
    assert np.all(np.diff(duals) >= -1e-10)
    gap = problem.primal(problem.weights(*_split(xs))) - duals[-1]
    assert -1e-10 <= gap <= 0.05 * problem.primal(np.zeros(problem.dim))


def test_entropy_of_a_corner_is_zero():
    assert entropy(np.array([0.0, 1.0, 0.0])) == 0.0
