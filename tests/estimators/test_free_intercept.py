"""Unpenalised intercepts: equal to scikit-learn's, certified, and refused where that is impossible."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import partwise
from partwise import ConvergenceWarning, MaxentClassifier, solve
from partwise.models.base import NotAvailable
from partwise.problem.dual_points import balanced
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2, ElasticNet, Free
from partwise.problem.result import CertificateError
from partwise.solvers import CheckpointError, regularization_path

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 4)) + np.array([0, 1, 5, 0])
Y3 = np.where(X[:, 0] > 0.3, "c", np.where(X[:, 1] > 1.2, "b", "a"))
Y2 = np.where(Y3 == "c", "c", "a")
WEIGHT = RNG.integers(0, 3, size=60).astype(float)


def centred(intercept):
    return intercept - intercept.mean() if len(intercept) > 1 else intercept


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs"])
@pytest.mark.parametrize("y", [Y2, Y3])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_same_as_scikit_learn(solver, y, C):
    model = MaxentClassifier(C=C, penalize_intercept=False, tol=1e-13, solver=solver)
    model.fit(X, y, sample_weight=WEIGHT)
    kept = WEIGHT > 0
    other = LogisticRegression(C=C, solver="newton-cholesky" if len(model.classes_) == 2 else "newton-cg", tol=1e-10)
    other.set_params(max_iter=1000).fit(X[kept], y[kept], sample_weight=WEIGHT[kept])
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(centred(model.intercept_), centred(other.intercept_), atol=1e-5)
    assert model.result_.status == "converged"
    # unpenalised intercepts make the expected label counts equal to those of the data
    expected = WEIGHT @ model.predict_proba(X)
    np.testing.assert_allclose(expected, [WEIGHT[y == label].sum() for label in model.classes_], rtol=1e-5)


def test_scikit_learns_lbfgs_on_iris():
    data, y = load_iris(return_X_y=True)
    model = MaxentClassifier(penalize_intercept=False, tol=1e-12).fit(data, y)
    other = LogisticRegression(tol=1e-9, max_iter=2000).fit(data, y)
    np.testing.assert_allclose(model.predict_proba(data), other.predict_proba(data), atol=1e-5)
    penalised = MaxentClassifier(tol=1e-12, penalize_intercept=True).fit(data, y)
    assert model.result_.primal < penalised.result_.primal


def objective(problem, w):
    """Compute the primal objective P of the problem with free intercepts, without the library's penalty class."""
    free = problem.penalty.free
    others = np.delete(w, np.arange(free.start, free.stop))
    penalty = problem.l1 * np.abs(others).sum() + 0.5 * problem.l2 * others @ others
    return problem.sums.value(w) + penalty


def small_problem(y, loss="log", penalty="l2", **options):
    model = MaxentClassifier(loss=loss, penalty=penalty, penalize_intercept=False, C=2.0, **options)
    return model.prepare(X[:12, :2], y[:12]).problem


@pytest.mark.parametrize("y", [Y2, Y3])
@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_the_dual_by_brute_force(y, loss, penalty):
    """The dual value of a plane is the minimum of plane plus penalty over the box of intercepts, and is at most P."""
    problem = small_problem(y, loss, penalty)
    free = problem.penalty.free
    bound = free.bound(problem.l1, problem.l2)
    tau, kappa = problem.loss.temperature, problem.loss.cost_scale
    rng = np.random.default_rng(1)
    low = min(objective(problem, rng.normal(scale=s, size=problem.n_weights)) for s in (0.01, 0.3, 1, 3) for _ in "ab")
    for scale in (0.0, 0.5, 3.0):
        w = rng.normal(scale=scale, size=problem.n_weights)
        _, u, b = problem.plane(w)
        dual = problem.dual_of_plane(u, b)
        # plane and penalty are sums over weights, so each weight is minimised by itself
        least = b
        for j, entry in enumerate(u):
            if free.start <= j < free.stop:
                least += min(-entry * v for v in (-bound, bound))
            else:
                grid = np.linspace(-60, 60, 24_001)
                least += (problem.l1 * np.abs(grid) + 0.5 * problem.l2 * grid**2 - entry * grid).min()
        if problem.l2 > 0:
            assert dual >= least - 1e-4  # `dual_of_plane` may scale the plane to get a better value
            assert problem.dual_as_it_is(u, b) == pytest.approx(least, abs=1e-4)
        assert dual <= low
        even = balanced(problem, u, b, lambda moved, w=w: problem.sums.dual_terms_linear(w / tau, kappa / tau, moved))
        if even is not None:
            np.testing.assert_allclose(even[0][free.start : free.stop], 0.0, atol=1e-12)
            assert problem.dual_of_plane(*even) <= low


