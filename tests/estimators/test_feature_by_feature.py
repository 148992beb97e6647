"""Estimators trained by solvers that update one feature after the other, chosen with `solver=`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from partwise import MaxentClassifier, SequenceTagger

SOLVERS = ("cd", "cd-exact", "scgis", "is-bound", "gis", "iis")


def case(n_classes):
    X, y = load_iris(return_X_y=True)
    keep = y < n_classes
    return X[keep] / 8.0, y[keep]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", SOLVERS)
def test_classifiers(name, n_classes, container):
    X, y = case(n_classes)
    options = {"C": 2.0, "tol": 1e-9, "max_passes": 50_000}
    expected = MaxentClassifier(solver="lbfgs", penalize_intercept=True, **options).fit(X, y)
    model = MaxentClassifier(solver=name, **options).fit(container(X), y)
    assert model.result_.solver == name
    assert model.result_.converged
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=2e-3)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("name", ["cd", "scgis"])
def test_taggers(name):
    words = [["in", "the", "end"], ["the", "end"], ["end"], ["in", "time"]]
    tags = [list(names) for names in ("IDN", "DN", "N", "IN")]
    X = [[[f"w={word}", "always"] for word in sentence] for sentence in words]
    models = [SequenceTagger(model="maxent", tol=1e-10, solver=solver).fit(X, tags) for solver in (name, "lbfgs")]
    assert models[0].result_.solver == name
    np.testing.assert_allclose(*(model.coef_ for model in models), atol=1e-4)
    assert [list(y) for y in models[0].predict(X)] == tags


def test_unsuitable_options_are_named():
    X, y = case(3)
    X[4, 2] = -1.0
    with pytest.raises(ValueError, match=r"'gis' needs non-negative features.*feature 8 .*cd"):
        MaxentClassifier(solver="gis").fit(X, y)
    assert MaxentClassifier(solver="cd").fit(X, y).result_.converged
    with pytest.raises(ValueError, match="'cd' needs identity link"):
        MaxentClassifier(solver="cd", loss="squared-hinge").fit(X, y)
