"""Readers of data files, on small files made here, and on the real data if their folder is given."""

import gzip
import os
import re

import numpy as np
import pytest

from partwise.datasets import conll2000, data_file, mnist, ocr_letters, read_columns, read_idx

needs_data = pytest.mark.skipif(not os.environ.get("PARTWISE_DATA"), reason="PARTWISE_DATA is not set")

SENTENCES = "He PRP B-NP\nran VBD B-VP\n\n\nWe PRP B-NP\n"


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_columns(tmp_path, pack):
    path = tmp_path / "text"
    path.write_bytes(pack(SENTENCES.encode()))
    assert read_columns(path) == [
        [["He", "ran"], ["PRP", "VBD"], ["B-NP", "B-VP"]],
        [["We"], ["PRP"], ["B-NP"]],
    ]


def test_columns_with_a_separator_keep_spaces(tmp_path):
    path = tmp_path / "text"
    path.write_text("New York\tB-LOC\n")
    assert read_columns(path, separator="\t") == [[["New York"], ["B-LOC"]]]


def test_ragged_columns_name_the_line(tmp_path):
    path = tmp_path / "text"
    path.write_text("a X\n\nb\n")
    with pytest.raises(ValueError, match=r":3:2: 1 column where"):
        read_columns(path)


def test_no_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("PARTWISE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="PARTWISE_DATA"):
        conll2000()


def test_folder_from_argument_goes_before_the_environment(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name / "set").mkdir(parents=True)
        (tmp_path / name / "set" / "file.gz").write_bytes(b"")
    monkeypatch.setenv("PARTWISE_DATA", str(tmp_path / "a"))
    assert data_file("set", "file") == tmp_path / "a" / "set" / "file.gz"
    assert data_file("set", "file", tmp_path / "b") == tmp_path / "b" / "set" / "file.gz"
    with pytest.raises(FileNotFoundError, match=r"neither other nor other\.gz"):
        data_file("set", "other")


def test_conll2000(tmp_path):
    (tmp_path / "conll2000").mkdir()
    (tmp_path / "conll2000" / "train.txt").write_text(SENTENCES)
    (tmp_path / "conll2000" / "test.txt.gz").write_bytes(gzip.compress(b"Go VB B-VP\n"))
    X_train, y_train, X_test, y_test = conll2000(tmp_path)
    assert y_train == [["B-NP", "B-VP"], ["B-NP"]]
    assert y_test == [["B-VP"]]
    assert [len(x) for x in X_train] == [2, 1]
    assert X_test == [[["w[0]=Go", "pos[0]=VB", "__BOS__", "__EOS__"]]]


def test_conll2000_with_a_column_missing(tmp_path):
    (tmp_path / "conll2000").mkdir()
    (tmp_path / "conll2000" / "train.txt").write_text("He B-NP\n")
    with pytest.raises(ValueError, match="2 columns"):
        conll2000(tmp_path)


def test_mnist(tmp_path):
    (tmp_path / "mnist").mkdir()
    images = np.arange(3 * 4).reshape(3, 2, 2)
    for name in ("train", "t10k"):
        (tmp_path / "mnist" / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (tmp_path / "mnist" / f"{name}-labels-idx1-ubyte").write_bytes(idx(np.array([7, 0, 9])))
    data = mnist(tmp_path)
    np.testing.assert_allclose(data.X_train, images.reshape(3, 4) / 255)
    np.testing.assert_array_equal(data.y_test, [7, 0, 9])


@pytest.mark.parametrize("damage", [b"", b"\x00\x00\x08", b"\x00\x00\x0d\x01", b"\x00\x00\x08\x03\x00"])
def test_damaged_idx(tmp_path, damage):
    path = tmp_path / "x"
    path.write_bytes(damage)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_idx(path)


def test_truncated_idx(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(idx(np.zeros((2, 3)))[:-1])
    with pytest.raises(ValueError, match="5 values do not fill"):
        read_idx(path)


def test_ocr_letters(tmp_path):
    (tmp_path / "ocr-letters").mkdir()
    ones = "01" * 64
    rows = [f"0 a 0 0 0 {ones}", f"0 b 1 0 1 {ones}", f"1 c 0 3 1 {'0' * 128}"]
    (tmp_path / "ocr-letters" / "letters.tsv").write_text("\n".join(rows).replace(" ", "\t") + "\n")
    data = ocr_letters(tmp_path)
    assert (data.y_train, data.y_test) == ([["c"]], [["a", "b"]])
    np.testing.assert_array_equal(data.X_test[0], np.tile([0.0, 1.0], (2, 64)))
    assert ocr_letters(tmp_path, test_folds=[3]).y_train == [["a", "b"]]
    with pytest.raises(ValueError, match="fold 5"):
        ocr_letters(tmp_path, test_folds=[5])


def test_ocr_letters_with_pixels_missing(tmp_path):
    (tmp_path / "ocr-letters").mkdir()
    (tmp_path / "ocr-letters" / "letters.tsv").write_text("0\ta\t0\t0\t1\t0101\n")
    with pytest.raises(ValueError, match="line 1"):
        ocr_letters(tmp_path)


@needs_data
def test_real_conll2000():
    data = conll2000()
    assert (len(data.X_train), len(data.X_test)) == (8936, 2012)
    assert (sum(map(len, data.y_train)), sum(map(len, data.y_test))) == (211727, 47377)
    assert len({label for labels in data.y_train for label in labels}) == 22


@needs_data
def test_real_mnist():
    data = mnist()
    assert data.X_train.shape == (60000, 784)
    assert data.X_test.shape == (10000, 784)
    assert (data.X_train.min(), data.X_train.max()) == (0.0, 1.0)
    np.testing.assert_array_equal(np.unique(data.y_test), np.arange(10))


@needs_data
def test_real_ocr_letters():
    data = ocr_letters(test_folds=range(1, 10))
    words = data.y_train + data.y_test
    assert len(words) == 6877
    assert sum(map(len, words)) == 52152
    assert len({letter for word in words for letter in word}) == 26
    assert {x.shape[1] for x in data.X_train} == {128}
