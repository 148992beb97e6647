"""Inequalities of Huang et al. 2010 about the approximate functions A_t and about the methods' steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.scaling_passes import begin
from oracles.problems import maxent_case
from oracles.scaling import Maxent

NAMES = ("gis", "iis", "scgis", "log", "cd")
METHODS = [
    ("gis", True),
    ("gis", False),
    ("iis", True),
    ("iis", False),
    ("scgis", False),
    ("log", False),
    ("cd", False),
]

cases = st.builds(
    maxent_case,
    st.integers(0, 2**32 - 1),
    n=st.integers(3, 6),
    n_labels=st.integers(2, 4),
    n_attributes=st.integers(3, 5),
    form=st.sampled_from(["binary", "real", "matrix"]),
    pairs=st.sampled_from(["all", "observed"]),
    unit_weights=st.booleans(),
)


@given(case=cases, scale=st.sampled_from([0.0, 1.0, 5.0]), z=st.floats(-4, 4), seed=st.integers(0, 99))
def test_the_order_of_the_functions(case, scale, z, seed):
    """(33) and (39): CD <= bound <= SCGIS <= GIS and CD <= IIS <= GIS. All functions equal Table 1's and are 0 at 0."""
    rng = np.random.default_rng(seed)
    w = scale * rng.normal(size=case.features.num_weights)
    state = begin(case, l2=0.3)
    w[np.setdiff1d(np.arange(len(w)), state.columns)] = 0.0
    state = begin(case, l2=0.3, weights=w)
    dense = Maxent(case.dense("log", 0.3), w)
    k = int(rng.integers(len(state.columns)))
    t = int(state.columns[k])
    a = {name: state.value(name, k, z) for name in NAMES}
    for name in NAMES:
        assert a[name] == pytest.approx(dense.value(name, t, z), rel=1e-9, abs=1e-9)
        assert state.value(name, k, 0.0) == 0.0
    slack = 1e-9 * (1 + max(map(abs, a.values())))
    for low, high in (("cd", "log"), ("log", "scgis"), ("scgis", "gis"), ("cd", "iis"), ("iis", "gis")):
        assert a[low] <= a[high] + slack, (low, high)
    # the lowest function equals the change of the objective
    moved = w + z * (np.arange(len(w)) == t)
    problem = case.dense("log", 0.3)
    assert a["cd"] == pytest.approx(problem.primal(moved) - problem.primal(w), rel=1e-7, abs=1e-7)


@given(case=cases, z=st.lists(st.floats(-1, 1), min_size=20, max_size=20))
def test_parallel_bounds_hold_for_all_weights_at_once(case, z):
    """Huang et al. 2010, inequality (9), for GIS and IIS: the sum of A_t bounds the change of the objective."""
    state = begin(case, l2=0.3)
    steps = np.zeros(case.features.num_weights)
    steps[state.columns] = np.array(z)[: len(state.columns)]
    problem = case.dense("log", 0.3)
    change = problem.primal(steps) - problem.primal(np.zeros_like(steps))
    for name in ("gis", "iis"):
        bound = sum(state.value(name, k, steps[t]) for k, t in enumerate(state.columns))
        assert change <= bound + 1e-9 * (1 + abs(bound))


@pytest.mark.parametrize("form", ["binary", "real", "matrix", "negative"])
@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
def test_the_bound_by_a_features_range(form, loss):
    """The bound lies above A_t, is as good as Newton's model near 0, and saves evaluations of A_t."""
    case = maxent_case(17, form=form)
    start = np.zeros(case.features.num_weights)
    columns = begin(case, loss, l2=0.2).columns
    start[columns] = 2.0 * np.sin(np.arange(len(columns)))
    at = Maxent(case.dense(loss, 0.2), start)
    for t in columns:
        for z in (-3.0, -0.5, -1e-2, 1e-2, 0.5, 3.0):
            value = at.value("cd", t, z)
            assert value <= at.third_order(t, z) + 1e-12 * (1 + abs(value))
        first, second = at.derivatives("cd", t, 0.0)
        assert at.third_order(t, 1e-3) == pytest.approx(1e-3 * first + 0.5e-6 * second, abs=1e-8)
    searches = [
        begin(case, loss, l2=0.2).epoch("cd", search_bound=b).searches for b in ("none", "paper", "third-order")
    ]
    assert searches[0] >= searches[1] >= searches[2] < searches[0]