@pytest.mark.parametrize("y", [Y2, Y3])
@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
def test_minimum_and_certificate(y, loss):
    problem = small_problem(y, loss)
    found = optimize.minimize(
        lambda w: problem.value_and_gradient(w), np.zeros(problem.n_weights), jac=True, method="BFGS", tol=1e-9
    )
    assert problem.value(found.x) == pytest.approx(objective(problem, found.x), rel=1e-12)
    numeric = optimize.approx_fprime(found.x + 0.1, lambda w: objective(problem, w), 1e-7)
    np.testing.assert_allclose(problem.value_and_gradient(found.x + 0.1)[1], numeric, atol=1e-4)
    for solver in ("newton", "lbfgs"):
        for tol in (1e-1, 1e-3, 1e-6, 1e-9):
            result = solve(problem, solver, tol=tol)
            assert result.status == "converged"
            assert result.dual - 1e-9 <= found.fun <= result.primal + 1e-9
            assert result.gap <= tol * result.primal
            # the optimum lies inside the box that bounds the intercepts for the certificate
            free = problem.penalty.free
            b = result.weights[free.start : free.stop]
            differ = b.max() - b.min()
            assert 0.5 * differ <= free.bound(problem.l1, problem.l2)


@pytest.mark.parametrize(
    ("temperature", "cost", "C", "y", "row"),
    [
        (1.0, 10.0, 0.01, np.arange(40) % 2, [99.0, 101.0]),
        (1.0, 100.0, 0.01, np.arange(40) % 2, [9.0, 11.0]),
        (0.001, 0.01, 1.0, np.arange(40) // 39, [0.0, 0.0]),  # losses below 1, whose square roots are larger
    ],
)
def test_the_optimum_of_the_squared_link_lies_in_the_box(temperature, cost, C, y, row):
    """The optimal intercepts lie in the box even for rows far from 0 and rare labels, which make them large."""
    loss = Loss("squared-margin", temperature, cost, "squared")
    rows = np.array(row)[y][:, None]
    problem = MaxentClassifier(loss=loss, penalize_intercept=False, C=C).prepare(rows, y).problem
    free, zero = problem.penalty.free, np.zeros(problem.n_weights)
    assert free.at_zero >= problem.value(zero)
    found = optimize.minimize(problem.value_and_gradient, zero, jac=True, method="BFGS", tol=1e-9)
    b = found.x[free.start : free.stop]
    assert 0.5 * (b.max() - b.min()) <= free.bound(problem.l1, problem.l2)
    for solver in ("lbfgs", "newton"):
        result = solve(problem, solver, tol=1e-3)
        assert result.status == "converged"
        assert result.dual - result.rounding <= found.fun


def test_a_box_of_another_link_is_refused():
    """Bounds of free weights for another link are refused: bounds too small give dual values above the optimum."""
    problem = small_problem(Y3)
    squared = replace(problem.penalty.free, link="squared")
    with pytest.raises(ValueError, match=r"link 'squared'.*loss 'log' has link 'identity'"):
        problem.with_penalty(L2(1.0, squared))


def test_a_box_without_the_optimum_has_no_certificate():
    """Bounds of free weights that exclude the optimum raise CertificateError: the dual value exceeds the primal."""
    problem = small_problem(Y3)
    small = problem.with_penalty(L2(problem.l2, replace(problem.penalty.free, at_zero=0.0)))
    weights = solve(problem, "lbfgs", tol=1e-9).weights
    weights[small.penalty.free.start :] *= 0.9
    with pytest.raises(CertificateError, match="exceeds primal"):
        small.certificate_at(*small.value_and_gradient(weights), weights)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
@pytest.mark.parametrize("y", [Y2, Y3])
def test_sparse_weights_and_a_free_intercept(penalty, y):
    model = MaxentClassifier(penalty=penalty, C=0.2, penalize_intercept=False, tol=1e-7).fit(X, y)
    assert model.result_.solver == "owlqn"
    assert model.result_.status == "converged"
    share = 1.0 if penalty == "l1" else 0.5
    other = LogisticRegression(solver="saga", l1_ratio=share, C=0.2, tol=1e-9, max_iter=200_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=2e-3)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=2e-3)
    assert (model.coef_ == 0).any()
    # C is so small that all other weights are 0: the intercepts alone give the label frequencies
    alone = MaxentClassifier(penalty=penalty, C=1e-6, penalize_intercept=False, tol=1e-13).fit(X, y)
    assert not alone.coef_.any()
    shares = [(y == label).mean() for label in alone.classes_]
    np.testing.assert_allclose(alone.predict_proba(X[:1])[0], shares, atol=1e-6)


