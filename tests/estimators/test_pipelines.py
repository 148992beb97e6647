"""All estimators in scikit-learn's pipelines and searches."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from partwise import DependencyParser, MaxentClassifier, Problem, RegularizationPathCV, SequenceTagger, solve
from partwise.callbacks import TrainingCallback
from partwise.datasets import make_treebank
from partwise.io import Sentences
from partwise.solvers import regularization_path

BANK = make_treebank(60, seed=4)


def with_suffixes(sentences):
    return [[{"word": word, "suffix": word[-2:]} for word in words] for words in sentences]


def test_classifier_in_a_pipeline_and_a_search():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200], y[:200]
    pipeline = make_pipeline(StandardScaler(), MaxentClassifier())
    search = GridSearchCV(pipeline, {"maxentclassifier__C": [1e-4, 0.1]}, cv=2).fit(X, y)
    assert search.best_params_ == {"maxentclassifier__C": 0.1}
    assert search.predict_proba(X).shape == (200, 10)
    alone = MaxentClassifier(C=0.1).fit(StandardScaler().fit_transform(X), y)
    assert np.array_equal(search.predict(X), alone.predict(StandardScaler().fit_transform(X)))


def test_classifier_after_a_vectorizer():
    texts = [" ".join(words) for words in BANK.words]
    said = ["that" in words for words in BANK.words]
    pipeline = make_pipeline(CountVectorizer(), MaxentClassifier()).fit(texts, said)
    assert pipeline.score(texts, said) == 1.0


def test_tagger_in_a_pipeline_and_a_search():
    pipeline = make_pipeline(FunctionTransformer(with_suffixes), SequenceTagger(tol=1e-2))
    search = GridSearchCV(pipeline, {"sequencetagger__C": [1e-3, 1.0]}, cv=2).fit(BANK.words, BANK.tags)
    assert search.best_params_ == {"sequencetagger__C": 1.0}
    assert search.predict(BANK.words[:2]) == search.best_estimator_[-1].predict(with_suffixes(BANK.words[:2]))


@pytest.mark.parametrize(
    ("estimator", "constraints"),
    [
        (SequenceTagger(), {"allowed", "allowed_transitions"}),
        (MaxentClassifier(), {"allowed"}),
        (DependencyParser(), {"allowed"}),
    ],
)
def test_constraints_can_be_routed_to_predict(estimator, constraints):
    with config_context(enable_metadata_routing=True):
        asking = estimator.set_predict_request(**dict.fromkeys(constraints, True))
        assert set(asking.get_metadata_routing().predict.requests) == constraints


@pytest.mark.parametrize("form", ["lists", "table"])
def test_templates_in_a_search(form):
    X = BANK.words if form == "lists" else Sentences.from_lists(BANK.words)
    search = GridSearchCV(SequenceTagger(tol=1e-2), {"template": ["pos", "ner"], "C": [1.0]}, cv=2)
    search.fit(X, BANK.tags)
    assert search.cv_results_["mean_test_score"].min() > 0.7


def test_scores_by_folds():
    tagger = SequenceTagger(template="pos", tol=1e-2, random_state=0)
    scores = cross_val_score(tagger, BANK.words, BANK.tags, cv=3)
    by_hand = []
    parts = np.array_split(np.arange(len(BANK)), 3)
    for part in parts:
        train = np.setdiff1d(np.arange(len(BANK)), part)
        fold = clone(tagger).fit([BANK.words[i] for i in train], [BANK.tags[i] for i in train])
        by_hand.append(fold.score([BANK.words[i] for i in part], [BANK.tags[i] for i in part]))
    np.testing.assert_allclose(scores, by_hand)


def test_path_of_a_tagger_with_a_template():
    search = RegularizationPathCV(SequenceTagger(template="pos", tol=1e-2), Cs=[0.01, 1.0], cv=2)
    search.fit(BANK.words, BANK.tags)
    assert search.C_ == 1.0
    assert search.gaps_.max() <= 1e-2


def _default_fits():
    """Fit each estimator by a solver that draws examples at random, with no seed given."""
    rows, halves = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    tagged = with_suffixes(BANK.words), BANK.tags
    return {
        "classifier": lambda: MaxentClassifier(solver="eg", tol=0.1).fit(rows, halves).coef_,
        "hinge classifier": lambda: MaxentClassifier("hinge", solver="bcfw", tol=0.1).fit(rows, halves).coef_,
        "tagger": lambda: SequenceTagger(solver="eg", tol=0.1).fit(*tagged).coef_,
        "maxent tagger": lambda: SequenceTagger(model="maxent", solver="sdca", tol=0.1).fit(*tagged).coef_,
        "parser": lambda: DependencyParser(tol=0.1).fit(BANK.words, BANK.heads).coef_,
        "path": lambda: (
            RegularizationPathCV(SequenceTagger(solver="eg", tol=0.1), Cs=[0.1, 1.0], cv=2)
            .fit(*tagged)
            .best_estimator_.coef_
        ),
    }


@pytest.mark.parametrize("name", list(_default_fits()))
def test_default_fits_are_the_same_to_the_bit(name):
    fit = _default_fits()[name]
    assert np.array_equal(fit(), fit())


def test_default_runs_of_solvers_are_the_same_to_the_bit():
    seen: list[Problem] = []

    class Grab(TrainingCallback):
        def begin(self, session):
            seen.append(session.problem)

    SequenceTagger(callbacks=Grab(), tol=0.1).fit(with_suffixes(BANK.words), BANK.tags)
    problem = seen[0]
    assert np.array_equal(*(solve(problem, "eg", tol=0.1).weights for _ in range(2)))
    runs = [regularization_path(problem, 4.0, 0.5, 0.1, solver="eg")[-1].weights for _ in range(2)]
    assert np.array_equal(*runs)


def test_a_seed_of_none_differs_each_time():
    tagged = with_suffixes(BANK.words), BANK.tags
    fits = [SequenceTagger(solver="eg", tol=0.1, random_state=None).fit(*tagged).coef_ for _ in range(2)]
    assert not np.array_equal(*fits)
