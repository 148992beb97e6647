"""The python-crfsuite and sklearn-crfsuite interfaces, compared with the originals where these are installed."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from partwise import ModelFormatError
from partwise.compat import pycrfsuite, sklearn_crfsuite
from partwise.compat.pycrfsuite._logparser import LabelScore, TrainLogParser
from partwise.compat.sklearn_crfsuite import metrics, scorers

original = pytest.importorskip("pycrfsuite")

X = [
    [{"word": "the", "first": True}, {"word": "cat", "suffix": ["at", "t"]}, {"word": "sat", "n": 0.5}],
    [{"word": "a", "first": True}, {"word": "dog", "suffix": {"og": 1.0}}],
    [{"word": "dogs", "first": True}, {"word": "sat", "bytes": "ü".encode()}],
]
Y = [["D", "N", "V"], ["D", "N"], ["N", "V"]]


def made_up(n=150, seed=0):
    rng = np.random.default_rng(seed)
    xs, ys = [], []
    for _ in range(n):
        words = rng.integers(30, size=rng.integers(1, 9))
        xs.append([{"w": str(k), "odd": bool(k % 2), "size": float(k) / 30, "same": ["a", "b"]} for k in words])
        ys.append([str((k + (rng.random() < 0.15)) % 5) for k in words])
    return xs, ys


def trained(module, path, params, xs, ys, algorithm="lbfgs", **options):
    trainer = module.Trainer(algorithm, params=params, verbose=False)
    for x, y in zip(xs, ys, strict=True):
        trainer.append(x, y)
    trainer.train(str(path), **options)
    tagger = original.Tagger()
    tagger.open(str(path))
    return tagger


@pytest.mark.parametrize("params", [{"c2": 0.5}, {"c1": 0.3, "c2": 0.1}, {"c1": 0.5, "c2": 0.0}])
@pytest.mark.parametrize("possible", [False, True])
def test_the_same_objective_and_no_higher(tmp_path, params, possible):
    xs, ys = made_up()
    both = params | {"feature.possible_states": possible, "feature.possible_transitions": possible}
    c1, c2 = params.get("c1", 0.0), params["c2"]
    values = []
    for name, module in (("ours", pycrfsuite), ("theirs", original)):
        tagger = trained(module, tmp_path / name, both, xs, ys)
        loss = 0.0
        for x, y in zip(xs, ys, strict=True):
            tagger.set(x)
            loss -= np.log(tagger.probability(y))
        info = tagger.info()
        weights = np.array([*info.transitions.values(), *info.state_features.values()])
        values.append(loss + c1 * np.abs(weights).sum() + c2 * (weights**2).sum())
    assert values[0] <= values[1] * (1 + 1e-4)
    assert values[0] >= values[1] * (1 - 1e-2)  # not lower by much, or it would be another objective


@pytest.mark.parametrize("module", [pycrfsuite, original], ids=["ours", "theirs"])
def test_items(module):
    items = module.ItemSequence(X[0]).items()
    assert items == [
        {"word:the": 1.0, "first": 1.0},
        {"word:cat": 1.0, "suffix:at": 1.0, "suffix:t": 1.0},
        {"word:sat": 1.0, "n": 0.5},
    ]


def test_names_that_occur_twice_count_twice(tmp_path):
    xs, ys = made_up(40)
    path = tmp_path / "model"
    theirs = trained(pycrfsuite, path, {}, xs, ys)
    ours = pycrfsuite.Tagger()
    ours.open(path)
    twice = [["w:3", "w:3", "w:4", "odd"], ["w:2"]]
    for tagger in (theirs, ours):
        tagger.set(twice)
    assert ours.tag() == theirs.tag()
    for label in ours.labels():
        assert ours.marginal(label, 0) == pytest.approx(theirs.marginal(label, 0), abs=1e-9)
    assert ours.probability(["0", "1"]) == pytest.approx(theirs.probability(["0", "1"]), abs=1e-9)


def test_info_is_the_originals(tmp_path):
    xs, ys = made_up(40)
    theirs = trained(pycrfsuite, tmp_path / "model", {"c1": 0.2}, xs, ys).info()
    ours = pycrfsuite.Tagger()
    ours.open(tmp_path / "model")
    found = ours.info()
    assert found.labels == theirs.labels
    assert found.attributes == theirs.attributes
    # the original parses weights from a text dump
    assert found.transitions == pytest.approx(theirs.transitions, abs=1e-6)
    assert found.state_features == pytest.approx(theirs.state_features, abs=1e-6)
    assert {key: theirs.header[key] for key in found.header} == found.header


def test_dump_is_read_by_the_originals_parser(tmp_path):
    from pycrfsuite._dumpparser import CRFsuiteDumpParser

    xs, ys = made_up(30)
    trained(pycrfsuite, tmp_path / "model", {}, xs, ys)
    ours = pycrfsuite.Tagger()
    ours.open(tmp_path / "model")
    ours.dump(tmp_path / "dump.txt")
    parser = CRFsuiteDumpParser()
    for line in (tmp_path / "dump.txt").read_text(encoding="utf-8").splitlines(keepends=True):
        parser.feed(line)
    assert parser.result.state_features == pytest.approx(ours.info().state_features, abs=1e-6)
    assert parser.result.transitions == pytest.approx(ours.info().transitions, abs=1e-6)


def test_held_out_groups(tmp_path):
    xs, ys = made_up(60)
    trainer = pycrfsuite.Trainer(verbose=False)
    for k, (x, y) in enumerate(zip(xs, ys, strict=True)):
        trainer.append(x, y, group=k % 3)
    trainer.train(str(tmp_path / "model"), holdout=2)
    last = trainer.logparser.last_iteration
    tagger = pycrfsuite.Tagger()
    tagger.open(tmp_path / "model")
    held = [(x, y) for k, (x, y) in enumerate(zip(xs, ys, strict=True)) if k % 3 == 2]
    right = sum(a == b for x, y in held for a, b in zip(tagger.tag(x), y, strict=True))
    total = sum(len(y) for _, y in held)
    # The reported accuracy belongs to the last certificate; the model may be a step further.
    assert last["item_accuracy_float"] == pytest.approx(right / total, abs=0.02)
    assert isinstance(last["scores"]["0"], LabelScore)
    assert trainer.logparser.featgen_num_features > 0
    assert [event for event, *_ in trainer.logparser.events][-2:] == ["optimization_end", "end"]


def test_log_parser_takes_numbers_from_lines():
    log = TrainLogParser()
    for line in [
        "Feature generation\n", "0", ".", "Number of features: 12\n", "Seconds required: 0.250\n", "\n",
        "***** Iteration #3 *****\n", "Loss: 17.500000\n", "Active features: 9\n",
        "    B: (1, 2, 4) (0.5000, 0.2500, 0.3333)\n", "    C: (0, 0, 0) (******, ******, ******)\n",
        "Item accuracy: 3 / 4 (0.7500)\n", "\n", "Total seconds required for training: 1.500\n", "Storing the model\n",
    ]:  # fmt: skip
        log.feed(line)
    assert (log.featgen_num_features, log.featgen_seconds, log.training_seconds) == (12, 0.25, 1.5)
    last = log.last_iteration
    assert (last["num"], last["loss"], last["active_features"], last["item_accuracy_float"]) == (3, 17.5, 9, 0.75)
    assert last["scores"] == {"B": (1, 2, 4, 0.5, 0.25, 0.3333), "C": (0, 0, 0, None, None, None)}


def test_arow_is_refused_with_what_to_use():
    trainer = pycrfsuite.Trainer("arow", verbose=False)
    trainer.append(X[0], Y[0])
    with pytest.raises(ValueError, match="use 'pa'"):
        trainer.train("never-written")


@pytest.mark.parametrize("bad", ["foo", ["foo"], [[1.0]], [[{"foo": 1.0}]], [{"foo": object()}], [{1: 2.0}], 3])
def test_bad_items(bad):
    with pytest.raises((ValueError, TypeError)):
        pycrfsuite.ItemSequence(bad)


def test_bad_use(tmp_path):
    tagger = pycrfsuite.Tagger()
    with pytest.raises(ValueError, match="no model is open"):
        tagger.tag(X[0])
    trainer = pycrfsuite.Trainer(verbose=False)
    with pytest.raises(ValueError, match="numbers of items and labels differ"):
        trainer.append(X[0], Y[1])
    trainer.append(X[0], Y[0])
    path = tmp_path / "model"
    trainer.train(str(path))
    tagger.open(path)
    with pytest.raises(ValueError, match="no sequence was given"):
        tagger.tag()
    tagger.set(X[0])
    with pytest.raises(ValueError, match="no label 'Z'"):
        tagger.marginal("Z", 0)
    with pytest.raises(ValueError, match="no item 3"):
        tagger.marginal("D", 3)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ModelFormatError, match="damaged"):
        tagger.open(path)
    assert tagger.labels() == ["D", "N", "V"]  # the previous model stays open


def test_odd_training_data_as_the_original(tmp_path):
    """Odd training data gives the original's answers: empty sequences, labels as bytes, a single label."""
    for number, (xs, ys) in enumerate(
        [([X[0], []], [Y[0], []]), ([X[0]], [[b"D", b"N", b"V"]]), ([X[1]], [["N", "N"]])]
    ):
        found = []
        for name, module in (("ours", pycrfsuite), ("theirs", original)):
            path = tmp_path / f"{name}{number}"
            theirs = trained(module, path, {}, xs, ys)
            ours = pycrfsuite.Tagger()
            ours.open(path)
            assert ours.labels() == theirs.labels()
            assert ours.tag(X[0]) == theirs.tag(X[0])
            label = ours.labels()[0]
            assert ours.marginal(label, 0) == pytest.approx(theirs.marginal(label, 0), abs=1e-9)
            found.append(ours.labels())
        assert sorted(found[0]) == sorted(found[1])


