"""L-BFGS: the line search, the end at rounding, and runs without a penalty."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers.small_problems import Small
from partwise import ConvergenceWarning, Problem, solve
from partwise.features import multiclass_map
from partwise.solvers import LBFGS
from partwise.solvers.primal.lbfgs import ARMIJO, CURVATURE, LineSearch, Trial
from partwise.structures import Multiclass

CURVES = {
    "parabola": (lambda x: (x - 3.0) ** 2, lambda x: 2 * (x - 3.0)),
    "far minimum": (lambda x: 1e-6 * (x - 1e5) ** 2, lambda x: 2e-6 * (x - 1e5)),
    "near minimum": (lambda x: 1e8 * (x - 1e-7) ** 2, lambda x: 2e8 * (x - 1e-7)),
    "logistic": (lambda x: np.logaddexp(0, 2 - x) + 0.01 * x, lambda x: 0.01 - np.exp(2 - x - np.logaddexp(0, 2 - x))),
    "kink": (lambda x: abs(x - 0.3) + 0.1 * x, lambda x: (1.0 if x > 0.3 else -1.0) + 0.1),
    "overflow": (
        lambda x: math.inf if x > 0.5 else (x - 0.4) ** 2,
        lambda x: math.nan if x > 0.5 else 2 * (x - 0.4),
    ),
}


def searched(value, slope, first, most):
    """Run a line search on a curve to its end."""
    search = LineSearch(value(0.0), slope(0.0), first, most)
    while not search.ended:
        alpha = search.alpha
        search.add(Trial(alpha, value(alpha), slope(alpha), np.zeros(1), np.zeros(1)))
    return search


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("first", [1e-8, 1.0, 1e6])
def test_line_search(name, first):
    value, slope = CURVES[name]
    search = searched(value, slope, first, 40)
    found = search.best
    assert search.trials <= 40
    assert found is not None
    assert found.primal < value(0.0)
    if name != "kink":  # a kink has no point with a small slope
        assert found.primal <= value(0.0) + ARMIJO * found.alpha * slope(0.0)
        assert abs(found.slope) <= CURVATURE * abs(slope(0.0))


def test_line_search_stops_if_no_value_is_lower():
    search = searched(lambda alpha: 1.0 + alpha, lambda alpha: 1.0 if alpha else -1.0, 1.0, 25)
    assert search.best is None
    assert search.trials == 25


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied", "python"])
@pytest.mark.parametrize("l2", [1e-3, 1.0, 100.0])
def test_the_rounding_floor_is_reached_and_ends_the_run(kind, loss, l2):
    small = Small(kind, loss, l2=l2)
    result = solve(small.problem, "lbfgs", tol=1e-28, max_passes=3000)
    assert result.status == "converged"
    assert result.gap - result.rounding <= 1e-14 * result.primal
    assert result.relative_gap <= 1e-11
    assert result.passes < 1500
    # |w - w*|^2 <= 2 gap / l2, checked with an independent minimiser
    other = minimize(
        lambda w: (small.dense.primal(w), small.dense.gradient(w)), result.weights + 0.01, jac=True, tol=1e-14
    )
    assert result.primal <= other.fun * (1 + 1e-12)


def test_tol_zero_ends_at_the_floor():
    small = Small("chain-tied", "log")
    result = solve(small.problem, "lbfgs", tol=0.0, max_passes=5000)
    assert result.status == "converged"
    assert result.gap - result.rounding < 1e-14 * result.primal
    assert "double precision" in result.message
    assert result.passes < 1000


def test_tol_zero_runs_to_max_passes():
    small = Small("chain-tied", "log")
    result = solve(small.problem, "lbfgs", tol=0.0, max_passes=7)
    assert result.status == "max_passes"
    assert result.passes >= 7


class TestWithoutPenalty:
    def test_the_gradient_becomes_small(self):
        rng = np.random.default_rng(0)
        rows, labels = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)  # random labels, so the optimum is finite
        structure = Multiclass(60, 3)
        problem = Problem(multiclass_map(structure, rows), structure, structure.encode(labels), "log", 0.0)
        result = solve(problem, "lbfgs", tol=1e-6)
        assert result.status == "no certificate"
        assert result.gap == np.inf
        assert result.dual == -np.inf
        assert "gradient norm" in result.message
        gradient = problem.value_and_gradient(result.weights)[1]
        at_zero = problem.value_and_gradient(np.zeros(problem.n_weights))[1]
        assert np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(at_zero)
        warm = solve(problem, "lbfgs", tol=1e-6, warm_start=result)
        assert warm.status == "no certificate"
        assert warm.passes <= 2

    def test_separable_data_without_a_penalty_end_at_a_limit(self):
        structure = Multiclass(2, 2)
        problem = Problem(multiclass_map(structure, np.eye(2)), structure, structure.encode(np.array([0, 1])), "log", 0)
        with pytest.warns(ConvergenceWarning, match="no certificate"):
            result = solve(problem, "lbfgs", tol=1e-9, max_passes=10)
        assert result.status == "max_passes"
        assert np.isfinite(result.weights).all()


def test_warm_start():
    small = Small("chain-tied", "log")
    cold = solve(small.problem, "lbfgs", tol=1e-8)
    for warm in (cold, cold.weights, cold.dual_point):
        assert solve(small.problem, "lbfgs", tol=1e-8, warm_start=warm).passes <= cold.passes / 2
    with pytest.raises(ValueError, match="weights of shape"):
        solve(small.problem, "lbfgs", warm_start=np.zeros(1))


def test_bad_options():
    with pytest.raises(ValueError, match="memory"):
        LBFGS(memory=0)


def test_large_features_do_not_prevent_convergence():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(30, 4)) * np.array([1e4, 1.0, 1e-3, 0.0])
    structure = Multiclass(30, 3)
    problem = Problem(multiclass_map(structure, rows), structure, structure.encode(rng.integers(0, 3, 30)), "log", 1e-2)
    result = solve(problem, "lbfgs", tol=1e-10, max_passes=5000)
    assert result.status == "converged"


def test_a_gap_below_rounding_does_not_end_a_run():
    """Rounding may put the best plane above the objective. The resulting gap of 0 must not end the run."""
    problem = Small("chain-tied", "log", l2=1e-3).problem
    solver = LBFGS()
    state = solver.init_state(problem, np.random.default_rng(0), None)
    for _ in range(15):
        solver.step(problem, state)
    newest = problem.certificate_at(state.primal, state.gradient, state.weights).gap
    assert newest > 1e-9 * state.primal
    state.best_b += state.primal * (1 + 1e-15) - problem.dual_of_plane(state.best_u, state.best_b)
    assert solver.certificate(problem, state).certificate.gap == newest


def test_the_dual_is_that_of_the_best_mean_of_planes():
    """The dual is below the optimum, and at least that of every plane and of any mean of the last two planes."""
    problem = Small("chain-tied", "log", n=20).problem
    best = solve(problem, "lbfgs", tol=1e-12).primal
    solver = LBFGS()
    state = solver.init_state(problem, np.random.default_rng(0), None)
    alone, strictly = -math.inf, 0
    for _ in range(6):
        old = state.best_u, state.best_b
        solver.step(problem, state)
        new = problem.touching_plane(state.weights, state.primal, state.gradient)
        means = [problem.dual_of_plane(old[0] + t * (new[0] - old[0]), old[1] + t * (new[1] - old[1]))
                 for t in np.linspace(0, 1, 101)]  # fmt: skip
        alone = max(alone, problem.dual_of_plane(*new))
        assert max(means) - 1e-9 <= state.best_dual <= best + 1e-9
        assert state.best_dual == pytest.approx(problem.dual_of_plane(state.best_u, state.best_b), rel=1e-12)
        strictly += state.best_dual > alone + 1e-3 * (best - alone)
    assert strictly >= 3
