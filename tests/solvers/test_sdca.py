"""Exact-block dual coordinate ascent: what it fits, starts, rests, the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from smallproblems import Small

from partwise import SDCA, LinearMap, Multiclass, Problem, _core, multiclass_map, solve, suitable_solvers


def test_it_fits_single_labels_only():
    assert "sdca" in suitable_solvers(Small("multiclass", "log").problem)
    for kind, loss in (("chain-tied", "log"), ("multiclass", "hinge"), ("python", "log")):
        assert "sdca" not in suitable_solvers(Small(kind, loss).problem)
    with pytest.raises(ValueError, match="'sdca' needs diagonal blocks and one part"):
        solve(Small("chain-tied", "log").problem, "sdca")


def test_features_shared_between_labels_do_not_fit():
    structure = Multiclass(2, 8)
    gold = structure.encode(np.array([0, 5]))
    # eight slots as two rows of four: where both rows have an attribute, slots a and a + 4 share its weight
    layout = _core.RowLayout.dense(2, 4, 4)
    for attributes, fits in ((np.array([0, 1, 1, 0]), True), (np.array([0, 1, 1, 1]), False)):
        rows = _core.AttributeSegment(layout, np.array([0, 2, 4]), np.arange(5), attributes)
        problem = Problem(LinearMap([rows]), structure, gold, "log", 1.0)
        assert ("sdca" in suitable_solvers(problem)) == fits
        if fits:
            assert solve(problem, "sdca", tol=1e-8).converged
        else:
            with pytest.raises(ValueError, match="'sdca' needs diagonal blocks"):
                solve(problem, "sdca")


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("l2", [0.01, 1.0])
def test_the_optimum_is_scipys(loss, l2):
    small = Small("multiclass", loss, l2=l2, n=12)
    result = solve(small.problem, "sdca", tol=1e-13, random_state=0)
    found = minimize(
        small.dense.primal,
        np.zeros(small.problem.n_weights),
        jac=small.dense.gradient,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert result.status == "converged"
    assert result.primal == pytest.approx(found.fun, rel=1e-8)


@pytest.mark.parametrize("skip", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("order", ["random", "permuted", "cyclic"])
@pytest.mark.parametrize("start", ["gold", "uniform"])
def test_every_combination_converges_with_a_rising_dual(skip, order, start):
    small = Small("multiclass", "log", l2=0.05, n=30)
    solver = SDCA(skip=skip, order=order, start=start, check_every=1)
    result = solve(small.problem, solver, tol=1e-9, random_state=0)
    assert result.status == "converged"
    assert np.all(np.diff(result.history["dual"]) >= -1e-12 * abs(result.dual))


def test_rests_save_visits(rng):
    X = rng.normal(size=(300, 5))
    y = np.argmax(X[:, :3], axis=1)
    structure = Multiclass(300, 3)
    problem = Problem(multiclass_map(structure, X), structure, structure.encode(y), "log", 0.01)
    passes = [solve(problem, SDCA(skip=skip), tol=1e-4, random_state=0).passes for skip in (0.0, 0.5)]
    assert passes[1] < 0.7 * passes[0]


def test_warm_starts_save_passes():
    small = Small("multiclass", "log", l2=0.05, n=20)
    cold = solve(small.problem, "sdca", tol=1e-8, random_state=0)
    for warm in (cold, cold.dual_point, cold.weights, solve(small.problem, "lbfgs", tol=1e-12)):
        again = solve(small.problem, "sdca", tol=1e-8, random_state=0, warm_start=warm)
        assert again.converged
        assert again.passes <= 0.5 * cold.passes


def test_a_start_far_away_is_cut_off():
    small = Small("multiclass", "log", l2=1.0)
    far = np.tile([1e4, -1e4, 1e4, 0.0], small.problem.n_weights // 4)
    result = solve(small.problem, "sdca", tol=1e-8, warm_start=far)
    assert result.converged


@pytest.mark.parametrize(
    "options", [{"start": "warm"}, {"sharpness": 1e3}, {"skip": -1.0}, {"skip": np.nan}, {"longest_rest": -1}]
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        SDCA(**options)
