"""Regularisation paths: every point is certified, warm starts save passes, invalid sequences are refused."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small, certified
from partwise import ConvergenceWarning, Problem, get_solver, solve
from partwise.features import multiclass_map
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers import largest_l1, regularization_path, solve_path, suitable_solvers
from partwise.solvers.engine.path import penalties
from partwise.structures import Multiclass

PATHS = [
    ("log", 1e-3, ("lbfgs", "newton", "eg", "eg-batch", "eg-primal")),
    ("hinge", 2e-2, ("eg", "bcfw", "excessive-gap")),
    ("squared-hinge", 2e-2, ("bcfw",)),
]
CASES = [(loss, tol, solver) for loss, tol, solvers in PATHS for solver in solvers]


def small(loss: str, kind: str = "chain-tied") -> Small:
    return Small(kind, loss, n=20, l2=0.4)


class TestSequence:
    def test_strengths_fall_to_the_last_one(self):
        found = penalties(1000.0, 0.7, 0.25)
        assert found[:3] == pytest.approx([1000.0, 700.0, 490.0])
        assert found[-1] == 0.25
        ratios = np.divide(found[1:], found[:-1])
        np.testing.assert_allclose(ratios[:-1], 0.7)
        assert 0.7 <= ratios[-1] < 1

    def test_the_sequence_of_the_paper(self):
        found = [f"{l2:.6g}" for l2 in penalties(1000.0, 0.7, 1000.0 * 0.7**23)]
        assert len(found) == 24
        assert found[-3:] == ["0.558546", "0.390982", "0.273687"]

    def test_no_strength_occurs_twice(self):
        assert penalties(1.0, 0.5, 0.25) == [1.0, 0.5, 0.25]
        assert penalties(8.0, 0.1, 8.0) == [8.0]
        assert penalties(1.0, 0.1, 0.1 * (1 - 1e-15)) == pytest.approx([1.0, 0.1])

    @pytest.mark.parametrize("factor", [0.0, 1.0, 1.5, -0.5, np.nan])
    def test_bad_factor(self, factor):
        with pytest.raises(ValueError, match="factor"):
            penalties(1.0, factor, 0.1)

    @pytest.mark.parametrize(("l2_max", "l2_min", "name"), [
        (0.0, 0.1, "l2_max"), (np.inf, 0.1, "l2_max"), (np.nan, 0.1, "l2_max"), (-1.0, 0.1, "l2_max"),
        (1.0, 2.0, "l2_min"), (1.0, 0.0, "l2_min"), (1.0, np.nan, "l2_min"),
    ])  # fmt: skip
    def test_bad_strengths(self, l2_max, l2_min, name):
        with pytest.raises(ValueError, match=name):
            penalties(l2_max, 0.5, l2_min)


@pytest.mark.parametrize(("loss", "tol", "solver"), CASES)
def test_every_point_is_certified_and_warm_starts_pay(loss, tol, solver):
    made = small(loss)
    path = regularization_path(made.problem, 20.0, 0.7, tol, solver=solver, random_state=0)
    assert [result.l2 for result in path] == pytest.approx(penalties(20.0, 0.7, 0.4))
    for result in path:
        assert result.status == "converged"
        assert result.solver == solver
        assert 0 <= result.gap <= tol * result.primal
        # The values are those under this point's penalty.
        problem = made.problem.with_penalty(result.l2)
        assert problem.value(result.weights) == pytest.approx(result.primal, rel=1e-10)
        assert type(made.dense)(**{**vars(made.dense), "l2": result.l2}).primal(result.weights) == pytest.approx(
            result.primal, rel=1e-10
        )
    cold = [solve(made.problem.with_penalty(r.l2), solver, tol=tol, random_state=0).passes for r in path]
    assert sum(result.passes for result in path) <= 0.85 * sum(cold)


@pytest.mark.parametrize("loss", ["log", "hinge", "squared-hinge"])
def test_auto(loss):
    path = regularization_path(small(loss).problem, 20.0, 0.5, 1e-2, random_state=0)
    assert all(result.converged for result in path)
    norms = np.array([float(np.linalg.norm(result.weights)) for result in path])
    assert (norms[1:] >= 0.98 * norms[:-1]).all()  # norms rise, up to the tolerance
    assert norms[-1] > 2 * norms[0]


@pytest.mark.parametrize("loss", ["log", "hinge", "squared-hinge"])
def test_every_solver_starts_from_its_own_result(loss):
    for kind in ("chain-tied", "multiclass"):
        problem = small(loss, kind).problem
        for solver in filter(certified, suitable_solvers(problem)):
            first = solve(problem.with_penalty(2.0), solver, tol=0.1, random_state=0)
            again = solve(problem.with_penalty(1.4), solver, tol=0.1, random_state=0, warm_start=first)
            assert again.converged, solver


def test_dual_points():
    made = small("log")
    path = regularization_path(made.problem, 10.0, 0.5, solver="eg", random_state=0)
    assert [result.dual_point is None for result in path] == [True] * (len(path) - 1) + [False]
    kept = regularization_path(made.problem, 10.0, 0.5, solver="eg", random_state=0, keep_duals=True)
    for one, two in zip(path, kept, strict=True):
        np.testing.assert_array_equal(one.weights, two.weights)
        dual = made.problem.with_penalty(two.l2).dual_value(two.dual_point)
        assert dual == pytest.approx(two.dual, rel=1e-10)


def test_the_callback_can_end_the_path():
    seen = []
    path = regularization_path(
        small("log").problem, 10.0, 0.5, callback=lambda result: seen.append(result) or result.l2 < 4, random_state=0
    )
    assert [result.l2 for result in path] == [10.0, 5.0, 2.5]
    assert len(seen) == 3


def test_limits_apply_to_each_point():
    with pytest.warns(ConvergenceWarning):
        path = regularization_path(small("log").problem, 10.0, 0.5, 1e-12, solver="eg", max_passes=2, random_state=0)
    assert {result.status for result in path} == {"max_passes"}
    assert all(result.passes < 5 for result in path)


def test_the_warm_start_is_the_start_of_the_first_point():
    problem = small("log").problem
    near = solve(problem.with_penalty(10.0), "lbfgs", tol=1e-12)
    path = regularization_path(problem, 10.0, 0.5, 1e-6, solver="lbfgs", l2_min=5.0, warm_start=near)
    assert path[0].passes == 1.0
    assert path[-1].l2 == 5.0


def test_the_same_seed_gives_the_same_path():
    problem = small("log").problem
    one, two = (regularization_path(problem, 10.0, 0.5, solver="eg", random_state=3, n_jobs=2) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)


def test_bad_input():
    problem = small("log").problem
    with pytest.raises(ValueError, match="l2_min"):
        regularization_path(problem.with_penalty(0.0), 10.0)
    with pytest.raises(ValueError, match="'bcfw' needs temperature 0"):
        regularization_path(problem, 10.0, solver="bcfw")
    with pytest.raises(ValueError, match="tol"):
        regularization_path(problem, 10.0, tol=-1.0)
    with pytest.raises(ValueError, match="strength"):
        problem.with_penalty(-1.0)


def test_other_penalties():
    rng = np.random.default_rng(0)
    structure = Multiclass(60, 3)
    features = multiclass_map(structure, rng.normal(size=(60, 4)))
    problem = Problem(features, structure, structure.encode(rng.integers(0, 3, 60)), "log", ElasticNet(1.0, 0.5))
    with pytest.raises(ValueError, match="this path is over l1"):
        regularization_path(problem, 10.0)
    nets = [ElasticNet(scale, 0.5 * scale) for scale in (8.0, 4.0, 2.0)]
    path = solve_path(problem, nets, tol=1e-6)
    for net, result in zip(nets, path, strict=True):
        assert result.converged
        assert problem.with_penalty(net).value(result.weights) == pytest.approx(result.primal)
    zeros = [int((result.weights == 0).sum()) for result in path]
    assert zeros == sorted(zeros, reverse=True)


class TestOverL1:
    def problem(self, net):
        rng = np.random.default_rng(0)
        structure = Multiclass(60, 3)
        features = multiclass_map(structure, rng.normal(size=(60, 6)))
        return Problem(features, structure, structure.encode(rng.integers(0, 3, 60)), "log", net)

    @pytest.mark.parametrize("l2", [0.0, 0.5])
    def test_the_path_ends_at_the_problems_own_penalty(self, l2):
        problem = self.problem(ElasticNet(0.5, l2))
        most = largest_l1(problem)
        path = regularization_path(problem, factor=0.6, tol=1e-8)
        assert path[0].l1 == most
        assert path[-1].l1 == 0.5
        np.testing.assert_allclose(np.divide([r.l1 for r in path[1:-1]], [r.l1 for r in path[:-2]]), 0.6)
        assert not path[0].weights.any()
        used = [result.n_nonzero for result in path]
        assert used == sorted(used)
        for result in path:
            assert result.converged
            assert result.l2 == l2
            cold = solve(problem.with_penalty(ElasticNet(result.l1, l2)), tol=1e-10)
            assert result.primal == pytest.approx(cold.primal, rel=2e-8)

    def test_the_first_strength_is_the_smallest_without_weights(self):
        problem = self.problem(ElasticNet(0.5, 0.1))
        most = largest_l1(problem)
        for factor, any_weight in ((1.0, False), (0.999, True)):
            result = solve(problem.with_penalty(ElasticNet(factor * most, 0.1)), tol=1e-9)
            assert bool(result.weights.any()) == any_weight

    def test_both_strengths_in_one_proportion(self):
        path = regularization_path(self.problem(ElasticNet(0.5, 0.1)), factor=0.5, l1_ratio=0.25, l1_min=1.0)
        assert [result.l2 for result in path] == pytest.approx([3.0 * result.l1 for result in path])
        assert path[-1].l1 == 1.0
        lasso = regularization_path(self.problem(ElasticNet(0.5, 0.1)), factor=0.5, l1_ratio=1.0, l1_max=4.0)
        assert [(result.l1, result.l2) for result in lasso] == [(4.0, 0.0), (2.0, 0.0), (1.0, 0.0), (0.5, 0.0)]

    def test_a_stronger_penalty_than_the_first_is_one_point(self):
        problem = self.problem(ElasticNet(0.5, 0.1))
        (alone,) = regularization_path(problem, l1_min=2.0 * largest_l1(problem))
        assert not alone.weights.any()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"l1_ratio": 0.0}, "l1_ratio must be above 0"),
            ({"l1_ratio": 1.5}, "l1_ratio must be above 0 and at most 1"),
            ({"l1_min": 0.0}, "l1_min must be a number > 0"),
            ({"l1_max": np.nan}, "l1_max must be a number > 0"),
            ({"l1_max": 0.1}, "l1_min must be a number > 0 and at most l1_max"),
            ({"l2_min": 0.1}, "this path is over l1"),
            ({"factor": 1.0}, "factor"),
        ],
    )
    def test_bad_paths(self, options, message):
        with pytest.raises(ValueError, match=message):
            regularization_path(self.problem(ElasticNet(0.5, 0.1)), **options)

    def test_other_problems(self):
        with pytest.raises(ValueError, match="needs l2_max"):
            regularization_path(small("log").problem)
        with pytest.raises(ValueError, match="are for an l1 penalty"):
            regularization_path(small("log").problem, 10.0, l1_min=1.0)
        with pytest.raises(ValueError, match="has a kink at zero"):
            largest_l1(small("hinge").problem)


def test_with_penalty_does_not_change_the_problem():
    problem = small("log").problem
    other = problem.with_penalty(L2(3.0))
    assert (problem.l2, other.l2) == (0.4, 3.0)
    assert other.sums.in_memory()[0].native is problem.sums.in_memory()[0].native
    assert problem.sums.in_memory() is problem.sums.in_memory()  # read in every pass, some of which take microseconds
    w = np.ones(problem.n_weights)
    assert other.value(w) - problem.value(w) == pytest.approx(0.5 * 2.6 * len(w))
    assert "l2 > 0" not in problem.with_penalty(0.0).capabilities()
    assert get_solver("eg").missing(problem.with_penalty(0.0)) == {"l2 > 0"}
