"""Slack rescaling: the oracle's bounds agree with enumeration, certificates are correct, other solvers refuse it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers.small_problems import KINDS, Small
from partwise import ConvergenceWarning, Problem, SequenceTagger, available_solvers, solve
from partwise.problem import Batch, LabelledBatch
from partwise.problem.dual_points import DualPoint
from partwise.problem.losses import Loss, get_loss
from partwise.solvers import choose


def slack(kind, l2=0.7, ties=True, **options):
    """Return the problem and its enumerated counterpart."""
    small = Small(kind, "hinge", l2=l2, ties=ties, **options)
    cost = None if ties else np.concatenate(small.dense.cost)
    weights = small.case.sample_weight
    arguments = small.case.features, small.structure, small.case.gold, "slack-hinge", l2
    return Problem(*arguments, sample_weight=weights, cost=cost), small.dense


def losses(dense, w):
    """The sum of omega max over y of c(y) (1 + <theta, counts(y) - g>)."""
    each = [(dense.label_costs(i) * (1.0 - dense.psi(i) @ w)).max() for i in range(dense.n)]
    return float(dense.sample_weight @ np.array(each))


def optimum(dense):
    """min P over all labellings, by a general optimiser of the dual, a quadratic program over simplices."""
    omega = dense.sample_weight
    costs = [dense.label_costs(i) for i in range(dense.n)]
    rows = np.concatenate([omega[i] * c[:, None] * dense.psi(i) for i, c in enumerate(costs)])
    linear = np.concatenate([omega[i] * c for i, c in enumerate(costs)])
    owner = np.repeat(np.arange(dense.n), list(map(len, costs)))
    blocks = (owner == np.arange(dense.n)[:, None]).astype(float)

    def negative(x):
        u = x @ rows
        return float(u @ u) / (2 * dense.l2) - float(linear @ x), rows @ u / dense.l2 - linear

    start = 1.0 / np.bincount(owner)[owner]
    equal = {"type": "eq", "fun": lambda x: blocks @ x - 1.0, "jac": lambda _: blocks}
    found = minimize(
        negative, start, jac=True, method="SLSQP", bounds=[(0, 1)] * len(start), constraints=[equal],
        options={"ftol": 1e-13, "maxiter": 300},
    )  # fmt: skip
    return -found.fun


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_against_enumeration(kind, ties):
    problem, dense = slack(kind, ties=ties)
    rng = np.random.default_rng(1)
    points = [scale * rng.normal(size=problem.n_weights) for scale in (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)]
    for w in points:
        true = losses(dense, w)
        upper, u, b = problem.plane(w)
        assert problem.sums.value(w) == pytest.approx(upper)
        near = 1e-9 * (1.0 + abs(true))
        assert b - u @ w - near <= true <= upper + near
        if kind != "python":  # the other structures have k_best, and few labellings
            assert upper <= true + near
            assert b - u @ w >= true - near
        for other in points:  # the plane lies below the losses everywhere
            assert b - u @ other <= losses(dense, other) + 1e-9 * (1.0 + abs(b) + abs(u @ other))


@pytest.mark.parametrize("solver", ["one-slack", "bmrm"])
@pytest.mark.parametrize("kind", ["multiclass", "chain-tied", "python"])
def test_certificates_enclose_the_optimum(kind, solver):
    problem, dense = slack(kind, l2=1.5, n=4)
    result = solve(problem, solver, tol=0.3 if kind == "python" else 1e-4)
    best = optimum(dense)
    primal = losses(dense, result.weights) + problem.penalty_value(result.weights)
    assert result.dual <= best + 1e-6
    assert best <= primal + 1e-6 <= result.primal + 2e-6
    assert result.gap >= primal - best - 1e-6


def test_a_run_that_cannot_reach_its_bound_stalls():
    """If a structure can only maximise, the oracle's upper bound is not always reached: the run stalls and says so."""
    problem, dense = slack("python", l2=0.2, n=6)
    with pytest.warns(ConvergenceWarning, match="stalled"):
        result = solve(problem, "one-slack", tol=1e-9)
    assert result.status == "stalled"
    assert result.dual <= losses(dense, result.weights) + problem.penalty_value(result.weights) <= result.primal + 1e-9


@pytest.mark.parametrize("solver", available_solvers())
def test_other_solvers_refuse(solver):
    problem, _ = slack("chain-tied")
    if solver in ("one-slack", "bmrm"):
        return
    with pytest.raises(
        ValueError, match=r"does not do slack rescaling \(loss 'slack-hinge'.*solvers that fit: one-slack, bmrm"
    ):
        solve(problem, solver)


def test_auto_and_estimators_take_it():
    problem, _ = slack("chain-tied")
    assert choose(problem).solver.name == "one-slack"
    words = [["a", "b"], ["b", "a", "a"], ["c"]]
    tagger = SequenceTagger(loss="slack-hinge", tol=1e-2).fit(
        [[[w] for w in sentence] for sentence in words], [[w.upper() for w in sentence] for sentence in words]
    )
    assert tagger.result_.converged
    assert list(tagger.predict([[["b"], ["c"]]])[0]) == ["B", "C"]


def test_only_planes_are_dual_points():
    problem, _ = slack("chain-tied")
    with pytest.raises(ValueError, match="planes are"):
        problem.dual_value(DualPoint.of_scores(np.zeros(problem.n_slots)))


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 1.0, "cost_scale": 1.0},
        {"temperature": 0.0, "cost_scale": 0.0},
        {"temperature": 0.0, "cost_scale": 1.0, "link": "squared"},
    ],
)
def test_invalid_losses_are_refused(options):
    with pytest.raises(ValueError, match="slack rescaling needs temperature 0"):
        Loss("mine", rescaling="slack", **options)
    with pytest.raises(ValueError, match="rescaling of loss 'mine' must be one of"):
        Loss("mine", 0.0, 1.0, rescaling="both")


def test_a_cost_scale_multiplies_the_loss():
    problem, dense = slack("chain-tied")
    small = Small("chain-tied", "hinge")
    half = Problem(
        small.case.features,
        small.structure,
        small.case.gold,
        get_loss("slack-hinge", cost_scale=0.5),
        0.7,
        sample_weight=small.case.sample_weight,
    )
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    assert half.sums.value(w) == pytest.approx(0.5 * losses(dense, w))


def test_batches_and_threads_add_up():
    problem, _ = slack("chain-tied", n=12)
    small = Small("chain-tied", "hinge", n=12)
    batch = LabelledBatch(Batch(small.structure, small.case.features), small.case.gold, small.case.sample_weight)
    double = Problem.of([batch, batch], "slack-hinge", 1.4)
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    assert double.value(w) == pytest.approx(2 * problem.value(w))
    assert problem.with_n_jobs(2).value(w) == problem.value(w)
    one, two = (solve(each, "one-slack", tol=1e-3) for each in (problem, double))
    assert two.primal == pytest.approx(2 * one.primal, rel=2e-3)
