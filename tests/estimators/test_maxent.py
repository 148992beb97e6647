"""MaxentClassifier: scikit-learn's estimator checks, scikit-learn's optimum, and the objective of each loss."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from partwise.estimators import MaxentClassifier

EXACT = {"solver": "lbfgs", "tol": 1e-20}


@parametrize_with_checks([MaxentClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def iris(n_classes=3):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X[y < n_classes], y[y < n_classes]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_optimum_is_scikit_learns(n_classes, C, weighted, rng):
    X, y = iris(n_classes)
    X = X + rng.normal(size=X.shape)  # overlapping classes
    weight = rng.uniform(0.2, 3.0, size=len(y)) if weighted else None
    ours = MaxentClassifier(C=C, fit_intercept=False, **EXACT).fit(X, y, weight)
    theirs = LogisticRegression(C=C, fit_intercept=False, solver="newton-cholesky", tol=1e-12).fit(X, y, weight)
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=0, atol=1e-8)
    assert ours.intercept_.tolist() == [0.0] * len(ours.coef_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_objective_is_the_formula(n_classes, rng):
    X, y = iris(n_classes)
    weight = rng.uniform(0.2, 3.0, size=len(y))
    model = MaxentClassifier(C=0.5, fit_intercept=False).fit(X, y, weight)
    scores = model.decision_function(X)
    if n_classes == 2:
        losses = np.logaddexp(0.0, -np.where(y == 1, 1, -1) * scores)
    else:
        losses = logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
    expected = 0.5 / 0.5 * (model.coef_**2).sum() + weight @ losses
    assert model.result_.primal == pytest.approx(expected, rel=1e-12)
    assert 0 <= model.result_.gap <= 1e-3 * expected


@pytest.mark.parametrize("n_classes", [2, 3])
def test_intercept_is_a_penalised_column_of_ones(n_classes):
    X, y = iris(n_classes)
    with_ones = np.column_stack([X, np.ones(len(X))])
    model = MaxentClassifier(penalize_intercept=True, **EXACT).fit(X, y)
    plain = MaxentClassifier(fit_intercept=False, **EXACT).fit(with_ones, y)
    np.testing.assert_allclose(np.column_stack([model.coef_, model.intercept_]), plain.coef_, atol=1e-8)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, sparse.coo_matrix])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_sparse_and_dense_agree(container, n_classes):
    X, y = load_digits(return_X_y=True)
    X, y = X[y < n_classes][:300] / 16, y[y < n_classes][:300]
    dense = MaxentClassifier(**EXACT).fit(X, y)
    thin = MaxentClassifier(**EXACT).fit(container(X), y)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-8)
    np.testing.assert_allclose(thin.predict_proba(container(X)), dense.predict_proba(X), atol=1e-8)


def test_thin_dense_input_is_not_changed(rng):
    X = rng.normal(size=(40, 20)) * (rng.random((40, 20)) < 0.1)
    y = rng.integers(0, 3, size=40)
    before = X.copy()
    dense = MaxentClassifier(**EXACT).fit(X, y)
    assert np.array_equal(X, before)
    np.testing.assert_allclose(dense.coef_, MaxentClassifier(**EXACT).fit(sparse.csr_array(X), y).coef_, atol=1e-10)


def test_explicit_zeros_and_duplicates_are_summed_and_left_alone():
    X = sparse.coo_array(([1.0, 1.0, 0.0, 3.0, 1.0], ([0, 0, 1, 1, 2], [0, 0, 0, 1, 1])), shape=(3, 2))
    y = [0, 1, 2]
    model = MaxentClassifier(**EXACT).fit(X, y)
    np.testing.assert_allclose(model.coef_, MaxentClassifier(**EXACT).fit(X.toarray(), y).coef_, atol=1e-10)
    assert X.nnz == 5


def test_weight_zero_is_absence(rng):
    X, y = iris()
    weight = rng.integers(0, 3, size=len(y)).astype(float)
    weight[y == 2] = 0
    model = MaxentClassifier(**EXACT).fit(X, y, weight)
    kept = MaxentClassifier(**EXACT).fit(X[weight > 0], y[weight > 0], weight[weight > 0])
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(model.coef_, kept.coef_, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_softmax_margin_objective(n_classes):
    X, y = iris(n_classes)
    model = MaxentClassifier("softmax-margin", fit_intercept=False).fit(X, y)
    scores = model.decision_function(X)
    if n_classes == 2:
        scores = np.column_stack([np.zeros(len(y)), scores])
    gold = scores[np.arange(len(y)), y]
    cost = (np.arange(n_classes) != y[:, None]).astype(float)
    expected = 0.5 * (model.coef_**2).sum() + (logsumexp(scores + cost, axis=1) - gold).sum()
    assert model.result_.primal == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_hinge_objective_and_no_probabilities(n_classes):
    X, y = iris(n_classes)
    model = MaxentClassifier("hinge", C=0.1, fit_intercept=False, tol=0.01, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    if n_classes == 2:
        scores = np.column_stack([np.zeros(len(y)), scores])
    cost = (np.arange(n_classes) != y[:, None]).astype(float)
    losses = (scores + cost).max(axis=1) - scores[np.arange(len(y)), y]
    expected = 5.0 * (model.coef_**2).sum() + losses.sum()
    assert model.result_.primal == pytest.approx(expected, rel=1e-10)
    assert 0 <= model.result_.gap <= 0.01 * expected
    assert model.score(X, y) > 0.8
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        _ = model.predict_proba


def test_labels_of_any_kind():
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = MaxentClassifier().fit(X, names)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert set(model.predict(X)) <= set(names)
    assert model.score(X, names) > 0.9


def test_warm_start_needs_fewer_passes():
    X, y = iris()
    model = MaxentClassifier(warm_start=True, **EXACT).fit(X, y)
    cold, weights = model.result_.passes, model.coef_
    model.fit(X, y)
    assert model.result_.passes < cold / 2
    np.testing.assert_allclose(model.coef_, weights, atol=1e-8)
    assert model.fit(X[y < 2], y[y < 2]).coef_.shape == (1, 4)  # other labels: training starts from zero


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.filterwarnings("ignore:.*")
def test_a_warm_start_with_another_intercept(intercept):
    X, y = iris()
    model = MaxentClassifier(fit_intercept=not intercept, warm_start=True, **EXACT).fit(X, y)
    once = {"fit_intercept": intercept, "max_passes": 1}
    cold = clone(model).set_params(**once).fit(X, y).result_.primal
    assert model.set_params(**once).fit(X, y).result_.primal < 0.8 * cold


def test_fits_have_the_same_bits():
    X, y = iris()
    models = [MaxentClassifier(solver="lbfgs", n_jobs=n).fit(X, y) for n in (1, 1, 2)]
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)
        assert np.array_equal(model.intercept_, models[0].intercept_)
    online = [MaxentClassifier(solver="eg", random_state=3).fit(X, y).coef_ for _ in range(2)]
    assert np.array_equal(*online)


def test_grid_search_and_pipeline():
    X, y = iris()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), MaxentClassifier()), {"maxentclassifier__C": [0.01, 1.0]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0.9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C must be a finite number > 0, got 0"),
        ({"C": -1.0}, "C must be"),
        ({"C": float("nan")}, "C must be"),
        ({"C": "1"}, "C must be"),
        ({"loss": "logistic"}, "loss 'logistic'"),
        ({"solver": "sag"}, "solver 'sag'"),
        ({"solver": "bcfw"}, "solver 'bcfw' needs"),
        ({"solver": 3}, "solver must be a name or a Solver"),
        ({"tol": -1e-3}, "tol must be"),
        ({"max_seconds": 0}, "max_seconds must be"),
        ({"max_passes": -3}, "max_passes must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"solver_options": {"order": "cyclic"}}, "solver_options need a solver's name"),
    ],
)
def test_wrong_parameters(parameters, message):
    X, y = iris()
    model = MaxentClassifier(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert vars(model) == vars(MaxentClassifier(**parameters))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0] * 149 + [-1.0], "sample 149 is -1.0"),
        ([float("nan")] + [1.0] * 149, "sample 0 is nan"),
        ([1.0] * 149, "149 entries, expected one for each of 150 samples"),
        (np.zeros(150), "non-zero"),
        (np.ones((150, 1)), "1D"),
        (["a"] * 150, "must be numbers"),
    ],
)
def test_wrong_sample_weights(weight, message):
    X, y = iris()
    with pytest.raises(ValueError, match=message):
        MaxentClassifier().fit(X, y, sample_weight=weight)


def test_failed_refit_leaves_the_model():
    X, y = iris()
    model = MaxentClassifier().fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 2), np.nan), [0, 1, 0, 1, 0])
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X[:, :2], np.zeros(len(X)))
    assert vars(model) == before
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_empty_input(n_classes):
    model = MaxentClassifier().fit([["a"], ["b"], ["c"]] * 4, np.arange(12) % n_classes)
    assert model.predict_marginals([]).shape == model.predict_proba([]).shape == (0, n_classes)
    assert len(model.predict([])) == 0
