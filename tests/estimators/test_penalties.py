"""`penalty` and `l1_ratio` mean the same for every estimator: they split the penalty's strength 1 / C."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import partwise
from partwise import (
    ConstituencyParser,
    DependencyParser,
    GraphLabeler,
    MaxentClassifier,
    RegularizationPathCV,
    SegmentTagger,
    SequenceTagger,
)
from partwise.datasets import make_treebank
from partwise.problem.losses import get_loss
from partwise.problem.penalties import L2, ElasticNet

WORDS = [[["a", "b"], ["c"]], [["c"], ["a", "d"]], [["b"]]]
BANK = make_treebank(12, 0)
TOKENS = [list(zip(*rows, strict=True)) for rows in zip(BANK.words, BANK.tags, strict=True)]
ARCS = [list(zip(*rows, strict=True)) for rows in zip(BANK.heads, BANK.labels, strict=True)]
TREES = [
    ("S", ("VP", ("V", "ate"), ("NP", ("NP", ("N", "dogs")), ("PP", ("P", "with"), ("NP", ("N", "cats")))))),
    ("S", ("VP", ("VP", ("V", "ate"), ("NP", ("N", "dogs"))), ("PP", ("P", "with"), ("NP", ("N", "cats"))))),
    ("S", ("VP", ("VP", ("V", "saw"), ("NP", ("N", "men"))), ("PP", ("P", "in"), ("NP", ("N", "parks"))))),
]
TREE_WORDS = [["ate", "dogs", "with", "cats"], ["saw", "dogs"]]
CASES = {
    "classifier": (MaxentClassifier(fit_intercept=False), np.eye(6), list("abcabc")),
    "tagger": (SequenceTagger(), WORDS, [["X", "Y"], ["Y", "X"], ["X"]]),
    "second order": (SequenceTagger(order=2), WORDS, [["X", "Y"], ["Y", "X"], ["X"]]),
    "maxent tagger": (SequenceTagger(model="maxent"), WORDS, [["X", "Y"], ["Y", "X"], ["X"]]),
    "segments": (SegmentTagger(), WORDS, [["B-X", "I-X"], ["O", "B-Y"], ["B-X"]]),
    "parser": (DependencyParser(C=1.0, labels=False), TOKENS, ARCS),
    "phrases": (ConstituencyParser(), None, TREES),
    "graphs": (
        GraphLabeler(),
        [(row, [(0, 1)] if len(row) > 1 else []) for row in WORDS],
        [["X", "Y"], ["Y", "X"], ["X"]],
    ),
}


def given(name):
    estimator, X, y = CASES[name]
    return (clone(estimator), y, None) if X is None else (clone(estimator), X, y)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, L2(2.0)),
        ({"penalty": "l1"}, ElasticNet(2.0, 0.0)),
        ({"penalty": "elasticnet", "l1_ratio": 0.25}, ElasticNet(0.5, 1.5)),
        ({"penalty": "elasticnet", "l1_ratio": 0.0}, L2(2.0)),
        ({"penalty": "l2", "l1_ratio": 0.7}, L2(2.0)),
    ],
)
def test_penalties_are_shares_of_the_strength(name, options, expected):
    estimator, X, y = given(name)
    estimator.set_params(C=0.5, **options)
    assert estimator._prepare_fit(X, y, None).problem.penalty == expected
    copied = clone(estimator)
    assert {key: copied.get_params()[key] for key in options} == options


def test_two_labels_have_one_vector_and_its_penalty():
    """Two labels under an l1 term share one weight vector, whose penalty is the requested one."""
    model = MaxentClassifier(C=0.5, penalty="elasticnet", l1_ratio=0.25)
    problem = model._prepare_fit(np.eye(4), list("abab"), None).problem
    assert problem.penalty == ElasticNet(0.5, 1.5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l0"}, "penalty must be one of 'l2', 'l1', 'elasticnet'"),
        ({"penalty": None}, "penalty must be one of"),
        ({"penalty": "elasticnet", "l1_ratio": 1.5}, "l1_ratio must be at most 1"),
        ({"penalty": "elasticnet", "l1_ratio": -0.5}, "l1_ratio must be a finite number"),
        ({"penalty": "elasticnet", "l1_ratio": float("nan")}, "l1_ratio must be a finite number"),
        ({"penalty": "l1", "loss": "hinge"}, "penalty='l1' is not available with loss='hinge'"),
        ({"penalty": "elasticnet", "loss": "squared-hinge"}, "not available with loss='squared-hinge'"),
    ],
)
def test_refusals_before_any_work(name, options, message):
    estimator, _, _ = given(name)
    with pytest.raises(ValueError, match=message):
        estimator.set_params(**options).fit(object(), object())  # refused before X and y are looked at


def test_a_kernel_has_no_weights_to_be_zero():
    with pytest.raises(ValueError, match="penalty='l1' is not available with a kernel"):
        SequenceTagger(kernel="rbf", penalty="l1").fit(object(), object())


def test_zeros_of_a_maxent_tagger():
    rng = np.random.default_rng(0)
    X = [[[f"w{rng.integers(30)}", "one"] for _ in range(5)] for _ in range(40)]
    y = [["X" if names[0] in ("w1", "w2", "w3") else "Y" for names in row] for row in X]
    tagger = SequenceTagger(model="maxent", penalty="l1", C=0.5, tol=1e-6).fit(X, y)
    result = tagger.result_
    assert result.converged
    assert (result.l1, result.l2) == (2.0, 0.0)
    assert 0 < result.n_nonzero == np.count_nonzero(tagger.coef_) < 30
    assert tagger.score(X, y) > 0.95


def test_names_of_arcs_have_the_same_shares():
    from partwise.models.dependencies.model import TreeModel

    parser = DependencyParser(C=0.5, label_C=0.25, penalty="elasticnet", l1_ratio=0.5)
    model = parser._make_model()
    assert isinstance(model, TreeModel)
    model.learn(TOKENS, ARCS, None, parser._check_training())
    assert (model.label_result.l1, model.label_result.l2) == (2.0, 2.0)
    assert model.label_result.converged
    assert 0 < model.label_result.n_nonzero < 0.5 * model.label_result.weights.size


@pytest.mark.parametrize("labels", ["abc", "ab"])
def test_a_path_over_l1(labels):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)), [labels[k % len(labels)] for k in range(60)]
    model = MaxentClassifier(C=2.0, tol=1e-8)
    path = model.fit_l1_path(0.25, X, y, points=5)
    assert not path[0].weights.any()
    assert path[-1].l1 == 0.25
    np.testing.assert_allclose(np.diff(np.log([result.l1 for result in path])), np.log(path[1].l1 / path[0].l1))
    assert all(result.converged for result in path)
    assert model.get_params()["penalty"] == "elasticnet"
    alone = clone(model).fit(X, y)  # the estimator's parameters are those of the last point
    assert (alone.result_.l1, alone.result_.l2) == (path[-1].l1, path[-1].l2)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-3)
    assert not model.use(path[0]).coef_.any()
    with pytest.raises(ValueError, match="l1_min"):
        model.fit_l1_path(0.0, X, y)
    with pytest.raises(ValueError, match=r"l1_min = .* must be at most l1_max"):
        model.fit_l1_path(2.0, X, y, l1_max=1.0)


def test_the_best_strength_under_an_l1_penalty():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)), ["ab"[k % 2] for k in range(60)]
    found = RegularizationPathCV(MaxentClassifier(penalty="l1", tol=1e-6), Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    assert [result.l1 for result in found.results_] == pytest.approx([1 / C for C in found.Cs_[: len(found.results_)]])
    assert found.gaps_.max() <= 1e-6


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_every_estimator_trains(name, penalty, tmp_path):
    estimator, X, y = given(name)
    C = 20.0 if name == "phrases" else 2.0  # the default C is too strong for three trees
    estimator.set_params(penalty=penalty, C=C, tol=1e-2)
    estimator.fit(X, y)
    assert estimator.result_.converged
    assert estimator.result_.l1 == (1 / C if penalty == "l1" else 0.5 / C)
    assert 0 < np.count_nonzero(estimator.coef_) < estimator.coef_.size
    estimator.save(tmp_path / "m.pw")
    inputs = TREE_WORDS if X is TREES else X
    assert list(partwise.load(tmp_path / "m.pw").predict(inputs)) == list(estimator.predict(inputs))


def test_a_maximum_without_costs_is_refused():
    loss = get_loss("log", temperature=0.0)
    with pytest.raises(ValueError, match="at temperature 0 needs a cost_scale above 0"):
        MaxentClassifier(loss=loss).fit(np.eye(3), [0, 1, 2])


def test_a_path_that_begins_below_its_end_is_refused():
    with pytest.raises(ValueError, match=r"l1_min = 1e\+09 must be at most .* from which on all weights are zero"):
        MaxentClassifier().fit_l1_path(1e9, np.eye(3), [0, 1, 2])
