"""SequenceTagger: results against brute force, and results that must not change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

from helpers.tagger_cases import EXACT, VARIANTS, named
from partwise.estimators import MaxentClassifier, SequenceTagger


@pytest.fixture(scope="module")
def tagger(sentences):
    return SequenceTagger().fit(sentences.dicts, sentences.y)


@pytest.fixture(scope="module", params=VARIANTS, ids=named)
def fitted(request, sentences):
    return SequenceTagger(**request.param).fit(sentences.dicts, sentences.y)


class TestBruteForce:
    def test_marginals(self, fitted, fresh_sentences, all_scores):
        found = fitted.predict_marginals(fresh_sentences.dicts, output="array")
        as_dicts = fitted.predict_marginals(fresh_sentences.dicts)
        classes = fitted.classes_.tolist()
        for tokens, array, dicts in zip(fresh_sentences.dicts, found, as_dicts, strict=True):
            scores = all_scores(fitted, tokens)
            values = np.array(list(scores.values()))
            p = np.exp(values - logsumexp(values))
            expected = np.zeros((len(tokens), len(classes)))
            for labels, probability in zip(scores, p, strict=True):
                for t, label in enumerate(labels):
                    expected[t, classes.index(label)] += probability
            np.testing.assert_allclose(array, expected, atol=1e-10)
            np.testing.assert_allclose(array.sum(axis=1), 1.0, atol=1e-12)
            assert dicts == [dict(zip(classes, row, strict=True)) for row in array.tolist()]

    def test_best_and_k_best(self, fitted, fresh_sentences, all_scores):
        best = fitted.predict(fresh_sentences.dicts)
        several = fitted.predict_k_best(fresh_sentences.dicts, 5)
        for tokens, labels, ranked in zip(fresh_sentences.dicts, best, several, strict=True):
            scores = all_scores(fitted, tokens)
            order = sorted(scores.values(), reverse=True)[:5]
            assert scores[tuple(labels)] == pytest.approx(order[0], abs=1e-10)
            assert len({tuple(found) for found, _ in ranked}) == len(order)
            np.testing.assert_allclose([value for _, value in ranked], order, atol=1e-10)
            np.testing.assert_allclose([scores[tuple(found)] for found, _ in ranked], order, atol=1e-10)

    def test_probabilities_of_labellings(self, fitted, fresh_sentences, all_scores):
        for tokens in fresh_sentences.dicts:
            scores = all_scores(fitted, tokens)
            total = np.logaddexp.reduce(list(scores.values()))
            for found, p in fitted.predict_k_best([tokens], 5, probabilities=True)[0]:
                assert p == pytest.approx(np.exp(scores[tuple(found)] - total), abs=1e-12)
        assert fitted.predict_k_best([[]], 2, probabilities=True) == [[([], 1.0)]]

    def test_k_best_under_constraints(self, fitted, fresh_sentences, all_scores):
        """Under constraints, the k best labellings are the best allowed ones; their probabilities are conditional."""
        classes = fitted.classes_.tolist()
        pairs = np.ones((len(classes), len(classes)), dtype=bool)
        pairs[0, 1] = False
        for tokens in fresh_sentences.dicts:
            rules = [classes[:2], *[None] * (len(tokens) - 1)]
            given = {"allowed": [rules], "allowed_transitions": pairs}
            left = {
                labels: score
                for labels, score in all_scores(fitted, tokens).items()
                if labels[0] in classes[:2]
                and not any(a == classes[0] and b == classes[1] for a, b in zip(labels, labels[1:], strict=False))
            }
            order = sorted(left.values(), reverse=True)[:4]
            ranked = fitted.predict_k_best([tokens], 4, **given)[0]
            np.testing.assert_allclose([left[tuple(found)] for found, _ in ranked], order, atol=1e-10)
            ranked = fitted.predict_k_best([tokens], len(left) + 9, probabilities=True, **given)[0]
            assert len(ranked) == len(left)
            assert sum(p for _, p in ranked) == pytest.approx(1.0)

    def test_node_scores(self, fitted, fresh_sentences):
        states = fitted.state_features_
        for tokens, array in zip(fresh_sentences.dicts, fitted.decision_function(fresh_sentences.dicts), strict=True):
            expected = [
                [sum(states.get((n, a), 0.0) * v for n, v in token.items()) for a in fitted.classes_]
                for token in tokens
            ]
            np.testing.assert_allclose(array, expected, atol=1e-10)


@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_primal_is_the_formula(variant, sentence_maker, all_scores):
    data = sentence_maker(15, seed=3, max_length=4)
    model = SequenceTagger(C=0.5, **variant).fit(data.dicts, data.y)
    named_weights = [model.state_features_, model.transition_features_, model.boundary_features_]
    weights = np.array([value for table in named_weights for value in table.values()])
    assert np.sum(np.square(model.coef_)) == pytest.approx(np.sum(np.square(weights)), rel=1e-12)
    total = float(weights @ weights)  # the factor 1 / (2 C) is 1
    for tokens, gold in zip(data.dicts, data.y, strict=True):
        scores = all_scores(model, tokens)
        cost = [sum(a != b for a, b in zip(labels, gold, strict=True)) for labels in scores]
        margin = np.array(cost) if model.loss == "softmax-margin" else 0.0
        total += logsumexp(np.array(list(scores.values())) + margin) - scores[tuple(gold)]
    assert model.result_.primal == pytest.approx(total, rel=1e-10)
    assert 0 <= model.result_.gap <= 1e-3 * total


def test_features_are_the_observed_ones(sentences, tagger):
    pairs = {
        (name, label)
        for x, y in zip(sentences.dicts, sentences.y, strict=True)
        for token, label in zip(x, y, strict=True)
        for name in token
    }
    moves = {pair for y in sentences.y for pair in zip(y, y[1:], strict=False)}
    assert set(tagger.state_features_) == pairs
    assert set(tagger.transition_features_) == moves
    assert ("I", "O") in moves
    assert ("O", "I") not in moves
    assert ("c5", "B") not in pairs
    full = SequenceTagger(features="all").fit(sentences.dicts, sentences.y)
    assert len(full.state_features_) == 6 * 3
    assert len(full.transition_features_) == 9
    mixed = SequenceTagger(transitions="all").fit(sentences.dicts, sentences.y)
    assert set(mixed.state_features_) == pairs
    assert len(mixed.transition_features_) == 9


@pytest.mark.parametrize("form", ["dicts", "arrays", "sparse"])
def test_min_count(form, sentences):
    x, y = getattr(sentences, form), sentences.y
    counts: dict = {}
    for tokens, labels in zip(sentences.dicts, y, strict=True):
        for token, label in zip(tokens, labels, strict=True):
            for name in token:
                key = (name if form == "dicts" else int(name[1:]), label)
                counts[key] = counts.get(key, 0) + 1
    threshold = int(np.median(list(counts.values())))
    model = SequenceTagger(min_count=threshold).fit(x, y)
    assert set(model.state_features_) == {key for key, count in counts.items() if count >= threshold}
    assert len(model.state_features_) < len(counts)
    pairs = [pair for labels in y for pair in zip(labels, labels[1:], strict=False)]
    frequent = {pair for pair in pairs if pairs.count(pair) >= threshold}
    assert set(model.transition_features_) == frequent
    assert len(frequent) < len(set(pairs))


@pytest.mark.parametrize("form", ["dicts", "arrays", "sparse"])
def test_min_count_of_attributes(form, sentences):
    stacked = np.concatenate(sentences.arrays)
    counts = np.count_nonzero(stacked, axis=0)
    model = SequenceTagger(features="all", min_count=int(np.median(counts))).fit(getattr(sentences, form), sentences.y)
    kept = {j for j, count in enumerate(counts) if count >= int(np.median(counts))}
    assert {int(str(name).removeprefix("c")) for name, _ in model.state_features_} == kept
    assert len(kept) < 6
    assert len(model.state_features_) == 3 * len(kept)


@pytest.mark.parametrize("variant", [{}, {"features": "all"}, {"ends": True}, {"transitions": "all"}], ids=named)
def test_all_forms_give_one_model(variant, sentences, fresh_sentences):
    expected = SequenceTagger(**EXACT, **variant).fit(sentences.dicts, sentences.y)
    marginals = np.concatenate(expected.predict_marginals(fresh_sentences.dicts, output="array"))
    for form in ("names", "arrays", "sparse"):
        model = SequenceTagger(**EXACT, **variant).fit(getattr(sentences, form), sentences.y)
        states = {(a if isinstance(a, str) else f"c{a}", label): w for (a, label), w in model.state_features_.items()}
        assert states == pytest.approx(expected.state_features_, abs=1e-8)
        assert model.transition_features_ == pytest.approx(expected.transition_features_, abs=1e-8)
        found = np.concatenate(model.predict_marginals(getattr(fresh_sentences, form), output="array"))
        np.testing.assert_allclose(found, marginals, atol=1e-8)
        assert model.result_.primal == pytest.approx(expected.result_.primal, rel=1e-12)


def test_transition_features_of_columns_and_names_agree(sentences):
    by_name = SequenceTagger(transition_features=["c1", "c3"], **EXACT).fit(sentences.dicts, sentences.y)
    by_column = SequenceTagger(transition_features=[1, 3], **EXACT).fit(sentences.sparse, sentences.y)
    renamed = {
        (f"c{key[0]}", *key[1:]) if len(key) == 3 else key: w for key, w in by_column.transition_features_.items()
    }
    assert renamed == pytest.approx(by_name.transition_features_, abs=1e-8)
    assert {key[0] for key in renamed if len(key) == 3} == {"c1", "c3"}


def test_untied_without_attributes_equals_tied(sentences, fresh_sentences):
    tied = SequenceTagger(**EXACT).fit(sentences.dicts, sentences.y)
    untied = SequenceTagger(transition_features=["no such name"], **EXACT).fit(sentences.dicts, sentences.y)
    assert untied.transition_features_ == pytest.approx(tied.transition_features_, abs=1e-8)
    assert untied.predict(fresh_sentences.dicts) == tied.predict(fresh_sentences.dicts)


@pytest.mark.parametrize("loss", ["log", "softmax-margin"])
def test_length_one_is_maxent(loss, sentence_maker):
    data = sentence_maker(60, seed=5, max_length=1)
    X, y = np.concatenate(data.arrays), [labels[0] for labels in data.y]
    flat = MaxentClassifier(loss, fit_intercept=False, **EXACT).fit(X, y)
    chain = SequenceTagger(loss, features="all", **EXACT).fit(data.arrays, data.y)
    assert chain.result_.primal == pytest.approx(flat.result_.primal, rel=1e-12)
    found = np.concatenate(chain.predict_marginals(data.arrays, output="array"))
    np.testing.assert_allclose(found, flat.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(
        np.concatenate(chain.decision_function(data.arrays)), flat.decision_function(X), atol=1e-8
    )
    assert [labels[0] for labels in chain.predict(data.arrays)] == flat.predict(X).tolist()


class TestInvariance:
    METHODS = ("predict", "predict_marginals", "decision_function")

    @staticmethod
    def same(a, b):
        return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b

    @pytest.mark.parametrize("method", METHODS)
    def test_order_and_subsets(self, tagger, fresh_sentences, rng, method):
        x = fresh_sentences.dicts
        whole = getattr(tagger, method)(x)
        order = rng.permutation(len(x))
        shuffled = getattr(tagger, method)([x[i] for i in order])
        single = [getattr(tagger, method)([tokens])[0] for tokens in x]
        assert all(self.same(shuffled[j], whole[i]) for j, i in enumerate(order))
        assert all(map(self.same, single, whole))

    @pytest.mark.parametrize("features", ["observed", "all"])
    def test_sequences_of_one_position(self, features, rng):
        """A one-position sequence has the same bits alone and among others, even if it sums many attributes."""
        x = [
            [[f"a{k}" for k in rng.choice(400, 30, replace=False).tolist()] for _ in range(length)]
            for length in [1, 2] * 20
        ]
        y = [rng.integers(0, 9, len(tokens)).astype(str).tolist() for tokens in x]
        fitted = SequenceTagger(features=features, C=10.0).fit(x, y)
        for method in self.METHODS:
            single = [getattr(fitted, method)([tokens])[0] for tokens in x]
            assert all(map(self.same, single, getattr(fitted, method)(x)))

    @pytest.mark.parametrize("method", METHODS)
    def test_threads(self, tagger, fresh_sentences, method):
        x = fresh_sentences.dicts * 20
        one = getattr(tagger, method)(x)
        other = clone(tagger).set_params(n_jobs=2)
        vars(other).update({**vars(tagger), "n_jobs": 2})
        assert all(map(self.same, getattr(other, method)(x), one))

    def test_single_methods(self, tagger, fresh_sentences):
        x = fresh_sentences.dicts
        assert [tagger.predict_single(tokens) for tokens in x] == tagger.predict(x)
        assert [tagger.predict_marginals_single(tokens) for tokens in x] == tagger.predict_marginals(x)

    def test_empty_sequences_have_empty_labels(self, tagger, fresh_sentences):
        x = fresh_sentences.dicts[:2]
        first, second = tagger.predict(x)
        assert tagger.predict([[], x[0], [], x[1], []]) == [[], first, [], second, []]
        assert [array.shape for array in tagger.predict_marginals([[], x[0]], output="array")] == [
            (0, 3),
            (len(x[0]), 3),
        ]
        assert tagger.predict_k_best([[]], 3) == [[([], 0.0)]]
        assert tagger.predict([[]]) == [[]]
        assert tagger.predict([]) == []

    @pytest.mark.parametrize("form", ["arrays", "sparse"])
    def test_empty_arrays(self, form, sentences, fresh_sentences):
        model = SequenceTagger().fit(getattr(sentences, form), sentences.y)
        x = getattr(fresh_sentences, form)[:2]
        first, second = model.predict(x)
        assert model.predict([[], x[0], np.empty((0, 6)), x[1]]) == [[], first, [], second]
        assert model.predict([[], []]) == [[], []]
        assert model.predict([]) == []

    def test_unknown_attributes_are_ignored(self, fitted, fresh_sentences):
        x = fresh_sentences.dicts
        noisy = [[{**token, "never seen": 5.0, "word": "new"} for token in tokens] for tokens in x]
        assert fitted.predict_marginals(noisy) == fitted.predict_marginals(x)

    def test_unknown_attributes_of_the_last_input(self, fitted):
        token, labels = {"never seen": 5.0}, fitted.classes_.tolist()
        asked = [
            fitted.predict,
            fitted.predict_marginals,
            lambda X: fitted.predict_k_best(X, 2),
            lambda X: fitted.sample(X, 2),
            lambda X: fitted.log_probability(X, [labels[:1] * len(x) for x in X]),
            fitted.decision_function,
            lambda X: fitted.explain(X[0]),
        ]
        for n, ask in enumerate(asked, start=2):
            ask([[token] * n])
            assert fitted.unknown_counts_ == (n, n)


class TestConstraints:
    def test_positions(self, tagger, fresh_sentences, all_scores):
        x = fresh_sentences.dicts
        allowed = [[["B", "O"] if t % 2 else None for t in range(len(tokens))] for tokens in x]
        classes = tagger.classes_.tolist()
        masks = [np.array([[a is None or c in a for c in classes] for a in rows]) for rows in allowed]
        found = tagger.predict(x, allowed=allowed)
        assert found == tagger.predict(x, allowed=masks)
        marginals = tagger.predict_marginals(x, allowed=allowed, output="array")
        for tokens, rows, labels, mask, array in zip(x, allowed, found, masks, marginals, strict=True):
            scores = all_scores(tagger, tokens)
            legal = [y for y in scores if all(a is None or b in a for a, b in zip(rows, y, strict=True))]
            assert scores[tuple(labels)] == pytest.approx(max(scores[y] for y in legal), abs=1e-10)
            assert not array[~mask].any()
            np.testing.assert_allclose(array.sum(axis=1), 1.0, atol=1e-12)

    @pytest.mark.parametrize("variant", [{}, {"transition_features": ["c1"]}, {"ends": True}], ids=named)
    def test_transitions(self, variant, sentences, fresh_sentences, all_scores):
        model = SequenceTagger(**variant).fit(sentences.dicts, sentences.y)
        x = fresh_sentences.dicts
        allowed = np.array([[1, 1, 1], [1, 0, 1], [1, 0, 0]])  # rows and columns: B, I, O
        for tokens, labels in zip(x, model.predict(x, allowed_transitions=allowed), strict=True):
            scores = all_scores(model, tokens)
            bad = {("I", "I"), ("O", "I"), ("O", "O")}
            legal = [y for y in scores if not bad & set(zip(y, y[1:], strict=False))]
            assert scores[tuple(labels)] == pytest.approx(max(scores[y] for y in legal), abs=1e-10)

    def test_none_means_no_constraint(self, tagger, fresh_sentences):
        x = fresh_sentences.dicts
        assert tagger.predict(x, allowed=[None] * len(x)) == tagger.predict(x)
        assert tagger.predict([[], *x], allowed=[None] * (len(x) + 1))[1:] == tagger.predict(x)

    @pytest.mark.parametrize(
        ("allowed", "message"),
        [
            ([[["B"], ["Z"]]], "sequence 0, position 1: label 'Z' was not in the training data"),
            ([[["B"]]], "sequence 0 has 2 positions but 1 entries"),
            ([[["B"], "B"]], "sequence 0, position 1 must be None or a collection"),
            ([[["B"], []]], "sequence 0, position 1 has no label left"),
            ([np.ones((2, 2), dtype=bool)], r"sequence 0 needs a boolean array of shape \(2, 3\)"),
            ([np.full((2, 3), 0.5)], "sequence 0 needs a boolean array"),
            ([None, None], "one entry for each of 1 sequences"),
        ],
    )
    def test_wrong_constraints(self, tagger, allowed, message):
        with pytest.raises(ValueError, match=message):
            tagger.predict([[{"c0": 1.0}, {"c1": 1.0}]], allowed=allowed)

    def test_wrong_transitions(self, tagger):
        with pytest.raises(ValueError, match=r"allowed_transitions must be a boolean array of shape \(3, 3\)"):
            tagger.predict([[{"c0": 1.0}]], allowed_transitions=np.ones((2, 2), dtype=bool))
        with pytest.raises(ValueError, match="sequence 0: no labelling is allowed"):
            tagger.predict([[{"c0": 1.0}] * 2], allowed_transitions=np.zeros((3, 3), dtype=bool))
