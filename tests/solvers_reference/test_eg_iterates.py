"""The core's EG epochs have the iterates of transcribed Figures 2 and 3 of Collins et al. 2008, in the same order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from oracles.eg_figures import online_eg, online_steps, part_eg, soft
from oracles.problems import KINDS, make_case
from partwise import _core

LOSSES = ["log", "hinge", "softmax-margin", "smoothed-hinge"]


@dataclass
class State:
    """The arrays that eg_epoch updates in place."""

    objective: Any
    weights: np.ndarray
    scores: np.ndarray
    marginals: np.ndarray
    entropies: np.ndarray
    steps: np.ndarray
    plane: np.ndarray


def begin(case, loss, l2, scores, steps, l1=0.0):
    objective = case.objective(loss)
    flat = np.concatenate(scores)
    marginals, entropies = objective.marginals_of_scores(flat)
    plane = objective.dual_terms_gibbs(flat)[0]
    return State(objective, soft(plane, l1) / l2, flat, marginals, entropies, np.array(steps), plane)


def run(state, l2, order, adaptive, **options):
    order = np.array(order, dtype=np.int64)
    names = ("weights", "scores", "marginals", "entropies", "plane")
    arrays = {name: getattr(state, name) for name in names}
    blocks = _core.EgState(state.objective, step_sizes=state.steps, **arrays)
    return _core.eg_epoch(blocks, order, _core.EgOptions(l2=l2, adaptive=adaptive, **options))


def random_scores(case, rng, scale=0.5):
    """Draw random scores on the slots in use, 0 on padding."""
    return [scale * rng.normal(size=e.counts.shape[1]) * e.used for e in case.examples]


def assert_same(case, problem, state, scores, weights, steps):
    for mine, theirs, e in zip(case.split(state.scores), scores, case.examples, strict=True):
        np.testing.assert_allclose(mine[e.used], theirs[e.used], atol=1e-9)
    np.testing.assert_allclose(state.weights, weights, atol=1e-9)
    np.testing.assert_allclose(state.steps, steps, rtol=1e-12)
    us = [e.probabilities(s) for e, s in zip(case.examples, scores, strict=True)]
    np.testing.assert_allclose(state.marginals, problem.slots(us), atol=1e-9)
    np.testing.assert_allclose(state.entropies, problem.entropies(us), atol=1e-9)
    return us


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_constant_steps(kind, loss, rng):
    case, l2 = make_case(kind, seed=31, plain=True), 0.8
    problem = case.dense(loss, l2)
    scores, steps = random_scores(case, rng), online_steps(problem)
    order = rng.integers(0, case.n, 15)
    state = begin(case, loss, l2, scores, steps)
    before = problem.dual([e.probabilities(s) for e, s in zip(case.examples, scores, strict=True)])
    report = run(state, l2, order, adaptive=False)
    expected = part_eg(problem, scores, steps, order)
    us = assert_same(case, problem, state, *expected[:3])
    assert (report.visits, report.rejected) == (15, 0)
    assert report.dual_gain == pytest.approx(problem.dual(us) - before, abs=1e-9)
    # Figure 2, on explicit distributions, agrees too
    start = [e.probabilities(s) for e, s in zip(case.examples, scores, strict=True)]
    for u, v in zip(us, online_eg(problem, start, steps, order)[-1], strict=True):
        np.testing.assert_allclose(u, v, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first_step", [0.2, 8.0])  # 8 is far too long, so that steps are halved
def test_adaptive_steps(kind, loss, first_step, rng):
    case, l2 = make_case(kind, seed=32, plain=True), 1.0
    problem = case.dense(loss, l2)
    scores, steps = random_scores(case, rng), np.full(case.n, first_step)
    order = rng.integers(0, case.n, 12)
    state = begin(case, loss, l2, scores, steps)
    before = problem.dual([e.probabilities(s) for e, s in zip(case.examples, scores, strict=True)])
    report = run(state, l2, order, adaptive=True)
    # Near a corner of the simplex (hinge) a step changes the dual only by rounding, and must be accepted all the same.
    s, w, after, visits, rejected = part_eg(problem, scores, steps, order, adaptive=True, accept=lambda g: g >= -1e-12)
    us = assert_same(case, problem, state, s, w, after)
    assert (report.visits, report.rejected) == (visits, rejected)
    assert report.dual_gain == pytest.approx(problem.dual(us) - before, rel=1e-9, abs=1e-9)
    if first_step > 1:
        assert rejected > 0


@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first_step", [0.2, 8.0])
def test_elastic_net(kind, loss, first_step, rng):
    case, l1, l2 = make_case(kind, seed=34, plain=True), 0.1, 0.6
    problem = case.dense(loss, l2)
    scores, steps = random_scores(case, rng), np.full(case.n, first_step)
    order = rng.integers(0, case.n, 15)
    state = begin(case, loss, l2, scores, steps, l1)
    start = value(case, state, l1, l2)
    report = run(state, l2, order, adaptive=True, l1=l1)
    s, w, after, visits, rejected = part_eg(
        problem, scores, steps, order, adaptive=True, accept=lambda g: g >= -1e-12, l1=l1
    )
    assert_same(case, problem, state, s, w, after)
    np.testing.assert_allclose(state.weights, soft(state.plane, l1) / l2, atol=1e-9)
    assert 0 < np.count_nonzero(state.weights) < np.count_nonzero(state.plane)
    assert (report.visits, report.rejected) == (visits, rejected)
    assert report.dual_gain == pytest.approx(value(case, state, l1, l2) - start, rel=1e-9, abs=1e-9)
    assert report.dual_gain > 0


def value(case, state, l1, l2):
    """D of the state's distributions under an elastic net."""
    u, b = state.objective.dual_terms_gibbs(state.scores)
    shrunk = soft(u, l1)
    return b - shrunk @ shrunk / (2 * l2)


