"""Free weights (without a penalty) under `sdca`, and planes that are zero on these weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from partwise import MaxentClassifier, solve
from partwise.problem.dual_points import balanced
from partwise.problem.penalties import free_part
from partwise.solvers import SDCA
from partwise.solvers.dual import sdca

RNG = np.random.default_rng(3)


def problem_of(n=80, labels=5, *, scale=1.0, C=1.0, weights=False, **options):
    rng = np.random.default_rng(7)
    X = scale * (rng.normal(size=(n, 4)) + np.array([0, 3, -1, 0]))
    y = np.concatenate([np.arange(labels), rng.integers(labels, size=n - labels) ** 2 // labels])
    weight = rng.integers(1, 5, size=n).astype(float) if weights else None
    return MaxentClassifier(C=C, penalize_intercept=False, **options).prepare(X, y, weight).problem


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("labels", [2, 5])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_sdca_finds_the_minimum(loss, labels, C):
    """`sdca` certificates agree with those of another solver, and intercepts balance the expected and gold counts."""
    problem = problem_of(labels=labels, C=C, loss=loss, weights=True)
    exact = solve(problem, "newton", tol=1e-9)
    for tol in (1e-1, 1e-3, 1e-7):
        found = solve(problem, "sdca", tol=tol)
        assert found.status == "converged", found.message
        assert found.dual - found.rounding <= exact.primal + exact.rounding
        assert exact.dual - exact.rounding <= found.primal + found.rounding
        assert problem.dual_value(found.dual_point) == pytest.approx(found.dual, abs=1e-9 * abs(found.dual))
    np.testing.assert_allclose(problem.value(found.weights), exact.primal, rtol=1e-6)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_sdca_with_an_l1_term(penalty):
    problem = problem_of(labels=3, C=0.3, penalty=penalty, l1_ratio=0.3)
    if not problem.l2:
        return
    found, exact = solve(problem, "sdca", tol=1e-6), solve(problem, "owlqn", tol=1e-9)
    assert found.status == "converged"
    assert found.dual <= exact.primal <= found.primal <= exact.primal * (1 + 1e-5)


@pytest.mark.parametrize("scale", [1e-2, 1e2])
@pytest.mark.parametrize("labels", [2, 5])
def test_a_strong_pull_is_made_weaker(scale, labels):
    """`sdca` pulls free weights with a strength chosen from the rows; a far too strong pull must not slow the run."""
    problem = problem_of(scale=scale, C=1.0 / scale**2, labels=labels)
    solver = SDCA()
    state = solver.init_state(problem, np.random.default_rng(0), None)
    sdca.weaken(problem, state, 1e4 * state.pull)
    sdca.settle(problem, state)
    for _ in range(150):
        solver.step(problem, state)
    assert solver.certificate(problem, state).certificate.relative_gap < 1e-3


@pytest.mark.parametrize(("labels", "loss"), [*itertools.product([2, 3], ["log", "softmax-margin"])])
def test_moving_probability_makes_the_plane_zero_on_free_weights(labels, loss):
    """The moved probability is at most the error of the counts, and the plane is that of the moved distributions."""
    problem = problem_of(n=12, labels=labels, loss=loss, weights=True)
    tau, kappa = problem.loss.temperature, problem.loss.cost_scale
    low = solve(problem, "newton", tol=1e-12).primal
    width = problem.n_slots // problem.n_examples
    for scale in (0.0, 0.3, 3.0):
        w = RNG.normal(scale=scale, size=problem.n_weights)
        _, u, b = problem.plane(w)
        asked = []

        def changed(moved, asked=asked, w=w):
            asked.append(moved)
            return problem.sums.dual_terms_linear(w / tau, kappa / tau, moved)

        even = balanced(problem, u, b, changed)
        np.testing.assert_allclose(free_part(problem.penalty, even[0]), 0.0, atol=1e-12)
        assert problem.dual_of_plane(*even) <= low + 1e-9
        keep, to = asked[0]
        p = problem.sums.marginals_of_scores(problem.sums.linear_scores(w / tau, kappa / tau))[0].reshape(-1, width)
        new = p * keep + np.outer(p @ (1.0 - keep), to)
        np.testing.assert_allclose(new.sum(axis=1), 1.0)
        moved = problem.sample_weight @ (np.abs(new - p).sum(axis=1))
        assert moved <= np.abs(free_part(problem.penalty, u)).sum() * (1 + 1e-9) + 1e-9
        entropies = -(new * np.log(np.where(new > 0, new, 1.0))).sum(axis=1)
        u_new, b_new = problem.sums.dual_terms_slots(new.ravel(), None, entropies)
        np.testing.assert_allclose(even[0], u_new, atol=1e-9)
        assert even[1] == pytest.approx(b_new, rel=1e-10)


def test_rows_without_features():
    """A row without features has only its intercept, whose curvature comes from the pull alone."""
    X = np.where(np.arange(90)[:, np.newaxis] % 3 > 0, RNG.normal(size=(90, 3)), 0.0)
    problem = MaxentClassifier(penalize_intercept=False).prepare(X, np.arange(90) % 4).problem
    solver = SDCA()
    state = solver.init_state(problem, np.random.default_rng(0), None)
    for _ in range(12):
        sdca.weaken(problem, state, state.pull / 3.7)
        sdca.settle(problem, state)
        solver.step(problem, state)
    assert np.isfinite(state.scores).all()


def test_checkpoints_and_limits(tmp_path):
    problem = problem_of()
    whole = solve(problem, "sdca", tol=1e-6)
    with pytest.warns(UserWarning, match="max_passes"):
        solve(problem, "sdca", tol=1e-6, max_passes=3, checkpoint=tmp_path / "c")
    again = solve(problem, "sdca", tol=1e-6, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.weights, whole.weights)
    warm = solve(problem, "sdca", tol=1e-6, warm_start=whole)
    assert warm.passes < whole.passes
    with pytest.raises(ValueError, match="need exact blocks"):
        solve(problem, SDCA(exact_blocks=False))


def test_auto_is_as_fast_as_with_a_penalty():
    """With 1,000 labels, free intercepts need at most 1.5 times the passes of penalised intercepts."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(1000), rng.integers(1000, size=1000)])
    X = 0.5 * rng.normal(size=(1000, 20))[y] + rng.normal(size=(len(y), 20))
    free, penalised = (
        MaxentClassifier(penalize_intercept=flag, solver="sdca").prepare(X, y).problem for flag in (False, True)
    )
    assert solve(free, max_passes=1, tol=0.9).solver == "sdca"
    results = [solve(each, SDCA(check_every=1)) for each in (free, penalised)]
    assert results[0].status == "converged"
    assert results[0].passes <= 1.5 * results[1].passes
