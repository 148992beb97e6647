"""SequenceTagger: what it computes, by brute force and by invariances."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from partwise.estimators import MaxentClassifier, SequenceTagger

EXACT = {"solver": "lbfgs", "tol": 1e-20}
VARIANTS = [
    {},
    {"features": "all"},
    {"ends": True, "transitions": "all"},
    {"transition_features": ["c1", "c2"], "ends": True},
    {"transition_features": "all", "features": "all"},
    {"loss": "softmax-margin"},
]


def named(variant):
    return ", ".join(f"{key}={value}" for key, value in variant.items()) or "default"


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
        """The best of those that are left, with probabilities given that the constraints hold."""
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
    total = float(weights @ weights)  # 1 / (2 C) = 1
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


class TestTraining:
    def test_weights_are_copies(self, sentences, rng):
        weight = rng.integers(0, 4, size=len(sentences))
        weighted = SequenceTagger(**EXACT).fit(sentences.dicts, sentences.y, sample_weight=weight)
        copies = [i for i, k in enumerate(weight) for _ in range(k)]
        repeated = SequenceTagger(**EXACT).fit([sentences.dicts[i] for i in copies], [sentences.y[i] for i in copies])
        assert weighted.state_features_ == pytest.approx(repeated.state_features_, abs=1e-6)
        assert weighted.transition_features_ == pytest.approx(repeated.transition_features_, abs=1e-6)
        assert weighted.result_.primal == pytest.approx(repeated.result_.primal, rel=1e-10)

    def test_doubled_weights_are_doubled_c(self, sentences):
        x, y = sentences.dicts, sentences.y
        weighted = SequenceTagger(**EXACT).fit(x, y, sample_weight=2.0)
        stronger = SequenceTagger(C=2.0, **EXACT).fit(x, y)
        np.testing.assert_allclose(weighted.coef_, stronger.coef_, atol=1e-7)

    @pytest.mark.parametrize("options", [{"solver": "lbfgs"}, {"solver": "eg", "random_state": 3}, {}], ids=named)
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_fit_twice_is_fit_once(self, options, n_jobs, sentences):
        model = SequenceTagger(n_jobs=n_jobs, **options).fit(sentences.dicts, sentences.y)
        first = model.coef_
        second = model.fit(sentences.dicts, sentences.y).coef_
        assert second is not first
        assert np.array_equal(first, second)

    def test_batch_training_has_the_same_bits_on_any_threads(self, sentences):
        one, two = (SequenceTagger(solver="lbfgs", n_jobs=n).fit(sentences.dicts, sentences.y) for n in (1, 2))
        assert np.array_equal(one.coef_, two.coef_)

    def test_solvers_agree(self, sentences):
        exact = SequenceTagger(**EXACT).fit(sentences.dicts, sentences.y)
        online = SequenceTagger(solver="eg", tol=1e-6, random_state=0).fit(sentences.dicts, sentences.y)
        assert online.result_.solver == "eg"
        assert online.result_.primal == pytest.approx(exact.result_.primal, rel=2e-6)
        np.testing.assert_allclose(online.coef_, exact.coef_, atol=0.02)

    def test_solver_options_and_instances(self, sentences):
        from partwise import EG

        x, y = sentences.dicts, sentences.y
        named_options = SequenceTagger(solver="eg", solver_options={"order": "cyclic"}, random_state=0).fit(x, y)
        instance = SequenceTagger(solver=EG(order="cyclic"), random_state=0).fit(x, y)
        assert np.array_equal(named_options.coef_, instance.coef_)
        assert np.array_equal(clone(instance).fit(x, y).coef_, instance.coef_)

    def test_random_state_may_be_a_generator(self, sentences):
        fits = [
            SequenceTagger(solver="eg", random_state=make(7)).fit(sentences.dicts, sentences.y).coef_
            for make in (np.random.RandomState, np.random.RandomState, np.random.default_rng)
        ]
        assert np.array_equal(fits[0], fits[1])

    @pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
    def test_max_margin(self, loss, sentences, fresh_sentences):
        model = SequenceTagger(loss, C=0.1, tol=0.05, random_state=0).fit(sentences.dicts, sentences.y)
        assert model.result_.gap <= 0.05 * model.result_.primal
        assert model.score(sentences.dicts, sentences.y) > 0.5
        assert len(model.predict(fresh_sentences.dicts)) == len(fresh_sentences)
        for name in ("predict_marginals", "predict_marginals_single"):
            assert not hasattr(model, name)
        with pytest.raises(AttributeError, match="predict_marginals"):
            _ = model.predict_marginals

    def test_convergence_warning(self, sentences):
        from partwise import ConvergenceWarning

        with pytest.warns(ConvergenceWarning, match="max_passes"):
            model = SequenceTagger(solver="lbfgs", tol=1e-12, max_passes=3).fit(sentences.dicts, sentences.y)
        assert model.result_.status == "max_passes"
        assert model.predict(sentences.dicts[:1])

    def test_labels_of_any_kind(self, sentences):
        numbers = {"B": 10, "I": -3, "O": 7}
        y = [np.array([numbers[label] for label in labels]) for labels in sentences.y]
        model = SequenceTagger().fit(sentences.dicts, y)
        assert model.classes_.tolist() == [-3, 7, 10]
        first = model.predict(sentences.dicts)[0]
        assert all(type(label) is int for label in first)
        assert SequenceTagger().fit(sentences.dicts, [[(n, "x") for n in labels.tolist()] for labels in y]).predict(
            sentences.dicts[:1]
        ) == [[(n, "x") for n in first]]


class TestWarmStart:
    def test_same_data(self, sentences):
        model = SequenceTagger(warm_start=True, **EXACT).fit(sentences.dicts, sentences.y)
        cold, weights = model.result_.passes, model.coef_
        model.fit(sentences.dicts, sentences.y)
        assert model.result_.passes < cold / 2
        np.testing.assert_allclose(model.coef_, weights, atol=1e-7)

    @pytest.mark.parametrize("variant", VARIANTS, ids=named)
    def test_weights_are_carried_by_name(self, variant, sentences, sentence_maker):
        from partwise.estimators.warm import Fitted, carry_weights

        other = sentence_maker(20, seed=9, n_columns=5, labels=["I", "O", "X", "B", "Y"])
        first = SequenceTagger(**variant).fit(sentences.dicts, sentences.y)
        second = SequenceTagger(**variant).fit(other.dicts, other.y)
        old, new = (Fitted(model._reader, model._model, model.classes_) for model in (first, second))
        second.coef_ = carry_weights(first.coef_, old, new)
        tables = ("state_features_", "transition_features_", "boundary_features_")
        for table in tables:
            before, after = getattr(first, table), getattr(second, table)
            assert after == {key: before.get(key, 0.0) for key in after}
        assert any(getattr(second, table)[key] for table in tables for key in getattr(second, table))

    def test_tied_weights_start_untied_ones(self, sentences):
        model = SequenceTagger(warm_start=True).fit(sentences.dicts, sentences.y)
        tied = model.result_.primal
        model.set_params(transition_features=["c0"]).fit(sentences.dicts, sentences.y)
        assert model.result_.history["primal"][0] <= tied + 1e-9

    def test_other_forms_start_anew(self, sentences):
        model = SequenceTagger(warm_start=True, **EXACT).fit(sentences.dicts, sentences.y)
        model.fit(sentences.arrays, sentences.y)
        cold = SequenceTagger(**EXACT).fit(sentences.arrays, sentences.y)
        assert np.array_equal(model.coef_, cold.coef_)
        assert model.n_features_in_ == 6
        assert not hasattr(model.fit(sentences.dicts, sentences.y), "n_features_in_")

    def test_max_margin_starts_from_its_dual_point(self, sentences):
        model = SequenceTagger("hinge", C=0.1, tol=0.01, random_state=0, warm_start=True)
        cold = model.fit(sentences.dicts, sentences.y).result_.passes
        assert model.fit(sentences.dicts, sentences.y).result_.passes < cold / 2
        assert model.fit(sentences.dicts[1:], sentences.y[1:]).result_.passes > 1  # other lengths: from the beginning


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
        allowed = np.array([[1, 1, 1], [1, 0, 1], [1, 0, 0]])  # B, I, O
        for tokens, labels in zip(x, model.predict(x, allowed_transitions=allowed), strict=True):
            scores = all_scores(model, tokens)
            bad = {("I", "I"), ("O", "I"), ("O", "O")}
            legal = [y for y in scores if not bad & set(zip(y, y[1:], strict=False))]
            assert scores[tuple(labels)] == pytest.approx(max(scores[y] for y in legal), abs=1e-10)

    def test_none_is_no_constraint(self, tagger, fresh_sentences):
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


class TestScikitLearn:
    def test_score_is_token_accuracy(self, tagger, fresh_sentences, rng):
        x, y = fresh_sentences.dicts, [list(labels) for labels in fresh_sentences.y]
        y[0][0] = "never seen"
        weight = rng.uniform(size=len(y))
        hits = [[a == b for a, b in zip(p, q, strict=True)] for p, q in zip(tagger.predict(x), y, strict=True)]
        assert tagger.score(x, y) == pytest.approx(np.mean([hit for row in hits for hit in row]))
        weighted = sum(w * sum(h) for w, h in zip(weight, hits, strict=True))
        assert tagger.score(x, y, weight) == pytest.approx(
            weighted / sum(w * len(h) for w, h in zip(weight, hits, strict=True))
        )

    @pytest.mark.parametrize("variant", [*VARIANTS[:5], {"loss": "hinge", "C": 0.1, "tol": 0.1}], ids=named)
    @pytest.mark.parametrize("form", ["dicts", "sparse"])
    def test_pickle(self, variant, form, sentences, fresh_sentences):
        if "c1" in variant.get("transition_features", ()) and form == "sparse":
            variant = {**variant, "transition_features": [1, 2]}
        x = getattr(fresh_sentences, form)
        model = SequenceTagger(random_state=0, **variant).fit(getattr(sentences, form), sentences.y)
        data = pickle.dumps(model)
        again = pickle.loads(data)
        assert again.predict(x) == model.predict(x)
        assert all(map(np.array_equal, again.decision_function(x), model.decision_function(x)))
        assert again.state_features_ == model.state_features_
        assert again.result_.primal == model.result_.primal
        assert again.result_.dual_point is None
        assert model.result_.dual_point is not None
        again.set_params(warm_start=True).fit(getattr(sentences, form), sentences.y)

    def test_clone_and_params(self):
        model = SequenceTagger(C=3.0, features="all", solver_options=None)
        assert clone(model).get_params() == model.get_params()
        assert repr(model) == "SequenceTagger(C=3.0, features='all')"

    def test_grid_search(self, sentences):
        search = GridSearchCV(SequenceTagger(), {"C": [1e-3, 1.0], "features": ["observed", "all"]}, cv=3)
        search.fit(sentences.dicts, sentences.y)
        assert search.best_params_["C"] == 1.0
        assert search.score(sentences.dicts, sentences.y) == search.best_estimator_.score(sentences.dicts, sentences.y)
        assert len(cross_val_score(SequenceTagger(), sentences.names, sentences.y, cv=3)) == 3

    def test_attributes_are_sorted_by_frequency(self, tagger, sentences):
        counts = dict.fromkeys(tagger.attributes_, 0)
        for tokens in sentences.dicts:
            for token in tokens:
                for name in token:
                    counts[name] += 1
        ordered = [counts[name] for name in tagger.attributes_]
        assert ordered == sorted(ordered, reverse=True)
        assert set(tagger.attributes_) == {f"c{j}" for j in range(6)}
        assert SequenceTagger().fit(sentences.arrays, sentences.y).attributes_ is None
