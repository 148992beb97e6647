"""Proximal points by EG: problems without l2, weak penalties, cycles, starts, options."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import Small
from partwise import ConvergenceWarning, get_solver, solve
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers import EGProx


def test_small_problems_do_not_cycle():
    """This problem once ran for ever, because the centre moved after every pass."""
    problem = Small("multiclass", "log").problem.with_penalty(ElasticNet(0.3))
    result = solve(problem, "eg-prox", tol=1e-5)
    other = solve(problem, "owlqn", tol=1e-6)
    assert result.gap <= 1e-5 * result.primal
    assert abs(result.primal - other.primal) <= 2e-5 * other.primal


@pytest.mark.parametrize("kind", ["chain-tied", "segments"])
def test_weak_penalties_take_fewer_passes_than_eg(kind):
    problem = Small(kind, "log", n=20).problem.with_penalty(L2(1e-3))
    prox = solve(problem, "eg-prox", tol=1e-3)
    with pytest.warns(ConvergenceWarning):
        plain = solve(problem, "eg", tol=1e-3, max_passes=2 * prox.passes)
    assert prox.gap <= 1e-3 * prox.primal < plain.gap


def test_the_proximity_scales_with_data_and_temperature():
    """The proximity doubles if every example occurs twice, and if the temperature is halved, as l2 would have to."""
    one, two = (Small("chain-tied", "log", sample_weight=np.full(5, weight)).problem for weight in (1.0, 2.0))
    double = L2(2 * one.l2)
    assert EGProx().rho(two.with_penalty(double)) == pytest.approx(2 * EGProx().rho(one))
    assert EGProx().rho(two.with_penalty(ElasticNet(0.1))) == pytest.approx(
        2 * EGProx().rho(one.with_penalty(ElasticNet(0.1)))
    )
    cold = Small("chain-tied", "smoothed-hinge", sample_weight=np.ones(5)).problem
    tau = cold.loss.temperature
    assert 0 < tau < 1
    assert EGProx().rho(cold.with_penalty(one.l2 / tau)) == pytest.approx(EGProx().rho(one) / tau)
    assert EGProx(proximity=0.2).rho(two) == 0.2


def test_warm_starts():
    problem = Small("chain-tied", "log", n=20).problem.with_penalty(ElasticNet(0.2))
    cold = solve(problem, "eg-prox", tol=1e-4)
    warm = solve(problem, "eg-prox", tol=1e-4, warm_start=cold)
    assert warm.passes <= 0.5 * cold.passes
    for start in (cold.weights, cold.dual_point):
        assert solve(problem, "eg-prox", tol=1e-3, warm_start=start).gap <= 1e-3 * cold.primal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"proximity": "strong"}, "proximity must be auto or a number"),
        ({"proximity": 0.0}, "proximity must be positive"),
        ({"proximity": float("nan")}, "proximity must be positive"),
        ({"growth": 0.5}, "growth must be >= 1"),
        ({"initial_step": 0.0}, "initial_step must be a number above 0"),
        ({"start": "nowhere"}, "start must be one of"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        get_solver("eg-prox", **options)


def test_it_needs_a_penalty():
    with pytest.raises(ValueError, match="l1 > 0 or l2 > 0"):
        solve(Small("chain-tied", "log").problem.with_penalty(L2(0.0)), "eg-prox")
    assert np.isfinite(solve(Small("chain-tied", "log").problem, "eg-prox").weights).all()
