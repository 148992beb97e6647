"""partial_fit: each call makes one pass over its examples; the first call fixes the features and labels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.feature_extraction import FeatureHasher

import partwise
from partwise import ConstituencyParser, DependencyParser, GraphLabeler, MaxentClassifier, SegmentTagger, SequenceTagger
from partwise.datasets import conll2000, make_treebank
from partwise.metrics import chunk_f1
from partwise.models import NotAvailable

N, CHUNK = 24, 6
ONLINE = {
    "perceptron": {"loss": "hinge", "solver": "perceptron", "solver_options": {"order": "cyclic"}},
    "mira": {"loss": "hinge", "solver": "mira", "solver_options": {"order": "cyclic", "k": 2}},
    "sgd": {
        "loss": "log",
        "solver": "sgd",
        "solver_options": {"order": "cyclic", "averaged": False, "step_size": 0.2, "n_examples": N},
    },
}


def sequences(seed: int, n: int = N):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, size=n)
    y = [rng.choice(["O", "B-x", "I-x"], size=length).tolist() for length in lengths]
    y[0] = ["O", "B-x", "I-x"] + ["O"] * (lengths[0] - 3) if lengths[0] >= 3 else y[0]
    return [rng.normal(size=(length, 4)) for length in lengths], y


def legal(seed: int):
    """Make sequences whose labels follow IOB2; predictions are then restricted to IOB2, training is not."""
    X, y = sequences(seed)
    for labels in y:
        for t, label in enumerate(labels):
            if label == "I-x" and (t == 0 or labels[t - 1] == "O"):
                labels[t] = "B-x"
    return X, y


def names(X):
    return [[[f"{j}{'+' if v > 0 else '-'}" for j, v in enumerate(row)] for row in x] for x in X]


def graphs(seed: int):
    X, y = sequences(seed)
    return [(x, np.array([(t, t + 1) for t in range(len(x) - 1)]).reshape(-1, 2)) for x in X], y


def rows(seed: int, n_labels: int = 3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, 4)), np.array(["p", "q", "r"])[np.arange(N) % n_labels]


def trees(seed: int):
    bank = make_treebank(N, seed, nonprojective=0.0)
    return [list(zip(words, tags, strict=True)) for words, tags in zip(bank.words, bank.tags, strict=True)], bank.heads


def chunks(X, y):
    return [(X[k : k + CHUNK], y[k : k + CHUNK]) for k in range(0, N, CHUNK)]


#: Estimators whose features do not depend on the examples of the first call.
CASES = {
    "tagger": (lambda **o: SequenceTagger(features="all", **o), sequences, ["O", "B-x", "I-x"]),
    "tagger, ends": (lambda **o: SequenceTagger(features="all", ends=True, **o), sequences, ["I-x", "O", "B-x"]),
    "tagger, legal": (lambda **o: SequenceTagger(features="all", **o), legal, ["O", "B-x", "I-x"]),
    "classifier": (MaxentClassifier, rows, ["p", "q", "r"]),
    "two classes": (MaxentClassifier, lambda seed: rows(seed, 2), ["p", "q"]),
    "graphs": (GraphLabeler, graphs, ["O", "B-x", "I-x"]),
    "parser": (lambda **o: DependencyParser(features="hashed", hash_bits=12, labels=False, **o), trees, None),
}


@pytest.mark.parametrize("solver", ONLINE)
@pytest.mark.parametrize("case", CASES)
def test_chunks_one_after_the_other_are_one_epoch(case, solver):
    make, data, classes = CASES[case]
    X, y = data(3)
    streamed = make(**ONLINE[solver])
    for k, (some, answers) in enumerate(chunks(X, y)):
        streamed.partial_fit(some, answers, classes=classes if k == 0 else None)
    whole = make(max_passes=1, tol=1e-9, **ONLINE[solver])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *args, **options: None)  # one pass of sgd does not converge
        whole.fit(X, y)
    np.testing.assert_allclose(streamed._model.weights, whole._model.weights, atol=1e-10)
    assert np.abs(whole._model.weights).max() > 0
    assert streamed.result_.status == "no certificate"
    assert streamed.result_.passes == 4.0
    assert "4 calls of partial_fit" in streamed.result_.message


class TestVocabulary:
    def test_unknown_features_are_left_out_and_unknown_labels_refused(self):
        X, y = sequences(0)
        tagger = SequenceTagger(features="all", solver="perceptron", loss="hinge").partial_fit(names(X), y)
        before = tagger.coef_.copy()
        new = [[["new=1", *row] for row in x] for x in names(X)]
        same = pickle.loads(pickle.dumps(tagger)).partial_fit(names(X), y)
        np.testing.assert_array_equal(tagger.partial_fit(new, y).coef_, same.coef_)
        assert not np.array_equal(tagger.coef_, before)
        with pytest.raises(ValueError, match="example 1 has an answer that this model cannot give"):
            tagger.partial_fit(names(X)[:2], [y[0], ["Z"] * len(y[1])])

    def test_classes(self):
        X, y = sequences(0)
        only = [["O"] * len(labels) for labels in y]
        tagger = SequenceTagger(features="all", loss="hinge", solver="mira")
        with pytest.raises(ValueError, match="one label only"):
            tagger.partial_fit(X, only)
        with pytest.raises(ValueError, match="label 'I-x', which is not among classes"):
            tagger.partial_fit(X, y, classes=["O", "B-x"])
        tagger.partial_fit(X, only, classes=["O", "B-x", "I-x"])
        assert tagger.classes_.tolist() == ["B-x", "I-x", "O"]
        tagger.partial_fit(X, y)
        assert any("B-x" in labels for labels in tagger.predict(X))
        with pytest.raises(ValueError, match="must be those of the first call"):
            tagger.partial_fit(X, y, classes=["O", "B-x"])
        with pytest.raises(ValueError, match="DependencyParser takes none"):
            DependencyParser().partial_fit(*trees(0), classes=[1])

    def test_a_hashed_vocabulary(self):
        X, y = sequences(0)
        hasher = FeatureHasher(n_features=64, input_type="string")
        hashed = [hasher.transform(x) for x in names(X)]
        tagger = SequenceTagger(features="all", loss="hinge", solver="perceptron")
        for k in range(0, N, CHUNK):
            tagger.partial_fit(hashed[k : k + CHUNK], y[k : k + CHUNK], classes=["O", "B-x", "I-x"])
        assert len(tagger.predict(hashed)) == N

    def test_rows_of_another_width(self):
        X, y = rows(0)
        classifier = MaxentClassifier().partial_fit(X, y, classes=["p", "q", "r"])
        with pytest.raises(ValueError, match="X has 3 features, but MaxentClassifier is expecting 4 features"):
            classifier.partial_fit(X[:, :3], y)
        with pytest.raises(ValueError, match="label 'z', which is not among the classes"):
            classifier.partial_fit(X, np.array(["z"] * N))


class TestSolvers:
    def test_auto_is_sgd_and_others_are_refused(self):
        X, y = sequences(0)
        for make in (SequenceTagger, DependencyParser):
            data = (X, y) if make is SequenceTagger else trees(0)
            assert make().partial_fit(*data).result_.solver == "sgd"
        with pytest.raises(ValueError, match=r"solver 'eg' needs all examples at once; .*sgd, perceptron, mira"):
            SequenceTagger(solver="eg").partial_fit(X, y)
        with pytest.raises(ValueError, match="solver 'mira' needs temperature 0"):
            SequenceTagger(solver="mira").partial_fit(X, y)
        for options in ({"penalty": "l1"}, {"penalty": "elasticnet"}):
            assert not hasattr(MaxentClassifier(**options), "partial_fit")
            with pytest.raises(AttributeError, match="no attribute 'partial_fit'"):
                MaxentClassifier(**options).partial_fit(*rows(0))
        assert hasattr(MaxentClassifier(penalty="elasticnet", l1_ratio=0.0), "partial_fit")

    def test_models_without_partial_fit(self):
        X, y = sequences(0)
        with pytest.raises(NotAvailable, match="not available with a kernel"):
            SequenceTagger(kernel="rbf", loss="hinge").partial_fit(X, y)
        with pytest.raises(NotAvailable, match="not available with model='maxent'"):
            SequenceTagger(model="maxent").partial_fit(X, y)
        with pytest.raises(ValueError, match="class_weight='balanced' is not available with partial_fit"):
            MaxentClassifier(class_weight="balanced").partial_fit(*rows(0), classes=["p", "q", "r"])

    def test_class_weights_are_those_of_fit(self):
        X, y = rows(0)
        options = ONLINE["perceptron"] | {"class_weight": {"p": 2.0, "r": 0.5}}
        streamed = MaxentClassifier(**options)
        for some, answers in chunks(X, y):
            streamed.partial_fit(some, answers, classes=["p", "q", "r"])
        whole = MaxentClassifier(max_passes=1, **options).fit(X, y)
        np.testing.assert_allclose(streamed.coef_, whole.coef_, atol=1e-12)


class TestState:
    def test_a_pickle_resumes_to_the_same_bits(self):
        X, y = sequences(0)
        tagger = SequenceTagger(features="all", loss="hinge", solver="sgd")
        one = tagger.partial_fit(X[:12], y[:12], classes=["O", "B-x", "I-x"])
        two = pickle.loads(pickle.dumps(one))
        for each in (one, two):
            each.partial_fit(X[12:], y[12:])
        np.testing.assert_array_equal(one.coef_, two.coef_)

    def test_a_model_file_resumes_from_its_weights(self, tmp_path):
        X, y = sequences(0)
        tagger = SequenceTagger(features="all", loss="hinge", solver="perceptron").partial_fit(X, y)
        tagger.save(tmp_path / "model.pw")
        loaded = partwise.load(tmp_path / "model.pw")
        assert loaded.result_.status == "no certificate"
        assert np.isnan(loaded.result_.primal)
        np.testing.assert_array_equal(loaded.coef_, tagger.coef_)
        loaded.partial_fit(X, y)
        assert loaded.result_.passes == 1.0
        assert not np.array_equal(loaded.coef_, tagger.coef_)

    def test_fit_first_then_new_examples(self):
        X, y = sequences(0)
        fitted = SequenceTagger(features="all", loss="hinge", tol=1e-2).fit(X, y)
        weights = fitted.coef_.copy()
        fitted.set_params(solver="sgd", solver_options={"step_size": 1e-9}).partial_fit(X, y)
        np.testing.assert_allclose(fitted.coef_, weights, atol=1e-6)
        assert fitted.fit(X, y)._stream is None  # fit starts anew

    def test_an_error_does_not_change_the_estimator(self):
        X, y = sequences(0)
        tagger = SequenceTagger(features="all", loss="hinge", solver="perceptron").partial_fit(X, y)
        before = pickle.dumps(tagger)
        with pytest.raises(ValueError, match="sample_weight"):
            tagger.partial_fit(X, y, sample_weight=[1.0])
        with pytest.raises(ValueError, match="at least one non-zero"):
            tagger.partial_fit(X, y, sample_weight=np.zeros(N))
        assert pickle.dumps(tagger) == before

    def test_sample_weight_zero_is_absence(self):
        X, y = sequences(0)
        omega = np.ones(N)
        omega[[3, 5]] = 0.0
        keep = np.flatnonzero(omega)
        make = CASES["tagger"][0]
        one, two = (make(**ONLINE["perceptron"]).partial_fit(X, y) for _ in range(2))
        one.partial_fit(X, y, sample_weight=omega)
        two.partial_fit([X[i] for i in keep], [y[i] for i in keep])
        np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-12)


def test_segments_and_phrases():
    X, y = sequences(0)
    tagger = SegmentTagger(loss="hinge", solver="perceptron", max_length=8).partial_fit(X, y).partial_fit(X, y)
    assert len(tagger.predict(X)) == N
    bank = [
        ("S", ("NP", ("D", "the"), ("N", "cat")), ("V", "sat")),
        ("S", ("NP", ("D", "a"), ("N", "dog")), ("V", "ran")),
    ]
    parser = ConstituencyParser(loss="hinge", solver="mira").partial_fit(bank).partial_fit(bank)
    assert parser.result_.passes == 2.0
    other = [("S", ("V", "sat"), ("NP", ("D", "the"), ("N", "cat")))]
    with pytest.raises(ValueError, match="example 0 has an answer that this model cannot give"):
        parser.partial_fit(other)


@pytest.mark.slow  # reading the data takes most of the time
def test_chunking(data_dir):
    """On 1000 sentences, five passes of an online method come near the F1 of the optimum."""
    X_train, y_train, X_test, y_test = conll2000(data_dir)
    X, y = X_train[:1000], y_train[:1000]
    scores = {}
    for loss, solver, passes in (
        ("hinge", "perceptron", 5),
        ("hinge", "mira", 5),
        ("log", "sgd", 8),
        ("log", "eg", None),
    ):
        tagger = SequenceTagger(loss=loss, solver=solver, max_passes=passes, tol=1e-3 if passes is None else 0.0)
        scores[solver] = chunk_f1(y_test[:500], tagger.fit(X, y).predict(X_test[:500]))
    assert scores["eg"] > 0.89
    assert min(scores.values()) > scores["eg"] - 0.015
    streamed = SequenceTagger(loss="hinge", solver="perceptron")
    for _ in range(3):
        for k in range(0, 1000, 250):
            streamed.partial_fit(
                X[k : k + 250], y[k : k + 250], classes=sorted({label for each in y for label in each})
            )
    # partial_fit has the features of the first 250 sentences only
    assert chunk_f1(y_test[:500], streamed.predict(X_test[:500])) > scores["eg"] - 0.04
