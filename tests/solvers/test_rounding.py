"""Certificates are correct in exact arithmetic, because their gaps include the rounding of their sums."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from helpers.small_problems import Small, certified, kind_for, loss_for, penalty_for
from oracles.objective import LOSSES
from oracles.optimum import EXTENDED, LONG, Enumerated, optimum
from partwise import (
    CertificateError,
    ConvergenceWarning,
    FeatureWarning,
    MaxentClassifier,
    Problem,
    SequenceTagger,
    available_solvers,
    get_solver,
    solve,
)
from partwise.solvers import suitable_solvers

extended = pytest.mark.skipif(not EXTENDED, reason="long doubles are doubles here")


def quietly(*args, **options):
    """Call `solve` without warnings about its status."""
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, FeatureWarning):  # some problems have features without data
            warnings.simplefilter("ignore", kind)
        return solve(*args, **options)


def check_claims(small: Small, results) -> None:
    """Check that every certificate is correct for the value at its weights and for the optimum."""
    results, exact = list(results), Enumerated.of(small.dense)
    found = optimum(exact, *[result.weights for result in results])
    for result in results:
        rounding, value = LONG(result.rounding), exact.primal(result.weights)
        assert abs(LONG(result.primal) - value) <= rounding, result.solver
        assert LONG(result.dual) - rounding <= found.upper, result.solver
        assert found.lower <= LONG(result.primal) + rounding, result.solver
        assert max(LONG(result.primal), value) - LONG(result.gap) <= found.upper, result.solver
        if result.status == "converged":
            assert value - found.upper <= 1e-6 * value, result.solver


@extended
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("loss", LOSSES)
def test_claims_hold_at_any_scale(loss, seed):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["multiclass", "chain-tied", "chain-untied", "python"])
    omega = rng.uniform(0.5, 2.0, 5)
    omega[rng.random(5) < rng.choice([0.2, 1.0])] *= 10.0 ** rng.uniform(-8, 30)
    scale, l2 = 10.0 ** rng.integers(-7, 8), 10.0 ** rng.integers(-3, 3)
    small = Small(kind, loss, l2=l2, seed=seed, scale=scale, sample_weight=omega)
    solvers = filter(certified, suitable_solvers(small.problem))
    check_claims(small, [quietly(small.problem, s, tol=1e-6, max_passes=40, random_state=0) for s in solvers])


@extended
@pytest.mark.parametrize(
    ("solver", "loss", "weight"),
    [("newton", "log", 6.5e8), ("lbfgs", "log", 1e12), ("dcd-light", "squared-hinge", 1e30)],
)
def test_one_heavy_example(solver, loss, weight):
    omega = np.ones(5)
    omega[1] = weight
    small = Small("multiclass", loss, l2=1.0, sample_weight=omega)
    check_claims(small, [quietly(small.problem, solver, tol=1e-6, max_passes=300, random_state=0)])


@pytest.mark.parametrize("weight", [1e-8, 1e6, 1e8, 1e12, 1e30])
@pytest.mark.parametrize("solver", available_solvers())
def test_sample_weights_of_any_size_are_accepted(solver, weight):
    for everywhere in (False, True):
        omega = np.full(5, weight) if everywhere else np.array([1.0, weight, 1.0, 1.0, 1.0])
        small = Small(kind_for(solver), loss_for(solver), sample_weight=omega)
        case, penalty = small.case, penalty_for(solver, 1.0)
        problem = Problem(case.features, case.structure, case.gold, small.loss, penalty, sample_weight=omega)
        result = quietly(problem, solver, tol=1e-3, max_passes=50, random_state=0)
        assert np.isfinite(result.weights).all()
        assert np.isfinite(result.primal)
        assert result.gap >= result.primal - result.dual
        if result.status == "converged":
            assert result.gap <= 1e-3 * result.primal


def test_the_same_problem_by_weight_and_by_c():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    for solver in ("newton", "eg-batch"):
        for weight in (1e6, 1e8):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                one = MaxentClassifier(C=1.0, solver=solver, max_passes=200).fit(X, y, np.full(40, weight)).result_
                two = MaxentClassifier(C=weight, solver=solver, max_passes=200).fit(X, y).result_
            assert one.primal - one.gap <= weight * (two.primal + two.rounding)
            assert weight * (two.primal - two.gap) <= one.primal + one.rounding


def test_an_objective_near_zero():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 3)) * 1e7
    y = (X[:, 0] > 0).astype(int)
    sequences, labels = X.reshape(4, 3, 3), [[str(label) for label in row] for row in y.reshape(4, 3)]
    results = []
    for solver in ("auto", "eg", "eg-batch", "lbfgs", "newton"):
        tagger = SequenceTagger(C=100, solver=solver, ends=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            results.append(tagger.fit(list(sequences), labels).result_)
    for one in results:
        assert one.gap > 0
        assert one.status != "converged" or one.gap <= 1e-3 * one.primal
        for two in results:
            assert one.primal - one.gap <= two.primal + two.rounding
    assert any("beyond double precision" in result.message for result in results)


@extended
def test_rounding_of_equal_errors_that_add_up():
    small = Small("multiclass", "log", n=1, scale=1e5)
    case = small.case
    many = 3000
    repeated = replace_examples(small, many)
    w = np.random.default_rng(0).normal(size=small.problem.n_weights)
    value = many * (Enumerated.of(small.dense).primal(w) - LONG(0.35) * (w.astype(LONG) @ w.astype(LONG)))
    value += LONG(0.35) * (w.astype(LONG) @ w.astype(LONG))
    primal, gradient = repeated.value_and_gradient(w)
    assert abs(LONG(primal) - value) <= repeated.certificate_at(primal, gradient, w).rounding
    assert case.n == 1


def replace_examples(small: Small, many: int) -> Problem:
    """Make the problem with `many` copies of its example, each with the example's weight."""
    from partwise import _core

    features, structure = small.case.features, small.structure
    width, d = structure.width, features.num_weights
    row = np.array([features.scores(0, unit)[0] for unit in np.eye(d)[::width]])
    rows = np.tile(row, (many, 1))
    segment = _core.DenseSegment(rows, np.arange(many + 1), structure.n_labels, width)
    copies = _core.Multiclass(many, structure.n_labels)
    gold = copies.encode(np.full(many, small.case.gold[1][0]))
    weight = np.full(many, small.case.sample_weight[0])
    return Problem(_core.LinearMap([segment]), copies, gold, small.loss, small.problem.penalty, sample_weight=weight)


