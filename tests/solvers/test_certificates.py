"""Every solver, on every structure and loss that it fits, ends with a correct certificate within its tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.guide_solvers import GUIDE_SOLVERS, guide_solvers
from helpers.small_problems import (
    BARE_COLUMNS,
    KINDS,
    TOLERANCE,
    Small,
    certified,
    checked_often,
    kind_for,
    loss_for,
    penalty_for,
)
from oracles.objective import LOSSES
from partwise import available_solvers, get_solver, solve
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers import suitable_solvers

ALL_SOLVERS = [*available_solvers(), *GUIDE_SOLVERS]
PENALTIES = {"l2": L2(0.7), "elastic net": ElasticNet(0.4, 0.7)}
PROBLEMS = [(kind, loss, penalty) for kind in KINDS for loss in LOSSES for penalty in PENALTIES]
with guide_solvers():
    FITTING = {each: suitable_solvers(Small(*each[:2]).problem.with_penalty(PENALTIES[each[2]])) for each in PROBLEMS}
ROUNDING = 1e-10
pytestmark = BARE_COLUMNS


@pytest.fixture(autouse=True, scope="module")
def registered():
    """Register the solvers of the how-to guides for the tests of this module."""
    with guide_solvers() as found:
        assert "descent" in found
        yield


def tolerance(solver: str, small: Small) -> float:
    if solver == "sgd" and not small.problem.loss.smooth:
        return 5e-2  # SGD's objective falls more slowly than its planes approach the optimum
    if solver in GUIDE_SOLVERS:
        return 0.3  # the guides' solver makes small constant steps, but its certificate is correct at any gap
    return TOLERANCE[get_solver(solver).rate_for(small.loss)]


def run(solver: str, small: Small, penalty: L2 | ElasticNet = PENALTIES["l2"], **options):
    return solve(
        small.problem.with_penalty(penalty),
        checked_often(solver),
        tol=tolerance(solver, small),
        random_state=1,
        **options,
    )


@pytest.mark.parametrize("solver", ALL_SOLVERS)
def test_a_solver_that_does_not_fit_is_refused(solver):
    refused = [each for each in PROBLEMS if solver not in FITTING[each]]
    assert len(refused) < len(PROBLEMS)
    for kind, loss, penalty in refused:
        with pytest.raises(ValueError, match=f"solver '{solver}' needs .*(solvers that fit: |no solver fits)"):
            run(solver, Small(kind, loss), PENALTIES[penalty])


@pytest.mark.parametrize(
    ("solver", "kind", "loss", "penalty"), [(solver, *each) for each in PROBLEMS for solver in sorted(FITTING[each])]
)
def test_a_run_ends_with_its_certificate(solver, kind, loss, penalty):
    small, penalty = Small(kind, loss), PENALTIES[penalty]
    problem = small.problem.with_penalty(penalty)
    tol = tolerance(solver, small)

    def primal(weights):
        return small.dense.loss_sum(weights) + penalty.l1 * np.abs(weights).sum() + 0.35 * weights @ weights

    if not certified(solver):
        result = run(solver, small, penalty)  # no warning
        assert (result.status, result.dual, result.gap) == ("no certificate", -np.inf, np.inf)
        assert result.passes == 10
        assert np.isfinite(result.history["primal"]).all()
        assert primal(result.weights) == pytest.approx(result.primal, rel=1e-10)
        return
    result = run(solver, small, penalty, max_passes=3000)
    assert result.status == "converged"
    assert result.solver == solver
    assert 0 <= result.gap <= tol * result.primal
    assert result.gap == pytest.approx(result.primal - result.dual, abs=ROUNDING)
    # Every recorded step.
    history = result.history
    assert len(history["gap"]) >= 1
    assert np.all(history["gap"] >= 0)
    assert np.all(history["primal"] - history["dual"] >= -ROUNDING)
    assert np.all(np.diff(history["passes"]) > 0)
    assert np.all(np.diff(history["seconds"]) >= 0)
    assert history["gap"][-1] == result.gap
    if solver in ("eg", "eg-batch", "eg-primal", "sdca"):
        assert np.all(np.diff(history["dual"]) >= -ROUNDING)
    # The values equal those of the enumerated problem, not only the library's.
    assert primal(result.weights) == pytest.approx(result.primal, rel=1e-10)
    assert problem.dual_value(result.dual_point) == pytest.approx(result.dual, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_solvers_agree_on_the_optimum(kind, loss):
    small = Small(kind, loss, seed=8)
    fitting = filter(certified, suitable_solvers(small.problem))
    results = [run(solver, small, max_passes=3000) for solver in fitting]
    assert results
    for one in results:
        for two in results:
            # Both primal values lie between the optimum and the optimum plus their own gaps.
            assert one.dual <= two.primal + ROUNDING
            assert abs(one.primal - two.primal) <= max(one.gap, two.gap) + ROUNDING


@pytest.mark.parametrize("loss", LOSSES)
def test_a_larger_penalty_gives_smaller_weights(loss):
    norms = []
    for l2 in (0.2, 1.0, 5.0, 1e4):
        small = Small("chain-tied", loss, l2=l2)
        norms.append(float(np.linalg.norm(solve(small.problem, tol=1e-2, random_state=0).weights)))
    assert norms == sorted(norms, reverse=True)
    assert norms[-1] < 1e-2


@pytest.mark.parametrize("solver", available_solvers())
def test_weight_zero_acts_like_a_missing_example(solver):
    loss = loss_for(solver)
    with_it = Small(kind_for(solver), loss)
    omega = with_it.case.sample_weight.copy()
    omega[1] = 0.0
    problem = type(with_it.problem)(
        with_it.case.features, with_it.structure, with_it.case.gold, loss, penalty_for(solver, 0.7), sample_weight=omega
    )
    result = solve(problem, solver, tol=1e-2, random_state=0)
    dense = type(with_it.dense)(**{**vars(with_it.dense), "sample_weight": omega})
    primal = dense.loss_sum(result.weights) + problem.penalty_value(result.weights)
    assert primal == pytest.approx(result.primal, rel=1e-10)
    if certified(solver):
        assert result.gap <= 1e-2 * result.primal
