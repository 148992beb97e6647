"""Migration from sklearn-crfsuite: its pickles, scikit-learn's model selection, memory and messages."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.model_selection import cross_val_predict

from partwise import SequenceTagger
from partwise.compat import pycrfsuite, sklearn_crfsuite
from partwise.metrics.scorers import get_scorer
from partwise.model_files.values import object_array

X = [[{"w": f"w{(i + k) % 7}", "first": k == 0} for k in range(2 + i % 3)] for i in range(24)]
Y = [[str(int(item["w"][1]) % 3) for item in x] for x in X]

#: Stand-in modules with the names and attributes in sklearn-crfsuite's pickles, so that it need not be installed.
ORIGINAL = """
import pickle, sys, types

class FileResource:
    pass

class CRF:
    pass

for name, cls in (("_fileresource", FileResource), ("estimator", CRF)):
    cls.__module__ = f"sklearn_crfsuite.{name}"
    module = types.ModuleType(cls.__module__)
    setattr(module, cls.__name__, cls)
    sys.modules[cls.__module__] = module
sys.modules["sklearn_crfsuite"] = types.ModuleType("sklearn_crfsuite")
file = FileResource()
vars(file).update(
    name=None, auto=True, keep_tempfiles=False, suffix=".crfsuite", prefix="model", fd=3,
    __FILE_RESOURCE_DATA__=open(sys.argv[1], "rb").read(),
)
crf = CRF()
vars(crf).update(algorithm="lbfgs", c1=0.1, modelfile=file, training_log_=None, _tagger=None, _info_cached=None)
pickle.dump(crf, open(sys.argv[2], "wb"))
"""
READING = """
import pickle, sys
import joblib
import partwise.compat
partwise.compat.install()
import sklearn_crfsuite
with open(sys.argv[1], "rb") as file:
    crf = pickle.load(file)
assert type(crf) is sklearn_crfsuite.CRF
joblib.dump(crf, sys.argv[1])
crf = joblib.load(sys.argv[1])
print(crf.predict([[["a"]], [["b"], ["a"]]])[1], len(crf.attributes_), crf.c1)
"""


def test_pickles_and_joblib_files_of_the_original(tmp_path):
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append([["a"], ["b"]], ["x", "y"])
    trainer.train(str(tmp_path / "model"))
    for program, *files in (ORIGINAL, "model", "crf.pickle"), (READING, "crf.pickle"):
        done = subprocess.run(
            [sys.executable, "-c", program, *(str(tmp_path / name) for name in files)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout == "['y', 'x'] 2 0.1\n"


def test_cross_val_predict():
    found = cross_val_predict(sklearn_crfsuite.CRF(), X, Y, cv=3)
    assert found.tolist() == Y
    assert [type(labels) for labels in found] == [list] * len(X)
    crf = sklearn_crfsuite.CRF().fit(X, Y)
    assert isinstance(crf.predict_marginals(X[:2])[0], list)
    # as in the original, sequences of equal length become the rows of an array
    assert (crf.predict(X[:1]) == Y[:1]).all()


@pytest.mark.parametrize("as_array", [False, True])
def test_cross_val_predict_with_our_own_estimators(as_array):
    """NumPy reads predictions as an array of lists, whether or not their lengths are equal."""
    rows = object_array(X) if as_array else X
    found = cross_val_predict(SequenceTagger(), rows, Y, cv=3)
    assert found.tolist() == Y
    tagger = SequenceTagger().fit(X, Y)
    assert tagger.predict(rows) == Y
    assert np.asarray(tagger.predict(X[:1] * 3)).shape == (3,)
    assert np.asarray(tagger.predict(X[:1] * 3), dtype=int).tolist() == [[int(label) for label in Y[0]]] * 3
    assert get_scorer("token_accuracy")(tagger, rows, Y) == 1.0


def test_sequences_of_a_trainer_share_their_names():
    """Appended sequences share the strings of names: the memory per attribute stays below 60 bytes."""
    rows = [[{f"name {k}": "a long value", f"odd {k}": bool(k % 2)} for k in range(20)] for _ in range(200)]
    labels = ["xy"[k % 2] for k in range(20)]
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append(rows[0], labels)
    tracemalloc.start()
    try:
        for row in rows:
            trainer.append(row, labels)
        assert tracemalloc.get_traced_memory()[0] / (200 * 20 * 2) < 60
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("held", [False, True])
def test_messages_come_after_each_pass(held, capsys):
    """There is a message after each pass, although the run computes a certificate in every fifth pass only."""
    crf = sklearn_crfsuite.CRF(verbose=not held, c1=0.01, c2=0.1, delta=1e-9, max_iterations=12)
    crf.fit(X, Y, **({"X_dev": X[:3], "y_dev": Y[:3]} if held else {}))
    numbers = [each["num"] for each in crf.training_log_.iterations]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 10
    assert capsys.readouterr().out.count("Iter ") == (0 if held else len(numbers))


@pytest.mark.parametrize("options", [{}, {"class_weight": {"0": 2.0}}, {"loss": "hinge"}])
def test_empty_sequences_are_left_out(options):
    tagger = SequenceTagger(**options).fit(X, Y)
    with_empty = SequenceTagger(**options).fit([[], *X, []], [[], *Y, []], np.ones(26))
    assert with_empty.result_.weights.tobytes() == tagger.result_.weights.tobytes()
    assert with_empty.predict([[], X[0]]) == [[], Y[0]]
    more = SequenceTagger(solver="sgd", class_weight={"0": 2.0}).partial_fit(X, Y).partial_fit([[], *X], [[], *Y])
    assert more.predict([[]]) == [[]]
