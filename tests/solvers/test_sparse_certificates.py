"""Elastic nets: every solver that takes them, on every structure and smooth loss, ends with a correct certificate."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_problems import KINDS, Small, checked_often
from partwise import ConvergenceWarning, Problem, available_solvers, solve
from partwise.problem import Batch, LabelledBatch
from partwise.problem.penalties import ElasticNet
from partwise.solvers import suitable_solvers

NETS = {"net": ElasticNet(0.1, 0.4), "lasso": ElasticNet(0.3)}
LOSSES = ("log", "softmax-margin", "smoothed-hinge")
SPARSE = [
    name
    for name in available_solvers()
    if name in suitable_solvers(Small("maxent", "log").problem.with_penalty(NETS["net"]))
]
TOL = {"net": 1e-5, "lasso": 1e-4}


def with_net(kind: str, loss: str, net: str, **options) -> tuple[Small, Problem]:
    small = Small(kind, loss, **options)
    return small, small.problem.with_penalty(NETS[net])


def test_known_solvers_take_elastic_nets():
    assert {"eg", "owlqn", "cd-l1"} <= set(SPARSE)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_solvers_agree_on_a_certified_optimum(kind, loss, net):
    small, problem = with_net(kind, loss, net)
    results = []
    for solver in SPARSE:
        if solver not in suitable_solvers(problem):
            with pytest.raises(ValueError, match=f"solver '{solver}' needs "):
                solve(problem, solver)
            continue
        result = solve(problem, checked_often(solver), tol=TOL[net], random_state=1, max_passes=4000)
        assert result.status == "converged"
        history = result.history
        assert np.all(history["gap"] >= 0)
        assert np.all(history["primal"] - history["dual"] >= -1e-10)
        if solver == "eg":  # the dual, at the best multiple of a plane, may fall within the tolerance
            assert np.all(np.diff(history["dual"]) >= -TOL[net] * result.primal)
        primal = small.dense.loss_sum(result.weights) + problem.penalty_value(result.weights)
        assert primal == pytest.approx(result.primal, rel=1e-10)
        assert problem.dual_value(result.dual_point) == pytest.approx(result.dual, abs=1e-9)
        _, u, _ = problem.plane(result.weights)
        assert problem.violations(result.weights, u).max() <= 0.1
        results.append(result)
    assert results
    for one in results:
        for two in results:
            assert one.dual <= two.primal + 1e-10
            assert abs(one.primal - two.primal) <= max(one.gap, two.gap) + 1e-10


@pytest.mark.parametrize("solver", SPARSE)
def test_weights_act_like_repeated_and_missing_examples(solver):
    """Weight 2 acts like a repeated example, weight 0 like a missing one."""
    small, _ = with_net("maxent", "log", "net", weighted=False)
    case = small.case
    weighted = Problem(
        case.features, case.structure, case.gold, "log", NETS["net"], sample_weight=np.array([2.0, 0, 1, 1, 1])
    )
    parts = [
        LabelledBatch(Batch(case.structure, case.features), case.gold, w)
        for w in np.array([[1.0, 0, 1, 1, 1], [1.0, 0, 0, 0, 0]])
    ]
    result = solve(weighted, solver, tol=1e-7, random_state=0)
    twice = Problem.of(parts, "log", NETS["net"])
    assert twice.value(result.weights) == pytest.approx(result.primal, rel=1e-10)
    if solver in suitable_solvers(twice):
        both = solve(twice, solver, tol=1e-7, random_state=0)
        assert abs(both.primal - result.primal) <= 1e-6 * result.primal


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("net", NETS)
def test_losses_with_kinks_are_refused(loss, net):
    _, problem = with_net("chain-tied", loss, net)
    with pytest.raises(ValueError, match="no solver fits this problem yet"):
        solve(problem)


def test_annealing_calibration_and_several_runs_of_eg():
    _, problem = with_net("chain-tied", "log", "net", n=25)
    plain = solve(problem, "eg", tol=1e-7)
    for options in ({"anneal": 20.0}, {"initial_step": "calibrate"}, {"delta": 0.2}, {"step_size": "theorem"}):
        result = solve(problem, checked_often("eg").__class__(**options), tol=1e-5, max_passes=4000)
        assert result.gap <= 1e-5 * result.primal
        assert abs(result.primal - plain.primal) <= 2e-5 * plain.primal


def test_a_short_run_warns():
    _, problem = with_net("graph", "log", "net")
    with pytest.warns(ConvergenceWarning):
        solve(problem, "eg", tol=1e-9, max_passes=2)
