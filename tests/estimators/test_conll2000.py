"""CoNLL-2000 chunking with common attributes reaches the known accuracy and F1, with a certificate."""

from __future__ import annotations

import pytest

from partwise.datasets import conll2000
from partwise.estimators import SequenceTagger
from partwise.metrics import chunk_f1


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_chunking(data_dir, n_jobs):
    X_train, y_train, X_test, y_test = conll2000(data_dir)
    tagger = SequenceTagger(C=0.5, tol=1e-4, random_state=0, n_jobs=n_jobs).fit(X_train, y_train)
    assert tagger.result_.converged
    assert tagger.result_.gap <= 1e-4 * tagger.result_.primal
    assert tagger.score(X_test, y_test) >= 0.959
    assert chunk_f1(y_test, tagger.predict(X_test)) >= 0.934
    assert len(tagger.classes_) == 22


@pytest.mark.slow
def test_maxent_chunking(data_dir):
    X_train, y_train, X_test, y_test = conll2000(data_dir)
    tagger = SequenceTagger(model="maxent", C=10.0, tol=1e-2, random_state=0).fit(X_train, y_train)
    assert tagger.result_.converged
    assert chunk_f1(y_test, tagger.predict(X_test)) >= 0.925


@pytest.mark.slow
def test_maxent_parts_of_speech(data_dir):
    X_train, y_train, X_test, y_test = conll2000(data_dir, task="pos")
    tagger = SequenceTagger(model="maxent", C=10.0, tol=1e-2, random_state=0).fit(X_train, y_train)
    assert tagger.result_.converged
    assert tagger.score(X_test, y_test) >= 0.965
