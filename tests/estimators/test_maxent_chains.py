"""The maxent tagger's marginals, k best labellings, constraints and log-probabilities, against enumeration."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from partwise import SequenceTagger
from partwise._core import Chain, stacked_products
from partwise.estimators import local_chains
from partwise.estimators.local_chains import HistoryScores, LocalChains, LogProduct, Masks
from partwise.estimators.local_search import _largest, best_labels, k_best_labels

LENGTHS = np.array([4, 1, 3, 5, 2, 2])


def log_p(scores, after, tags, history):
    """log p of one sequence's tags, position by position."""
    none = scores.shape[1]
    padded = [none, none, *tags]
    value = 0.0
    for t, tag in enumerate(tags):
        state = padded[t + 1] if history == 1 else padded[t] * (none + 1) + padded[t + 1]
        value += log_softmax(scores[t] + after[state])[tag]
    return value


def enumerate_all(chains):
    """For each sequence {labelling: log p} of those that the constraints allow."""
    at = 0
    for length in chains.lengths.tolist():
        part = slice(at, at + length)
        found = {}
        for tags in product(range(chains.n_labels), repeat=length):
            if chains.masks is not None and not (
                all(chains.masks.labels[at + t, tag] for t, tag in enumerate(tags))
                and all(chains.masks.follow[pair] for pair in pairwise(tags))
            ):
                continue
            found[tags] = log_p(chains.scores[part], chains.after, tags, chains.history)
        yield part, found
        at += length


def make_chains(rng, history, masked, n_labels=3, lengths=LENGTHS, size=2.0):
    scores = size * rng.normal(size=(lengths.sum(), n_labels))
    after = size * rng.normal(size=((n_labels + 1) ** history, n_labels))
    masks = None
    if masked:
        while True:
            masks = Masks(rng.random(scores.shape) < 0.8, rng.random((n_labels, n_labels)) < 0.8)
            chains = LocalChains(scores, after, lengths, history, masks)
            if all(found for _, found in enumerate_all(chains)):
                break
    return LocalChains(scores, after, lengths, history, masks)


CASES = pytest.mark.parametrize(("history", "masked"), [(1, False), (2, False), (1, True), (2, True)])


@CASES
@pytest.mark.parametrize("size", [0.5, 3.0, 300.0])
def test_sums_are_those_of_enumeration(rng, history, masked, size):
    """Also where weights are so large that sums of exponentials lose all of their terms."""
    for _ in range(5):
        chains = make_chains(rng, history, masked, size=size)
        marginals, constants = chains.sums()
        for i, (part, found) in enumerate(enumerate_all(chains)):
            total = logsumexp(list(found.values()))
            assert constants[i] == pytest.approx(total, rel=1e-12, abs=1e-10)
            expected = np.zeros_like(marginals[part])
            for tags, value in found.items():
                expected[np.arange(len(tags)), tags] += np.exp(value - total)
            np.testing.assert_allclose(marginals[part], expected, atol=1e-9 if size > 100 else 1e-12)


def test_a_constraint_of_no_probability_to_speak_of(rng):
    """Conditioning on what has log p of -2000 and less: no zero divided by zero."""
    scores = np.zeros((4, 3))
    scores[:, 0] = 1000.0
    scores[:, 2] = -500.0
    masks = Masks(np.ones((4, 3), dtype=bool), np.ones((3, 3), dtype=bool))
    masks.labels[:, 0] = False
    masks.follow[1, 1] = masks.follow[2, 2] = False
    chains = LocalChains(scores, rng.normal(size=(16, 3)), np.array([4]), 2, masks)
    ((_, found),) = enumerate_all(chains)
    assert len(found) == 2
    marginals, (constant,) = chains.sums()
    assert constant == pytest.approx(logsumexp(list(found.values())), rel=1e-13)
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, atol=1e-12)
    (first, last) = sorted(found, key=found.get)
    assert marginals[0, first[0]] == pytest.approx(1 / (1 + np.exp(found[last] - found[first])), rel=1e-9)


