"""The core's BCFW epochs have the iterates of the NumPy references over enumerated labellings, in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from oracles.bcfw_reference import _split, bcfw, bcfw_squared, start
from oracles.problems import KINDS, make_case
from partwise import _core


@dataclass
class State:
    """The arrays that bcfw_epoch updates in place."""

    objective: Any
    weights: np.ndarray
    counts: np.ndarray
    mass: np.ndarray
    linear: np.ndarray
    lag: np.ndarray
    average: np.ndarray

    @property
    def average_weights(self):
        return self.weights - self.average[1] * self.lag


def begin(case, loss, counts, mass):
    d = case.features.num_weights
    return State(
        case.objective(loss), np.zeros(d), counts, mass, np.zeros(case.n), np.zeros(d), np.array([0.0, 1.0, 0.0])
    )


def run(state, l2, order):
    names = ("weights", "counts", "mass", "linear", "lag", "average")
    blocks = _core.BcfwState(state.objective, **{name: getattr(state, name) for name in names})
    return _core.bcfw_epoch(blocks, np.array(order, dtype=np.int64), _core.BcfwOptions(l2=l2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("l2", [0.3, 5.0])
def test_hinge(kind, l2, rng):
    case = make_case(kind, seed=41, plain=True)
    problem = case.dense("hinge", l2)
    state = begin(case, "hinge", np.concatenate(case.gold_counts), np.ones(case.n))
    expected = start(problem)
    for order in (range(case.n), rng.integers(0, case.n, 9), rng.permutation(case.n)):
        expected.gaps.clear()
        bcfw(problem, expected, order)
        report = run(state, l2, order)
        assert report.visits == len(order)
        assert report.gap_estimate == pytest.approx(sum(expected.gaps), abs=1e-9)
        np.testing.assert_allclose(state.weights, expected.weights, atol=1e-9)
        np.testing.assert_allclose(state.counts, problem.slots(expected.ps), atol=1e-9)
        costs = [p @ problem.label_costs(i) for i, p in enumerate(expected.ps)]
        np.testing.assert_allclose(state.linear, costs, atol=1e-9)
        np.testing.assert_array_equal(state.mass, 1.0)
        np.testing.assert_allclose(state.average_weights, expected.average_weights, atol=1e-9)
        assert state.average[0] == expected.steps
        assert state.average[2] == pytest.approx(problem.linear_part(expected.average_ps), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("l2", [0.3, 5.0])
def test_squared_hinge(kind, l2, rng):
    # This seed avoids ties. After an exact step two labellings of a block tie, and rounding decides if it is met again.
    case = make_case(kind, seed=49, plain=True)
    problem = case.dense("squared-hinge", l2)
    state = begin(case, "squared-hinge", np.zeros(sum(e.counts.shape[1] for e in case.examples)), np.zeros(case.n))
    xs = [np.zeros(len(e)) for e in case.examples]
    duals = [0.0]
    for order in (range(case.n), rng.permutation(case.n), range(case.n)):
        xs = bcfw_squared(problem, xs, order)
        run(state, l2, order)
        ps, mass = _split(xs)
        # The reference finds steps from differences of duals, which loses a few digits.
        np.testing.assert_allclose(state.mass, mass, atol=1e-8)
        np.testing.assert_allclose(state.counts, problem.slots(ps, mass), atol=1e-8)
        np.testing.assert_allclose(state.weights, problem.weights(ps, mass), atol=1e-8)
        np.testing.assert_allclose(state.linear, [x @ problem.label_costs(i) for i, x in enumerate(xs)], atol=1e-8)
        duals.append(problem.dual(ps, mass))
    assert np.all(np.diff(duals) >= -1e-10)


def test_the_average_on_a_long_run(rng):
    """The state stores a scaled difference. Renewing its scale, when that is small, must not change the average."""
    case, l2 = make_case("chain-tied", seed=43, plain=True), 0.5
    problem = case.dense("hinge", l2)
    state = begin(case, "hinge", np.concatenate(case.gold_counts), np.ones(case.n))
    expected = start(problem)
    order = rng.integers(0, case.n, 2500)  # so many visits that the scale 2 / (2500 * 2501) falls below 1e-6
    bcfw(problem, expected, order)
    run(state, l2, order)
    np.testing.assert_allclose(state.average_weights, expected.average_weights, atol=1e-9)
    assert state.average[2] == pytest.approx(problem.linear_part(expected.average_ps), abs=1e-9)


def test_only_for_temperature_zero():
    case = make_case("multiclass", seed=44, plain=True)
    state = begin(case, "log", np.concatenate(case.gold_counts), np.ones(case.n))
    with pytest.raises(ValueError, match="temperature"):
        run(state, 1.0, [0])


@pytest.mark.parametrize("name", ["weights", "counts", "mass", "linear", "lag", "average"])
def test_lengths(name):
    case = make_case("multiclass", seed=45, plain=True)
    state = begin(case, "hinge", np.concatenate(case.gold_counts), np.ones(case.n))
    setattr(state, name, np.ones(len(getattr(state, name)) + 1))
    with pytest.raises(ValueError, match=name):
        run(state, 1.0, [0])


@pytest.mark.parametrize("l2", [0.0, -1.0, np.nan])
def test_l2(l2):
    case = make_case("multiclass", seed=46, plain=True)
    state = begin(case, "hinge", np.concatenate(case.gold_counts), np.ones(case.n))
    with pytest.raises(ValueError, match="l2"):
        run(state, l2, [0])


@pytest.mark.parametrize("order", [[4], [-1]])
def test_order(order):
    case = make_case("multiclass", seed=47, plain=True)
    state = begin(case, "hinge", np.concatenate(case.gold_counts), np.ones(case.n))
    with pytest.raises((ValueError, IndexError), match=r"order|example"):
        run(state, 1.0, order)
