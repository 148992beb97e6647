"""Loaded estimators equal the saved ones; files are valid safetensors; a failed save leaves no partial file."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partwise
from helpers.model_cases import TAGGERS, as_names, fitted_classifier, fitted_tagger, kernel_columns, sequences
from partwise import DependencyParser, MaxentClassifier, RegularizationPathCV, SequenceTagger
from partwise.io import read_conllu
from partwise.model_files.values import decode_labels
from partwise.problem.losses import Loss
from partwise.solvers import EG

HERE = Path(__file__).resolve().parent


def saved_and_loaded(estimator, folder, dtype="float64"):
    path = folder / "model.pw"
    estimator.save(path, dtype=dtype)
    assert [entry.name for entry in folder.iterdir()] == ["model.pw"]
    return partwise.load(path)


def same_result(a, b):
    for name in ("primal", "dual", "gap", "passes", "seconds", "status", "solver", "l2", "message"):
        assert getattr(a, name) == getattr(b, name), name
    assert a.history.keys() == b.history.keys()
    for name, column in a.history.items():
        np.testing.assert_array_equal(column, b.history[name])


@pytest.mark.parametrize("name", TAGGERS)
def test_taggers(name, tmp_path):
    case = fitted_tagger(name)
    old, new = case.estimator, saved_and_loaded(case.estimator, tmp_path)
    assert type(new) is SequenceTagger
    assert new.predict(case.X) == old.predict(case.X)
    np.testing.assert_array_equal(new.coef_, old.coef_)
    np.testing.assert_array_equal(new.classes_, old.classes_)
    for a, b in zip(new.decision_function(case.X), old.decision_function(case.X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert new.get_params() == old.get_params()
    assert new.attributes_ == old.attributes_
    if old.kernel is None:
        assert new.state_features_ == old.state_features_
        assert new.transition_features_ == old.transition_features_
        assert new.boundary_features_ == old.boundary_features_
    same_result(new.result_, old.result_)
    # saving the loaded model gives the same bytes
    first = (tmp_path / "model.pw").read_bytes()
    new.save(tmp_path / "model.pw")
    assert (tmp_path / "model.pw").read_bytes() == first


def test_a_precomputed_kernel(tmp_path):
    arrays, y = sequences(0, 20, ["a", "b"])
    fresh, _ = sequences(1, 5, ["a", "b"])
    old = SequenceTagger(kernel="precomputed", loss="hinge", random_state=0)
    old.fit(kernel_columns(arrays, arrays), y)
    new = saved_and_loaded(old, tmp_path)
    X = kernel_columns(fresh, arrays)
    assert new.predict(X) == old.predict(X)


@pytest.mark.parametrize("labels", [[0, 1], ["yes", "no"], [3, 5, 7], [1.0, 2.0, 3.0], [False, True], ["a", "b", "ç"]])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_classifiers(labels, fit_intercept, tmp_path):
    case = fitted_classifier(labels, fit_intercept=fit_intercept)
    old, new = case.estimator, saved_and_loaded(case.estimator, tmp_path)
    assert type(new) is MaxentClassifier
    np.testing.assert_array_equal(new.predict_proba(case.X), old.predict_proba(case.X))
    np.testing.assert_array_equal(new.predict(case.X), old.predict(case.X))
    assert new.classes_.dtype == old.classes_.dtype
    np.testing.assert_allclose(new.result_.weights, old.result_.weights, atol=1e-7)
    same_result(new.result_, old.result_)


def test_names_of_columns_are_kept(tmp_path):
    case = fitted_classifier(["a", "b"])
    case.estimator.feature_names_in_ = np.array(["one", "two", "three", "vier ü"], dtype=object)
    new = saved_and_loaded(case.estimator, tmp_path)
    assert new.feature_names_in_.tolist() == ["one", "two", "three", "vier ü"]


def test_a_loaded_model_can_be_trained_further(tmp_path):
    arrays, y = sequences(0, 25, ["B", "I", "O"])
    old = SequenceTagger(warm_start=True, solver="lbfgs", tol=1e-9).fit(as_names(arrays), y)
    new = saved_and_loaded(old, tmp_path).fit(as_names(arrays), y)
    assert new.result_.passes < 0.5 * old.result_.passes
    np.testing.assert_allclose(new.coef_, old.coef_, atol=1e-3)
    case = fitted_classifier(["a", "b", "c"], warm_start=True, solver="lbfgs", tol=1e-9)
    X = np.random.default_rng(0).normal(size=(40, 4))
    loaded = saved_and_loaded(case.estimator, tmp_path)
    assert loaded.fit(X, case.estimator.predict(X)).result_.converged


def test_float32_is_smaller_and_rounds_weights_alone(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 500))
    old = MaxentClassifier().fit(X, rng.integers(0, 3, size=60))
    saved_and_loaded(old, tmp_path)
    full = (tmp_path / "model.pw").stat().st_size
    new = saved_and_loaded(old, tmp_path, dtype="float32")
    assert (tmp_path / "model.pw").stat().st_size < 0.7 * full
    np.testing.assert_array_equal(new.coef_, old.coef_.astype(np.float32).astype(np.float64))
    assert new.result_.primal == old.result_.primal
    old.coef_ = old.coef_ * 1e300
    with pytest.raises(ValueError, match="too large for float32"):
        old.save(tmp_path / "model.pw", dtype="float32")
    with pytest.raises(ValueError, match="dtype must be"):
        old.save(tmp_path / "model.pw", dtype="float16")


@pytest.mark.parametrize(
    "labels",
    [["a", 1, True, 2.5, ("x", 3)], ["", "\x00", "a\x00", "\ufeff", "\u2028", "é", "e\u0301"], [1 << 70, -1, 0]],
    ids=["mixed", "odd strings", "large ints"],
)
def test_labels_of_many_types(labels, tmp_path):
    # True equals 1, so they would be one label
    labels = [label for label in labels if label is not True]
    case = fitted_tagger("names", labels)
    new = saved_and_loaded(case.estimator, tmp_path)
    assert new.classes_.tolist() == case.estimator.classes_.tolist()
    assert [type(label) for label in new.classes_.tolist()] == [
        type(label) for label in case.estimator.classes_.tolist()
    ]
    assert new.predict(case.X) == case.estimator.predict(case.X)


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ([frozenset({1}), frozenset({2})], "frozenset cannot be saved"),
        ([b"a", b"b"], "bytes cannot be saved"),
        (["a", "\ud800"], "lone surrogate"),
    ],
)
def test_labels_that_no_file_can_hold(labels, why, tmp_path):
    case = fitted_tagger("names", labels)
    with pytest.raises(ValueError, match=why):
        case.estimator.save(tmp_path / "model.pw")
    assert list(tmp_path.iterdir()) == []


def test_a_long_label_costs_its_own_length(tmp_path):
    """One long label does not make all labels long, as NumPy strings would: 3.9 GB for 20,000 labels."""
    labels = [f"l{k}" for k in range(300)] + ["x" * 50_000]
    classes = decode_labels({"dtype": "str", "values": labels})
    assert classes.dtype == object
    assert classes.tolist() == labels
    assert decode_labels({"dtype": "str", "values": labels[:-1]}).dtype.kind == "U"

    X, y = [[["a"], ["b"], ["c"]]] * 3, [["A", "B", "x" * 50_000]] * 3
    tagger = SequenceTagger(tol=0.1).fit(X, y)
    assert tagger.classes_.dtype == object
    tagger.save(tmp_path / "tagger.pw")
    assert partwise.load(tmp_path / "tagger.pw").predict(X) == y

    words, trees = [[("a", "X"), ("b", "Y")]] * 3, [[(0, "root"), (1, "x" * 50_000)]] * 3
    parser = DependencyParser(tol=0.1).fit(words, trees)
    parser.save(tmp_path / "parser.pw")
    assert partwise.load(tmp_path / "parser.pw").predict(words) == trees

    rows, names = np.eye(3), ["a", "b", "x" * 50_000]
    classifier = MaxentClassifier().fit(rows, names)
    assert classifier.classes_.dtype == object
    classifier.save(tmp_path / "classifier.pw")
    loaded = partwise.load(tmp_path / "classifier.pw")
    assert loaded.classes_.dtype == object
    assert loaded.predict(rows).tolist() == names


def test_names_that_are_not_utf8(tmp_path):
    with pytest.raises(ValueError, match=r"sequence 0, position 1: .*lone surrogate"):
        SequenceTagger().fit([[["a"], ["\udc80"]]], [["x", "y"]])
    tagger = SequenceTagger().fit([[["a"], ["b"]]], [["x", "\udc80"]])
    with pytest.raises(ValueError, match="lone surrogate"):
        tagger.save(tmp_path / "model.pw")
    assert list(tmp_path.iterdir()) == []


def test_parameters_of_every_kind(tmp_path):
    arrays, y = sequences(0, 15, ["a", "b"])
    old = SequenceTagger(
        loss=Loss("log", temperature=0.5, cost_scale=0.25), solver=EG(), random_state=np.random.default_rng(0), tol=1e-2
    ).fit(as_names(arrays), y)
    new = saved_and_loaded(old, tmp_path)
    assert new.loss == old.loss
    assert new.solver == old.solver
    assert new.random_state is None
    X = np.random.default_rng(0).normal(size=(20, 3))
    weighted = MaxentClassifier(class_weight={0: 1.0, 1: 2.0}, solver="eg", solver_options={"schedule": "cyclic"})
    weighted.solver_options = None
    new = saved_and_loaded(weighted.fit(X, (X[:, 0] > 0).astype(int)), tmp_path)
    assert new.class_weight == {0: 1.0, 1: 2.0}
    weighted.class_weight = object()
    with pytest.raises(ValueError, match="class_weight"):
        weighted.save(tmp_path / "model.pw")


def test_the_best_of_a_path(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    chosen = RegularizationPathCV(MaxentClassifier(), Cs=[0.1, 1.0], cv=2).fit(X, (X[:, 0] > 0).astype(int))
    chosen.save(tmp_path / "model.pw")
    loaded = partwise.load(tmp_path / "model.pw")
    assert loaded.C == chosen.C_
    np.testing.assert_array_equal(loaded.predict(X), chosen.predict(X))


def test_the_container_is_safetensors(tmp_path):
    from safetensors import safe_open

    case = fitted_tagger("names")
    case.estimator.save(tmp_path / "model.pw")
    with safe_open(tmp_path / "model.pw", framework="numpy") as file:
        metadata = file.metadata()
        weights = file.get_tensor("model.nodes.weights")
        names = bytes(file.get_tensor("reader.bytes"))
    assert metadata["format_version"] == "1"
    assert set(weights.tolist()) == set(case.estimator.state_features_.values())
    assert names.decode() == "".join(case.estimator.attributes_)


def test_not_fitted(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        SequenceTagger().save(tmp_path / "model.pw")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    case = fitted_classifier(["a", "b"])
    path = tmp_path / "model.pw"
    case.estimator.save(path)
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        case.estimator.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.pw"]
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError):
        case.estimator.save(tmp_path / "nowhere" / "model.pw")


def test_standard_streams(tmp_path):
    case = fitted_classifier(["a", "b"])
    case.estimator.save(tmp_path / "model.pw")
    program = "import partwise; partwise.load('-').save('-')"
    data = (tmp_path / "model.pw").read_bytes()
    again = subprocess.run([sys.executable, "-c", program], input=data, stdout=subprocess.PIPE, check=True)
    assert again.stdout == data
    with pytest.raises(ValueError, match="not compressed"):
        case.estimator.save(tmp_path / "model.pw.gz")


def test_estimators_still_pickle():
    case = fitted_tagger("dicts, conditioned")
    assert pickle.loads(pickle.dumps(case.estimator)).predict(case.X) == case.estimator.predict(case.X)


@pytest.mark.parametrize("name", sorted(path.stem for path in (HERE / "releases").glob("*.pw")))
def test_models_of_every_release(name, tmp_path):
    """Model files of every release load, and predict what they predicted then."""
    model = partwise.load(HERE / "releases" / f"{name}.pw")
    record = json.loads((HERE / "releases" / f"{name}.json").read_text())
    X = record["X"]
    if record["form"] == "rows":
        X = np.array(X)
    elif record["form"] == "arrays":
        X = [np.array(x) for x in X]
    elif record["form"] == "tokens":
        X = [[tuple(token) for token in sentence] for sentence in X]
    elif record["form"] == "conllu":
        (tmp_path / "x.conllu").write_text(X)
        X = read_conllu(tmp_path / "x.conllu")
    y = model.predict(X)
    assert json.loads(json.dumps(y.tolist() if isinstance(y, np.ndarray) else y)) == record["y"]
    assert model.result_.primal == record["primal"]


def test_there_are_models_of_releases():
    assert len(list((HERE / "releases").glob("0.1.0-*.pw"))) >= 11
