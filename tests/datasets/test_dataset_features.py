"""Chunking attributes follow the templates given as data; digit strings have their documented properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from oracles.chunking import TEMPLATES, by_templates
from partwise.datasets import chunk_features, conll2000, digit_strings, pos_features
from partwise.datasets.builtin import transition_matrix


@given(st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from(["X", "Y"])), max_size=7))
def test_chunk_features_follow_the_templates(pairs):
    words, tags = [w for w, _ in pairs], [p for _, p in pairs]
    assert chunk_features(words, tags) == by_templates(words, tags)


def test_there_are_nineteen_templates():
    assert len(TEMPLATES) == 19
    assert len(chunk_features(list("abcde"), list("VWXYZ"))[2]) == 19


def test_unequal_lengths():
    with pytest.raises(ValueError, match="2 tokens but 1"):
        chunk_features(["a", "b"], ["X"])


def test_digit_strings_shapes_and_seed():
    a, b, c = digit_strings(20, seed=3), digit_strings(20, seed=3), digit_strings(20, seed=4)
    assert (len(a.X_train), len(a.X_test)) == (20, 10)
    for x, y in zip(a.X_train + a.X_test, a.y_train + a.y_test, strict=True):
        assert x.shape == (len(y), 64)
        assert 4 <= len(y) <= 12
    assert all(np.array_equal(p, q) for p, q in zip(a.X_train + a.y_test, b.X_train + b.y_test, strict=True))
    assert not np.array_equal(a.X_train[0], c.X_train[0])


def test_digit_strings_share_no_picture_between_training_and_test():
    data = digit_strings(60, seed=1, noise=0.0)
    train = {row.tobytes() for x in data.X_train for row in x}
    test = {row.tobytes() for x in data.X_test for row in x}
    assert not train & test
    images, labels = load_digits(return_X_y=True)
    label_of = {row.tobytes(): label for row, label in zip(images / 16.0, labels, strict=True)}
    for x, y in zip(data.X_train, data.y_train, strict=True):
        assert [label_of[row.tobytes()] for row in x] == list(y)


def test_digit_strings_follow_their_chain():
    matrix = transition_matrix()
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    counts = np.zeros((10, 10))
    for y in digit_strings(1500, seed=0).y_train:
        np.add.at(counts, (y[:-1], y[1:]), 1)
    rows = counts.sum(axis=1, keepdims=True)
    # the tolerance is four standard errors of each frequency
    assert np.all(np.abs(counts / rows - matrix) <= 4 * np.sqrt(matrix * (1 - matrix) / rows))


@pytest.mark.parametrize(
    "options", [{"n": 0}, {"n": 3, "n_test": 0}, {"n": 3, "noise": -1.0}, {"n": 3, "noise": np.nan}]
)
def test_digit_strings_bad_options(options):
    with pytest.raises(ValueError, match=r"n=|noise="):
        digit_strings(**options)


def test_part_of_speech_attributes():
    first, second = pos_features(["F-16s", "go"])
    assert first[:5] == ["w[-2]=__NONE__", "w[-1]=__NONE__", "w[0]=F-16s", "w[1]=go", "w[2]=__NONE__"]
    assert first[5:13] == [
        *("prefix=F", "prefix=F-", "prefix=F-1", "prefix=F-16"),
        *("suffix=s", "suffix=6s", "suffix=16s", "suffix=-16s"),
    ]
    assert first[13:] == ["digit", "upper", "hyphen"]
    assert second[5:] == ["prefix=g", "prefix=go", "suffix=o", "suffix=go"]
    assert pos_features([]) == []


def test_tasks_of_the_chunking_data(tmp_path):
    folder = tmp_path / "conll2000"
    folder.mkdir()
    for name in ("train.txt", "test.txt"):
        (folder / name).write_text("Go VB B-VP\nnow RB B-ADVP\n\n")
    X, y, _, _ = conll2000(tmp_path, task="pos")
    assert (X, y) == ([pos_features(["Go", "now"])], [["VB", "RB"]])
    assert conll2000(tmp_path).y_train == [["B-VP", "B-ADVP"]]
    with pytest.raises(ValueError, match="task must be 'chunks' or 'pos'"):
        conll2000(tmp_path, task="tags")
