"""Coordinate descent under an l1 penalty: certificates, zero weights, features shared between labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from helpers.small_problems import Small
from partwise import Problem, _core, solve
from partwise.features import LinearMap, logistic_map, maxent_map, maxent_matrix_map, multiclass_map
from partwise.problem.penalties import ElasticNet
from partwise.solvers import CDL1, suitable_solvers
from partwise.structures import Multiclass

LOSSES = ["log", "softmax-margin", "smoothed-hinge"]


def with_net(small: Small, l1: float, l2: float) -> Problem:
    return small.problem.with_penalty(ElasticNet(l1, l2))


def best(small: Small, l1: float, l2: float) -> float:
    """The optimum by SciPy, with w = p - m for p, m >= 0."""
    d = small.problem.n_weights

    def f(x):
        w = x[:d] - x[d:]
        gradient = small.dense.gradient(w) - small.dense.l2 * w + l2 * w
        value = small.dense.loss_sum(w) + 0.5 * l2 * w @ w + l1 * x.sum()
        return value, np.concatenate([gradient + l1, l1 - gradient])

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    return float(
        minimize(f, np.zeros(2 * d), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * d, options=options).fun
    )


@pytest.mark.parametrize("l2", [0.0, 0.2])
@pytest.mark.parametrize("l1", [0.05, 0.5])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_scipys(loss, l1, l2):
    small = Small("multiclass", loss, n=15)
    problem = with_net(small, l1, l2)
    assert "cd-l1" in suitable_solvers(problem)
    result = solve(problem, tol=1e-9, random_state=0)
    assert result.converged
    assert result.primal == pytest.approx(best(small, l1, l2), rel=1e-7)
    history = result.history
    assert np.all(np.diff(history["primal"]) <= 1e-12 * history["primal"][:-1])
    assert np.all(history["primal"] - history["dual"] >= -1e-10)
    # The certificate, computed from its parts.
    w = result.weights
    primal = small.dense.loss_sum(w) + 0.5 * l2 * w @ w + l1 * np.abs(w).sum()
    assert primal == pytest.approx(result.primal, rel=1e-10)
    assert problem.dual_value(result.dual_point) == pytest.approx(result.dual, rel=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_every_dual_point_lies_below_the_optimum(l2, rng):
    small = Small("multiclass", "log", n=8)
    problem = with_net(small, 0.3, l2)
    optimum = solve(problem, tol=1e-10, random_state=0).primal
    for scale in (0.0, 0.1, 1.0, 10.0):
        point = problem.oracle_point(scale * rng.normal(size=problem.n_weights))
        assert problem.dual_value(point) <= optimum + 1e-9


def test_small_working_sets_and_few_sweeps():
    small = Small("multiclass", "log", n=30)
    problem = with_net(small, 0.1, 0.0)
    whole = solve(problem, tol=1e-9, random_state=0)
    part = solve(problem, CDL1(least=1, few=0, growth=0.1, max_sweeps=2), tol=1e-9, random_state=0)
    assert part.converged
    assert part.primal == pytest.approx(whole.primal, rel=1e-8)
    np.testing.assert_array_equal(part.weights != 0, whole.weights != 0)


def test_warm_starts_and_resumed_runs(tmp_path):
    problem = with_net(Small("multiclass", "log", n=30), 0.1, 0.0)
    cold = solve(problem, tol=1e-8, random_state=0)
    assert solve(problem, tol=1e-8, warm_start=cold).passes < cold.passes
    whole = solve(problem, CDL1(max_sweeps=1), tol=1e-8, random_state=0)
    stopped = solve(
        problem,
        CDL1(max_sweeps=1),
        tol=1e-8,
        random_state=0,
        checkpoint=tmp_path / "c",
        callback=lambda p: p.epoch == 3,
    )
    assert stopped.status == "stopped"
    resumed = solve(problem, CDL1(max_sweeps=1), tol=1e-8, random_state=0, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    with pytest.raises(ValueError, match="another problem"):
        solve(problem.with_penalty(ElasticNet(0.2)), CDL1(max_sweeps=1), tol=1e-8, checkpoint=tmp_path / "c")


def test_features_shared_between_labels():
    """Eight slots are two rows of four. If both rows have an attribute, two slots share its weights."""
    structure = Multiclass(3, 8)
    layout = _core.RowLayout.dense(2, 4, 4)
    attributes, values = np.array([0, 1, 1, 1, 0, 0]), np.array([1.0, -2.0, 0.5, 1.5, -1.0, 1.0])
    rows = _core.AttributeSegment(layout, np.array([0, 2, 4, 6]), np.arange(7), attributes, values)
    gold = structure.encode(np.array([0, 5, 3]))
    problem = Problem(LinearMap([rows]), structure, gold, "log", ElasticNet(0.05, 0.01))
    result = solve(problem, tol=1e-9, random_state=0)
    assert result.converged

    def value(x):
        return problem.value(x[:8] - x[8:]) - 0.05 * np.abs(x[:8] - x[8:]).sum() + 0.05 * x.sum()

    found = minimize(value, np.full(16, 0.1), method="L-BFGS-B", bounds=[(0, None)] * 16, options={"ftol": 1e-14})
    assert result.primal == pytest.approx(found.fun, rel=1e-6)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_maps_of_columns_and_maps_of_rows_agree(rng, binary, l2):
    """A map that stores columns, and a map of rows whose columns the solver computes, give the same weights."""
    n, d, n_labels = 60, 8, 3
    table = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    table = (table != 0).astype(float) if binary else table
    structure = Multiclass(n, n_labels)
    gold = structure.encode(rng.integers(0, n_labels, size=n))
    weight = rng.integers(0, 3, size=n).astype(float)
    maps = {
        "rows": multiclass_map(structure, sparse.csr_array(table)),
        "columns": maxent_map(structure, sparse.csr_array(table)),
        "matrix": maxent_matrix_map(structure, sparse.csr_array(np.kron(table, np.eye(n_labels)))),
    }
    found = {}
    for name, features in maps.items():
        problem = Problem(features, structure, gold, "log", ElasticNet(1.0, l2), sample_weight=weight)
        assert "cd-l1" in suitable_solvers(problem)
        assert ("column access" in problem.capabilities()) == (name != "rows")
        result = solve(problem, CDL1(model=binary), tol=1e-10, random_state=0)
        assert result.converged
        found[name] = result
    np.testing.assert_array_equal(found["rows"].weights, found["columns"].weights)
    padded = found["rows"].weights.reshape(d, -1)[:, :n_labels].ravel()
    np.testing.assert_allclose(found["matrix"].weights, padded, atol=1e-6)
    assert 0 < np.count_nonzero(padded) < padded.size


def test_a_column_with_several_slots_of_an_example(rng):
    """Labels share features, so a column has several slots of an example; the optimum equals SciPy's."""
    n, d, n_labels = 25, 6, 4
    matrix = rng.normal(size=(n * n_labels, d)) * (rng.random((n * n_labels, d)) < 0.6)
    structure = Multiclass(n, n_labels)
    gold = structure.encode(rng.integers(0, n_labels, size=n))
    problem = Problem(maxent_matrix_map(structure, sparse.csr_array(matrix)), structure, gold, "log", ElasticNet(0.5))
    result = solve(problem, tol=1e-10, random_state=0)
    assert result.converged

    def value(x):
        return problem.value(x[:d] - x[d:]) - 0.5 * np.abs(x[:d] - x[d:]).sum() + 0.5 * x.sum()

    found = minimize(value, np.full(2 * d, 0.1), method="L-BFGS-B", bounds=[(0, None)] * 2 * d, options={"ftol": 1e-14})
    assert result.primal == pytest.approx(found.fun, rel=1e-6)
    assert result.primal <= found.fun * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_sweeps_from_extreme_weights_lose_no_digits(loss, rng):
    """After steps that remove nearly all of an example's sum, the stored sums still agree with the weights."""
    n, d, n_labels = 12, 3, 4
    structure = Multiclass(n, n_labels)
    gold = structure.encode(np.arange(n) % n_labels)
    features = multiclass_map(structure, rng.uniform(0.5, 1.5, size=(n, d)))
    problem = Problem(features, structure, gold, loss, ElasticNet(0.01))
    weights = np.zeros(problem.n_weights)
    # Weights of the first label, whose probability is near 1
    some = np.arange(0, problem.n_weights, problem.n_weights // d)
    part = np.full(d, 40.0)
    weights[some] = part
    unscaled, _ = problem.sums.marginals_of_scores(problem.oracle_point(weights).scores)
    sums = np.ones(n)
    columns = _core.WorkingColumns(problem.sums.in_memory()[0].native, some)
    state = _core.CdL1State(columns, weights=part, unscaled=unscaled, sums=sums)
    for seed in range(4):
        _core.cd_l1(state, _core.CdL1Options(l1=0.01, l2=0.0, max_sweeps=1, tol=0.0, seed=seed))
        weights[some] = part
        expected, _ = problem.sums.marginals_of_scores(problem.oracle_point(weights).scores)
        np.testing.assert_allclose(unscaled / np.repeat(sums, len(unscaled) // n), expected, rtol=1e-6, atol=1e-12)
    assert part.max() < 39.0


@pytest.mark.parametrize("loss", LOSSES)
def test_no_sweep_raises_the_objective(loss, rng):
    """Steps without a line search stay within the bound that makes a line search unnecessary."""
    n, d, n_labels = 30, 6, 3
    structure = Multiclass(n, n_labels)
    gold = structure.encode(rng.integers(n_labels, size=n))
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2.0, 1.0, size=d)
    problem = Problem(multiclass_map(structure, rows), structure, gold, loss, ElasticNet(0.01, 0.001))
    some = np.arange(problem.n_weights)
    weights = rng.normal(size=problem.n_weights)
    unscaled, _ = problem.sums.marginals_of_scores(problem.oracle_point(weights).scores)
    columns = _core.WorkingColumns(problem.sums.in_memory()[0].native, some)
    state = _core.CdL1State(columns, weights=weights, unscaled=unscaled, sums=np.ones(n))
    before = problem.value(weights)
    for seed in range(8):
        _core.cd_l1(state, _core.CdL1Options(l1=0.01, l2=0.001, max_sweeps=1, tol=0.0, seed=seed))
        now = problem.value(weights)
        assert now <= before * (1 + 1e-12)
        before = now


@pytest.mark.parametrize("options", [{"inner": 1.0}, {"max_sweeps": 0}, {"growth": 0.0}, {"least": 0}, {"few": -1}])
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        CDL1(**options)


def test_bad_penalties():
    with pytest.raises(ValueError, match="l1 of the elastic net must be a number > 0"):
        ElasticNet(0.0, 1.0)
    with pytest.raises(ValueError, match="strength of the elastic net"):
        ElasticNet(1.0, -1.0)


def test_bad_input_to_the_core():
    problem = with_net(Small("multiclass", "log"), 0.1, 0.0)
    with pytest.raises(ValueError, match="ascending and different"):
        _core.WorkingColumns(problem.sums.in_memory()[0].native, np.array([3, 3]))
    with pytest.raises(ValueError, match="in range"):
        _core.WorkingColumns(problem.sums.in_memory()[0].native, np.array([10**6]))
    with pytest.raises(ValueError, match="several parts"):
        _core.WorkingColumns(Small("chain-tied", "log").problem.sums.in_memory()[0].native, np.array([1]))


@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_steps_by_the_model_reach_the_same_optimum(loss, l2, scale, rng):
    X = scale * rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.6)
    structure = Multiclass(40, 3)
    gold = structure.encode(rng.integers(0, 3, 40))
    problem = Problem(
        multiclass_map(structure, X), structure, gold, loss, ElasticNet(0.7, l2), sample_weight=rng.random(40) + 0.1
    )
    by_model, plain = (solve(problem, CDL1(model=model), tol=1e-7) for model in (True, False))
    assert by_model.converged
    assert by_model.primal == pytest.approx(plain.primal, rel=2e-7)
    assert by_model.primal == pytest.approx(problem.value(by_model.weights), rel=1e-12)
    np.testing.assert_array_equal(by_model.weights == 0, plain.weights == 0)


@pytest.mark.parametrize("labels_share", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.4])
def test_a_step_by_the_model_solves_the_quadratic_model(labels_share, l2, rng):
    """One step by the model is the D that minimises G'D + D'HD/2 plus the penalty; the test computes H itself."""
    n, n_labels, l1 = 40, 3, 0.3
    shape = (n * n_labels, 7) if labels_share else (n, 5)
    table = (rng.random(shape) < 0.5) * 1.0
    structure = Multiclass(n, n_labels)
    matrix = table if labels_share else np.kron(table, np.eye(n_labels))
    features = maxent_matrix_map(structure, sparse.csr_array(matrix))
    gold = structure.encode(rng.integers(0, n_labels, size=n))
    weight = rng.random(n) + 0.5
    problem = Problem(features, structure, gold, "log", ElasticNet(l1, l2), sample_weight=weight)
    d = problem.n_weights
    weights = 0.1 * rng.normal(size=d)
    _, u, _ = problem.plane(weights)
    p, _ = problem.sums.marginals_of_scores(problem.oracle_point(weights).scores)
    part = weights.copy()
    columns = _core.WorkingColumns(problem.sums.in_memory()[0].native, np.arange(d))
    state = _core.CdL1State(columns, weights=part, unscaled=p.copy(), sums=np.ones(n))
    report = _core.cd_l1_model(state, _core.CdL1Options(l1=l1, l2=l2, max_sweeps=10_000, tol=1e-9, seed=0), np.zeros(n))
    assert report.steps == 1
    step = part - weights
    H = l2 * np.eye(d)
    for i, own in enumerate(p.reshape(n, -1)[:, :n_labels]):
        A = matrix[i * n_labels : (i + 1) * n_labels]
        H += weight[i] * A.T @ (np.diag(own) - np.outer(own, own)) @ A
    slope = problem.gradient(weights, u) + H @ step
    outside = np.where(part != 0, np.abs(slope + l1 * np.sign(part)), np.maximum(np.abs(slope) - l1, 0.0))
    assert outside.max() < 1e-6
    assert np.count_nonzero(step) > 1


@pytest.mark.parametrize(("l2", "bound"), [(0.0, 1e-2), (0.5, 1e-3)])
def test_the_certified_gap_follows_the_objective(l2, bound, rng):
    """Planes at the distributions that the model predicts give much smaller gaps than planes at the weights."""
    n, d = 2000, 30
    X = (rng.random((n, d)) < 0.3) * 1.0
    y = (X @ rng.normal(size=d) + rng.logistic(size=n) > 0).astype(int)
    structure = Multiclass(n, 2)
    problem = Problem(logistic_map(structure, X), structure, structure.encode(y), "log", ElasticNet(1.0, l2))
    optimum = solve(problem, "cd-l1", tol=1e-10).primal
    history = solve(problem, "cd-l1", tol=1e-8).history
    above, gap = history["primal"] - optimum, history["gap"]
    first = int(np.argmax(above < 3e-4 * optimum))
    assert 0 < above[first] < 3e-4 * optimum
    assert gap[first] < bound * optimum
    assert np.all(np.diff(history["dual"]) >= -1e-9 * optimum)  # the best plane is kept
