"""Iterative scaling and coordinate descent: optima, options, and data whose optimum is infinite."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from helpers.small_problems import BARE_COLUMNS
from oracles.problems import maxent_case
from partwise import ConvergenceWarning, FeatureWarning, Problem, get_solver, solve
from partwise.features import logistic_map, maxent_map, maxent_matrix_map
from partwise.solvers import CD, GIS, IIS, SCGIS, CDExact, suitable_solvers
from partwise.solvers.columns.base import REFRESH
from partwise.solvers.engine import checkpoint
from partwise.structures import Multiclass

ALL = ("cd", "cd-exact", "scgis", "is-bound", "gis", "iis")
IS = ("scgis", "is-bound", "gis", "iis")


def documents(rng, n=80, n_attributes=6, binary=False):
    """Draw rows and labels of three classes that are not separable."""
    labels = np.concatenate([[0, 1, 2], rng.integers(0, 3, n - 3)])
    x = (rng.random((n, n_attributes)) < 0.3 + 0.4 * ((labels[:, None] + np.arange(n_attributes)) % 3 == 0)) * 1.0
    return (x if binary else x * rng.uniform(0.2, 1.4, x.shape)), labels


def problem_of(x, labels, l2, loss="log", **options):
    structure = Multiclass(len(labels), int(labels.max()) + 1)
    return Problem(maxent_map(structure, x), structure, structure.encode(labels), loss, l2, **options)


def check_optimum(problem, solver, best, **options):
    """Check that the objective is within 1e-8 of another program's, and that the certificate's lower bound holds."""
    result = solve(problem, solver, tol=1e-10, **options)
    assert result.status == "converged"
    assert abs(result.primal - best) <= 1e-8 * best
    assert result.dual <= best * (1 + 1e-12)
    return result


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("solver", ALL)
def test_the_optimum_is_scikit_learns(solver, binary, rng):
    x, labels = documents(rng, binary=binary)
    theirs = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(x, labels)
    problem = problem_of(x, labels, 0.5)
    weights = np.zeros((x.shape[1], problem.sums.in_memory()[0].structure.width))
    weights[:, :3] = theirs.coef_.T
    result = check_optimum(problem, solver, problem.value(weights.ravel()))
    np.testing.assert_allclose(result.weights.reshape(weights.shape)[:, :3], theirs.coef_.T, atol=2e-4)


@BARE_COLUMNS
@pytest.mark.parametrize("solver", ALL)
def test_the_optimum_is_scipys_on_shared_features(solver):
    case = maxent_case(21, n=12, form="matrix")
    problem = Problem(case.features, case.structure, case.gold, "log", 0.3, sample_weight=case.sample_weight)
    found = minimize(case.dense("log", 0.3).primal, np.zeros(problem.n_weights), method="BFGS", options={"gtol": 1e-9})
    check_optimum(problem, solver, found.fun)


@pytest.mark.parametrize("solver", ALL)
def test_logistic_regression_is_scikit_learns(solver, rng):
    """Huang et al. 2010, section 7.11: logistic regression with one weight vector and non-negative features."""
    x, labels = documents(rng)
    labels = (labels == 1).astype(np.int64)
    theirs = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-12).fit(x, labels)
    structure = Multiclass(len(labels), 2)
    problem = Problem(logistic_map(structure, x), structure, structure.encode(labels), "log", 1.0)
    best = float(np.logaddexp(0, -(2 * labels - 1) * (x @ theirs.coef_[0])).sum() + 0.5 * (theirs.coef_**2).sum())
    result = check_optimum(problem, solver, best)
    np.testing.assert_allclose(result.weights, theirs.coef_[0], atol=1e-4)


@pytest.mark.parametrize("solver", ["cd", "cd-exact"])
def test_negative_features(solver, rng):
    x = rng.normal(size=(60, 4))
    labels = (x[:, 0] + rng.normal(size=60) > 0).astype(np.int64)
    structure = Multiclass(60, 2)
    problem = Problem(logistic_map(structure, x), structure, structure.encode(labels), "log", 0.2)
    theirs = LogisticRegression(C=5.0, fit_intercept=False, solver="newton-cholesky", tol=1e-12).fit(x, labels)
    result = check_optimum(problem, solver, problem.value(np.ascontiguousarray(theirs.coef_[0])))
    np.testing.assert_allclose(result.weights, theirs.coef_[0], atol=1e-4)


@pytest.mark.parametrize("solver", IS)
def test_negative_features_are_refused_by_name(solver):
    x = np.array([[1.0, 0.5], [0.0, -0.5], [1.0, 0.0]])
    problem = problem_of(x, np.array([0, 1, 0]), 1.0)
    message = rf"{solver!r} needs non-negative features.*feature 4 \(attribute 1, label 0\) has a negative.*fit: .*cd"
    with pytest.raises(ValueError, match=message):
        solve(problem, solver)
    assert {"cd", "cd-exact", "lbfgs"} <= set(suitable_solvers(problem))
    assert solver not in suitable_solvers(problem)


def test_maps_without_columns_and_structures_of_several_parts_are_refused():
    from helpers.small_problems import Small

    with pytest.raises(ValueError, match="'cd' needs column access, which"):
        solve(Small("multiclass", "log").problem, "cd")
    with pytest.raises(ValueError, match="'cd' needs column access and one part, which"):
        solve(Small("chain-tied", "log").problem, "cd")


@pytest.mark.parametrize("solver", ALL)
@pytest.mark.parametrize("binary", [True, False])
def test_without_a_penalty(solver, binary, rng):
    x, labels = documents(rng, binary=binary)
    problem = problem_of(x, labels, 0.0)
    best = solve(problem, "lbfgs", tol=1e-10)
    result = solve(problem, solver, tol=1e-7)
    assert result.status == "no certificate"
    assert result.gap == np.inf
    assert abs(result.primal - best.primal) <= 1e-8 * best.primal
    assert "gradient norm" in result.message
    norm = np.linalg.norm(problem.value_and_gradient(result.weights)[1])
    assert norm <= 1e-7 * np.linalg.norm(problem.value_and_gradient(np.zeros(problem.n_weights))[1])


@pytest.mark.parametrize("solver", ALL)
def test_the_objective_never_rises(solver, rng):
    x, labels = documents(rng, binary=True)
    problem = problem_of(x, labels, 1e-3)
    seen = [problem.value(np.zeros(problem.n_weights))]
    # long enough that S and T are computed anew
    solve(
        problem,
        solver,
        tol=0.0,
        max_passes=3 * REFRESH,
        callback=lambda progress: seen.append(problem.value(progress.weights())),
    )
    assert np.all(np.diff(seen) <= 1e-12 * seen[0])
    assert seen[-1] < 0.9 * seen[0]


@pytest.mark.parametrize(
    "solver",
    [
        CD(order="cyclic"),
        CD(order="permuted"),
        SCGIS(order="permuted"),
        SCGIS(order="adaptive"),
        IIS(update="sequential", order="adaptive"),
        CD(order="index"),
        SCGIS(order="index"),
        CD(bound="none"),
        CD(bound="paper"),
        CDExact(max_newton=3),
    ],
)
def test_options(solver, rng):
    x, labels = documents(rng)
    problem = problem_of(x, labels, 0.5)
    best = solve(problem, "lbfgs", tol=1e-12).primal
    one, two = (check_optimum(problem, solver, best, random_state=seed) for seed in (3, 3))
    np.testing.assert_array_equal(one.weights, two.weights)
    if getattr(solver, "order", "") == "permuted":
        assert not np.array_equal(one.weights, check_optimum(problem, solver, best, random_state=4).weights)


@pytest.mark.parametrize("solver", [CD(), SCGIS(order="adaptive"), IIS(update="sequential", order="adaptive")])
def test_a_resumed_adaptive_run_keeps_its_plan_of_visits(solver, tmp_path, rng):
    x, labels = documents(rng, n_attributes=20)
    problem = problem_of(x, labels, 0.01)
    limits = {"tol": 0.0, "random_state": 0}
    whole = solve(problem, solver, max_passes=40, **limits)
    solve(problem, solver, max_passes=17, checkpoint=tmp_path / "half", **limits)
    arrays = checkpoint.read(tmp_path / "half").arrays
    assert arrays["wait"].max() > 1
    assert arrays["rest"].any()
    resumed = solve(problem, solver, max_passes=40, checkpoint=tmp_path / "half", **limits)
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert (resumed.passes, resumed.gap) == (whole.passes, whole.gap)


@pytest.mark.parametrize("cls", [GIS, IIS])
def test_both_updates_of_one_function(cls, rng):
    x, labels = documents(rng)
    problem = problem_of(x, labels, 0.5)
    best = solve(problem, "lbfgs", tol=1e-12).primal
    one, two = (check_optimum(problem, cls(update=update), best) for update in ("parallel", "sequential"))
    assert one.passes != two.passes


def test_tighter_functions_need_fewer_updates(rng):
    """Huang et al. 2010, section 5.1: CD needs fewest updates, then SCGIS, then GIS; (33) suggests the others."""
    x, labels = documents(rng, n=150, n_attributes=9, binary=True)
    problem = problem_of(x, labels, 0.1)
    updates = {}
    for solver in ("cd", "is-bound", "scgis", "iis", "gis"):
        message = solve(problem, get_solver(solver, check_every=1), tol=1e-3).message
        updates[solver] = int(re.search(r"(\d+) updates", message)[1])
    assert updates["cd"] < updates["scgis"] < updates["gis"]
    assert updates["is-bound"] < updates["scgis"]
    assert updates["iis"] < updates["gis"]


@pytest.mark.parametrize("solver", ALL)
@pytest.mark.parametrize("loss", ["softmax-margin", "smoothed-hinge"])
def test_other_losses(solver, loss, rng):
    x, labels = documents(rng)
    problem = problem_of(x, labels, 0.5, loss)
    best = solve(problem, "lbfgs", tol=1e-12).primal
    result = solve(problem, solver, tol=1e-7, max_passes=100_000)
    assert abs(result.primal - best) <= 1e-7 * best


@pytest.mark.parametrize("binary", [True, False])
def test_the_default_gamma_depends_on_the_features(binary, rng):
    """gamma is what the caller gives, or 0.001 for 0/1 features and 0.01 for others. It matters at these starts."""
    x, labels = documents(rng, n=12, n_attributes=2, binary=binary)
    problem = problem_of(x, labels, 1e-3)
    direction = rng.normal(size=problem.n_weights)

    def pass_from(scale, gamma):
        solver = CD(gamma=gamma, order="cyclic", bound="none")
        return solve(problem, solver, tol=0.0, max_passes=1, warm_start=scale * direction).weights

    default, other = (0.001, 0.01) if binary else (0.01, 0.001)
    told_apart = 0
    for scale in np.add.outer((2.326, 9.957, 10.348, 19.608), np.linspace(-0.05, 0.05, 5)).ravel():
        weights = pass_from(scale, None)
        np.testing.assert_array_equal(weights, pass_from(scale, default))
        told_apart += not np.array_equal(weights, pass_from(scale, other))
    assert told_apart > 0
    asked = [pass_from(4.0, gamma) for gamma in (1e-4, 0.49)]
    assert not np.array_equal(*asked)


def test_warm_starts(rng):
    x, labels = documents(rng)
    problem = problem_of(x, labels, 0.5)
    first = solve(problem, "cd", tol=1e-3)
    again = solve(problem, "scgis", tol=1e-3, warm_start=first)
    assert again.passes == 0  # the start is within the tolerance
    better = solve(problem, "scgis", tol=1e-8, warm_start=first)
    assert better.primal < first.primal
    cold = solve(problem, "scgis", tol=1e-8)
    assert better.passes < cold.passes


def test_the_rounding_floor_ends_a_run(rng):
    x, labels = documents(rng)
    result = solve(problem_of(x, labels, 0.5), "cd", tol=1e-30, max_passes=100_000)
    assert result.status == "converged"
    assert result.relative_gap <= 1e-10
    assert result.passes < 2000


class TestDataThatSaysLittle:
    def test_an_all_zero_feature(self, rng):
        x, labels = documents(rng)
        x[:, 2] = 0.0
        with pytest.warns(FeatureWarning, match=r"feature 8 \(attribute 2, label 0\) \(and 2 more\) is 0 everywhere"):
            result = solve(problem_of(x, labels, 0.5), "cd")
        assert not result.weights[8:12].any()
        with pytest.warns(FeatureWarning, match="is 0 everywhere"):
            result = solve(problem_of(x, labels, 0.5), "scgis", warm_start=np.ones(24), tol=1e-8)
        np.testing.assert_allclose(result.weights[8:11], 0.0, atol=1e-6)

    @pytest.mark.parametrize("solver", ALL)
    def test_a_label_never_seen(self, solver, rng):
        x, labels = documents(rng)
        structure = Multiclass(len(labels), 4)
        features = maxent_map(structure, x)
        problem = Problem(features, structure, structure.encode(labels), "log", 0.5)
        with pytest.warns(FeatureWarning, match="label 3 is not the gold label of any example"):
            result = solve(problem, solver, tol=1e-6)
        assert result.status == "converged"
        assert np.all(result.weights.reshape(-1, 4)[:, 3] < 0)
        without = Problem(features, structure, structure.encode(labels), "log", 0.0)
        with (
            pytest.warns(FeatureWarning, match="label 3"),
            pytest.raises(ValueError, match=r"feature 3 \(attribute 0, label 3\) never occurs.*-infinity"),
        ):
            solve(without, solver)

    @pytest.mark.parametrize("solver", ALL)
    def test_a_feature_that_determines_the_label(self, solver, rng):
        """Without a penalty the best weight of such a feature is +infinity."""
        x, labels = documents(rng, binary=True)
        extra = np.zeros((len(labels), 3, 7))
        for y in range(3):
            extra[:, y, :6] = x * (np.arange(6) % 3 == y)
        extra[labels == 1, 1, 6] = 1.0
        structure = Multiclass(len(labels), 3)
        features = maxent_matrix_map(structure, extra.reshape(-1, 7))
        problem = Problem(features, structure, structure.encode(labels), "log", 0.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = solve(problem, solver, tol=1e-6, max_passes=3000)
        assert any(
            w.category is FeatureWarning and "feature 6 never occurs with a wrong label" in str(w.message)
            for w in caught
        )
        assert np.isfinite(result.weights).all()
        assert result.weights.argmax() == 6

    @pytest.mark.parametrize("solver", ALL)
    def test_separable_data(self, solver):
        """No single feature determines the label, but together the features do."""
        x = np.array([[2.0, 1.0], [1.0, 0.5], [1.0, 2.0], [0.5, 1.0], [3.0, 2.0], [2.0, 3.0]])
        labels = np.array([0, 0, 1, 1, 0, 1])
        problem = problem_of(x, labels, 0.0)
        with pytest.warns(ConvergenceWarning, match=r"separate the training data.*the largest weight is .*\(attribute"):
            result = solve(problem, solver, tol=1e-3, max_passes=20_000)
        assert np.isfinite(result.weights).all()
        assert result.status == "no certificate"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cd", {"beta": 1.0}, "beta"),
        ("cd", {"gamma": 0.5}, "gamma"),
        ("cd", {"order": "random"}, "order must be one of index, cyclic, permuted, adaptive"),
        ("cd", {"bound": "first"}, "bound must be one of 'third-order', 'paper', 'none'; got 'first'"),
        ("cd", {"bound": True}, "bound must be one of"),
        ("gis", {"order": "adaptive"}, "needs update='sequential'"),
        ("gis", {"update": "both"}, "update must be one of parallel, sequential"),
        ("iis", {"newton_tol": 0.0}, "newton_tol"),
        ("scgis", {"newton_tol": np.nan}, "newton_tol"),
        ("cd-exact", {"max_newton": 0}, "max_newton"),
        ("is-bound", {"check_every": 0}, "check_every"),
    ],
)
def test_bad_options(name, options, message):
    with pytest.raises(ValueError, match=message):
        get_solver(name, **options)