def test_paths_keep_the_intercept_free():
    model = MaxentClassifier(penalize_intercept=False, tol=1e-8)
    results = model.fit_path([0.01, 1.0], X, Y3)
    alone = MaxentClassifier(C=0.01, penalize_intercept=False, tol=1e-8).fit(X, Y3)
    assert results[0].primal == pytest.approx(alone.result_.primal, rel=1e-7)
    sparse = MaxentClassifier(penalize_intercept=False, penalty="l1", tol=1e-7)
    results = sparse.fit_l1_path(1.0, X, Y2, points=3)
    first = sparse.use(results[0])
    assert not first.coef_.any()
    assert np.abs(sparse.use(results[1]).coef_).max() > 0
    problem = alone.prepare(X, Y3).problem
    ends = regularization_path(problem, 100.0, 0.1, l2_min=1.0)
    assert ends[-1].primal == pytest.approx(model.result_.primal, rel=1e-2)


def test_unsupported_options_are_refused():
    for options, message in (
        ({"loss": "hinge"}, "penalize_intercept=False is not available with loss='hinge'"),
        ({"loss": "squared-hinge"}, "not available with loss='squared-hinge'"),
        ({"solver": "eg"}, "solver 'eg' needs a penalty on all weights.*solvers that fit: lbfgs, newton"),
        ({"solver": "cd"}, "a penalty on all weights"),
        ({"solver": "cd-l1", "penalty": "l1"}, "a penalty on all weights.*owlqn"),
    ):
        with pytest.raises(ValueError, match=message):
            MaxentClassifier(penalize_intercept=False, **options).fit(X, Y3)
    with pytest.raises(NotAvailable, match="not available with partial_fit"):
        MaxentClassifier(penalize_intercept=False).partial_fit(X, Y3)
    # without intercepts, penalize_intercept=False has no effect
    plain = MaxentClassifier(penalize_intercept=False, fit_intercept=False, loss="hinge").fit(X, Y3)
    assert not plain.intercept_.any()
    for wrong in ((3, 3), (-1, 2)):
        with pytest.raises(ValueError, match="free weights must be some"):
            Free(*wrong, 1.0, (1.0, 1.0), 1.0, 1.0)
    with pytest.raises(ValueError, match="label without examples"):
        Free(0, 2, 1.0, (1.0, 0.0), 1.0, 1.0)
    problem = small_problem(Y2)
    outside = Free(problem.n_weights, problem.n_weights + 2, 1.0, (1.0, 1.0), 1.0, 1.0)
    for penalty in (L2(1.0, outside), ElasticNet(1.0, 1.0, outside)):
        with pytest.raises(ValueError, match="no such explicit weights"):
            problem.with_penalty(penalty)


def test_files_and_warm_starts(tmp_path):
    model = MaxentClassifier(penalize_intercept=False, warm_start=True).fit(X, Y3)
    model.save(tmp_path / "m.pw")
    loaded = partwise.load(tmp_path / "m.pw")
    assert loaded.penalize_intercept is False
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    before = model.result_.passes
    assert model.fit(X, Y3).result_.passes <= before


def test_weak_penalties_and_rare_labels():
    """The certificate holds for very weak penalties and very rare labels, where the bound on intercepts is large."""
    y = np.where(np.arange(60) == 7, "rare", Y2)
    for C, scale in itertools.product((1e-3, 1e3), (1e-3, 1e3)):
        model = MaxentClassifier(C=C / scale**2, penalize_intercept=False, tol=1e-4).fit(scale * X, y)
        assert model.result_.status == "converged", model.result_.message
        assert model.result_.dual <= model.result_.primal