def test_log_products_mend_what_is_lost(rng):
    x, table = 1000 * rng.normal(size=(6, 2, 4)), 1000 * rng.normal(size=(2, 4, 5))
    x[0, 0], table[1, :, 2] = -np.inf, -np.inf
    x[1, 0, :2], table[0, 2:, 3] = -np.inf, -np.inf
    expected = logsumexp(x[:, :, :, None] + table, axis=2)
    np.testing.assert_allclose(LogProduct(table)(x), expected, rtol=1e-12)
    assert np.isneginf(expected[1, 0, 3])


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (200, 3, 5, 7), (70, 1, 300, 33), (0, 2, 3, 4)])
def test_stacked_products(rng, shape):
    n, stack, inner, columns = shape
    left, right = rng.normal(size=(n, stack, inner)), rng.normal(size=(stack, inner, columns))
    found = stacked_products(left, right)
    np.testing.assert_allclose(found, np.einsum("nai,aim->nam", left, right), atol=1e-12)
    np.testing.assert_array_equal(stacked_products(left, right, 3), found)
    for i in range(n):  # the same bits for a row whatever the others are
        np.testing.assert_array_equal(stacked_products(left[i : i + 1].copy(), right), found[i : i + 1])
    with pytest.raises(ValueError, match="shapes that do not fit"):
        stacked_products(left, rng.normal(size=(stack, inner + 1, columns)))


@CASES
@pytest.mark.parametrize("k", [1, 2, 7, 1000])
def test_a_full_beam_finds_the_k_best(rng, history, masked, k):
    chains = make_chains(rng, history, masked)
    for (_, values), ranked in zip(enumerate_all(chains), k_best_labels(chains, None, k), strict=True):
        order = sorted(values.values(), reverse=True)[:k]
        np.testing.assert_allclose([value for _, value in ranked], order, atol=1e-11)
        assert len({tuple(tags.tolist()) for tags, _ in ranked}) == len(order)
        for tags, value in ranked:
            assert values[tuple(tags.tolist())] == pytest.approx(value, abs=1e-11)


@CASES
@pytest.mark.parametrize("beam_width", [1, 2, 3])
def test_a_narrow_beam_gives_k_allowed_labellings(rng, history, masked, beam_width):
    chains = make_chains(rng, history, masked)
    best = best_labels(chains, beam_width)
    for k in (1, 2, 5):
        found = k_best_labels(chains, beam_width, k)
        for (part, values), ranked in zip(enumerate_all(chains), found, strict=True):
            assert tuple(best[part].tolist()) in values
            assert len(ranked) == min(k, len(values))
            got = [value for _, value in ranked]
            assert got == sorted(got, reverse=True)
            assert len({tuple(tags.tolist()) for tags, _ in ranked}) == len(ranked)
            for (tags, value), bound in zip(ranked, sorted(values.values(), reverse=True), strict=False):
                assert values[tuple(tags.tolist())] == pytest.approx(value, abs=1e-11)
                assert value <= bound + 1e-11
            if k <= beam_width:
                np.testing.assert_array_equal(ranked[0][0], best[part])