def test_small_steps_lose_no_digits():
    """For tiny z, A_t(z) is z A_t'(0) + z^2 A_t''(0) / 2 to many digits: neither exp(z) - 1 nor log(1 + x) cancels."""
    case = maxent_case(12)
    state = begin(case, l2=0.0)
    dense = Maxent(case.dense("log", 0.0), state.weights)
    for k, t in enumerate(state.columns):
        # without the linear term e_t z, the sum of the logarithms remains
        first = dense.derivatives("cd", t, 0.0)[0] + dense.empirical[t]
        for z in (1e-9, -1e-12):
            change = state.value("cd", k, z) + z * state.empirical[t]
            assert change == pytest.approx(z * first, rel=3e-9)


@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("form", ["binary", "real", "matrix"])
@pytest.mark.parametrize(("name", "parallel"), METHODS)
@pytest.mark.parametrize("l2", [0.01, 1.0])
def test_the_objective_falls_with_every_pass(name, parallel, form, loss, l2):
    """(24): L(w') - L(w) <= -nu |w' - w|^2 with nu = l2 / 2, or gamma l2 in Algorithm 3 (68)."""
    gamma = 0.01
    case = maxent_case(13, form=form)
    state, problem = begin(case, loss, l2), case.dense(loss, l2)
    nu = gamma * l2 if name == "cd" else l2 / 2
    before = problem.primal(state.weights)
    for _ in range(12):
        start = state.weights.copy()
        gain = state.epoch(name, parallel=parallel, gamma=gamma, newton_tol=1e-12).gain
        after = problem.primal(state.weights)
        step2 = float(((state.weights - start) ** 2).sum())
        assert before - after >= nu * step2 - 1e-9 * before
        assert before - after >= gain - 1e-9 * before
        assert step2 > 0
        before = after


@pytest.mark.parametrize("form", ["binary", "real", "matrix"])
@pytest.mark.parametrize(("name", "parallel"), METHODS)
def test_the_gain_reported_is_that_of_the_function(name, parallel, form):
    """The reported gain is -A_t at the step; where all weights move at once, its sum over weights."""
    case = maxent_case(16, form=form)
    first = begin(case, l2=0.3)
    # The other columns have no data
    moving = [k for k in range(len(first.columns)) if first.mass[first.columns[k]] > 0]
    orders = [np.arange(len(first.columns))] if parallel else [[k] for k in moving]
    for order in orders:
        state = begin(case, l2=0.3)
        report = state.epoch(name, order, parallel=parallel, search_bound="none", newton_tol=1e-12)
        steps = state.weights[state.columns]
        expected = -sum(first.value(name, k, steps[k]) for k in order)
        assert report.gain == pytest.approx(expected, rel=1e-9)
        assert report.gain > 0


@pytest.mark.parametrize("form", ["binary", "real", "matrix"])
@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("name", ["gis", "scgis", "log"])
def test_steps_without_a_penalty_are_exact(name, loss, form):
    """Without a penalty, steps have closed forms such as (25), so tolerances and Newton steps do not change them."""
    case = maxent_case(18, form=form)
    first = begin(case, loss, l2=0.0)
    at = Maxent(case.dense(loss, 0.0), first.weights)
    exact = 0
    for k, t in enumerate(first.columns):
        state = begin(case, loss, l2=0.0)
        state.epoch(name, [k], newton_tol=10.0, max_newton=1)
        step = state.weights[t]
        if 0 < abs(step) < 20:  # otherwise A_t has no minimum
            exact += 1
            assert at.derivatives(name, t, step)[0] == pytest.approx(0.0, abs=1e-10)
    assert exact >= 3


@pytest.mark.parametrize("form", ["binary", "real", "matrix", "negative"])
def test_near_the_optimum_the_line_search_tries_one_step(form):
    """Huang et al. 2010, Theorem 6: near the optimum, the line search makes one trial per step."""
    case = maxent_case(14, form=form)
    start = np.zeros(case.features.num_weights)
    state, problem = begin(case, l2=0.05), case.dense("log", 0.05)
    start[state.columns] = 4.0 * np.sin(np.arange(len(state.columns)))
    far = begin(case, l2=0.05, weights=start)
    # Far from the optimum some steps are shortened
    assert far.epoch("cd", gamma=0.4, search_bound="none").searches > len(state.columns)
    for _ in range(1000):
        state.epoch("cd", gamma=0.4, search_bound="none")
    assert np.linalg.norm(problem.gradient(state.weights)) < 1e-6
    shift = 1e-4 * np.sin(np.arange(len(state.weights)) + 1.0)
    shift[np.setdiff1d(np.arange(len(shift)), state.columns)] = 0.0
    near = begin(case, l2=0.05, weights=state.weights + shift)
    assert near.epoch("cd", gamma=0.4, search_bound="none").searches == len(state.columns)