def test_several_threads_have_the_same_bits():
    one, two = (MaxentClassifier(penalize_intercept=False, n_jobs=n).fit(X, Y3) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_checkpoints(tmp_path, solver):
    """A resumed run ends with the same bits as an uninterrupted one; a checkpoint of another penalty is refused."""
    options = {"solver": solver, "penalize_intercept": False, "tol": 1e-10}
    whole = MaxentClassifier(**options).fit(X, Y3)
    with pytest.warns(ConvergenceWarning):
        MaxentClassifier(**options, max_passes=8).fit(X, Y3, checkpoint=tmp_path / "c")
    with pytest.raises(CheckpointError, match="free"):
        MaxentClassifier(solver=solver, tol=1e-10, penalize_intercept=True).fit(X, Y3, checkpoint=tmp_path / "c")
    again = MaxentClassifier(**options).fit(X, Y3, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert again.result_.dual == whole.result_.dual


def test_certificates_under_rounding():
    """The certificate holds where rounding leaves no negative entry in the difference of counts."""
    for seed in (34, 126, 135):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 3)), np.arange(30) % 3
        result = MaxentClassifier(penalize_intercept=False, tol=1e-9).fit(X, y).result_
        assert result.dual <= result.primal + result.rounding
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    weight = np.where(y == 0, 1e-9, 1.0)
    with pytest.warns(ConvergenceWarning, match="no step improves"):
        fitted = MaxentClassifier(penalize_intercept=False, tol=1e-5).fit(X, y, sample_weight=weight)
    assert np.isfinite(fitted.coef_).all()


def test_a_plane_whose_entries_are_positive_rounding():
    X, y = np.random.default_rng(1).normal(size=(20, 2)), np.arange(20) % 3
    problem = MaxentClassifier(penalize_intercept=False).prepare(X, y).problem
    u = np.zeros(problem.n_weights)
    u[problem.penalty.free.start] = 5.6e-17
    asked = []
    balanced(problem, u, 1.0, lambda moved: asked.append(moved) or (u, 1.0))
    keep, to = asked[0]
    assert (keep == 1).all()
    np.testing.assert_array_equal(to[:3], [1, 0, 0])


def test_a_stream_refuses_intercepts_that_are_set_free_later():
    streamed = MaxentClassifier().partial_fit(X, Y3).set_params(penalize_intercept=False)
    for more in ({}, {"grow": True}):
        with pytest.raises(NotAvailable, match="penalize_intercept=False"):
            streamed.partial_fit(X, Y3, **more)
    streamed.set_params(penalize_intercept=True).partial_fit(X, Y3)


def test_the_default_is_free_where_it_can_be():
    model = MaxentClassifier(tol=1e-8).fit(X, Y3)
    free = MaxentClassifier(tol=1e-8, penalize_intercept=False).fit(X, Y3)
    np.testing.assert_array_equal(model.coef_, free.coef_)
    for options in ({"solver": "eg"}, {"loss": "squared-hinge"}, {"penalty": "l1"}):
        default, penalised = (
            MaxentClassifier(**options, penalize_intercept=choice).fit(X, Y3) for choice in (None, True)
        )
        np.testing.assert_array_equal(default.coef_, penalised.coef_)


def test_a_column_far_from_zero():
    """A feature near 100: the free intercept offsets its mean, which a penalised intercept cannot."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = (100.0 + 2.0 * y + rng.normal(scale=0.4, size=400))[:, np.newaxis]
    assert MaxentClassifier().fit(X, y).score(X, y) > 0.98
    assert MaxentClassifier(penalize_intercept=True).fit(X, y).score(X, y) < 0.8
    with pytest.warns(UserWarning, match=r"intercept is penalised.*column 0 .*subtract the mean"):
        MaxentClassifier(loss="hinge", C=1e-4, tol=0.1).fit(X, y)


def test_a_rare_label():
    """Mean predicted probabilities equal the label frequencies, however strong the penalty."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20_000, 3)), np.zeros(20_000, dtype=int)
    y[:46] = 1
    mean = MaxentClassifier(C=0.01, tol=1e-6).fit(X, y).predict_proba(X)[:, 1].mean()
    assert mean == pytest.approx(0.0023, rel=1e-2)
    penalised = MaxentClassifier(C=0.01, tol=1e-6, penalize_intercept=True).fit(X, y)
    assert penalised.predict_proba(X)[:, 1].mean() > 0.0035


@pytest.mark.parametrize("classes", [2, 3])
def test_coefficients_of_scikit_learn_by_default(classes):
    y = Y2 if classes == 2 else Y3
    for weights, class_weight in ((None, None), (WEIGHT + 1, None), (None, "balanced")):
        other = LogisticRegression(C=0.7, class_weight=class_weight, tol=1e-10, max_iter=10_000)
        other.fit(X, y, sample_weight=weights)
        for solver in ("auto", "sdca"):
            model = MaxentClassifier(C=0.7, class_weight=class_weight, tol=1e-11, solver=solver)
            model.fit(X, y, sample_weight=weights)
            np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)
            np.testing.assert_allclose(centred(model.intercept_), centred(other.intercept_), atol=5e-5)
