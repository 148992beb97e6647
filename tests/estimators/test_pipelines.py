"""Pipelines and searches of scikit-learn with every estimator."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from partwise import MaxentClassifier, RegularizationPathCV, SequenceTagger
from partwise.datasets import make_treebank
from partwise.io import Sentences

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