@pytest.mark.parametrize(("loss", "free"), [("log", False), ("log", True), ("hinge", False), ("squared-hinge", False)])
def test_rounding_is_far_below_ordinary_tolerances(loss, free):
    """The bound of rounding is far below tolerances used in practice (free weights, which have a box, raise it)."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 50))
    y = (X[:, :4] @ rng.normal(size=(4, 5)) + rng.normal(size=(2000, 5))).argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MaxentClassifier(loss=loss, penalize_intercept=not free, tol=1e-2, max_passes=20)
        result = model.fit(X, y).result_
    assert 0 < result.rounding <= (1e-9 if free else 1e-11) * result.primal


class TestLimits:
    """Limits of a gap and of a run."""

    @pytest.fixture
    def problem(self):
        return Small("chain-tied", "log").problem

    def test_a_dual_above_the_primal(self, problem):
        w = np.random.default_rng(0).normal(size=problem.n_weights)
        value, u, b = problem.plane(w)
        primal = value + problem.penalty_value(w)
        honest = problem.certificate_of(primal, u, b, w)
        assert 0 < honest.rounding < 1e-11
        within = problem.certificate_of(primal, u, b + honest.raw_gap + 0.5 * honest.rounding, w)
        assert within.raw_gap < 0 < within.gap
        with pytest.raises(CertificateError, match="exceeds primal"):
            problem.certificate_of(primal, u, b + honest.raw_gap + 3.0 * honest.rounding, w)

    @pytest.mark.parametrize("solver", ["lbfgs", "newton", "eg", "eg-batch"])
    def test_a_tolerance_below_rounding(self, problem, solver):
        result = solve(problem, solver, tol=1e-18, random_state=0, max_passes=3000)
        assert result.status == "converged"
        assert 1e-18 * result.primal < result.gap <= 1e-10 * result.primal
        assert result.passes < 3000

    def test_stalled_by_rounding(self):
        small = Small("multiclass", "log", sample_weight=np.array([1.0, 1e20, 1.0, 1.0, 1.0]))
        with pytest.warns(ConvergenceWarning, match="rounding may be .*beyond double precision"):
            result = solve(small.problem, "newton", tol=1e-6, random_state=0)
        assert result.status == "stalled"
        again = replace(result)
        assert again.relative_gap > 1e-6

    def test_an_internal_goal_below_the_tolerance_is_no_failure(self, problem):
        first = solve(problem, "lbfgs", tol=1e-18)
        result = get_solver("lbfgs").run(problem, tol=1e-3, warm_start=first, precise=(1e-30, 50.0))
        assert result.status == "converged"


def test_errors_of_updated_marginals_are_within_rounding():
    """Pairwise steps update clique marginals over many visits; the rounding bound includes the errors of this."""
    X = np.repeat(np.random.default_rng(0).normal(size=(1, 2)), 3, axis=0)
    problem = MaxentClassifier(loss="hinge", C=1 / 9e-5).prepare(X, [0, 1, 2]).problem
    result = quietly(problem, get_solver("smo", form="cliques"), tol=0.0, max_passes=4000)
    off = abs(result.dual_point.marginals.reshape(3, -1).sum(axis=1) - 1.0).sum()
    assert 1e-14 < off * result.primal / 3 <= result.rounding
