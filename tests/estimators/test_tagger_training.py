"""SequenceTagger: training, warm starts, and use with scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from helpers.tagger_cases import EXACT, VARIANTS, named
from partwise.estimators import SequenceTagger


@pytest.fixture(scope="module")
def tagger(sentences):
    return SequenceTagger().fit(sentences.dicts, sentences.y)


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
        from partwise.solvers import EG

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
        other = sentence_maker(20, seed=9, n_columns=5, labels=["I", "O", "X", "B", "Y"])
        first = SequenceTagger(**variant).fit(sentences.dicts, sentences.y)
        second = SequenceTagger(**variant).fit(other.dicts, other.y)
        second.coef_ = second._model.carried(first._model)
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
        # the sentences have moved, so nothing is reused
        assert model.fit(sentences.dicts[1:], sentences.y[1:]).result_.passes > 1


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
