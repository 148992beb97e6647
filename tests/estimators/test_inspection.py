"""Inspection: the largest weights, explanations that add up, and pruning of small weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

import partwise
from helpers.model_cases import TAGGERS, as_dicts, fitted_classifier, fitted_tagger, sequences
from partwise import MaxentClassifier, SequenceTagger
from partwise.models.inspection import choose_kept

WITH_WEIGHTS = [name for name, (_, options) in TAGGERS.items() if "kernel" not in options]


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_top_features_of_taggers(name):
    tagger = fitted_tagger(name).estimator
    top = tagger.top_features(3)
    states = tagger.state_features_
    for label in tagger.classes_.tolist():
        own = {attribute: weight for (attribute, other), weight in states.items() if other == label and weight}
        rows = top.labels[label]
        assert len(rows) == min(3, len(own))
        assert all(own[attribute] == weight for attribute, weight in rows)
        assert [abs(w) for _, w in rows] == sorted((abs(w) for w in own.values()), reverse=True)[: len(rows)]
    moves = tagger.transition_features_
    listed = {
        (pair if name is None else (name, *pair)): w for pair, rows in top.transitions.items() for name, w in rows
    }
    assert all(moves[key] == weight for key, weight in listed.items())
    largest = max(moves, key=lambda key: abs(moves[key]))
    assert listed[largest] == moves[largest]
    firsts = [abs(rows[0][1]) for rows in top.transitions.values()]
    assert firsts == sorted(firsts, reverse=True)
    groups = top.groups()
    assert set(groups) == {*map(str, tagger.classes_.tolist()), "transitions"}
    assert str(top).count("\n") > 5


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_explanations_of_taggers_add_up(name):
    case = fitted_tagger(name)
    for x in case.X:
        told = case.estimator.explain(x)
        (best, score), (second, other) = case.estimator.predict_k_best([x], 2)[0]
        assert (told.best, told.second) == (best, second)
        assert told.difference == pytest.approx(score - other, abs=1e-12)
        total = math.fsum(each.amount for each in told.contributions)
        assert total == pytest.approx(told.difference, rel=1e-12, abs=1e-12)
        sizes = [abs(each.amount) for each in told.contributions]
        assert sizes == sorted(sizes, reverse=True)
        for each in told.contributions:  # contributions are listed only where the two answers differ
            if each.kind == "attribute":
                assert (best[each.position], second[each.position]) == (each.best, each.second)
            assert each.best != each.second
        assert "difference of scores" in str(told)


def test_an_explanation_by_hand():
    arrays, y = sequences(0, 25, ["B", "I", "O"])
    tagger = SequenceTagger(transition_features="all", ends=True).fit(as_dicts(arrays), y)
    x = [{"c0": 2.0, "c3": 1.0}, {"c1": 1.0}, {"c0": 0.5}]
    told = tagger.explain(x)
    states, moves, bounds = tagger.state_features_, tagger.transition_features_, tagger.boundary_features_
    for each in told.contributions:
        if each.kind == "attribute":
            value = x[each.position][each.name]
            expected = value * (states.get((each.name, each.best), 0) - states.get((each.name, each.second), 0))
        elif each.kind == "transition":
            value = 1.0 if each.name is None else x[each.position][each.name]
            key = () if each.name is None else (each.name,)
            expected = value * (moves.get((*key, *each.best), 0) - moves.get((*key, *each.second), 0))
        else:
            expected = bounds[each.kind, each.best] - bounds[each.kind, each.second]
        assert each.amount == pytest.approx(expected, rel=1e-12)


def random_maxent_tagger(rng, history, beam_width, observed):
    """Return a maxent tagger with random weights, and sequences with values, unknown attributes and repetitions."""
    labels = ["B", "I", "O", "X"][: int(rng.integers(2, 5))]
    arrays, y = sequences(int(rng.integers(1 << 30)), 12, labels)
    features = "observed" if observed else "all"
    options = {"history": history, "beam_width": beam_width, "features": features}
    tagger = SequenceTagger(model="maxent", tol=0.1, **options).fit(as_dicts(arrays), y)
    tagger.coef_ = rng.normal(scale=3.0, size=len(tagger.coef_))
    X = [
        [{f"c{j}": float(rng.normal()) for j in rng.integers(0, 7, size=3).tolist()} for _ in range(length)]
        for length in rng.integers(1, 8, size=6).tolist()
    ]
    return tagger, X


@pytest.mark.parametrize("history", [1, 2])
@pytest.mark.parametrize("beam_width", [None, 1, 3])
@pytest.mark.parametrize("observed", [False, True])
def test_explanations_of_random_maxent_taggers(history, beam_width, observed, rng):
    for _ in range(4):
        tagger, X = random_maxent_tagger(rng, history, beam_width, observed)
        states, moves = tagger.state_features_, tagger.transition_features_
        for x in X:
            told = tagger.explain(x)
            assert [told.best, told.second] == [labels for labels, _ in tagger.predict_k_best([x], 2)[0]]
            logs = tagger.log_probability([x, x], [told.best, told.second])
            assert [told.best_score, told.second_score] == pytest.approx(logs.tolist(), abs=1e-9)
            assert told.difference >= 0
            total = math.fsum(each.amount for each in told.contributions)
            assert total == pytest.approx(logs[0] - logs[1], rel=0, abs=1e-9)
            # recompute each contribution by hand
            before = [[None] * history + labels for labels in (told.best, told.second)]
            for each in told.contributions:
                t = each.position
                if each.kind == "attribute":
                    weights = [states.get((each.name, label), 0.0) for label in (each.best, each.second)]
                    assert each.amount == pytest.approx(x[t][each.name] * (weights[0] - weights[1]), rel=1e-12)
                    continue
                windows = [tuple(labels[t : t + history + 1]) for labels in before]
                if each.kind == "transition":
                    n = len(each.best)
                    assert [each.best, each.second] == [window[-n:] for window in windows]
                    weights = [moves.get(key, 0.0) for key in (each.best, each.second)]
                    assert each.amount == pytest.approx(weights[0] - weights[1], rel=1e-12)
                    continue
                assert each.kind == "normaliser"
                assert [each.best, each.second] == [window[:-1] for window in windows]
                sums = [normaliser(tagger, x[t], window[:-1]) for window in windows]
                assert each.amount == pytest.approx(sums[1] - sums[0], abs=1e-9)


def normaliser(tagger, values, before):
    """Return log of the sum over labels of exp(score) given the tags before, from the named weights."""
    states, moves = tagger.state_features_, tagger.transition_features_
    scores = [
        sum(value * states.get((name, label), 0.0) for name, value in values.items())
        + sum(moves.get((*before[-n:], label), 0.0) for n in range(1, len(before) + 1))
        for label in tagger.classes_.tolist()
    ]
    return float(np.logaddexp.reduce(scores))


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"]])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_classifiers(labels, fit_intercept):
    case = fitted_classifier(labels, fit_intercept=fit_intercept)
    model = case.estimator
    scores = model.decision_function(case.X)
    for i, x in enumerate(case.X):
        for form in (x, x.reshape(1, -1), sparse.csr_array(x.reshape(1, -1))):
            told = model.explain(form)
            assert told.best == model.predict(case.X[i : i + 1])[0]
            two = [abs(scores[i]), 0.0] if len(labels) == 2 else sorted(scores[i], reverse=True)[:2]
            assert told.difference == pytest.approx(two[0] - two[1], rel=1e-12)
            assert math.fsum(each.amount for each in told.contributions) == pytest.approx(told.difference, rel=1e-12)
    top = model.top_features(2).labels
    assert list(top) == labels
    row = model.coef_[-1] / (2 if len(labels) == 2 else 1)
    expected = sorted(enumerate(row.tolist()), key=lambda pair: -abs(pair[1]))[:2]
    assert top[labels[-1]] == expected
    model.feature_names_in_ = np.array(["p", "q", "r", "s"], dtype=object)
    assert model.top_features(1).labels[labels[-1]][0][0] == "pqrs"[expected[0][0]]


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_pruned_taggers(name, tmp_path):
    case = fitted_tagger(name)
    tagger = case.estimator
    before = {**tagger.state_features_, **tagger.transition_features_}
    gold = tagger.predict(case.X)
    told = tagger.prune(0.2, X=case.X, y=gold)
    after = {**tagger.state_features_, **tagger.transition_features_}
    assert {key: w for key, w in after.items() if w} == {key: w for key, w in before.items() if abs(w) > 0.2}
    assert told.weights_before == len(before)
    assert told.weights_after == sum(abs(w) > 0.2 for w in before.values())
    assert told.largest_dropped == max(abs(w) for w in before.values() if abs(w) <= 0.2)
    assert told.score_before == 1.0
    assert told.score_after == tagger.score(case.X, gold) > 0.6
    assert tagger.result_.status == "no certificate"
    assert math.isnan(tagger.result_.primal)
    tagger.save(tmp_path / "pruned.pw")
    loaded = partwise.load(tmp_path / "pruned.pw")
    assert loaded.predict(case.X) == tagger.predict(case.X)
    assert loaded.state_features_ == tagger.state_features_
    told = loaded.explain(case.X[0])
    assert math.fsum(each.amount for each in told.contributions) == pytest.approx(told.difference, abs=1e-12)


def test_names_without_weights_are_forgotten():
    tagger = fitted_tagger("names").estimator
    n = len(tagger.attributes_)
    tagger.prune(keep=10)
    used = {attribute for attribute, _ in tagger.state_features_}
    assert set(tagger.attributes_) == used
    assert len(used) < n
    assert sum(w != 0 for w in [*tagger.state_features_.values(), *tagger.transition_features_.values()]) == 10
    tagger.prune(keep=0)
    assert tagger.attributes_ == []
    case = fitted_tagger("names")
    assert len(tagger.predict(case.X)) == len(case.X)


@pytest.mark.parametrize("options", [{}, {"features": "all"}, {"transition_features": "all"}, {"model": "maxent"}])
def test_pruned_files_are_smaller(options, tmp_path):
    rng = np.random.default_rng(0)
    X = [[[f"word{k}" for k in rng.integers(0, 900, size=6)] for _ in range(5)] for _ in range(80)]
    y = [["B" if int(names[0][4:]) % 2 else "O" for names in x] for x in X]
    tagger = SequenceTagger(tol=1e-2, **options).fit(X, y)
    tagger.save(tmp_path / "whole.pw")
    told = tagger.prune(keep=0.1, X=X, y=y)
    tagger.save(tmp_path / "pruned.pw")
    assert told.weights_after == round(0.1 * told.weights_before)
    assert (tmp_path / "pruned.pw").stat().st_size < 0.5 * (tmp_path / "whole.pw").stat().st_size
    assert partwise.load(tmp_path / "pruned.pw").score(X, y) == told.score_after


def test_pruning_with_keep_1_changes_nothing():
    case = fitted_tagger("dicts, conditioned")
    expected = case.estimator.predict(case.X)
    told = case.estimator.prune(keep=1.0)
    assert told.largest_dropped == 0.0
    assert case.estimator.predict(case.X) == expected


def test_pruned_kernels(tmp_path):
    case = fitted_tagger("rbf")
    gold = case.estimator.predict(case.X)
    told = case.estimator.prune(0.3, X=case.X, y=gold)
    assert told.weights_after < told.weights_before
    assert told.score_after > 0.5
    case.estimator.save(tmp_path / "m.pw")
    assert partwise.load(tmp_path / "m.pw").predict(case.X) == case.estimator.predict(case.X)
    with pytest.raises(ValueError, match="threshold"):
        case.estimator.prune(keep=3)


def test_pruned_classifiers(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 1500))
    y = np.argmax(X[:, :3], axis=1)
    model = MaxentClassifier(C=0.1).fit(X, y)
    model.save(tmp_path / "whole.pw")
    weights = np.sort(np.abs(model.coef_.ravel()))
    told = model.prune(keep=0.1, X=X, y=y)
    assert told.weights_after == np.count_nonzero(model.coef_) == 450
    assert np.abs(model.coef_[model.coef_ != 0]).min() == weights[-450]
    assert told.largest_dropped == weights[-451]
    model.save(tmp_path / "pruned.pw")
    assert (tmp_path / "pruned.pw").stat().st_size < 0.4 * (tmp_path / "whole.pw").stat().st_size
    loaded = partwise.load(tmp_path / "pruned.pw")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.score(X, y) == told.score_after
    model.prune(keep=0)
    model.save(tmp_path / "none.pw")
    assert not partwise.load(tmp_path / "none.pw").coef_.any()


def test_threshold_of_pruning():
    weights = np.array([0.5, -2.0, 0.0, 1.0, -1.0])
    assert choose_kept(weights, 1.0, None).tolist() == [False, True, False, False, False]
    assert choose_kept(weights, 0.0, None).tolist() == [True, True, False, True, True]
    assert choose_kept(weights, None, 2).tolist() == [False, True, False, True, False]
    assert choose_kept(weights, None, 0.6).tolist() == [False, True, False, True, True]
    assert choose_kept(weights, None, 99).tolist() == [True, True, False, True, True]
    for threshold, keep in (
        (None, None),
        (1.0, 2),
        (-1.0, None),
        (math.nan, None),
        (None, -1),
        (None, 1.5),
        (None, True),
    ):
        with pytest.raises(ValueError):
            choose_kept(weights, threshold, keep)


def test_refusals():
    tagger = fitted_tagger("names").estimator
    for wrong in (
        lambda: tagger.top_features(0),
        lambda: tagger.explain([]),
        lambda: tagger.prune(0.1, X=[[["a"]]]),
        lambda: fitted_tagger("maxent").estimator.explain([]),
        lambda: fitted_tagger("maxent").estimator.set_params(beam_width=0).explain([["a"]]),
        lambda: fitted_tagger("rbf").estimator.explain(np.zeros((1, 5))),
        lambda: fitted_classifier(["a", "b"]).estimator.explain(np.zeros((2, 4))),
        lambda: fitted_classifier(["a", "b"]).estimator.explain(np.zeros(3)),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(AttributeError, match="kernel"):
        fitted_tagger("rbf").estimator.top_features()
