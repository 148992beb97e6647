"""Passes of iterative scaling and coordinate descent in the core have the iterates of Huang et al. 2010."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest

from helpers.scaling_passes import begin, check_cells
from helpers.small_problems import BARE_COLUMNS
from oracles.problems import make_case, maxent_case
from oracles.scaling import Maxent, coordinate_descent, exact_descent, parallel, sequential
from partwise import FeatureWarning, Problem, _core, solve
from partwise.features import Attributes, maxent_map
from partwise.solvers import CD, GIS, SCGIS
from partwise.structures import Multiclass

FORMS = ("binary", "real", "matrix")
PASSES = 4


@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["gis", "iis"])
def test_parallel_updates(name, form, loss):
    case = maxent_case(3, form=form)
    state, dense = begin(case, loss), case.dense(loss, 0.4)
    w = state.weights.copy()
    for _ in range(PASSES):
        report = state.epoch(name, parallel=True, newton_tol=1e-12)
        w = parallel(dense, name, w, 1e-12)
        np.testing.assert_allclose(state.weights[state.columns], w[state.columns], atol=1e-9)
        assert report.updates == state.live < len(state.columns)
        assert report.cells == (case.features.num_cells if name == "iis" else 0)
    if name == "iis":  # gis keeps no table of cells
        check_cells(case, state)


@pytest.mark.parametrize("loss", ["log", "smoothed-hinge"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["gis", "iis", "scgis", "log"])
def test_sequential_updates(name, form, loss, rng):
    case = maxent_case(4, form=form)
    state, dense = begin(case, loss), case.dense(loss, 0.4)
    w = state.weights.copy()
    for _ in range(PASSES):
        order = rng.permutation(len(state.columns))
        state.epoch(name, order, newton_tol=1e-12)
        w = sequential(dense, name, w, state.columns[order], 1e-12)
        np.testing.assert_allclose(state.weights, w, atol=1e-9)
    check_cells(case, state)


@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("bound", ["third-order", "paper", "none"])
@pytest.mark.parametrize("form", [*FORMS, "negative"])
@pytest.mark.parametrize("l2", [0.01, 2.0])
def test_coordinate_descent(form, bound, loss, l2, rng):
    case = maxent_case(5, form=form, unit_weights=l2 > 1 and form != "matrix")
    state, dense = begin(case, loss, l2), case.dense(loss, l2)
    w = state.weights.copy()
    for k in range(PASSES):
        order = rng.permutation(len(state.columns))
        searches = state.epoch("cd", order, beta=0.3, gamma=0.1, search_bound=bound).searches
        w, evaluations = coordinate_descent(dense, w, state.columns[order], 0.3, 0.1, bound)
        np.testing.assert_allclose(state.weights, w, atol=1e-9)
        if k == 0:  # later some derivatives are 0 up to rounding
            assert searches == evaluations
    check_cells(case, state)


@BARE_COLUMNS
@pytest.mark.parametrize("form", ["binary", "real"])
@pytest.mark.parametrize("l2", [0.01, 2.0])
def test_algorithm_3_as_printed(form, l2):
    """Algorithm 3 with step 2' of (38) and (39), t = 1, ..., n: same iterates and as many evaluations of A_t."""
    case = maxent_case(14, n=12, form=form)
    problem = Problem(case.features, case.structure, case.gold, "log", l2, sample_weight=case.sample_weight)
    dense = case.dense("log", l2)
    solver = CD(order="index", bound="paper", gamma=0.1)
    state = solver.init_state(problem, np.random.default_rng(0), None)
    # Ordered by frequency, the columns come in another order
    assert not np.array_equal(state.by_index, np.arange(state.n_columns))
    w = np.zeros(problem.n_weights)
    for k in range(PASSES):
        searches = solver.epoch(problem, state).searches
        w, evaluations = coordinate_descent(dense, w, range(problem.n_weights), 0.5, 0.1, "paper")
        np.testing.assert_allclose(state.weights, w, atol=1e-9)
        if k == 0:  # later some derivatives are 0 up to rounding
            assert searches == evaluations


@BARE_COLUMNS
@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("l2", [0.3, 0.0])
def test_generalised_iterative_scaling_by_rows(loss, l2):
    """Section 4.2: GIS row by row, without the tables S and T, has the same iterates."""
    case = maxent_case(7, n=10, pairs="observed")
    problem = Problem(case.features, case.structure, case.gold, loss, l2, sample_weight=case.sample_weight)
    solver = GIS(newton_tol=1e-12)
    state, w = solver.init_state(problem, np.random.default_rng(0), None), np.zeros(problem.n_weights)
    for _ in range(PASSES):
        solver.step(problem, state)
        w = parallel(case.dense(loss, l2), "gis", w, 1e-12)
        np.testing.assert_allclose(state.weights, w, atol=1e-9)
    assert state.potentials.size == state.inverse.size == 0