@pytest.mark.parametrize("n", [1, 7, 60])
def test_ties_go_to_the_lowest_columns(rng, n):
    for count in (1, 2, n // 2 + 1, n):
        values = rng.integers(0, 3, size=(50, n)).astype(float)
        values[values == 0] = -np.inf
        expected = np.argsort(-values, axis=1, kind="stable")[:, :count]
        np.testing.assert_array_equal(_largest(values, count), expected)


@pytest.mark.parametrize("history", [1, 2])
def test_more_labellings_asked_for_than_there_are(rng, history):
    """Neither time nor memory for what cannot be: 10^12 numbers would not fit anywhere."""
    chains = make_chains(rng, history, False)
    assert [len(found) for found in k_best_labels(chains, 2, 10**12)] == (3**LENGTHS).tolist()


def test_a_narrow_beam_does_not_run_into_a_dead_end():
    """The best first tag has no successor: a greedy search must not take it."""
    scores = np.array([[5.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    masks = Masks(np.ones((3, 3), dtype=bool), np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool))
    masks.labels[2, 0] = False
    chains = LocalChains(scores, np.zeros((4, 3)), np.array([3]), 1, masks)
    assert best_labels(chains, 1)[2] == 1
    assert best_labels(chains, 1)[0] != 0


@pytest.mark.parametrize("masked", [False, True])
def test_one_tag_of_history_is_a_chain(rng, masked):
    """The chain's own inference on log-probabilities: an independent implementation of all of it."""
    chains = make_chains(rng, 1, masked)
    structure = Chain(LENGTHS, 3, tied=False)
    marginals, constants = chains.sums()
    several = k_best_labels(chains, None, 4)
    at = 0
    for i, length in enumerate(LENGTHS.tolist()):
        logs = log_softmax(chains.scores[at : at + length, None, :] + chains.after, axis=2)
        slots = np.zeros(structure.num_slots(i))
        width = structure.width
        slots[:3] = logs[0, -1]
        edges = slots[length * width :].reshape(length - 1, 3, width)
        edges[:, :, :3] = logs[1:, :3]
        if masked:
            mask = np.ones(len(slots), dtype=np.uint8)
            mask[: length * width].reshape(length, width)[:, :3] = chains.masks.labels[at : at + length]
            mask[length * width :].reshape(length - 1, 3, width)[:, :, :3] = chains.masks.follow
            structure.set_mask(i, mask)
        value, counts, _ = structure.log_partition(i, slots)
        assert constants[i] == pytest.approx(value, abs=1e-12)
        expected = counts[: length * width].reshape(length, width)[:, :3]
        np.testing.assert_allclose(marginals[at : at + length], expected, atol=1e-12)
        found = [value for value, _, _ in structure.k_best(i, slots, 4)]
        np.testing.assert_allclose([value for _, value in several[i]], found, atol=1e-12)
        at += length


@CASES
def test_small_batches_change_nothing(rng, history, masked, monkeypatch):
    chains = make_chains(rng, history, masked)
    marginals, constants = chains.sums()
    best, several = best_labels(chains, 2), k_best_labels(chains, 4, 3)
    monkeypatch.setattr(local_chains, "ROOM", 40)
    np.testing.assert_allclose(chains.sums()[0], marginals, atol=1e-14)
    np.testing.assert_allclose(chains.sums()[1], constants, atol=1e-14)
    np.testing.assert_array_equal(best_labels(chains, 2), best)
    for one, two in zip(k_best_labels(chains, 4, 3), several, strict=True):
        assert [tags.tolist() for tags, _ in one] == [tags.tolist() for tags, _ in two]


# the estimator


@pytest.fixture(scope="module", params=[1, 2])
def tagger(request, sentences):
    return SequenceTagger(model="maxent", history=request.param, beam_width=None).fit(sentences.dicts, sentences.y)


def labellings(tagger, tokens):
    """{labels: log p} of all labellings, from positions' scores and the weights of tags by name."""
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
    """The same method there: the k best labellings' own probabilities."""
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
    """What the CRF tagger says is what the maxent tagger says."""
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


def test_histories_without_weights_of_their_own_take_no_room(rng):
    n_labels, tags = 4, 5
    pairs = np.sort(rng.choice(tags * tags, size=6, replace=False))
    few = HistoryScores(rng.normal(size=(tags, n_labels)), pairs, rng.normal(size=(6, n_labels)))
    dense = few.dense()
    expected = np.array([few.first[s % tags] for s in range(tags * tags)])
    expected[pairs] += few.second
    np.testing.assert_array_equal(dense, expected)
    states = rng.integers(0, tags * tags, size=(7, 3))
    np.testing.assert_array_equal(few[states], dense[states])
    np.testing.assert_allclose(few.of_pairs(states), dense[states] - few.first[states % tags], atol=1e-15)
    none = HistoryScores(few.first, pairs[:0], few.second[:0])
    np.testing.assert_array_equal(none[states], few.first[states % tags])
    scores = rng.normal(size=(LENGTHS.sum(), n_labels))
    for masks in (None, Masks(np.ones(scores.shape, dtype=bool), rng.random((n_labels, n_labels)) < 0.9)):
        sparse, full = (LocalChains(scores, after, LENGTHS, 2, masks) for after in (few, dense))
        for width in (2, None):
            np.testing.assert_array_equal(best_labels(sparse, width), best_labels(full, width))
        for one, other in zip(sparse.sums(), full.sums(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_memory_of_many_labels():
    # All histories times all labels are 8 million numbers; positions, labels and weights are some hundred.
    n = 200
    X, y = [[[f"w{i % 7}"]] for i in range(n)], [[f"L{i}"] for i in range(n)]
    tagger = SequenceTagger(model="maxent", random_state=0, max_passes=2, tol=0).fit(X, y)
    tracemalloc.start()
    tagger.predict(X[:3])
    tagger.predict_k_best(X[:3], 2)
    tagger.log_probability(X[:3], y[:3])
    tagger.explain(X[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