def test_no_training_data(tmp_path):
    pycrfsuite.Trainer(verbose=False).train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(tmp_path / "model")
    assert tagger.labels() == []
    assert tagger.info().attributes == {}


def test_bad_training_data():
    crf = sklearn_crfsuite.CRF()
    with pytest.raises(ValueError, match="numbers of sequences differ: 3 in X and 2 in y"):
        crf.fit(X, Y[:2])
    with pytest.raises(ValueError, match="c2 must be a finite number >= 0, got -1"):
        sklearn_crfsuite.CRF(c2=-1.0).fit(X, Y)
    with pytest.raises(TypeError, match="got 1"):
        crf.fit(X[:1], [[1, 2, 3]])
    with pytest.raises(ValueError, match="attribute 'w' has the value None"):
        crf.fit([[{"w": None}, {"w": 1}]], [["a", "b"]])
    as_arrays = np.empty(3, dtype=object)
    as_arrays[:] = X
    labels = np.empty(3, dtype=object)
    labels[:] = Y
    assert sklearn_crfsuite.CRF(c2=0.01).fit(as_arrays, labels, as_arrays, labels).score(X, Y) == 1.0


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa"])
def test_estimator(algorithm, tmp_path):
    xs, ys = made_up(80)
    crf = sklearn_crfsuite.CRF(algorithm, c2=0.01, max_iterations=30).fit(xs, ys)
    assert crf.score(xs, ys) > 0.75
    assert crf.predict(xs).tolist() == [crf.predict_single(x) for x in xs]
    marginals = crf.predict_marginals(xs[:2])
    assert marginals[1] == crf.predict_marginals_single(xs[1])
    again = pickle.loads(pickle.dumps(crf))
    assert again.predict(xs).tolist() == crf.predict(xs).tolist()
    assert again.modelfile.name != crf.modelfile.name
    assert clone(crf).get_params() == crf.get_params()
    with open(crf.modelfile.name, "rb") as file:
        assert crf.size_ == len(file.read())


