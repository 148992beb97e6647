"""Class weights equal the corresponding sample weights and scikit-learn's class weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from partwise import MaxentClassifier, RegularizationPathCV, SequenceTagger

NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture
def table(rng):
    X = rng.normal(size=(90, 4))
    y = NAMES[np.minimum(2, rng.geometric(0.5, 90) - 1)]
    return X, y


@pytest.mark.parametrize("weight", ["balanced", {"ant": 3.0}, {"ant": 0.5, "bee": 2.0, "cat": 1.5}])
@pytest.mark.parametrize("two", [False, True])
def test_the_model_is_scikit_learns(table, weight, two):
    X, y = table
    if two:
        keep = y != "cat"
        X, y = X[keep], y[keep]
        weight = {k: v for k, v in weight.items() if k != "cat"} if isinstance(weight, dict) else weight
    rows = np.linspace(0.5, 2.0, len(y))
    ours = MaxentClassifier(fit_intercept=False, class_weight=weight).fit(X, y, sample_weight=rows)
    theirs = LogisticRegression(fit_intercept=False, class_weight=weight, tol=1e-12, max_iter=1000)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, y, sample_weight=rows).coef_, atol=1e-5)


def test_class_weights_are_sample_weights(table):
    X, y = table
    named = MaxentClassifier(class_weight={"bee": 4.0}).fit(X, y)
    given = MaxentClassifier().fit(X, y, sample_weight=np.where(y == "bee", 4.0, 1.0))
    np.testing.assert_array_equal(named.coef_, given.coef_)


def test_balanced_does_not_count_rows_without_weight(table):
    X, y = table
    rows = (np.arange(90) % 3 > 0).astype(float)
    with_zeros = MaxentClassifier(class_weight="balanced").fit(X, y, sample_weight=rows)
    without = MaxentClassifier(class_weight="balanced").fit(X[rows > 0], y[rows > 0])
    np.testing.assert_allclose(with_zeros.coef_, without.coef_, atol=1e-10)


def test_a_label_of_weight_zero_is_not_learnt(table):
    X, y = table
    with pytest.warns(UserWarning, match="y: all examples with 'cat' have weight 0, .* classes_ is without it"):
        model = MaxentClassifier(class_weight={"cat": 0.0}).fit(X, y)
    assert model.classes_.tolist() == ["ant", "bee"]
    with pytest.warns(UserWarning, match="'N' have weight 0"):
        SequenceTagger(class_weight={"N": 0.0}).fit([[["a"]], [["b"]], [["c"]]], [["N"], ["V"], ["D"]])


def test_a_fold_may_lack_a_label(table):
    X, y = table
    weights = {"cat": 2.0, "dog": 5.0}
    with pytest.warns(UserWarning, match="class_weight names labels that are not in y: 'dog'"):
        model = MaxentClassifier(class_weight=weights).fit(X, y)
    expected = MaxentClassifier(class_weight={"cat": 2.0}).fit(X, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    search = RegularizationPathCV(SequenceTagger(class_weight={"c": 3.0}), Cs=[1.0], cv=KFold(3))
    with pytest.warns(UserWarning, match="not in y: 'c'"):
        search.fit([[["a"]], [["b"]], [["c"]]] * 3, [["a"], ["b"], ["a"]] * 2 + [["c"], ["b"], ["a"]])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("even", "class_weight must be one of 'balanced'"),
        ({"ant": -1.0}, "class_weight of label 'ant' must be a finite number >= 0"),
        ({"ant": "much"}, "class_weight of label 'ant' must be"),
        ({"ant": 0.0, "bee": 0.0, "cat": 0.0}, "no row with a weight above 0"),
        (3, "None, 'balanced' or a mapping"),
    ],
)
def test_bad_class_weights(table, weight, message):
    with pytest.raises(ValueError, match=message):
        MaxentClassifier(class_weight=weight).fit(*table)