def test_the_memory_of_iterative_scaling_by_rows():
    """The memory of GIS in Python does not grow with examples x labels (memory of the core is not counted)."""
    n, n_labels = 300, 500
    structure = Multiclass(n, n_labels)
    labels = np.arange(n) % n_labels
    features = maxent_map(structure, Attributes(np.arange(n + 1), np.zeros(n, dtype=np.int64), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FeatureWarning)
        peaks = []
        for solver in (GIS(), SCGIS()):
            problem = Problem(features, structure, structure.encode(labels), "log", 1.0)
            tracemalloc.start()
            solve(problem, solver, max_passes=2, tol=0.0)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[0] < 8 * n * n_labels / 4 < 8 * n * n_labels < peaks[1]


@pytest.mark.parametrize("form", [*FORMS, "negative"])
def test_exact_steps(form):
    case = maxent_case(6, form=form)
    state, dense = begin(case), case.dense("log", 0.4)
    w = state.weights.copy()
    for _ in range(PASSES):
        state.epoch("cd", max_newton=50, newton_tol=1e-12)
        w = exact_descent(dense, w, state.columns)
        np.testing.assert_allclose(state.weights, w, atol=1e-8)


@pytest.mark.parametrize("form", ["binary", "real"])
@pytest.mark.parametrize(("name", "together"), [("gis", True), ("gis", False), ("scgis", False)])
def test_closed_form_without_a_penalty(name, together, form):
    """Equation (25)."""
    case = maxent_case(7, n=10, form=form, pairs="observed")
    state, dense = begin(case, l2=0.0), case.dense("log", 0.0)
    w = state.weights.copy()
    for _ in range(PASSES):
        state.epoch(name, parallel=together)
        w = parallel(dense, name, w) if together else sequential(dense, name, w, state.columns)
        np.testing.assert_allclose(state.weights[state.columns], w[state.columns], atol=1e-9)


@pytest.mark.parametrize("function", ["log", "iis"])
def test_minimum_without_a_penalty(function):
    """The paper has no closed form here: check that the derivative of A_t is zero at the step."""
    case = maxent_case(8, n=10, pairs="observed")
    state, dense = begin(case, l2=0.0), case.dense("log", 0.0)
    for k, t in enumerate(state.columns):
        before = state.weights.copy()
        state.epoch(function, [k], newton_tol=1e-12)
        z = state.weights[t] - before[t]
        assert (z != 0) == (state.mass[t] > 0)
        assert Maxent(dense, before).derivatives(function, t, z)[0] == pytest.approx(0.0, abs=1e-9)


def test_a_gold_label_of_probability_near_one():
    """Where rounding loses 1 - P(y|x), no step relies on its logarithm, and S and T stay right."""
    case = maxent_case(9, form="binary", plain=True)
    start = 40.0 * np.sign(np.sin(np.arange(20.0)))
    start[3::4] = 0.0  # padding is 0
    state = begin(case, l2=1e-4, weights=start)
    dense = case.dense("log", 1e-4)
    before = dense.primal(state.weights)
    for _ in range(200):
        report = state.epoch("cd")
        if report.capped:
            _core.scaling_refresh(state.objective, state.weights, state.potentials, state.inverse)
        after = dense.primal(state.weights)
        assert after <= before + 1e-9
        assert report.gain <= before - after + 1e-6 * (1 + before)
        before = after
    check_cells(case, state, 1e-8)  # after 200 passes
    assert np.linalg.norm(dense.gradient(state.weights)[state.columns]) < 1e-6


def test_threads_give_the_same_bits():
    case = maxent_case(10, n=200, n_attributes=40)
    for name in ("gis", "iis"):
        states = [begin(case), begin(case)]
        for jobs, state in zip((1, 2), states, strict=True):
            state.epoch(name, parallel=True, n_jobs=jobs)
        np.testing.assert_array_equal(states[0].weights, states[1].weights)
        np.testing.assert_array_equal(states[0].potentials, states[1].potentials)


def gis_update(state, order, **given):
    usual = {"empirical": state.empirical, "expectations": state.empirical, "largest_sum": 1.0, "temperature": 1.0}
    return _core.gis_update(state.weights, order, options=state.options("gis"), **(usual | given))


class TestBadInput:
    def test_negative_features_are_named(self):
        state = begin(maxent_case(11, form="negative"))
        for name in ("gis", "iis", "scgis", "log"):
            with pytest.raises(ValueError, match=r"not negative: feature \d+ \(attribute \d+, label 0\)"):
                state.epoch(name)
        assert state.epoch("cd").updates > 0

    def test_methods_without_a_parallel_update_are_refused(self):
        state = begin(maxent_case(11))
        for name in ("scgis", "cd", "log"):
            with pytest.raises(ValueError, match="parallel"):
                state.epoch(name, parallel=True)
        with pytest.raises(ValueError, match="parallel"):
            _core.scaling_epoch(state.state(), np.arange(2), state.options("gis", parallel=True))

    def test_shapes_and_names(self):
        state = begin(maxent_case(11))
        with pytest.raises(ValueError, match="no column 15"):
            state.epoch("cd", [15])
        with pytest.raises(ValueError, match="unknown approximate function 'newton'"):
            state.epoch("newton")
        with pytest.raises(ValueError, match="unknown bound 'first'"):
            state.epoch("cd", search_bound="first")
        state.potentials, state.inverse = np.empty(0), np.empty(0)
        assert state.epoch("gis", parallel=True).updates > 0
        for name in ("gis", "iis", "cd"):
            with pytest.raises(ValueError, match="potentials has 0 values"):
                state.epoch(name, parallel=name == "iis")
        for wrong in ("empirical", "expectations"):
            arrays = {"empirical": state.empirical, "expectations": state.empirical} | {wrong: np.zeros(2)}
            with pytest.raises(ValueError, match=f"{wrong} has 2 values"):
                gis_update(state, np.arange(3), **arrays)
        for t in (-1, len(state.weights)):
            with pytest.raises(ValueError, match=f"no weight {t}"):
                gis_update(state, np.array([t]))
        with pytest.raises(ValueError, match="temperature"):
            gis_update(state, np.arange(3), temperature=0.0)
        state = begin(maxent_case(11))
        state.inverse = state.inverse[1:]
        with pytest.raises(ValueError, match="inverse has"):
            state.epoch("cd")

    def test_structures_and_maps_that_do_not_fit(self):
        with pytest.raises(ValueError, match="no column access"):
            _core.scaling_constants(make_case("chain-tied", 1).objective("log"))
        with pytest.raises(ValueError, match="temperature"):
            _core.scaling_constants(maxent_case(1).objective("hinge"))