def test_grid_search_with_its_scorers():
    xs, ys = made_up(60)
    search = GridSearchCV(
        sklearn_crfsuite.CRF(), {"c2": [0.1, 30.0]}, cv=2, scoring=scorers.flat_accuracy, error_score="raise"
    ).fit(xs, ys)
    assert search.best_params_ == {"c2": 0.1}
    assert metrics.sequence_accuracy_score(ys, search.predict(xs)) > 0


def test_a_program_that_imports_the_originals():
    program = """
import partwise.compat
partwise.compat.install()
import pycrfsuite, sklearn_crfsuite
from pycrfsuite._logparser import TrainLogParser
from sklearn_crfsuite import metrics, CRF
assert pycrfsuite.Trainer is partwise.compat.pycrfsuite.Trainer
crf = CRF(c1=0.1, c2=0.1).fit([[["a"], ["b"]]], [["x", "y"]])
assert crf.predict([[["a"], ["b"]]]).tolist() == [["x", "y"]]
print(metrics.flat_accuracy_score([["x"]], [["x"]]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("1.0\n", 0), done.stderr


def test_install_after_the_original_was_imported_is_refused():
    import partwise.compat

    assert sys.modules["pycrfsuite"] is original
    with pytest.raises(RuntimeError, match="imported already"):
        partwise.compat.install()


def test_threads_share_a_tagger(tmp_path):
    """Each thread gets the labels of its own sequence, even if another thread sets another sequence meanwhile."""
    xs, ys = made_up(60)
    trained(pycrfsuite, tmp_path / "model", {}, xs, ys)
    tagger = pycrfsuite.Tagger()
    tagger.open(tmp_path / "model")
    expected, wrong = [tagger.tag(x) for x in xs], []
    prepared = [pycrfsuite.ItemSequence(x) for x in xs]

    def work(seed):
        for i in np.random.default_rng(seed).integers(len(xs), size=100):
            given = xs[i] if seed % 2 else prepared[i]
            if tagger.tag(given) != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_answers_about_one_sequence_equal_the_originals(tmp_path):
    xs, ys = made_up(60)
    theirs = trained(pycrfsuite, tmp_path / "model", {"c1": 0.1}, xs, ys)
    ours = pycrfsuite.Tagger()
    ours.open(tmp_path / "model")
    for x, y in zip(xs, ys, strict=True):
        for given, other in ((x, x), (pycrfsuite.ItemSequence(x), original.ItemSequence(x))):
            ours.set(given)
            theirs.set(other)
            assert ours.tag() == theirs.tag()
            assert ours.probability(y) == pytest.approx(theirs.probability(y), abs=1e-9)
            for t in range(len(x)):
                assert ours.marginal(y[t], t) == pytest.approx(theirs.marginal(y[t], t), abs=1e-9)
    with pytest.raises(ValueError, match="labels"):
        ours.probability([*ys[-1], "0"])
    with pytest.raises(ValueError, match="no label 'none'"):
        ours.marginal("none", 0)
    with pytest.raises(ValueError, match="the model's labels are"):
        ours.probability(["none" for _ in ys[-1]])
