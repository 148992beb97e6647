"""The maxent tagger: the optimisation problem, the beam search, bad input."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import log_softmax

from partwise import MaxentClassifier, SequenceTagger
from partwise.structures import HistoryChain


def sentences(rng, n=40, n_words=12, n_tags=3):
    """Make sentences in which an odd word has its own tag, and an even word the tag after the previous one."""
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 8))
        words = rng.integers(0, n_words, length)
        tags, last = [], 0
        for word in words:
            last = int(word // 2 % n_tags if word % 2 else (last + 1) % n_tags)
            tags.append("ABC"[last])
        X.append([[f"w={word}", f"odd={word % 2}"] for word in words])
        y.append(tags)
    return X, y


def beam_search(scores, after, lengths, history, beam_width):
    n_labels = scores.shape[1]
    tags = n_labels + 1
    first, pairs, second = after, np.empty(0, dtype=np.int64), np.empty(0)
    if history == 2:
        first, pairs, second = np.zeros((tags, n_labels)), np.arange(tags * tags), after.ravel()
    structure = HistoryChain(lengths[lengths > 0], n_labels, history, first.ravel(), pairs, second, beam_width)
    rows = np.zeros((len(scores), structure.width))
    rows[:, :n_labels] = scores
    ends = structure.slot_offsets()
    found = [structure.maximize(i, rows.ravel()[ends[i] : ends[i + 1]])[1] for i in range(structure.num_examples)]
    return np.concatenate(found) % structure.width


def total(scores, after, tags, history):
    """Return log p of one sequence's tags, summed over positions."""
    none = scores.shape[1]
    padded = [none, none, *tags]
    value = 0.0
    for t, tag in enumerate(tags):
        one, two = padded[t + 1], padded[t]
        state = one if history == 1 else two * (none + 1) + one
        value += log_softmax(scores[t] + after[state])[tag]
    return value


@pytest.mark.parametrize("history", [1, 2])
def test_a_full_beam_finds_the_best_of_all_labellings(rng, history):
    n_labels = 3
    lengths = np.array([4, 1, 0, 3, 5, 2])
    scores = rng.normal(size=(lengths.sum(), n_labels))
    after = 2.0 * rng.normal(size=((n_labels + 1) ** history, n_labels))
    full = (n_labels + 1) ** history
    wide = beam_search(scores, after, lengths, history, full)
    wider = beam_search(scores, after, lengths, history, 10 * full)
    np.testing.assert_array_equal(wide, wider)
    narrow = [beam_search(scores, after, lengths, history, k) for k in (1, 2, 3)]
    at = 0
    for length in lengths.tolist():
        part = slice(at, at + length)
        values = {tags: total(scores[part], after, tags, history) for tags in product(range(n_labels), repeat=length)}
        best = max(values.values())
        assert values[tuple(wide[part].tolist())] == pytest.approx(best, abs=1e-12)
        for found in narrow:
            assert values[tuple(found[part].tolist())] <= best + 1e-12
        at += length


def test_a_beam_of_one_is_greedy(rng):
    scores, after = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    found = beam_search(scores, after, np.array([6]), 1, 1)
    last = 4
    for t in range(6):
        last = int(np.argmax(scores[t] + after[last]))
        assert found[t] == last


@pytest.mark.parametrize("history", [1, 2])
@pytest.mark.parametrize("features", ["observed", "all"])
def test_it_is_a_classifier_of_positions(rng, history, features):
    """A MaxentClassifier on positions with the previous tags as attributes has the same weights."""
    X, y = sentences(rng)
    tagger = SequenceTagger(model="maxent", history=history, features="all", beam_width=None).fit(X, y)
    rows, labels = [], []
    for words, tags in zip(X, y, strict=True):
        before = ["none", "none", *tags]
        for t, word in enumerate(words):
            extra = [f"one={before[t + 1]}"] + ([f"two={before[t]}|{before[t + 1]}"] if history == 2 else [])
            rows.append([*word, *extra])
            labels.append(tags[t])
    names = sorted({name for row in rows for name in row})
    table = np.array([[row.count(name) for name in names] for row in rows], dtype=float)
    other = MaxentClassifier(fit_intercept=False).fit(table, labels)
    assert tagger.result_.primal == pytest.approx(other.result_.primal, rel=1e-9)
    weights = tagger.state_features_
    for (name, label), value in weights.items():
        mine = other.coef_[list(other.classes_).index(label), names.index(name)]
        assert value == pytest.approx(mine, abs=1e-6)
    links = tagger.transition_features_
    assert links["A", "B"] == pytest.approx(other.coef_[1, names.index("one=A")], abs=1e-6)
    assert links[None, "B"] == pytest.approx(other.coef_[1, names.index("one=none")], abs=1e-6)
    if history == 2 and "two=A|C" in names:
        assert links["A", "C", "B"] == pytest.approx(other.coef_[1, names.index("two=A|C")], abs=1e-6)
    if features == "observed":
        few = SequenceTagger(model="maxent", history=history).fit(X, y)
        assert len(few.state_features_) <= len(weights)
        assert few.score(X, y) > 0.6


def test_history_helps_and_sequences_of_weight_zero_are_absent(rng):
    X, y = sentences(rng, n=150)
    tagger = SequenceTagger(model="maxent", C=10.0).fit(X, y)
    assert tagger.score(X, y) > 0.75
    weight = np.ones(150)
    weight[:30] = 0.0
    one = SequenceTagger(model="maxent", beam_width=None).fit(X, y, sample_weight=weight)
    two = SequenceTagger(model="maxent", beam_width=None).fit(X[30:], y[30:])
    assert one.predict(X) == two.predict(X)
    assert one.predict([[], X[0]])[0] == []
    assert one.predict_single(X[3]) == one.predict([X[3]])[0]
    shapes = [scores.shape for scores in one.decision_function([X[0], [], X[1]])]
    assert shapes == [(len(X[0]), 3), (0, 3), (len(X[1]), 3)]
    assert one.boundary_features_ == {}


def test_arrays_and_two_labels(rng):
    X = [rng.normal(size=(int(rng.integers(1, 6)), 4)) for _ in range(30)]
    y = [[int(row[0] > 0) for row in x] for x in X]
    tagger = SequenceTagger(model="maxent", features="all").fit(X, y)
    assert tagger.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "model='maxent' has loss='log' only"),
        ({"ends": True}, "ends is not available with model='maxent'"),
        ({"transition_features": "all"}, "transition_features is not available"),
        ({"transitions": "all"}, "transitions is not available"),
        ({"history": 3}, "history must be one of 1, 2"),
        ({"beam_width": 0}, "beam_width must be None or an integer >= 1"),
        ({"model": "hmm"}, "model must be one of 'crf', 'maxent'"),
    ],
)
def test_bad_options(rng, options, message):
    with pytest.raises(ValueError, match=message):
        SequenceTagger(**({"model": "maxent"} | options)).fit(*sentences(rng))
