"""The maxent tagger's marginals, k best labellings, constraints and log-probabilities against enumeration."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from partwise import SequenceTagger
from partwise.cli.output import peak_memory


@pytest.fixture(scope="module", params=[1, 2])
def tagger(request, sentences):
    return SequenceTagger(model="maxent", history=request.param, beam_width=None).fit(sentences.dicts, sentences.y)


def labellings(tagger, tokens):
    """Return {labels: log p} of all labellings, from the scores of positions and the named weights of tags."""
    links, classes = tagger.transition_features_, tagger.classes_.tolist()
    base = tagger.decision_function([tokens])[0]
    found = {}
    for labels in product(classes, repeat=len(tokens)):
        padded = [None, None, *labels]
        value = 0.0
        for t in range(len(tokens)):
            row = [
                base[t, k] + links.get((padded[t + 1], c), 0.0) + links.get((padded[t], padded[t + 1], c), 0.0)
                for k, c in enumerate(classes)
            ]
            value += log_softmax(row)[classes.index(labels[t])]
        found[labels] = value
    return found


def test_estimator(tagger, fresh_sentences):
    X, classes = fresh_sentences.dicts, tagger.classes_.tolist()
    several = tagger.predict_k_best(X, 5)
    likely = tagger.predict_k_best(X, 5, probabilities=True)
    arrays, dicts = tagger.predict_marginals(X, output="array"), tagger.predict_marginals(X)
    best = tagger.predict(X)
    for i, tokens in enumerate(X):
        values = labellings(tagger, tokens)
        order = sorted(values.values(), reverse=True)[:5]
        np.testing.assert_allclose([value for _, value in several[i]], order, atol=1e-10)
        np.testing.assert_allclose([value for _, value in likely[i]], np.exp(order), atol=1e-10)
        assert several[i][0][0] == best[i]
        expected = np.zeros((len(tokens), len(classes)))
        for labels, value in values.items():
            for t, label in enumerate(labels):
                expected[t, classes.index(label)] += np.exp(value)
        np.testing.assert_allclose(arrays[i], expected, atol=1e-10)
        assert dicts[i] == [dict(zip(classes, row, strict=True)) for row in arrays[i].tolist()]
        answers = [labels for labels, _ in several[i]]
        logs = tagger.log_probability([tokens] * len(answers), answers)
        np.testing.assert_allclose(logs, order, atol=1e-10)


def test_estimator_under_constraints(tagger, fresh_sentences):
    X, classes = fresh_sentences.dicts, tagger.classes_.tolist()
    pairs = np.ones((len(classes), len(classes)), dtype=bool)
    pairs[0, 1] = pairs[1, 1] = False
    allowed = [[None] * len(tokens) for tokens in X]
    allowed[0][0] = [classes[0], classes[2]]
    options = {"allowed": allowed, "allowed_transitions": pairs}
    best = tagger.predict(X, **options)
    likely = tagger.predict_k_best(X, 6, probabilities=True, **options)
    marginals = tagger.predict_marginals(X, output="array", **options)
    for i, tokens in enumerate(X):
        values = {
            labels: value
            for labels, value in labellings(tagger, tokens).items()
            if all(pairs[classes.index(a), classes.index(b)] for a, b in pairwise(labels))
            and (i > 0 or labels[0] in allowed[0][0])
        }
        total = logsumexp(list(values.values()))
        order = np.exp(np.sort(list(values.values()))[::-1][:6] - total)
        np.testing.assert_allclose([p for _, p in likely[i]], order, atol=1e-10)
        assert best[i] == likely[i][0][0]
        p = sum(np.exp(value - total) for labels, value in values.items() if labels[-1] == classes[1])
        assert marginals[i][-1, 1] == pytest.approx(p, abs=1e-10)


def test_order_subsets_and_threads_change_nothing(tagger, fresh_sentences, rng):
    X = fresh_sentences.dicts
    whole = tagger.predict_marginals(X, output="array")
    order = rng.permutation(len(X))
    shuffled = tagger.predict_marginals([X[i] for i in order], output="array")
    for j, i in enumerate(order.tolist()):
        np.testing.assert_allclose(shuffled[j], whole[i], atol=1e-14)
        np.testing.assert_allclose(tagger.predict_marginals([X[i]], output="array")[0], whole[i], atol=1e-14)
    assert tagger.predict([X[i] for i in order]) == [tagger.predict_single(X[i]) for i in order]
    tagger.set_params(n_jobs=2)
    for one, two in zip(tagger.predict_marginals(X, output="array"), whole, strict=True):
        np.testing.assert_array_equal(one, two)
    tagger.set_params(n_jobs=None)


def test_empty_and_unknown(tagger, fresh_sentences):
    tokens = fresh_sentences.dicts[0]
    assert tagger.predict_marginals([]) == []
    assert tagger.predict_k_best([[]], 2) == [[([], 0.0)]]
    assert tagger.predict_k_best([[]], 2, probabilities=True) == [[([], 1.0)]]
    assert tagger.predict([[]], allowed=[None]) == [[]]
    empty, full = tagger.predict_marginals([[], tokens], output="array", allowed=[None, None])
    assert empty.shape == (0, len(tagger.classes_))
    np.testing.assert_array_equal(full, tagger.predict_marginals([tokens], output="array")[0])
    wrong = ["no such label"] * len(tokens)
    right = tagger.predict_single(tokens)
    assert tagger.log_probability([tokens, [], tokens], [wrong, [], right]).tolist()[:2] == [-np.inf, 0.0]


@pytest.mark.parametrize("options", [{}, {"ends": True}, {"transition_features": "all"}, {"loss": "softmax-margin"}])
def test_log_probability_of_a_crf(options, sentences, fresh_sentences):
    """log_probability of a CRF gives the probabilities that predict_k_best reports."""
    tagger = SequenceTagger(**options).fit(sentences.dicts, sentences.y)
    for tokens, answers in zip(
        fresh_sentences.dicts, tagger.predict_k_best(fresh_sentences.dicts, 4, probabilities=True), strict=True
    ):
        logs = tagger.log_probability([tokens] * len(answers), [labels for labels, _ in answers])
        np.testing.assert_allclose(np.exp(logs), [p for _, p in answers], atol=1e-12)
    assert not hasattr(SequenceTagger("hinge"), "log_probability")
    with pytest.raises(ValueError, match="sequence 0 has"):
        tagger.log_probability(fresh_sentences.dicts[:1], [[]])


def same_error(call, *taggers):
    """Check that all taggers raise the same error message."""
    messages = []
    for tagger in taggers:
        with pytest.raises(ValueError) as caught:
            call(tagger)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_bad_input_is_refused_as_by_a_crf(tagger, sentences, fresh_sentences):
    crf = SequenceTagger().fit(sentences.dicts, sentences.y)
    X = fresh_sentences.dicts[1:3]
    n, classes = len(tagger.classes_), tagger.classes_.tolist()
    nothing = np.zeros((n, n), dtype=bool)
    for method in ("predict", "predict_marginals"):
        for options in (
            {"allowed": [None]},
            {"allowed": [np.ones((1, 77), dtype=bool), None]},
            {"allowed": [[["rubbish"]] * len(X[0]), None]},
            {"allowed": [[[]] * len(X[0]), None]},
            {"allowed": [[classes[0]] * len(X[0]), None]},
            {"allowed_transitions": np.ones((n, n + 1), dtype=bool)},
            {"allowed_transitions": nothing},
        ):
            same_error(lambda model, m=method, o=options: getattr(model, m)(X, **o), tagger, crf)
    for k in (0, 1.5, True):
        same_error(lambda model, k=k: model.predict_k_best(X, k), tagger, crf)
    same_error(lambda model: model.predict_marginals(X, output="table"), tagger, crf)
    same_error(lambda model: model.log_probability(X, [[]]), tagger, crf)
    tagger.set_params(beam_width=0)
    with pytest.raises(ValueError, match="beam_width must be None or an integer >= 1"):
        tagger.predict_k_best(X, 2)
    tagger.set_params(beam_width=None)


def test_memory_of_many_labels():
    # Tables of all histories times all labels would have 8 million numbers; the model itself has a few hundred.
    n = 200
    X, y = [[[f"w{i % 7}"]] for i in range(n)], [[f"L{i}"] for i in range(n)]
    with pytest.warns(UserWarning, match="200 of them occur once"):
        tagger = SequenceTagger(model="maxent", random_state=0, max_passes=2, tol=0).fit(X, y)
    before = peak_memory()
    tagger.predict(X[:3])
    tagger.predict_k_best(X[:3], 2)
    tagger.log_probability(X[:3], y[:3])
    tagger.explain(X[0])
    assert peak_memory() - before < 30e6  # peak_memory counts the core's memory too
