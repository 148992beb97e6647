"""The regularisation path: every point certified, warm starts worth having, bad sequences refused."""

from __future__ import annotations

import numpy as np
import pytest
from smallproblems import Small, certified

from partwise import ConvergenceWarning, Problem, get_solver, solve
from partwise.features import multiclass_map
from partwise.penalties import L2, ElasticNet
from partwise.solvers import regularization_path, solve_path, suitable_solvers
from partwise.solvers.path import penalties
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
    def test_it_falls_to_the_last_strength(self):
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

    def test_no_point_twice(self):
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
        # the numbers are those of this penalty
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
    norms = [float(np.linalg.norm(result.weights)) for result in path]
    assert norms == sorted(norms)


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


def test_the_callback_ends_it():
    seen = []
    path = regularization_path(
        small("log").problem, 10.0, 0.5, callback=lambda result: seen.append(result) or result.l2 < 4, random_state=0
    )
    assert [result.l2 for result in path] == [10.0, 5.0, 2.5]
    assert len(seen) == 3


def test_limits_are_those_of_a_point():
    with pytest.warns(ConvergenceWarning):
        path = regularization_path(small("log").problem, 10.0, 0.5, 1e-12, solver="eg", max_passes=2, random_state=0)
    assert {result.status for result in path} == {"max_passes"}
    assert all(result.passes < 5 for result in path)


def test_where_it_starts():
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
    with pytest.raises(ValueError, match="solve_path"):
        regularization_path(problem, 10.0)
    nets = [ElasticNet(scale, 0.5 * scale) for scale in (8.0, 4.0, 2.0)]
    path = solve_path(problem, nets, tol=1e-6)
    for net, result in zip(nets, path, strict=True):
        assert result.converged
        assert problem.with_penalty(net).value(result.weights) == pytest.approx(result.primal)
    zeros = [int((result.weights == 0).sum()) for result in path]
    assert zeros == sorted(zeros, reverse=True)


def test_with_penalty_leaves_the_problem_alone():
    problem = small("log").problem
    other = problem.with_penalty(L2(3.0))
    assert (problem.l2, other.l2) == (0.4, 3.0)
    assert other.in_memory()[0].native is problem.in_memory()[0].native
    assert problem.in_memory() is problem.in_memory()  # asked for in every pass, of which some take microseconds
    w = np.ones(problem.n_weights)
    assert other.value(w) - problem.value(w) == pytest.approx(0.5 * 2.6 * len(w))
    assert "l2 > 0" not in problem.with_penalty(0.0).capabilities()
    assert get_solver("eg").missing(problem.with_penalty(0.0)) == {"l2 > 0"}
