"""OWL-QN: the optimum, its zeros, planes, threads, starts."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import KINDS, Small
from partwise import ConvergenceWarning, get_solver, solve
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers import OWLQN
from partwise.solvers.primal.base import QuasiNewtonState, no_pairs
from partwise.solvers.primal.owlqn import pseudo_gradient

NETS = [ElasticNet(0.2, 0.3), ElasticNet(0.3)]


def with_net(kind: str, loss: str = "log", net: ElasticNet = NETS[0], **options):
    return Small(kind, loss, **options).problem.with_penalty(net)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_has_no_violation(kind, net):
    problem = with_net(kind, net=net)
    result = solve(problem, "owlqn", tol=1e-7, max_passes=4000)
    assert result.gap <= 1e-7 * result.primal
    _, u, _ = problem.plane(result.weights)
    assert problem.violations(result.weights, u).max() < 2e-3
    assert 0 < np.count_nonzero(result.weights) < problem.n_weights
    assert problem.value(result.weights) == pytest.approx(result.primal, rel=1e-12)


@pytest.mark.parametrize("net", NETS)
def test_the_optimum_is_that_of_coordinate_descent(net):
    problem = with_net("maxent", net=net, n=30)
    one, two = (solve(problem, solver, tol=1e-8, random_state=0) for solver in ("owlqn", "cd-l1"))
    assert abs(one.primal - two.primal) <= 1e-8 * one.primal
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-3)


@pytest.mark.parametrize("net", NETS)
def test_the_dual_never_falls_and_the_primal_never_rises(net):
    problem = with_net("chain-tied", net=net)
    history = solve(problem, "owlqn", tol=1e-7).history
    assert np.all(np.diff(history["dual"]) >= 0)
    assert np.all(np.diff(history["primal"]) <= 0)


def test_means_of_planes_give_a_better_dual_than_the_newest_plane():
    """Without l2 the newest plane's dual suffers from its largest violation; a mean of planes gives a better one."""
    problem = with_net("graph", net=ElasticNet(0.05), n=8)
    solver = OWLQN()
    state = solver.init_state(problem, np.random.default_rng(0), None)
    ahead = 0
    for _ in range(40):
        solver.step(problem, state)
        _, u, b = problem.plane(state.weights)
        newest = problem.dual_of_plane(u, b)
        assert state.best_dual >= newest - 1e-12 * abs(newest)
        ahead += state.best_dual > newest + 1e-6
    assert ahead > 20


def test_threads_have_the_same_bits():
    results = [solve(with_net("chain-tied", n=40, n_jobs=n), "owlqn", tol=1e-8) for n in (1, 3)]
    np.testing.assert_array_equal(results[0].weights, results[1].weights)


def test_warm_starts():
    problem = with_net("chain-tied", n=20)
    cold = solve(problem, "owlqn", tol=1e-6)
    assert solve(problem, "owlqn", tol=1e-6, warm_start=cold).passes <= 0.5 * cold.passes


def test_weights_that_stay_zero_have_no_pseudo_gradient():
    found = pseudo_gradient(np.array([0.0, 0.0, 0.0, 2.0, -2.0]), np.array([0.4, -0.6, 0.6, 0.4, 0.4]), 0.5)
    np.testing.assert_allclose(found, [0.0, -0.1, 0.1, 0.9, -0.1])


def test_a_large_l1_leaves_no_weight():
    problem = with_net("segments", net=ElasticNet(1e4))
    result = solve(problem, "owlqn")
    assert not result.weights.any()
    assert result.gap <= 1e-9 * result.primal


def test_a_short_run_warns():
    with pytest.warns(ConvergenceWarning, match="l1 or l2"):
        result = solve(with_net("chain-tied"), "owlqn", tol=1e-9, max_passes=3)
    assert result.gap > 0


@pytest.mark.parametrize("options", [{"memory": 0}, {"max_trials": 0}])
def test_bad_options(options):
    with pytest.raises(ValueError, match="at least 1"):
        get_solver("owlqn", **options)


@pytest.mark.parametrize(("loss", "penalty"), [("log", L2(1.0)), ("hinge", NETS[0]), ("squared-hinge", NETS[0])])
def test_unsuitable_losses_and_penalties_are_refused(loss, penalty):
    problem = Small("chain-tied", loss).problem.with_penalty(penalty)
    with pytest.raises(ValueError, match="solver 'owlqn' needs"):
        solve(problem, "owlqn")
    if penalty.l1:
        with pytest.raises(ValueError, match="no solver fits"):
            solve(problem)


def test_changes_that_underflow_are_not_stored():
    """A pair whose s'y underflows is not stored: L-BFGS divides by it."""
    zeros, numbers = np.zeros(2), dict.fromkeys(("primal", "best_b", "best_dual", "best_primal"), 0.0)
    state = QuasiNewtonState(weights=zeros, gradient=zeros, best_u=zeros, **numbers, **no_pairs(3, 2))
    state.remember(np.full(2, 1e150), np.full(2, 1e-170), 1)
    assert state.stored == 0
    state.remember(np.ones(2), np.ones(2), 1)
    assert (state.stored, state.gamma) == (1, 1.0)
