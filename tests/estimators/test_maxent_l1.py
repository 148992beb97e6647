"""The elastic net against scikit-learn's solvers: objective, zeros, path of strengths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from partwise import MaxentClassifier


def objective(X, y, coef, l1, l2):
    """Compute the objective independently, for two labels and for more."""
    scores = np.column_stack([np.zeros(len(y)), X @ coef[0]]) if len(coef) == 1 else X @ coef.T
    loss = (logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]).sum()
    return loss + l1 * np.abs(coef).sum() + 0.5 * l2 * (coef**2).sum()


def data(rng, n_labels, n=150, d=20):
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    true = np.zeros((d, n_labels))
    true[:5] = rng.normal(size=(5, n_labels))
    return X, np.argmax(X @ true + rng.gumbel(size=(n, n_labels)), axis=1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_objective_and_zeros_are_sagas(rng, n_labels, l1_ratio, C, form):
    X, y = data(rng, n_labels)
    model = MaxentClassifier(C=C, penalty="elasticnet", l1_ratio=l1_ratio, fit_intercept=False, tol=1e-10)
    model.fit(form(X), y)
    saga = LogisticRegression(
        C=C, l1_ratio=l1_ratio, fit_intercept=False, solver="saga", tol=1e-12, max_iter=20_000, random_state=0
    ).fit(X, y)
    ours, theirs = (objective(X, y, coef, l1_ratio / C, (1 - l1_ratio) / C) for coef in (model.coef_, saga.coef_))
    assert model.result_.solver == "cd-l1"
    assert model.result_.converged
    assert model.result_.primal == pytest.approx(ours, rel=1e-10)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours <= theirs * (1 + 1e-9)
    np.testing.assert_array_equal(model.coef_ == 0, np.abs(saga.coef_) < 1e-6)
    assert (model.coef_ == 0).any()


def test_two_labels_are_liblinears(rng):
    X, y = data(rng, 2)
    model = MaxentClassifier(C=0.3, penalty="l1", tol=1e-10).fit(X, y)
    other = LogisticRegression(C=0.3, l1_ratio=1.0, solver="liblinear", tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-5)


def test_a_strong_penalty_makes_all_weights_zero(rng):
    X, y = data(rng, 3)
    model = MaxentClassifier(C=1e-4, penalty="l1").fit(X, y)
    assert not model.coef_.any()
    assert model.result_.converged


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l0"}, "penalty must be one of 'l2', 'l1', 'elasticnet'"),
        ({"penalty": "elasticnet", "l1_ratio": 1.5}, "l1_ratio must be at most 1"),
        ({"penalty": "elasticnet", "l1_ratio": -0.5}, "l1_ratio must be a finite number"),
        ({"penalty": "l1", "loss": "hinge"}, "penalty='l1' is not available with loss='hinge'"),
        ({"penalty": "l1", "solver": "eg"}, "solver 'eg' needs l2 > 0.*solvers that fit: .*cd-l1"),
        ({"penalty": "l1", "solver": "lbfgs"}, "solver 'lbfgs' needs smooth penalty.*solvers that fit: .*cd-l1"),
    ],
)
def test_bad_options(rng, options, message):
    with pytest.raises(ValueError, match=message):
        MaxentClassifier(**options).fit(*data(rng, 3))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_two_labels_have_one_weight_per_column(rng, fit_intercept):
    """Under an l1 penalty two labels share one weight per column; warm starts carry weights to and from l2 models."""
    X, y = data(rng, 2)
    model = MaxentClassifier(C=0.3, penalty="l1", fit_intercept=fit_intercept, tol=1e-8, warm_start=True).fit(X, y)
    assert len(model.result_.weights) == X.shape[1] + fit_intercept
    np.testing.assert_array_equal(model.result_.weights[: X.shape[1]], model.coef_[0])
    if fit_intercept:
        assert model.result_.weights[-1] == model.intercept_[0]
    cold = model.result_
    assert model.fit(X, y).result_.passes < cold.passes
    for penalty in ("l2", "elasticnet"):
        model.set_params(penalty=penalty, l1_ratio=0.5).fit(X, y)
        fresh = MaxentClassifier(**{**model.get_params(), "warm_start": False}).fit(X, y)
        np.testing.assert_allclose(model.coef_, fresh.coef_, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
