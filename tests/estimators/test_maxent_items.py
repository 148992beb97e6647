"""Classifiers on dicts and lists of strings, and the names of features."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import partwise
from partwise import MaxentClassifier, RegularizationPathCV

ITEMS = [
    {"word": "cat", "length": 3, "long": False, "ends": ["t", "at"]},
    {"word": "house", "length": 5, "long": True, "in": {"a": "b", "n": 2.0}},
    {"word": "dog", "length": 3},
    {"word": "horse", "length": 5, "long": True},
    {"word": "cat", "length": 3, "long": False},
    {"word": "mouse", "length": 5, "long": True, "in": {"n": 1.0}},
]
LABELS = np.array(["a", "b", "a", "c", "a", "b"])


def flat(item):
    """Flatten a dict as the item reader does, implemented independently."""
    found = {}
    for name, value in item.items():
        if isinstance(value, str):
            found[f"{name}={value}"] = 1.0
        elif isinstance(value, list):
            found.update({f"{name}={each}": 1.0 for each in value})
        elif isinstance(value, dict):
            found.update({f"{name}={key}": each for key, each in flat(value).items()})
        elif value:
            found[name] = float(value)
    return found


def by_hand(items, names):
    return np.array([[flat(item).get(name, 0.0) for name in names] for item in items])


@pytest.mark.parametrize("labels", [LABELS, np.where(LABELS == "c", "b", LABELS)])
def test_dicts_are_the_matrix_of_their_attributes(labels):
    model = MaxentClassifier(tol=1e-10).fit(ITEMS, labels)
    X = by_hand(ITEMS, model.attributes_)
    assert set(model.attributes_) == {name for item in ITEMS for name in flat(item)}
    other = MaxentClassifier(tol=1e-10).fit(X, labels)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(ITEMS), other.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(model.decision_function(ITEMS), other.decision_function(X), atol=1e-8)
    assert model.result_.primal == pytest.approx(other.result_.primal, rel=1e-9)
    assert model.predict(ITEMS).tolist() == other.predict(X).tolist()
    assert model.score(ITEMS, labels) == other.score(X, labels)


def test_lists_of_strings_count_repetitions():
    X = [["a", "b", "a"], ["b"], ["c", "c"], []]
    y = [0, 1, 2, 1]
    model = MaxentClassifier(tol=1e-10).fit(X, y)
    counts = np.array([[each.count(name) for name in model.attributes_] for each in X], dtype=float)
    other = MaxentClassifier(tol=1e-10).fit(counts, y)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(counts), atol=1e-8)
    assert model.explain(X[0]).difference == pytest.approx(other.explain(counts[0]).difference)


@pytest.mark.parametrize(
    "form", [list, tuple, lambda X: np.array(X, dtype=object), lambda X: pytest.importorskip("pandas").Series(X)]
)
def test_forms_of_a_collection(form):
    expected = MaxentClassifier().fit(ITEMS, LABELS).predict_proba(ITEMS)
    np.testing.assert_array_equal(MaxentClassifier().fit(form(ITEMS), LABELS).predict_proba(form(ITEMS)), expected)


def test_unknown_attributes_are_ignored_and_counted():
    model = MaxentClassifier().fit(ITEMS, LABELS)
    alone = model.predict_proba([{"length": 3}])
    np.testing.assert_array_equal(model.predict_proba([{"length": 3, "word": "newt", "x": 1.0, "y": 2}]), alone)
    model.predict([{"length": 3, "word": "newt", "x": 1.0, "y": 2}])
    assert model.unknown_rate_ == 0.75
    np.testing.assert_array_equal(model.predict_proba([[], {}])[0], model.predict_proba([[]])[0])


def test_rare_attributes_are_left_out():
    model = MaxentClassifier(min_count=2).fit(ITEMS, LABELS)
    assert set(model.attributes_) == {"word=cat", "length", "long", "in=n"}
    with pytest.raises(ValueError, match="no attribute that occurs 9 times"):
        MaxentClassifier(min_count=9).fit(ITEMS, LABELS)
    with pytest.raises(ValueError, match="min_count=2 is for rows that are dicts"):
        MaxentClassifier(min_count=2).fit(np.eye(6), LABELS)
    with pytest.raises(ValueError, match="min_count"):
        MaxentClassifier(min_count=0).fit(ITEMS, LABELS)


def test_nothing_is_learnt_from_rows_without_weight():
    weighed = MaxentClassifier(tol=1e-10).fit(ITEMS, LABELS, sample_weight=[1, 1, 1, 1, 1, 0])
    left_out = MaxentClassifier(tol=1e-10).fit(ITEMS[:5], LABELS[:5])
    assert weighed.attributes_ == left_out.attributes_
    assert "word=mouse" not in weighed.attributes_
    np.testing.assert_allclose(weighed.coef_, left_out.coef_, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"penalty": "l1", "C": 2.0}, {"loss": "hinge"}, {"class_weight": "balanced"}])
def test_files_and_pickles(tmp_path, options):
    model = MaxentClassifier(**options).fit(ITEMS, LABELS)
    model.save(tmp_path / "m.pw")
    for other in (partwise.load(tmp_path / "m.pw"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.decision_function(ITEMS), model.decision_function(ITEMS))
        assert set(other.attributes_) <= set(model.attributes_)
        nonzero = np.array(model.attributes_)[model.coef_.any(axis=0)]
        assert set(nonzero) <= set(other.attributes_)


def test_pruning_forgets_attributes(tmp_path):
    model = MaxentClassifier().fit(ITEMS, LABELS)
    model.prune(keep=3)
    assert len(model.attributes_) <= 3
    model.save(tmp_path / "m.pw")
    other = partwise.load(tmp_path / "m.pw")
    np.testing.assert_array_equal(other.decision_function(ITEMS), model.decision_function(ITEMS))
    model.prune(1e9)
    assert model.predict(ITEMS).tolist() == [model.classes_[np.argmax(model.intercept_)]] * 6


def test_partial_fit_knows_the_first_attributes():
    model = MaxentClassifier()
    model.partial_fit(ITEMS[:3], LABELS[:3], classes=["a", "b", "c"])
    known = model.attributes_
    model.partial_fit(ITEMS[3:], LABELS[3:])
    assert model.attributes_ == known
    assert "word=mouse" not in known
    assert model.predict(ITEMS).shape == (6,)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_warm_start_goes_by_names(penalty):
    labels = np.where(LABELS == "c", "b", LABELS) if penalty == "l1" else LABELS
    model = MaxentClassifier(warm_start=True, tol=1e-9, penalty=penalty).fit(ITEMS, labels)
    before = dict(zip(model.attributes_, model.coef_.T, strict=True))
    other = [*reversed(ITEMS), {"new": 1.0, "word": "newt"}]  # another order of the vocabulary
    prepared = model._prepare_fit(other, [*reversed(labels), "a"], None)
    carried = prepared.model.with_weights(prepared.options["warm_start"])
    names = carried.column_names()
    assert names[: len(before)] != list(before)
    for name, column in zip(names, carried.coef.T, strict=True):
        np.testing.assert_allclose(column, before.get(name, 0.0), atol=1e-15)


def test_searches_and_paths():
    X, y = ITEMS * 4, np.tile(LABELS, 4)
    assert cross_val_score(MaxentClassifier(), X, y, cv=2).mean() == 1.0
    search = GridSearchCV(MaxentClassifier(), {"C": [0.01, 1.0]}, cv=2).fit(X, y)
    assert search.predict(ITEMS).tolist() == LABELS.tolist()
    path = RegularizationPathCV(MaxentClassifier(), Cs=[0.1, 1.0], cv=2).fit(X, y)
    assert path.predict(ITEMS).tolist() == LABELS.tolist()
    assert clone(MaxentClassifier(min_count=3)).min_count == 3


# Names of features


def test_names_of_attributes_in_answers():
    model = MaxentClassifier().fit(ITEMS, LABELS)
    top = model.top_features(3)
    assert all(name in model.attributes_ for rows in top.labels.values() for name, _ in rows)
    why = model.explain(ITEMS[0])
    assert "word=cat" in {each.name for each in why.contributions}
    assert sum(each.amount for each in why.contributions) == pytest.approx(why.difference)


TEXTS = ["a cat sat", "the dog ran", "a cat ran", "the dog sat"]


def test_names_of_a_vectorizer(tmp_path):
    pipeline = make_pipeline(CountVectorizer(), MaxentClassifier()).fit(TEXTS, [0, 1, 0, 1])
    model = pipeline[-1]
    assert model.attributes_ is None
    assert isinstance(model.top_features(1).labels[0][0][0], int)
    model.set_feature_names(pipeline[:-1])
    assert model.attributes_ == ["cat", "dog", "ran", "sat", "the"]
    assert {name for name, _ in model.top_features(5).labels[0]} >= {"cat", "dog"}
    assert "cat" in str(model.explain(pipeline[:-1].transform(["a cat"])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # set_feature_names names features, and does not demand named input columns
        pipeline.predict(TEXTS)
    model.save(tmp_path / "m.pw")
    loaded = partwise.load(tmp_path / "m.pw")
    assert loaded.attributes_ == model.attributes_
    assert not hasattr(loaded, "feature_names_in_")
    assert model.set_feature_names(None).attributes_ is None


def test_names_given_to_fit():
    vectorizer = DictVectorizer()
    X = vectorizer.fit_transform([{"a": 1.0}, {"b": 2.0}, {"a": 1.0, "c": "d"}])
    model = MaxentClassifier().fit(X, [0, 1, 0], feature_names=vectorizer)
    assert model.attributes_ == ["a", "b", "c=d"]
    assert MaxentClassifier().fit(X, [0, 1, 0], feature_names=["x", "y", "z"]).attributes_ == ["x", "y", "z"]
    for wrong, message in ((["x"], "1 names for 3 columns"), ("xyz", "list of strings"), ([1, 2, 3], "column 0")):
        other = MaxentClassifier()
        with pytest.raises(ValueError, match=message):
            other.fit(X, [0, 1, 0], feature_names=wrong)
        assert not hasattr(other, "classes_")
    with pytest.raises(ValueError, match="have their names"):
        MaxentClassifier().fit(ITEMS, LABELS, feature_names=["x"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_a_data_frame(tmp_path, library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "size": [4.0, 1.0, 3.0, 0.0]})
    model = MaxentClassifier().fit(frame, [0, 1, 0, 1])
    assert model.attributes_ == ["age", "size"] == model.feature_names_in_.tolist()
    assert {name for name, _ in model.top_features().labels[0]} == {"age", "size"}
    assert {each.name for each in model.explain(frame[:1]).contributions} == {"age", "size", None}
    model.save(tmp_path / "m.pw")
    for other in (model, partwise.load(tmp_path / "m.pw")):
        assert other.predict(frame).tolist() == model.predict(frame).tolist()
        wrong = frames.DataFrame({"age": [1.0], "weight": [4.0]})
        with pytest.raises(ValueError, match=r"(?s)unseen at fit time.*weight.*missing.*size"):
            other.predict(wrong)
        with pytest.raises(ValueError, match="same order"):
            other.predict(frame[["size", "age"]])


def test_a_row_of_a_frame_is_explained():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "size": [4.0, 1.0, 3.0, 0.0]})
    model = MaxentClassifier().fit(frame, [0, 1, 0, 1])
    assert model.explain(frame.iloc[1]) == model.explain(frame.iloc[[1]])
    with pytest.raises(ValueError, match="one row, got 4"):
        model.explain(frame)


def test_names_through_a_pipeline_of_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "kind": ["x", "y", "x", "z"]})
    columns = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(sparse_output=False), ["kind"]))
    pipeline = make_pipeline(columns, MaxentClassifier()).set_output(transform="pandas").fit(frame, [0, 1, 0, 1])
    expected = ["standardscaler__age", "onehotencoder__kind_x", "onehotencoder__kind_y", "onehotencoder__kind_z"]
    assert pipeline[-1].attributes_ == expected
    plain = make_pipeline(clone(columns), MaxentClassifier()).set_output(transform="default").fit(frame, [0, 1, 0, 1])
    assert plain[-1].set_feature_names(plain[:-1]).attributes_ == expected


def test_other_data_drop_the_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0], "size": [4.0, 1.0]})
    model = MaxentClassifier().fit(frame, [0, 1]).set_feature_names(["p", "q"])
    assert model.attributes_ == ["p", "q"]
    model.fit(ITEMS, LABELS)
    assert not hasattr(model, "feature_names_in_")
    assert "length" in model.attributes_
    model.fit(np.eye(2), [0, 1])
    assert model.attributes_ is None
    assert model.n_features_in_ == 2


# Bad input


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([*ITEMS[:5], 3], "row 5: expected a list of strings or a dict, got int"),
        ([*ITEMS[:5], "word"], "row 5: expected a list of strings or a dict, got str"),
        ([*ITEMS[:5], {"x": None}], "row 5: attribute 'x' must be"),
        ([*ITEMS[:5], {3: 1.0}], "row 5: attribute names must be strings, got 3"),
        ([*ITEMS[:5], {"x": float("nan")}], "row 5, attribute 'x' is nan"),
        ([*ITEMS[:5], ["a", 3]], "row 5: attributes must be strings, got 3"),
        ([*ITEMS[:5], {"x": "\ud800"}], "row 5.*surrogate"),
        (["a", "b", "c", "d", "e", "f"], "list of strings: each row must be"),
        ([{}] * 6, "X has no attribute"),
        (ITEMS[:4], r"inconsistent numbers of samples: \[4, 6\]"),
    ],
)
def test_bad_items(X, message):
    with pytest.raises(ValueError, match=message):
        MaxentClassifier().fit(X, LABELS)
    if "no attribute" not in message and "inconsistent" not in message and "list of strings: each" not in message:
        with pytest.raises(ValueError, match=message):
            MaxentClassifier().fit(ITEMS, LABELS).predict(X)


def test_other_rows_than_in_training():
    items, matrix = MaxentClassifier().fit(ITEMS, LABELS), MaxentClassifier().fit(np.eye(6), LABELS)
    for wrong in (np.eye(6), sparse.csr_array(np.eye(6)), ["a"], [3]):
        with pytest.raises(ValueError, match="dicts or lists of strings, as in fit"):
            items.predict(wrong)
    for call in (matrix.predict, matrix.decision_function):
        with pytest.raises(ValueError, match="were rows of a matrix"):
            call(ITEMS)
    with pytest.raises(ValueError, match="were rows of a matrix"):
        matrix.explain(ITEMS[0])
    with pytest.raises(ValueError, match="row 1: label missing"):
        MaxentClassifier().fit(ITEMS, ["a", None, "a", "b", "b", "b"])


def test_cells_are_named():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    good = {"age": [1.0, 2.0, 3.0], "size": [4.0, 1.0, 2.0]}
    y = [0, 1, 0]
    cells = [
        (pandas.DataFrame({**good, "size": [4.0, "big", 1.0]}), "row 1, column 'size': 'big'"),
        (pandas.DataFrame({**good, "size": [4.0, 1.0, None]}), "row 2, column 'size': nan"),
        (polars.DataFrame({**good, "size": [4.0, 1.0, None]}), "row 2, column 'size': nan"),
        (polars.DataFrame({**good, "size": ["a", "2", "3"]}), "row 0, column 'size': 'a'"),
        (np.array([[1.0, 2.0], [3.0, np.inf], [0.0, 1.0]]), "row 1, column 1: inf"),
        (sparse.csr_array(np.array([[1.0, 2.0], [np.nan, 1.0], [0.0, 1.0]])), "row 1, column 0: nan"),
        ([[1.0, 2.0], [3.0, "x"], [0.0, 1.0]], "row 1, column 1: 'x'"),
    ]
    for X, message in cells:
        with pytest.raises(ValueError, match=message):
            MaxentClassifier().fit(X, y)
    model = MaxentClassifier().fit(pandas.DataFrame(good), y)
    with pytest.raises(ValueError, match="row 1, column 'size': 'big'"):
        model.predict(cells[0][0])
