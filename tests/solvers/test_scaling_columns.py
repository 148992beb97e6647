"""Iterative scaling and coordinate descent on columns that are empty, without weight, or of extreme size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from partwise import FeatureWarning, MaxentClassifier, Problem, get_solver, solve
from partwise._core import scaling_constants
from partwise.features import logistic_map, maxent_map, maxent_matrix_map, multiclass_map
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers import CD, GIS, IIS, SCGIS, CDExact, suitable_solvers
from partwise.structures import Multiclass

ALL = ("cd", "cd-exact", "scgis", "is-bound", "gis", "iis")
EVERY_ORDER = [
    *(cls(order=order) for cls in (CD, CDExact, SCGIS) for order in ("index", "cyclic", "permuted", "adaptive")),
    *(cls(update="sequential") for cls in (GIS, IIS)),
    *map(get_solver, ("gis", "iis", "is-bound")),
]


def matrix_problem(table: np.ndarray, labels: np.ndarray, l2: float, **options) -> Problem:
    """Make a problem with a map of features; `table` is (examples, labels, features)."""
    n, n_labels, n_features = table.shape
    structure = Multiclass(n, n_labels)
    features = maxent_matrix_map(structure, table.reshape(-1, n_features))
    return Problem(features, structure, structure.encode(labels), "log", l2, **options)


def three_features() -> tuple[np.ndarray, np.ndarray]:
    """Eight examples of two labels. Feature 0 occurs in all examples, 1 in none, 2 in five with different values."""
    labels = np.array([0, 1, 0, 1, 1, 0, 1, 1])
    table = np.zeros((8, 2, 3))
    table[np.arange(8), labels, 0] = [1, 2, 1, 1, 2, 1, 1, 1]
    table[np.arange(8), 1 - labels, 0] = [1, 1, 2, 1, 1, 1, 2, 1]
    table[:5, 1, 2] = [1, 2, 3, 1, 2]
    return table, labels


def test_masses_beside_an_empty_column():
    table, labels = three_features()
    np.testing.assert_array_equal(
        scaling_constants(matrix_problem(table, labels, 1.0).sums.in_memory()[0].native)[1], [8, 0, 5]
    )


@pytest.mark.parametrize("solver", EVERY_ORDER, ids=repr)
@pytest.mark.parametrize("weightless", [False, True])
@pytest.mark.parametrize("l2", [0.0, 1e-2])
def test_empty_and_weightless_columns(solver, weightless, l2, rng):
    """Empty columns, and columns of examples without weight, do not change the result for the other columns."""
    table = (rng.random((30, 3, 6)) < 0.5) * rng.uniform(0.2, 2.0, (30, 3, 6))
    labels = rng.integers(0, 3, 30)
    omega = np.ones(30)
    bare = [1, 3]
    table[:, :, bare] = 0.0
    # The columns that follow empty ones belong to one label: they come after the empty columns in the order, too.
    table[:, 1:, [2, 4]] = 0.0
    if weightless:
        omega[[4, 17]] = 0.0
        table[4, :, bare] = [[0.0, 2.0, 0.5], [1.0, 0.0, 0.0]]
        table[17, 1, 3] = 3.0
    rest = [t for t in range(6) if t not in bare]
    small = solve(matrix_problem(table[:, :, rest], labels, l2, sample_weight=omega), solver, tol=1e-8, max_passes=9000)
    problem = matrix_problem(table, labels, l2, sample_weight=omega)
    before = problem.value(np.zeros(6))
    seen = [before]
    reason = "is 0 in every example of positive weight" if weightless else "is 0 everywhere"
    with pytest.warns(FeatureWarning, match=rf"feature 1 \(and 1 more\) {reason}"):
        result = solve(
            problem,
            solver,
            tol=1e-8,
            max_passes=9000,
            random_state=3,
            callback=lambda progress: seen.append(problem.value(progress.weights())),
        )
    assert result.status == small.status == ("converged" if l2 else "no certificate")
    assert result.primal == pytest.approx(small.primal, rel=1e-7)
    assert not result.weights[bare].any()
    assert np.all(np.diff(seen) <= 1e-12 * before)
    if l2:
        assert result.dual <= small.primal * (1 + 1e-12)


@pytest.mark.parametrize("solver", ALL)
def test_weights_of_columns_without_sample_weight_return_to_zero(solver):
    table, labels = three_features()
    table[7, 0, 1] = 1.5
    omega = np.append(np.ones(7), 0.0)
    problem = matrix_problem(table, labels, 0.5, sample_weight=omega)
    with pytest.warns(FeatureWarning, match="feature 1 is 0 in every"):
        result = solve(problem, solver, tol=1e-10, warm_start=np.array([0.0, 2.0, 0.0]))
    assert result.status == "converged"
    assert abs(result.weights[1]) <= 1e-4


@pytest.mark.parametrize("beta", [0.01, 0.3, 0.5, 0.99, 0.9999, 1 - 1e-12, np.nextafter(1, 0)])
@pytest.mark.parametrize("bound", ["third-order", "paper", "none"])
@pytest.mark.parametrize("start", [10.0, -10.0])
@pytest.mark.parametrize("solver", [CD, CDExact])
def test_every_beta_between_0_and_1_converges(solver, start, bound, beta, rng):
    """Huang et al. 2010, Theorems 4 and 5. At the start A_t is flat, so that Newton's step is far too long."""
    x = np.stack([np.ones(60), rng.random(60) < 0.5], axis=1)
    labels = (rng.random(60) < 0.3).astype(np.int64)
    structure = Multiclass(60, 2)
    problem = Problem(logistic_map(structure, x), structure, structure.encode(labels), "log", 1e-3)
    best = solve(problem, "newton", tol=1e-12)
    solver = solver(beta=beta, bound=bound)
    result = solve(problem, solver, tol=1e-6, warm_start=np.full(2, start), max_passes=10**6)
    assert result.status == "converged"
    assert result.primal - best.primal <= 1e-6 * best.primal


