"""A failing fit raises a clear error and leaves the estimator unchanged."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from partwise.estimators import MaxentClassifier, SequenceTagger
from partwise.models import labels

X = [[["a", "b"], ["c"]], [["a"]], [["b"], ["a", "c"]]]
Y = [["P", "Q"], ["P"], ["R", "Q"]]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([], [], "X holds no sequences"),
        (X, Y[:2], "X has 3 sequences but y has 2"),
        (X, [["P", "Q"], ["P", "P"], ["R", "Q"]], "sequence 1 has 1 positions but 2 labels"),
        ([[], []], [[], []], "X holds no sequences with positions"),
        (X, [["P", "P"], ["P"], ["P", "P"]], "one label only"),
        (X, [["P", None], ["P"], ["R", "Q"]], "sequence 0, position 1: label missing"),
        ([X[0], [{"a": float("nan")}]], Y[:2], "sequence 1, position 0, attribute 'a' is nan"),
        ([[[], []]], [["P", "Q"]], "no attribute"),
        ([np.ones((2, 2)), np.array([[0.0, np.inf]])], Y[:2], "sequence 1, position 0, column 1 is inf"),
        ([np.ones((2, 2)), np.ones((1, 3))], Y[:2], "sequence 1 has 3 features, expected 2"),
        ([np.ones((2, 2)), sparse.csr_array((1, 2))], Y[:2], "sequence 1 is sparse"),
        (X, "PQ", "y must be a list"),
        ("abc", Y, "X must be a list"),
        (None, Y, "X must be a list"),
        (X, None, "y must be a list"),
    ],
)
def test_bad_data(x, y, message):
    model = SequenceTagger()
    with pytest.raises(ValueError, match=message):
        model.fit(x, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert vars(model) == vars(SequenceTagger())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"C": -2}, "C must be"),
        ({"loss": "logg"}, "loss 'logg'"),
        ({"solver": "sgdx"}, "solver 'sgdx'"),
        ({"solver": "lbfgs", "loss": "hinge"}, "solver 'lbfgs' needs"),
        ({"features": "some"}, "features must be one of 'observed', 'all'"),
        ({"transitions": None}, "transitions must be one of"),
        ({"transition_features": "a"}, "transition_features must be None, 'all' or a list"),
        ({"transition_features": [3]}, "prefixes of attribute names"),
        ({"min_count": 0}, "min_count must be"),
        ({"min_count": 1.5}, "min_count must be"),
        ({"min_count": 9, "features": "all"}, "no attribute that occurs 9 times"),
        ({"tol": float("inf")}, "tol must be"),
    ],
)
def test_bad_parameters(parameters, message):
    model = SequenceTagger(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert vars(model) == vars(SequenceTagger(**parameters))


def test_columns_of_transitions_are_checked():
    arrays = [np.eye(2), np.ones((1, 2)), np.ones((2, 2))]
    for columns in ([2], ["a"], [-1]):
        with pytest.raises(ValueError, match="is not a column of 2"):
            SequenceTagger(transition_features=columns).fit(arrays, Y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -0.5, 1.0], "sequence 1 is -0.5"),
        ([1.0, 1.0, float("inf")], "sequence 2 is inf"),
        ([1.0, 1.0], "2 entries, expected one for each of 3 sequences"),
        ([0.0, 0.0, 0.0], "non-zero"),
        ([0.0, 1.0, 0.0], "one label only"),
    ],
)
def test_bad_sample_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        SequenceTagger().fit(X, Y, sample_weight=weight)


def test_messages_count_sequences_of_weight_zero():
    with pytest.raises(ValueError, match="sequence 2, position 1"):
        SequenceTagger().fit([X[0], X[1], [["a"], [3]]], Y, sample_weight=[1, 0, 1])


def test_bad_data_at_prediction():
    named = SequenceTagger().fit(X, Y)
    with pytest.raises(ValueError, match="sequence 1, position 0, attribute 'a' is nan"):
        named.predict([X[0], [{"a": float("nan")}]])
    with pytest.raises(ValueError, match="must be lists of attribute names or dicts, as in fit"):
        named.predict([np.ones((2, 2))])
    with pytest.raises(ValueError, match="sequence 0 has 2 positions but 1 labels"):
        named.score(X[:1], [["P"]])
    with pytest.raises(ValueError, match="k must be"):
        named.predict_k_best(X, 0)
    with pytest.raises(ValueError, match="output must be one of"):
        named.predict_marginals(X, output="list")
    arrays = SequenceTagger().fit([np.eye(2), np.ones((1, 2)), np.ones((2, 2))], Y)
    with pytest.raises(ValueError, match="must be 2-D arrays of numbers or sparse matrices, as in fit"):
        arrays.predict(X)
    with pytest.raises(ValueError, match="sequence 0 has 3 features, expected 2"):
        arrays.predict([np.ones((2, 3))])
    with pytest.raises(ValueError, match="sequence 0, position 1, column 0 is nan"):
        arrays.predict([np.array([[0.0, 0.0], [np.nan, 0.0]])])


def test_failed_refit_leaves_the_tagger():
    model = SequenceTagger().fit(X, Y)
    before, predicted = dict(vars(model)), model.predict(X)
    bad = [
        (X, Y[:2], "3 sequences but y has 2"),
        ([np.array([[0.0], [np.nan]])], [["P", "Q"]], "is nan"),
        (X, [["P", "P"], ["P"], ["P", "P"]], "one label only"),
    ]
    for x, y, message in bad:
        with pytest.raises(ValueError, match=message):
            model.fit(x, y)
        assert vars(model) == before
    model.set_params(C=-1.0)
    with pytest.raises(ValueError, match="C must be"):
        model.fit(X, Y)
    model.set_params(C=1.0)
    assert vars(model) == before
    assert model.predict(X) == predicted


def interrupted_fit(model, x, y, after):
    """Return the seconds between an interrupt signal and the end of fit."""
    sent, ended = [], []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(x, y)
            ended.append(True)
            time.sleep(after)  # wait, so that the signal arrives inside this block even if the fit was quick
    finally:
        timer.join()
    assert not ended
    return time.perf_counter() - sent[0]


@pytest.mark.parametrize("options", [{"solver": "lbfgs"}, {"solver": "eg"}, {"solver": "bcfw", "loss": "hinge"}])
def test_ctrl_c_stops_a_tagger(options, rng):
    lengths = rng.integers(20, 60, size=400)
    x = [rng.normal(size=(n, 60)) for n in lengths]
    y = [rng.integers(0, 12, size=n).tolist() for n in lengths]
    model = SequenceTagger(C=100.0, tol=0.0, max_passes=1e6, random_state=0, **options)
    small = SequenceTagger(features="all").fit(X, Y)
    vars(model).update(
        {name: value for name, value in vars(small).items() if name.endswith("_") or name.startswith("_")}
    )
    before = dict(vars(model))
    assert interrupted_fit(model, x, y, 0.5) < 1.0
    assert vars(model) == before
    assert model.predict(X) == small.predict(X)


def test_ctrl_c_stops_a_classifier(rng):
    x, y = rng.normal(size=(4000, 100)), rng.integers(0, 20, size=4000)
    model = MaxentClassifier(tol=0.0, max_passes=1e6, solver="eg")
    assert interrupted_fit(model, x, y, 0.5) < 1.0
    assert vars(model) == vars(MaxentClassifier(tol=0.0, max_passes=1e6, solver="eg"))


def test_too_many_labels(monkeypatch):
    """Too many labels are refused by their number, before the labels are sorted."""
    monkeypatch.setattr(labels, "sorted_labels", None)  # sorting the labels would now fail
    with pytest.raises(ValueError, match="y has more than 50000 different labels"):
        SequenceTagger().fit([["a"]] * 50_001, [[k] for k in range(50_001)])


def test_labelled_examples_have_answers_and_weights_are_finite():
    model = MaxentClassifier().fit(np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match="y is None: labelled examples have answers"):
        model.labelled(np.eye(3), None)
    weights = model.weights_.copy()
    weights[1] = np.nan
    with pytest.raises(ValueError, match="weight 1 is nan: weights must be finite"):
        model.with_weights(weights)


def test_weights_that_are_not_numbers_are_refused():
    classifier = MaxentClassifier().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match="coef_: weight 0, 0 is nan: weights must be finite"):
        classifier.coef_ = np.array([[np.nan]])
    tagger = SequenceTagger(tol=0.1).fit([[["a"], ["b"]]], [["A", "B"]])
    with pytest.raises(ValueError, match="coef_: weight 1 is inf: weights must be finite"):
        tagger.coef_ = np.array([0.0, np.inf])
