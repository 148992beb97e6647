"""Reading and writing the svmlight format."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from partwise.io import FormatError, parse_svmlight, read_svmlight, write_svmlight
from partwise.io.svmlight import MAX_FEATURES, in_proportion

TEXT = b"# a comment\n+1 1:0.5 3:-2 \r\n-1\t2:1e-3 # 7:7\n\n1\n"


def written(tmp_path, data):
    path = tmp_path / "rows"
    path.write_bytes(data)
    return path


def test_rows(tmp_path):
    X, y = read_svmlight(written(tmp_path, TEXT))
    assert y.dtype == np.int64
    assert y.tolist() == [1, -1, 1]
    assert X.toarray().tolist() == [[0.5, 0, -2], [0, 1e-3, 0], [0, 0, 0]]
    wide, _ = read_svmlight(tmp_path / "rows", n_features=5)
    assert wide.shape == (3, 5)
    with pytest.raises(ValueError, match="3 columns"):
        read_svmlight(tmp_path / "rows", n_features=2)
    X, y = read_svmlight(written(tmp_path, b"\xef\xbb\xbf0.5 0:1\n"), zero_based=True)
    assert (X.toarray().tolist(), y.tolist()) == ([[1.0]], [0.5])
    assert read_svmlight(written(tmp_path, b""))[0].shape == (0, 0)
    assert read_svmlight(written(tmp_path, b"1 1:1e-999\n"))[0].toarray().tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("data", "line", "column", "message"),
    [
        (b"1 1:1\nx 1:1\n", 2, 1, "label"),
        (b"1,2 1:1\n", 1, 1, "label"),
        (b"nan 1:1\n", 1, 1, "label"),
        (b"1 1:1 2\n", 1, 7, "index:value"),
        (b"1 :1\n", 1, 3, "index"),
        (b"1 a:1\n", 1, 3, "index"),
        (b"1 1.5:1\n", 1, 3, "index"),
        (b"1 0:1\n", 1, 3, "counted from 1"),
        (b"1 -1:1\n", 1, 3, "counted from 1"),
        (b"1 99999999999:1\n", 1, 3, "too large"),
        (b"1 99999999999999999999999:1\n", 1, 3, "index"),
        (b"1 2:1 2:1\n", 1, 7, "increase"),
        (b"1 2:1\n1 3:1 1:1\n", 2, 7, "increase"),
        (b"1 1:\n", 1, 5, "value"),
        (b"1 1:a\n", 1, 5, "value"),
        (b"1 1:1:1\n", 1, 5, "value"),
        (b"1 1:inf\n", 1, 5, "value"),
        (b"1 1:1e999\n", 1, 5, "value"),
        (b"1 1:0x10\n", 1, 5, "value"),
        (b"1 1:+-1\n", 1, 5, "value"),
        (b"1 1:1\r2\n", 1, 5, "value"),
        (b"1 qid:3 1:1\n", 1, 3, "qid"),
        (b"1 1:1 # \xff\n", 1, 9, "not UTF-8"),
    ],
)
def test_malformed(tmp_path, data, line, column, message):
    path = written(tmp_path, data)
    with pytest.raises(FormatError, match=re.escape(message)) as error:
        read_svmlight(path)
    assert (error.value.path, error.value.line, error.value.column) == (str(path), line, column)


@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("name", ["rows", "rows.gz"])
def test_rows_are_the_same_after_writing_and_reading(tmp_path, zero_based, name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.4) * 10.0 ** rng.integers(-300, 300, (30, 6))
    X[0] = 0
    X[:, 5] = 3
    for y in (rng.integers(-2, 3, 30), rng.normal(size=30)):
        for rows in (X, sparse.csc_matrix(X)):
            write_svmlight(tmp_path / name, rows, y, zero_based=zero_based)
            found, labels = read_svmlight(tmp_path / name, zero_based=zero_based)
            np.testing.assert_array_equal(found.toarray(), X)
            np.testing.assert_array_equal(labels, y)


def test_as_scikit_learn(tmp_path):
    rng = np.random.default_rng(1)
    X, y = sparse.random_array((40, 9), density=0.3, rng=rng, format="csr"), rng.integers(0, 3, 40)
    dump_svmlight_file(X, y, str(tmp_path / "theirs"), zero_based=False)
    found, labels = read_svmlight(tmp_path / "theirs")
    theirs, their_labels = load_svmlight_file(str(tmp_path / "theirs"), zero_based=False)
    np.testing.assert_array_equal(found.toarray(), theirs.toarray())
    np.testing.assert_array_equal(labels, their_labels)


def test_a_large_index_in_a_small_file(tmp_path):
    """Rows with a huge column index are refused: weights for all columns would take 11 GB for a file of 21 bytes."""
    path = tmp_path / "rows"
    path.write_text("1 100000000:1\n2 1:1\n")
    with pytest.raises(FormatError, match=r"100,000,000 columns for 2 values.*max_features=100000000"):
        read_svmlight(path)
    assert read_svmlight(path, max_features=100_000_000)[0].shape == (2, 100_000_000)
    assert read_svmlight(path, max_features=None)[0].nnz == 2
    assert read_svmlight(path, n_features=10**9)[0].shape == (2, 10**9)
    assert parse_svmlight(path.read_bytes())[0].nnz == 2  # parsing alone returns a sparse matrix, which stays small
    path.write_text(f"1 {MAX_FEATURES}:1\n")
    assert read_svmlight(path)[0].shape == (1, MAX_FEATURES)


def test_many_columns_where_many_occur():
    def rows(n, columns):
        return sparse.csr_array((np.ones(len(columns)), columns, [0, len(columns)]), shape=(1, n))

    spread = np.arange(0, 1600, 16)
    assert in_proportion(rows(1600, spread), 100)
    assert not in_proportion(rows(1601, spread), 100)
    assert in_proportion(rows(1601, spread), 1601)
    assert not in_proportion(rows(1601, spread), 1601, n_weights=2)
    assert not in_proportion(rows(1600, np.zeros(1000, dtype=int)), 100)  # all values are in one column


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[np.nan]], [1]),
        ([[1.0]], [np.inf]),
        ([[1.0]], [1, 2]),
        ([[1.0]], ["a"]),
        ([[1.0]], [[1]]),
    ],
)
def test_unwritable_rows(tmp_path, X, y):
    with pytest.raises(ValueError):
        write_svmlight(tmp_path / "rows", X, y)
    assert list(tmp_path.iterdir()) == []


@given(st.text(st.sampled_from("01 :#.\n-e+q\r"), max_size=25))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any_rows"
    path.write_bytes(text.encode())
    try:
        X, y = read_svmlight(path)
    except FormatError as refusal:
        line = refusal.line or 1  # an excessive number of columns is an error without a line
    else:
        line = 1
        assert X.shape[0] == len(y)
        assert X.has_canonical_format
    assert 1 <= line <= text.count("\n") + 1
