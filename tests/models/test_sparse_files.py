"""Files of models with many zero weights hold the nonzero ones only: they are smaller and predict the same."""

from __future__ import annotations

import os

import numpy as np
import pytest

import partwise
from helpers.model_cases import (
    PARSERS,
    TAGGERS,
    fitted_classifier,
    fitted_labeler,
    fitted_parser,
    fitted_tagger,
    remade,
    sequences,
)
from partwise import ConstituencyParser, MaxentClassifier, ModelFormatError, SegmentTagger, SequenceTagger

CHUNKS = [["B-X", "I-X", "O", "B-Y"], ["O", "B-Y"], ["B-X", "O", "O"]]
WORDS = [[[f"w{k}", f"v{k % 2}", "one"] for k in range(len(row))] for row in CHUNKS]
TREES = [
    ("S", ("NP", ("D", "the"), ("N", "cat")), ("VP", ("V", "sat"))),
    ("S", ("NP", ("N", "dogs")), ("VP", ("V", "ate"), ("NP", ("D", "a"), ("N", "cat")))),
    ("S", ("VP", ("V", "ate"), ("NP", ("NP", ("N", "dogs")), ("PP", ("P", "with"), ("NP", ("N", "cats")))))),
    ("S", ("VP", ("VP", ("V", "ate"), ("NP", ("N", "dogs"))), ("PP", ("P", "with"), ("NP", ("N", "cats"))))),
]


def case(name):
    """Return a fitted estimator and input."""
    if name in TAGGERS:
        found = fitted_tagger(name)
        return found.estimator, found.X
    if name in PARSERS:
        found = fitted_parser(name)
        return found.estimator, found.X
    if name == "labeler":
        found = fitted_labeler()
        return found.estimator, found.X
    if name == "segments":
        return SegmentTagger(max_length=3).fit(WORDS, CHUNKS), WORDS
    return ConstituencyParser(tol=0.1).fit(TREES), [
        ["the", "cat", "ate", "dogs"],
        ["dogs", "ate", "dogs", "with", "cats"],
    ]


NAMES = [name for name in TAGGERS if "kernel" not in TAGGERS[name][1]] + [*PARSERS, "labeler", "segments", "phrases"]


#: Small models whose weights are mostly nonzero: storing the positions would take as much space as the zeros.
SMALL = ("arrays, hinge", "maxent, one tag back", "names, ends, all", "sparse", "labeler")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_zeros_are_dropped_and_answers_stay(name, share, tmp_path):
    model, X = case(name)
    model.save(tmp_path / "full.pw")
    assert sorted(partwise.load(tmp_path / "full.pw").result_.weights.tolist()) == sorted(model.coef_.tolist())
    sizes = np.abs(model.coef_)
    least = np.sort(sizes[sizes > 0])[-max(1, int(share * np.count_nonzero(sizes)))]
    model.coef_ = np.where(sizes >= least, model.coef_, 0.0)
    model.save(tmp_path / "sparse.pw")
    loaded = partwise.load(tmp_path / "sparse.pw")
    if name not in SMALL:
        assert os.path.getsize(tmp_path / "sparse.pw") < os.path.getsize(tmp_path / "full.pw")
    assert np.count_nonzero(loaded.coef_) == np.count_nonzero(model.coef_)
    assert list(loaded.predict(X)) == list(model.predict(X))
    if hasattr(model, "log_probability") and name not in ("phrases",) and not name.startswith("arrays, hinge"):
        np.testing.assert_allclose(
            loaded.log_probability(X, model.predict(X)), model.log_probability(X, model.predict(X)), rtol=1e-12
        )
    loaded.save(tmp_path / "again.pw")
    assert (tmp_path / "again.pw").read_bytes() == (tmp_path / "sparse.pw").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_no_weights_at_all(name, tmp_path):
    model, X = case(name)
    model.save(tmp_path / "full.pw")
    model.coef_ = np.zeros_like(model.coef_)
    model.save(tmp_path / "m.pw")
    loaded = partwise.load(tmp_path / "m.pw")
    assert list(loaded.predict(X)) == list(model.predict(X))
    assert not loaded.coef_.any()
    if name not in SMALL:
        assert os.path.getsize(tmp_path / "m.pw") < os.path.getsize(tmp_path / "full.pw")


def test_dense_models_keep_all_attributes(tmp_path):
    model, _ = case("names")
    model.save(tmp_path / "m.pw")
    assert partwise.load(tmp_path / "m.pw").attributes_ == model.attributes_
    few = np.flatnonzero(model.coef_)[:3]
    weights = model.coef_.copy()
    weights[few] = 0.0
    model.coef_ = weights
    model.save(tmp_path / "m.pw")
    assert partwise.load(tmp_path / "m.pw").attributes_ == model.attributes_


def test_an_l1_penalty_makes_small_files(tmp_path):
    arrays, y = sequences(0, 60, ["B", "I", "O"])
    X = [[[f"c{j}={v:g}" for j, v in enumerate(row)] + [f"{row.sum():g}"] for row in x] for x in arrays]
    sizes = {}
    for penalty in ("l2", "l1"):
        tagger = SequenceTagger(model="maxent", penalty=penalty, C=0.2).fit(X, y)
        tagger.save(tmp_path / "m.pw")
        loaded = partwise.load(tmp_path / "m.pw")
        assert loaded.predict(X) == tagger.predict(X)
        assert loaded.result_.n_nonzero == tagger.result_.n_nonzero
        assert loaded.result_.l1 == tagger.result_.l1
        sizes[penalty] = os.path.getsize(tmp_path / "m.pw")
    assert len(loaded.attributes_) < len(tagger.attributes_)
    assert sizes["l1"] < 0.8 * sizes["l2"]


def changed(name, change):
    def apply(metadata, settings, arrays):
        arrays[name] = change(arrays[name])

    return apply


def test_damaged_places_of_weights_are_refused(tmp_path):
    model, _ = case("parser, hashed, unlabelled")
    model.coef_ = np.where(np.abs(model.coef_) >= np.sort(np.abs(model.coef_))[-20], model.coef_, 0.0)
    model.save(tmp_path / "m.pw")
    data = (tmp_path / "m.pw").read_bytes()
    assert b'"format_version":"2"' in data
    for change in (
        changed("columns", lambda array: array[::-1].copy()),
        changed("columns", lambda array: np.full_like(array, array[0])),
        changed("columns", lambda array: array + 1024),
        changed("columns", lambda array: array[:-1]),
        changed("offsets", lambda array: array + 1),
        changed("weights", lambda array: array * np.nan),
        lambda metadata, settings, arrays: settings.update(n_features=2048),
        lambda metadata, settings, arrays: settings["arcs"].update(bits=31),
    ):
        (tmp_path / "bad.pw").write_bytes(remade(data, change))
        with pytest.raises(ModelFormatError):
            partwise.load(tmp_path / "bad.pw")


def test_damaged_columns_of_a_classifier_are_refused(tmp_path):
    model = fitted_classifier(["a", "b", "c"]).estimator
    coef = np.zeros_like(model.coef_)
    coef[1, :3] = 1.0
    model.coef_ = coef
    model.save(tmp_path / "m.pw")
    data = (tmp_path / "m.pw").read_bytes()
    assert isinstance(partwise.load(tmp_path / "m.pw"), MaxentClassifier)
    for places in ([0, 0, 1], [2, 1, 0], [0, 1, 4]):
        (tmp_path / "bad.pw").write_bytes(
            remade(data, changed("columns", lambda old, new=places: np.array(new, old.dtype)))
        )
        with pytest.raises(ModelFormatError):
            partwise.load(tmp_path / "bad.pw")
