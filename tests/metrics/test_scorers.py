"""Scores by name, in scikit-learn and in partwise."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sklearn.metrics import _scorer
from sklearn.metrics import get_scorer as sklearn_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from partwise import RegularizationPathCV, SequenceTagger
from partwise.callbacks import EarlyStopping
from partwise.datasets import make_treebank
from partwise.metrics import chunk_f1, chunk_scores, get_measure, get_scorer, register_scorers, sequence_accuracy

BANK = make_treebank(30, seed=3)
TAGGER = SequenceTagger(template="pos", tol=1e-1, C=0.1)


def test_a_name_in_a_search_and_in_cross_validation():
    by_name = cross_val_score(TAGGER, BANK.words, BANK.chunks, scoring="chunk_f1", cv=2)
    by_hand = cross_val_score(TAGGER, BANK.words, BANK.chunks, scoring=lambda e, X, y: chunk_f1(y, e.predict(X)), cv=2)
    assert by_name.tolist() == by_hand.tolist()
    assert 0 < by_name.min() < 1
    search = GridSearchCV(TAGGER, {"C": [0.01, 0.1]}, scoring="chunk_f1", cv=2).fit(BANK.words, BANK.chunks)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(by_name.mean())
    both = cross_validate(TAGGER, BANK.words, BANK.chunks, scoring=["chunk_f1", "token_accuracy"], cv=2)
    assert both["test_chunk_f1"].tolist() == by_name.tolist()


def test_every_name_is_its_function():
    fitted = TAGGER.fit(BANK.words, BANK.chunks)
    found = fitted.predict(BANK.words)
    table = chunk_scores(BANK.chunks, found)
    expected = {
        "chunk_f1": table.f1,
        "chunk_precision": table.precision,
        "chunk_recall": table.recall,
        "token_accuracy": table.accuracy,
        "sequence_accuracy": sum(map(list.__eq__, BANK.chunks, found)) / len(found),
    }
    for name, value in expected.items():
        for scorer in (get_scorer(name), sklearn_scorer(name)):
            assert scorer(fitted, BANK.words, BANK.chunks) == pytest.approx(value)
        assert fitted.scorer(BANK.words, BANK.chunks, name)(fitted.coef_) == pytest.approx(value)
    assert sequence_accuracy([], []) == 0.0
    assert get_scorer("accuracy") is not None


def test_names_in_early_stopping_and_paths():
    tagger = SequenceTagger(template="pos", callbacks=EarlyStopping(BANK.words, BANK.chunks, 2, "chunk_f1"))
    tagger.fit(BANK.words, BANK.chunks)
    other = SequenceTagger(template="pos", callbacks=EarlyStopping(BANK.words, BANK.chunks, 2, "f1"))
    assert tagger.callbacks.scores_ == other.fit(BANK.words, BANK.chunks).callbacks.scores_
    path = RegularizationPathCV(TAGGER, Cs=[0.01, 0.1], cv=2, scoring="chunk_f1")
    path.fit(BANK.words, BANK.chunks, sample_weight=[1.0] * 30)
    assert path.score(BANK.words, BANK.chunks) == pytest.approx(chunk_f1(BANK.chunks, path.predict(BANK.words)))


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown measure 'chunk_f2'; there are chunk_f1"):
        get_measure("chunk_f2")
    with pytest.raises(ValueError, match="chunk_f1"):
        EarlyStopping([], [], metric="chunk_f2")
    with pytest.raises(ValueError, match="chunk_f2"):
        cross_val_score(TAGGER, BANK.words, BANK.chunks, scoring="chunk_f2")
    with pytest.raises(ValueError, match="unknown measure"):
        TAGGER.fit(BANK.words, BANK.chunks).scorer(BANK.words, BANK.chunks, "chunk_f2")


@pytest.mark.parametrize(
    "order",
    [
        "import sklearn.model_selection, partwise; partwise.SequenceTagger()",
        "import partwise; partwise.SequenceTagger; import sklearn.model_selection; partwise.SequenceTagger()",
        "import partwise.metrics; partwise.metrics.register_scorers()",
    ],
)
def test_imports_in_either_order(order):
    lines = [
        order,
        "from sklearn.model_selection import GridSearchCV",
        "from sklearn.metrics import get_scorer",
        "search = GridSearchCV(None, {}, scoring='chunk_f1')",
        "from sklearn.utils._param_validation import validate_parameter_constraints as check",
        "check({'scoring': search._parameter_constraints['scoring']}, {'scoring': 'chunk_f1'}, 'GridSearchCV')",
        "get_scorer('chunk_f1')",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_other_versions_are_left_alone(monkeypatch):
    """If scikit-learn's private table of scorers differs, it is not changed, and our `get_scorer` still works."""
    monkeypatch.setattr(_scorer, "_SCORERS", {"other": 1})
    assert not register_scorers()
    assert _scorer._SCORERS == {"other": 1}
    monkeypatch.delattr(_scorer, "_SCORERS")
    assert not register_scorers()
    assert get_scorer("chunk_f1") is not None