def test_l1_needs_a_plane(rng):
    case = make_case("chain-tied", seed=1)
    state = begin(case, "log", 1.0, random_scores(case, rng), np.ones(case.n), 0.1)
    state.plane = None
    with pytest.raises(ValueError, match="plane"):
        run(state, 1.0, [0], adaptive=True, l1=0.1)
    for l1 in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="l1 must be"):
            _core.EgOptions(l2=1.0, l1=l1)


def test_growth_and_largest_step(rng):
    case, l2 = make_case("chain-tied", seed=33, plain=True), 5.0
    problem = case.dense("log", l2)
    scores, order = random_scores(case, rng), [0, 0, 0, 1, 2, 2, 2, 2]
    steps = np.full(case.n, 0.3)
    state = begin(case, "log", l2, scores, steps)
    run(state, l2, order, adaptive=True, growth=1.4, max_step=0.5)
    s, w, after, _, _ = part_eg(problem, scores, steps, order, adaptive=True, growth=1.4, max_step=0.5)
    assert_same(case, problem, state, s, w, after)
    assert state.steps.max() == 0.5


def test_several_epochs_equal_one(rng):
    case, l2 = make_case("chain-tied-ends", seed=34, plain=True), 0.8
    scores, order = random_scores(case, rng), rng.integers(0, case.n, 12)
    whole = begin(case, "log", l2, scores, np.full(case.n, 0.4))
    run(whole, l2, order, adaptive=True)
    parts = begin(case, "log", l2, scores, np.full(case.n, 0.4))
    for chunk in (order[:5], order[5:5], order[5:]):
        run(parts, l2, chunk, adaptive=True)
    for name in ("weights", "scores", "marginals", "entropies", "steps"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_examples_of_weight_zero_are_skipped(rng):
    case, l2 = make_case("chain-tied", seed=35, plain=True), 0.8
    case = replace(case, sample_weight=np.array([1.0, 0.0, 2.0, 0.0]))
    scores = random_scores(case, rng)
    state = begin(case, "log", l2, scores, np.full(case.n, 0.4))
    report = run(state, l2, [1, 3, 1], adaptive=True)
    assert report.visits == 0
    assert report.dual_gain == 0.0
    np.testing.assert_array_equal(state.scores, np.concatenate(scores))


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_several_lanes_never_lower_the_dual_and_repeat_exactly(loss, rng):
    case, l2 = make_case("chain-tied", seed=36, n=40, plain=True), 0.5
    problem = case.dense(loss, l2)
    scores, order = random_scores(case, rng), rng.permutation(40)
    ends = []
    for _ in range(2):
        state = begin(case, loss, l2, scores, np.full(case.n, 0.5))
        for _ in range(3):
            us = [e.probabilities(s) for e, s in zip(case.examples, case.split(state.scores), strict=True)]
            before = problem.dual(us)
            report = run(state, l2, order, adaptive=True, n_jobs=2, round_size=2)
            us = [e.probabilities(s) for e, s in zip(case.examples, case.split(state.scores), strict=True)]
            assert problem.dual(us) >= before - 1e-9
            assert report.dual_gain == pytest.approx(problem.dual(us) - before, abs=1e-8)
            np.testing.assert_allclose(state.weights, problem.weights(us), atol=1e-9)
        ends.append(state)
    np.testing.assert_array_equal(ends[0].weights, ends[1].weights)
    np.testing.assert_array_equal(ends[0].scores, ends[1].scores)


class TestBadInput:
    @pytest.fixture
    def arguments(self):
        case = make_case("multiclass", seed=37, plain=True)
        state = begin(case, "log", 1.0, [np.zeros(4)] * case.n, np.full(case.n, 0.5))
        return {
            "objective": state.objective,
            "l2": 1.0,
            "order": np.arange(case.n),
            "step_sizes": state.steps,
            "weights": state.weights,
            "scores": state.scores,
            "marginals": state.marginals,
            "entropies": state.entropies,
        }

    @staticmethod
    def run(l2, order, **state):
        return _core.eg_epoch(_core.EgState(**state), order, _core.EgOptions(l2=l2))

    def test_the_unchanged_arguments_are_accepted(self, arguments):
        assert self.run(**arguments).visits >= 4

    @pytest.mark.parametrize("name", ["step_sizes", "weights", "scores", "marginals", "entropies"])
    def test_lengths(self, arguments, name):
        arguments[name] = np.ones(len(arguments[name]) + 1)
        with pytest.raises(ValueError, match=name):
            self.run(**arguments)

    @pytest.mark.parametrize("l2", [0.0, -1.0, np.nan, np.inf])
    def test_l2(self, arguments, l2):
        arguments["l2"] = l2
        with pytest.raises(ValueError, match="l2"):
            self.run(**arguments)

    @pytest.mark.parametrize("order", [[0, 4], [-1]])
    def test_order(self, arguments, order):
        arguments["order"] = np.array(order)
        with pytest.raises((ValueError, IndexError), match=r"order|example"):
            self.run(**arguments)

    def test_frozen_arrays_are_refused(self, arguments):
        arguments["weights"].flags.writeable = False
        with pytest.raises((ValueError, TypeError)):
            self.run(**arguments)
