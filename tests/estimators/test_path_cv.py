"""RegularizationPathCV chooses C by cross-validation on the regularisation path."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from partwise import MaxentClassifier, RegularizationPathCV, SequenceTagger
from partwise.problem import Problem


@parametrize_with_checks([RegularizationPathCV(MaxentClassifier(), Cs=3, cv=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    return X + rng.normal(scale=0.5, size=X.shape), y


@pytest.fixture(scope="module")
def sentences():
    rng = np.random.default_rng(1)
    X, y = [], []
    for _ in range(40):
        labels = rng.integers(3, size=rng.integers(2, 6))
        noisy = np.where(rng.random(len(labels)) < 0.3, rng.integers(3, size=len(labels)), labels)
        X.append([[f"a{k}", f"noise{rng.integers(40)}"] for k in noisy])
        y.append(["xyz"[k] for k in labels])
    return X, y


Cs = [1e-3, 1e-2, 0.1, 1.0, 10.0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scores_are_those_of_a_grid_search(iris, n_classes, fit_intercept):
    X, y = iris
    X, y = X[y < n_classes], y[y < n_classes]
    inner = MaxentClassifier(fit_intercept=fit_intercept)
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    found = RegularizationPathCV(inner, Cs=Cs, cv=cv).fit(X, y)
    grid = GridSearchCV(inner, {"C": Cs}, cv=cv).fit(X, y)
    expected = np.array([grid.cv_results_[f"split{k}_test_score"] for k in range(4)])
    np.testing.assert_allclose(found.scores_, expected)
    assert grid.best_params_["C"] == found.C_
    np.testing.assert_allclose(found.best_estimator_.coef_, grid.best_estimator_.coef_, atol=1e-7)
    np.testing.assert_array_equal(found.predict(X), grid.predict(X))
    np.testing.assert_allclose(found.predict_proba(X), grid.predict_proba(X), atol=1e-7)
    assert found.score(X, y) == grid.score(X, y)
    assert np.all(found.gaps_ <= inner.tol)
    assert found.best_estimator_.C == found.C_
    assert len(found.results_) == len(found.Cs_)
    assert found.best_estimator_.result_ is found.results_[Cs.index(found.C_)]


def test_scikit_learns_own_models(iris):
    X, y = iris
    found = RegularizationPathCV(MaxentClassifier(fit_intercept=False), Cs=Cs, cv=KFold(3)).fit(X, y)
    for k, C in enumerate(Cs):
        theirs = cross_val_score(
            LogisticRegression(C=C, fit_intercept=False, tol=1e-8, max_iter=5000), X, y, cv=KFold(3)
        )
        np.testing.assert_allclose(found.scores_[:, k], theirs)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_taggers(sentences, loss):
    X, y = sentences
    inner = SequenceTagger(loss=loss, tol=1e-2, random_state=0)
    found = RegularizationPathCV(inner, Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    grid = GridSearchCV(inner, {"C": [0.01, 0.1, 1.0]}, cv=3).fit(X, y)
    expected = np.array([grid.cv_results_[f"split{k}_test_score"] for k in range(3)])
    # Fits stop at a relative gap of 1 %, so a few predictions differ.
    np.testing.assert_allclose(found.scores_, expected, atol=0.08)
    assert np.all(found.gaps_ <= 1e-2)
    assert found.best_estimator_.result_.relative_gap <= 1e-2
    assert found.classes_.tolist() == ["x", "y", "z"]
    assert found.score(X, y) > 0.6
    assert hasattr(found, "predict_marginals") == (loss == "log")
    assert not hasattr(found, "predict_proba")
    if loss == "log":
        assert found.predict_marginals(X[:1], output="array")[0].shape == (len(X[0]), 3)


def test_the_path_costs_less_than_a_grid(sentences, monkeypatch):
    X, y = sentences
    inner = SequenceTagger(solver="eg", tol=1e-3, random_state=0)
    values = np.logspace(-2, 1, 8)
    path = clone(inner).fit_path(values.tolist(), X, y)
    cold = [inner.set_params(C=C).fit(X, y).result_.passes for C in values]
    assert sum(result.passes for result in path) < 0.7 * sum(cold)
    np.testing.assert_allclose([result.l2 for result in path], 1 / values)


def test_data_are_read_once_a_fold(sentences, monkeypatch):
    X, y = sentences
    made = []
    make = Problem.of
    monkeypatch.setattr(Problem, "of", lambda *args, **parts: made.append(1) or make(*args, **parts))
    RegularizationPathCV(SequenceTagger(tol=0.1), Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    assert len(made) == 4  # one problem per fold and one for the final fit


def test_scoring(iris, sentences):
    X, y = iris
    by_name = RegularizationPathCV(MaxentClassifier(), Cs=Cs, cv=3, scoring="neg_log_loss").fit(X, y)
    assert by_name.scores_.max() < 0
    assert by_name.score(X, y) < 0

    def first_right(estimator, X, y):
        return np.mean([p[0] == t[0] for p, t in zip(estimator.predict(X), y, strict=True)])

    own = RegularizationPathCV(SequenceTagger(tol=0.1), Cs=[0.1, 1.0], cv=2, scoring=first_right)
    own.fit(*sentences, sample_weight=np.ones(40))
    assert own.score(*sentences) == first_right(own, *sentences)


def test_sample_weight(iris):
    X, y = iris
    weight = np.where(y == 0, 1e-6, 1.0)
    found = RegularizationPathCV(MaxentClassifier(), Cs=[1e-2, 1.0], cv=3).fit(X, y, weight)
    fold = next(iter(StratifiedKFold(3).split(X, y)))
    alone = MaxentClassifier(C=1.0).fit(X[fold[0]], y[fold[0]], weight[fold[0]])
    assert found.scores_[0, 1] == pytest.approx(alone.score(X[fold[1]], y[fold[1]], weight[fold[1]]))


def test_elastic_net(iris):
    X, y = iris
    inner = MaxentClassifier(penalty="elasticnet", l1_ratio=0.3, tol=1e-9, random_state=0)
    found = RegularizationPathCV(inner, Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    alone = clone(inner).set_params(C=found.C_).fit(X, y)
    np.testing.assert_allclose(found.best_estimator_.coef_, alone.coef_, atol=1e-3)
    assert np.all(found.gaps_ <= 1e-9)


def test_ties_go_to_the_strongest_penalty(iris):
    X, y = iris
    found = RegularizationPathCV(MaxentClassifier(), Cs=Cs, cv=3, scoring=lambda *_: 0.5).fit(X, y)
    assert Cs[0] == found.C_


def test_values_are_sorted(iris):
    X, y = iris
    found = RegularizationPathCV(MaxentClassifier(), Cs=(10.0, 0.1, 10), cv=2).fit(X, y)
    assert found.Cs_.tolist() == [0.1, 10.0]
    few = RegularizationPathCV(MaxentClassifier(), Cs=3, cv=2).fit(X, y)
    np.testing.assert_allclose(few.Cs_, [1e-4, 1.0, 1e4])


@pytest.mark.parametrize("bad", [0, -1, True, [], [0.0], [-1.0], [np.nan], ["a"], "many", 2.5, None])
def test_bad_values(iris, bad):
    with pytest.raises(ValueError, match="Cs"):
        RegularizationPathCV(MaxentClassifier(), Cs=bad).fit(*iris)


def test_the_path_of_an_estimator(iris):
    X, y = iris
    model = MaxentClassifier()
    for bad, message in (([], "Cs holds no values"), ([-1.0, 1.0], "Cs: each value must be a finite number > 0")):
        with pytest.raises(ValueError, match=message):
            model.fit_path(bad, X, y)
    assert model.C == 1.0
    results = model.fit_path([0.1, 10.0], X, y)
    assert model.C == 10.0
    assert np.array_equal(model.use(results[0]).coef_, clone(model).set_params(C=0.1).fit(X, y).coef_)
    with pytest.raises(NotFittedError):
        MaxentClassifier().use(results[0])


def test_bad_input(iris):
    X, y = iris
    with pytest.raises(ValueError, match="one of partwise's"):
        RegularizationPathCV(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="'bcfw' needs temperature 0"):
        RegularizationPathCV(MaxentClassifier(solver="bcfw")).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight"):
        RegularizationPathCV(MaxentClassifier()).fit(X, y, sample_weight=np.ones(3))


def test_a_failed_fit_changes_nothing(iris):
    X, y = iris
    found = RegularizationPathCV(MaxentClassifier(), Cs=2, cv=2).fit(X, y)
    before = found.C_, found.scores_.tolist()

    def trouble(estimator, X, y):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found.set_params(scoring=trouble).fit(X, y)
    assert (found.C_, found.scores_.tolist()) == before
    assert not hasattr(found.best_estimator_, "_path")


def test_pickle(iris):
    X, y = iris
    found = RegularizationPathCV(MaxentClassifier(), Cs=2, cv=2).fit(X, y)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
