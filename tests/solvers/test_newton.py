"""Trust-region Newton: the model's minimiser, the radius, the end at rounding, and runs without a penalty."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from partwise import ConvergenceWarning, MaxentClassifier, Problem, solve
from partwise.features import multiclass_map
from partwise.problem.losses import Loss
from partwise.solvers import Newton
from partwise.solvers.primal.newton import conjugate_gradients, next_radius
from partwise.structures import Multiclass


class TestModel:
    @pytest.fixture
    def quadratic(self, rng):
        A = rng.normal(size=(12, 8))
        return A.T @ A + 0.1 * np.eye(8), rng.normal(size=8)

    def test_the_step_minimises_the_model_if_the_minimum_is_inside_the_ball(self, quadratic):
        H, g = quadratic
        found = conjugate_gradients(lambda v: H @ v, g, 1e9, 1e-12, 100)
        np.testing.assert_allclose(found.step, -np.linalg.solve(H, g), rtol=1e-8)
        np.testing.assert_allclose(found.residual, -g - H @ found.step, atol=1e-9)
        assert found.products <= 9

    @pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
    def test_the_step_ends_on_the_boundary_if_the_minimum_is_outside(self, quadratic, share):
        H, g = quadratic
        radius = share * float(np.linalg.norm(np.linalg.solve(H, g)))
        found = conjugate_gradients(lambda v: H @ v, g, radius, 1e-12, 100)
        assert np.linalg.norm(found.step) == pytest.approx(radius, rel=1e-12)
        np.testing.assert_allclose(found.residual, -g - H @ found.step, atol=1e-9)
        # The model's value is at most that of the best point along the gradient inside the ball (Cauchy's point).
        model = lambda s: float(g @ s + s @ H @ s / 2)  # noqa: E731
        along = min(model(-t * g) for t in np.linspace(0, radius / np.linalg.norm(g), 50))
        assert model(found.step) <= along + 1e-12

    def test_no_curvature_leads_to_the_boundary(self):
        found = conjugate_gradients(lambda v: 0.0 * v, np.array([3.0, 4.0]), 2.0, 0.1, 10)
        np.testing.assert_allclose(found.step, [-1.2, -1.6])

    def test_products_are_limited(self, quadratic):
        H, g = quadratic
        assert conjugate_gradients(lambda v: H @ v, g, 1e9, 1e-12, 3).products == 3

    def test_radius(self):
        # Slope -2 and prediction 1: a quadratic falls by exactly 1. A larger fall enlarges the ball, a smaller fall
        # shrinks it.
        assert next_radius(1.0, 1.0, -2.0, 1.0, 1.0) == 1.0
        assert next_radius(1.0, 1.0, -2.0, 1.0, 1.9) == 4.0
        assert next_radius(8.0, 1.0, -2.0, 1.0, 1.0) == 8.0
        assert next_radius(1.0, 1.0, -2.0, 1.0, 0.1) == 0.5
        assert next_radius(1.0, 1.0, -2.0, 1.0, -9.0) == 0.25
        assert next_radius(1.0, 1.0, -2.0, 1.0, float("-inf")) == 0.25


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied"])
@pytest.mark.parametrize("l2", [1e-3, 1.0, 100.0])
def test_the_rounding_floor_is_reached_and_ends_the_run(kind, loss, l2):
    small = Small(kind, loss, l2=l2)
    result = solve(small.problem, "newton", tol=1e-28, max_passes=3000)
    assert result.status == "converged"
    assert result.gap - result.rounding <= 1e-14 * result.primal
    assert result.relative_gap <= 1e-11
    assert result.passes < 600
    other = solve(small.problem, "lbfgs", tol=1e-28, max_passes=3000)
    assert result.primal == pytest.approx(other.primal, rel=1e-13)
    np.testing.assert_allclose(result.weights, other.weights, atol=1e-7)


def test_tol_zero_ends_at_the_floor():
    result = solve(Small("chain-tied", "log").problem, "newton", tol=0.0, max_passes=5000)
    assert result.status == "converged"
    assert "double precision" in result.message
    assert result.passes < 2000


def test_the_primal_never_rises():
    result = solve(Small("chain-tied", "smoothed-hinge", l2=0.02).problem, "newton", tol=1e-9)
    assert np.all(np.diff(result.history["primal"]) <= 0)


def test_every_product_is_a_pass():
    small = Small("chain-tied", "log")
    result = solve(small.problem, Newton(max_cg=1), tol=1e-6)
    steps = np.diff(result.history["passes"])
    assert np.all(steps == 2)  # one product and one evaluation


def test_squared_link():
    small = Small("chain-tied", "log")
    loss = Loss("squared log", 1.0, 0.5, "squared")
    problem = Problem(small.case.features, small.structure, small.case.gold, loss, 1.0)
    one, two = (solve(problem, solver, tol=1e-10) for solver in ("newton", "lbfgs"))
    assert one.status == "converged"
    assert one.primal == pytest.approx(two.primal, rel=1e-9)


class TestWithoutPenalty:
    def test_the_gradient_goes_down(self):
        rng = np.random.default_rng(0)
        rows, labels = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)  # random labels, so the optimum is finite
        structure = Multiclass(60, 3)
        problem = Problem(multiclass_map(structure, rows), structure, structure.encode(labels), "log", 0.0)
        result = solve(problem, "newton", tol=1e-6)
        assert result.status == "no certificate"
        assert result.gap == np.inf
        gradient = problem.value_and_gradient(result.weights)[1]
        at_zero = problem.value_and_gradient(np.zeros(problem.n_weights))[1]
        assert np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(at_zero)

    def test_separable_data_end_at_a_limit(self):
        structure = Multiclass(2, 2)
        problem = Problem(multiclass_map(structure, np.eye(2)), structure, structure.encode(np.array([0, 1])), "log", 0)
        with pytest.warns(ConvergenceWarning, match="no certificate"):
            result = solve(problem, "newton", tol=1e-9, max_passes=10)
        assert result.status == "max_passes"
        assert np.isfinite(result.weights).all()


def test_warm_start():
    small = Small("chain-tied", "log")
    cold = solve(small.problem, "newton", tol=1e-8)
    for warm in (cold, cold.weights, cold.dual_point):
        assert solve(small.problem, "newton", tol=1e-8, warm_start=warm).passes <= cold.passes / 2
    with pytest.raises(ValueError, match="weights of shape"):
        solve(small.problem, "newton", warm_start=np.zeros(1))


BAD = [{"cg_tol": 0.0}, {"cg_tol": 1.0}, {"cg_tol": np.nan}, {"max_cg": 0}, {"preconditioner": "jacobi"}, {"part": 0}]


@pytest.mark.parametrize("bad", BAD)
def test_bad_options(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Newton(**bad)


class TestDiagonal:
    def test_the_radius_limits_the_scaled_step(self, rng):
        A = rng.normal(size=(12, 8)) * np.geomspace(1, 1e3, 8)
        H, g, M = A.T @ A + 0.1 * np.eye(8), rng.normal(size=8), (A**2).sum(axis=0) + 0.1
        best = -np.linalg.solve(H, g)
        found = conjugate_gradients(lambda v: H @ v, g, 1e9, 1e-12, 100, M)
        np.testing.assert_allclose(found.step, best, rtol=1e-7)
        # Equals plain conjugate gradients on the problem in sqrt(M) s.
        root = np.sqrt(M)
        radius = 0.3 * float(np.linalg.norm(root * best))
        found = conjugate_gradients(lambda v: H @ v, g, radius, 1e-12, 100, M)
        plain = conjugate_gradients(lambda v: (H @ (v / root)) / root, g / root, radius, 1e-12, 100)
        assert float(np.linalg.norm(root * found.step)) == pytest.approx(radius, rel=1e-12)
        np.testing.assert_allclose(root * found.step, plain.step, rtol=1e-8)
        assert found.products == plain.products

    @pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "chain-untied"])
    @pytest.mark.parametrize("l2", [0.0, 1e-3, 1.0])
    def test_same_optimum(self, kind, l2):
        problem = Small(kind, "log", l2=l2 if kind == "multiclass" else max(l2, 1e-2)).problem
        tol = 1e-10 if problem.l2 else 1e-8
        scaled, plain = (solve(problem, s, tol=tol, max_passes=20000) for s in (diagonal(), "newton"))
        assert scaled.status == plain.status
        assert scaled.primal == pytest.approx(plain.primal, rel=1e-6)

    def test_scaling_saves_passes_on_features_of_different_scales(self):
        rng = np.random.default_rng(1)
        rows = rng.normal(size=(300, 6)) * np.geomspace(1e-2, 1e2, 6)
        structure = Multiclass(300, 3)
        gold = structure.encode(rng.integers(0, 3, 300))
        problem = Problem(multiclass_map(structure, rows), structure, gold, "log", 1e-3)
        assert solve(problem, diagonal(), tol=1e-8).passes < solve(problem, "newton", tol=1e-8).passes

    def test_columns_of_different_scales_and_several_labels(self):
        # A diagonal that differs between labels led into directions whose only curvature is l2: 380 passes.
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 20))
        structure = Multiclass(300, 5)
        gold = structure.encode((X @ rng.normal(size=(20, 5)) + rng.gumbel(size=(300, 5))).argmax(axis=1))
        wide = multiclass_map(structure, X * 10.0 ** rng.uniform(-2, 4, size=20))
        result = solve(Problem(wide, structure, gold, "log", 1.0), diagonal(), tol=1e-6)
        assert result.converged
        assert result.passes <= 100

    def test_the_diagonal_is_kept_while_the_objective_hardly_falls(self, monkeypatch):
        problem = Small("multiclass", "log", l2=1e-3).problem
        seen, diagonals = [], []
        compute = Problem.hessian

        def watched(self, *args):
            hessian = compute(self, *args)
            seen.append(hessian)
            given = hessian.diagonal

            class Watched:
                partial = hessian.partial

                def __call__(self, v):
                    return hessian(v)

                def diagonal(self):
                    diagonals.append(len(seen))
                    return given()

            return Watched()

        monkeypatch.setattr(Problem, "hessian", watched)
        result = solve(problem, diagonal(), tol=1e-12, max_passes=20000)
        assert result.converged
        values = result.history["primal"]  # before each step
        expected, last = [], float("inf")
        for k in range(len(seen)):
            if values[k] < 0.98 * last:
                expected.append(k + 1)
                last = values[k]
        assert diagonals == expected
        assert 1 < len(diagonals) < len(seen)

    def test_the_squared_link_has_no_diagonal(self):
        small = Small("multiclass", "log")
        loss = Loss("squared log", 1.0, 0.5, "squared")
        problem = Problem(small.case.features, small.structure, small.case.gold, loss, 1.0)
        with pytest.raises(ValueError, match="no diagonal"):
            solve(problem, diagonal())


class TestPart:
    @pytest.fixture
    def many(self):
        """A problem with enough examples to sample from, whose labels depend on the features."""
        rng = np.random.default_rng(0)
        n, structure = 20_000, Multiclass(20_000, 3)
        rows = (rng.random((n, 12)) < 0.3).astype(float)
        scores = rows @ rng.normal(size=(12, 3)) * 2 + rng.gumbel(size=(n, 3))
        return Problem(multiclass_map(structure, rows), structure, structure.encode(scores.argmax(1)), "log", 1e-2)

    def test_passes_are_saved_and_the_optimum_is_the_same(self, many):
        whole, part = (solve(many, diagonal(part=k), tol=1e-9) for k in (1, 4))
        assert part.status == "converged"
        assert part.primal == pytest.approx(whole.primal, rel=1e-8)
        assert part.passes < whole.passes

    def test_a_misleading_sample_of_the_hessian_is_dropped(self):
        # Every fourth run of 512 rows differs from the rest: a Hessian of these rows alone does not involve feature 1.
        n, structure = 20_000, Multiclass(20_000, 2)
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(n, 2)) * np.array([1.0, 30.0])
        run = np.arange(n) // 512
        rows[run % 4 == 0, 1] = 0.0
        y = (rows @ np.array([1.0, 0.3]) + rng.logistic(size=n) > 0).astype(np.int64)
        problem = Problem(multiclass_map(structure, rows), structure, structure.encode(y), "log", 1e-2)
        result = solve(problem, diagonal(part=4), tol=1e-9, max_passes=400)
        assert result.status == "converged"


def diagonal(**options) -> Newton:
    return Newton(preconditioner="diagonal", **options)


def test_large_features_do_not_prevent_convergence():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(30, 4)) * np.array([1e4, 1.0, 1e-3, 0.0])
    structure = Multiclass(30, 3)
    problem = Problem(multiclass_map(structure, rows), structure, structure.encode(rng.integers(0, 3, 30)), "log", 1e-2)
    assert solve(problem, "newton", tol=1e-10, max_passes=5000).status == "converged"


@pytest.mark.parametrize("scale", [1e80, 1e120, 1e149])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_features_whose_fourth_powers_overflow_end_the_run(rng, scale):
    """If no step can be computed the run stalls, says so, and keeps finite weights."""
    model = MaxentClassifier(solver="newton")
    with pytest.warns(ConvergenceWarning) as told:
        model.fit(np.abs(rng.normal(size=(30, 4))) * scale, np.arange(30) % 3)
    assert model.result_.status == "stalled"
    assert np.isfinite(model.coef_).all()
    assert not any("l2 = 0" in str(each.message) for each in told)


def test_structures_without_covariance_are_refused():
    with pytest.raises(ValueError, match="'newton' needs covariance"):
        solve(Small("python", "log").problem, "newton")