@pytest.mark.parametrize("bound", ["third-order", "paper", "none"])
def test_the_step_is_the_first_that_decreases_enough(bound):
    """Algorithm 3, step 2, as a loop: lambda = 1, beta, beta^2, ..."""
    labels = np.array([0, 1, 1, 0, 1])
    structure = Multiclass(5, 2)
    features = logistic_map(structure, np.ones((5, 1)))
    problem = Problem(features, structure, structure.encode(labels), "log", 1e-3)
    depths = []
    for beta in (0.5, 0.8, 0.97):
        for start in (-12.0, -6.0, -1.0, 0.3, 4.0, 9.0):
            p = 1 / (1 + np.exp(-start))
            slope = 1e-3 * start - 3 + 5 * p
            d = np.clip(-slope / (1e-3 + 5 * p * (1 - p)), -50, 50)
            value, depth = problem.value(np.array([start])), 0
            while problem.value(np.array([start + d * beta**depth])) - value > 0.25 * d * beta**depth * slope:
                depth += 1
            solver = CD(beta=beta, gamma=0.25, bound=bound)
            result = solve(problem, solver, tol=0.0, max_passes=1e-9, warm_start=np.array([start]))
            assert result.weights[0] == pytest.approx(start + d * beta**depth, rel=1e-9)
            depths.append(depth)
    assert min(depths) == 0
    assert {2, 5} <= set(depths) or len(set(depths)) > 4
    assert max(depths) > 20


SIZES = [1e100, 1e149, 1e-100, 1e-160, 1e-308, 5e-324]


def sized(value: float, where: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, labels = rng.random((20, 3)) + 0.1, np.append([0, 1, 2], rng.integers(0, 3, 17))
    if where == "cell":
        x[4, 1] = value
    else:
        x[:, 1 if where == "column" else slice(None)] *= value
    return x, labels


@pytest.mark.parametrize("l2", [0.0, 1.0])
@pytest.mark.parametrize("where", ["cell", "column", "everywhere"])
@pytest.mark.parametrize("solver", [*ALL, "cd-l1", "sdca", "newton", "lbfgs"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::partwise.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::partwise.FeatureWarning")
def test_columns_of_extreme_size(solver, where, l2):
    """Extreme values give no NaN and no unrelated error: the run ends and says how good its result is."""
    for value in SIZES:
        x, labels = sized(value, where)
        structure = Multiclass(20, 3)
        penalty = ElasticNet(0.1, l2) if solver == "cd-l1" else L2(l2)
        problem = Problem(maxent_map(structure, x), structure, structure.encode(labels), "log", penalty)
        if solver not in suitable_solvers(problem):
            continue
        try:
            result = solve(problem, solver, tol=1e-6, max_passes=100, random_state=0)
        except ValueError as error:
            if l2 == 0 and "never occurs with the gold label" in str(error):
                continue
            raise
        assert np.isfinite(result.weights).all()
        assert np.isfinite(result.primal)
        assert result.dual <= result.primal
        assert result.gap >= 0
        if value < 1e-50 and l2:
            assert result.status == "converged"
        if l2:  # the result does not contradict another solver's on the numbers that can be computed
            assert result.dual <= problem.value(np.zeros(problem.n_weights)) * (1 + 1e-12)


@pytest.mark.parametrize("value", [1.1e150, -1e200, 1e308])
def test_values_that_cannot_be_squared_are_refused_by_name(value):
    x, labels = sized(value, "cell")
    structure = Multiclass(20, 3)
    for make in (maxent_map, multiclass_map):
        with pytest.raises(ValueError, match=r"(attribute|input) 1 has a value of .*must lie between -1e\+150 and"):
            make(structure, x)
    cells = np.repeat(x, 3, axis=0)
    with pytest.raises(ValueError, match="feature 1 has a value of"):
        maxent_matrix_map(structure, cells)
    with pytest.raises(ValueError, match="attribute 1 has a value of"):
        MaxentClassifier().fit(csr_array(x), labels)
