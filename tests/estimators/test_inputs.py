"""How estimators read sequences and labels (no training)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from partwise import SequenceTagger
from partwise.models.labels import Targets, encode_flat, split
from partwise.models.readers import ColumnReader, NameReader, Sequences, input_form
from partwise.support.checks import check_sample_weight

NAMES = [[["a", "b"], ["a"]], [["c", "a", "a"]], [[], ["b", "c"]]]


def names_of(rows, vocabulary):
    known = dict(enumerate(vocabulary.names()))
    table = rows.attributes()
    ends = table.row_ptr.tolist()
    return [[known.get(j) for j in table.attributes[a:b].tolist()] for a, b in zip(ends, ends[1:], strict=False)]


def test_names_are_numbered_by_falling_frequency():
    reader = NameReader()
    rows = reader.read(Sequences.of(NAMES))
    assert reader.vocabulary.names() == ["a", "b", "c"]
    assert rows.lengths.tolist() == [2, 1, 2]
    assert rows.table.values is None
    assert names_of(rows, reader.vocabulary) == [["a", "b"], ["a"], ["c", "a", "a"], [], ["b", "c"]]


def test_unknown_names_are_minus_one_later():
    reader = NameReader()
    reader.read(Sequences.of(NAMES))
    rows = reader.read(Sequences.of([[["b", "new"]]]))
    assert rows.table.attributes.tolist() == [1, -1]
    assert rows.n_attributes == 3
    assert "new" not in reader.vocabulary


def test_min_count_drops_rare_names():
    reader = NameReader()
    rows = reader.read(Sequences.of(NAMES), min_count=3)
    assert reader.vocabulary.names() == ["a"]
    assert names_of(rows, reader.vocabulary)[2] == [None, "a", "a"]


def test_dicts_become_names_and_values():
    token = {
        "word": "the",
        "bias": True,
        "off": False,
        "score": 2.5,
        "zero": 0,
        "suffix": ["e", "he"],
        "next": {"word": "cat"},
    }
    reader = NameReader()
    rows = reader.read(Sequences.of([[token, ["word=the", "plain"], {"s", "r"}]]))
    named = names_of(rows, reader.vocabulary)
    assert named[0] == ["word=the", "bias", "score", "suffix=e", "suffix=he", "next=word=cat"]
    assert named[1] == ["word=the", "plain"]
    assert named[2] == ["r", "s"]
    assert rows.table.values.tolist() == [1, 1, 2.5, 1, 1, 1, 1, 1, 1, 1]


def test_arrays_of_names():
    for sequence in (np.array([["a", "b"], ["b", "c"]]), [np.array(["a", "b"]), np.array(["b", "c"], dtype=object)]):
        reader = NameReader()
        rows = reader.read(Sequences.of([sequence]))
        assert names_of(rows, reader.vocabulary) == [["a", "b"], ["b", "c"]]


def test_dicts_of_ones_have_no_values():
    rows = NameReader().read(Sequences.of([[{"word": "a"}, {"b": 1.0, "c": True}]]))
    assert rows.table.values is None


def test_arrays_lie_end_to_end(rng):
    X = [rng.normal(size=(length, 4)) for length in (3, 1, 2)]
    rows = ColumnReader().read(Sequences.of(X))
    assert np.array_equal(rows.table, np.concatenate(X))
    listed = ColumnReader().read(Sequences.of([x.tolist() for x in X]))
    assert np.array_equal(listed.table, rows.table)
    of_rows = ColumnReader().read(Sequences.of([list(x) for x in X]))
    assert np.array_equal(of_rows.table, rows.table)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_and_dense_hold_the_same(rng, container):
    X = [rng.integers(-1, 2, size=(length, 5)).astype(float) for length in (3, 4)]
    expected = ColumnReader().read(Sequences.of(X)).attributes()
    found = ColumnReader().read(Sequences.of([container(x) for x in X])).attributes()
    for field in ("row_ptr", "attributes", "values"):
        assert np.array_equal(getattr(found, field), getattr(expected, field))
    by_rows = [[sparse.csr_matrix(row) for row in x] for x in X]
    assert np.array_equal(ColumnReader().read(Sequences.of(by_rows)).attributes().values, expected.values)


def test_explicit_zeros_are_dropped():
    matrix = sparse.csr_array(([0.0, 2.0, 0.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 3))
    table = ColumnReader().read(Sequences.of([matrix])).attributes()
    assert table.row_ptr.tolist() == [0, 1, 1]
    assert table.attributes.tolist() == [1]
    assert matrix.nnz == 3


def test_few_nonzeros_are_stored_sparsely(rng):
    thin = rng.normal(size=(20, 30)) * (rng.random((20, 30)) < 0.05)
    rows = ColumnReader().read(Sequences.of([thin])).compact()
    assert rows.table.attributes.size == np.count_nonzero(thin)
    full = ColumnReader().read(Sequences.of([rng.normal(size=(20, 30))])).compact()
    assert full.table.size == 600


@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("values", [True, False])
def test_a_column_of_ones(rng, density, values):
    array = (rng.normal(size=(7, 4)) if values else 1.0) * (rng.random((7, 4)) < density)
    rows = ColumnReader().read(Sequences.of([array[:3], array[3:]])).compact().with_ones()
    table = rows.attributes()
    found = np.zeros((7, 5))
    entries = np.ones(len(table.attributes)) if table.values is None else table.values
    found[np.repeat(np.arange(7), np.diff(table.row_ptr)), table.attributes] = entries
    assert np.array_equal(found, np.column_stack([array, np.ones(7)]))
    assert rows.lengths.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("X", "form"),
    [
        ([[], [["a"]]], "names"),
        ([[{"a": 1}]], "names"),
        ([[[]]], "names"),
        ([[np.array(["a", "b"])]], "names"),
        ([np.array([["a", "b"]])], "names"),
        ([np.zeros((2, 3))], "dense"),
        ([[[1.0, 2.0]]], "dense"),
        ([[np.zeros(3)]], "dense"),
        (np.zeros((2, 3, 4)), "dense"),
        ([sparse.csr_array((2, 3))], "sparse"),
        ([[], []], "none"),
    ],
)
def test_input_form(X, form):
    assert input_form(Sequences.of(X)) == form


NAN = float("nan")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("abc", "X must be a list of sequences, got str"),
        (3, "X must be a list of sequences, got int"),
        (sparse.csr_array((2, 2)), "X must be a list of sequences"),
        ([[["a"]], "abc"], "sequence 1 must be a list"),
        ([[["a"]], 7], "sequence 1 must be a list"),
        ([[["a"], "b"]], "sequence 0, position 1: expected a list of strings or a dict, got str"),
        ([[["a"]], [["b"], ["c", 3]]], "sequence 1, position 1: attributes must be strings, got 3"),
        ([[["a"], ["b", ["c"]]]], r"sequence 0, position 1: attributes must be strings, got \['c'\]"),
        ([[{"a": 1.0}, {"b": NAN}]], "sequence 0, position 1, attribute 'b' is nan"),
        ([[{"a": 1.0}], [{}, {"c": float("inf")}]], "sequence 1, position 1, attribute 'c' is inf"),
        ([[{"a": None}]], "sequence 0, position 0: attribute 'a' must be a string"),
        ([[{3: 1.0}]], "sequence 0, position 0: attribute names must be strings"),
        ([np.zeros((2, 3)), np.array([[0, 0, 0], [0, NAN, 0]])], "sequence 1, position 1, column 1 is nan"),
        ([np.zeros((2, 3)), np.array([[-np.inf, 0, 0]])], "sequence 1, position 0, column 0 is -inf"),
        (
            [sparse.csr_array([[0.0, 1.0]]), sparse.csr_array([[0.0, 0.0], [0.0, NAN]])],
            "sequence 1, position 1, column 1",
        ),
        ([np.zeros((2, 3)), np.zeros((2, 4))], "sequence 1 has 4 features, expected 3"),
        ([sparse.csr_array((2, 3)), sparse.csr_array((2, 4))], "sequence 1 has 4 features, expected 3"),
        ([[[1.0, 2.0], [1.0]]], r"sequence 0, position 1 has shape \(1,\), expected \(2,\)"),
        ([[[1.0, 2.0], [1.0, "x"]]], "sequence 0, position 1 is not a row of real numbers"),
        ([np.zeros(3)], "sequence 0 is a 1-D array"),
        ([np.zeros((2, 3)), np.zeros(3)], "sequence 1 is 1-D"),
        (np.zeros((2, 3)), "sequence 0 is a 1-D array"),
        ([np.zeros((1, 2), dtype=complex)], "sequence 0 is a 2-D array of complex128"),
        ([np.zeros((1, 2)), sparse.csr_array((1, 2))], "sequence 1 is sparse"),
    ],
)
def test_bad_input_is_named(X, message):
    with pytest.raises(ValueError, match=message):
        sequences = Sequences.of(X)
        sequences.lengths()
        (NameReader() if input_form(sequences) == "names" else ColumnReader()).read(sequences)


def test_predictions_name_missing_input():
    fitted = SequenceTagger().fit([[["a"], ["b"]]], [["A", "B"]])
    for method in (fitted.predict, fitted.predict_marginals):
        with pytest.raises(ValueError, match="X must be a list of sequences, got NoneType"):
            method(None)


def test_numbers_in_messages_are_the_callers():
    sequences = Sequences.of([[["a"]], [["b"]], [["c"], [1]]]).take(np.array([0, 2]))
    with pytest.raises(ValueError, match="sequence 2, position 1"):
        NameReader().read(sequences)


def labels_of(y, lengths):
    targets = Targets.of(y).check(np.array(lengths))
    return targets, targets.classes()


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([["b", "a"], ["c"]], ["a", "b", "c"]),
        ([np.array(["b", "a"]), ("c",)], ["a", "b", "c"]),
        ([np.array([3, 1]), [2]], [1, 2, 3]),
        ([[True, False], [True]], [False, True]),
        ([["b", 1], [2]], [1, 2, "b"]),
        ([[("x", 1), ("x", 0)], [("a", 2)]], [("a", 2), ("x", 0), ("x", 1)]),
    ],
)
def test_labels_are_encoded_and_decoded(y, classes):
    targets, found = labels_of(y, [2, 1])
    assert found.tolist() == classes
    assert [type(label) for label in found.tolist()] == [type(label) for label in classes]
    numbers = targets.encode(found)
    assert split(found[numbers].tolist(), np.array([2, 1])) == [
        list(np.array(s).tolist() if isinstance(s, np.ndarray) else s) for s in y
    ]


def test_unseen_labels_are_minus_one():
    assert encode_flat(["a", "z"], np.array(["a", "b"])).tolist() == [0, -1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a", "b"]], "X has 2 sequences but y has 1"),
        ([["a", "b"], ["a", "b"]], "sequence 1 has 1 positions but 2 labels"),
        (["ab", ["a"]], "y: sequence 0 must be a list"),
        ([["a", None], ["b"]], "sequence 0, position 1: label missing"),
        ([["a", "b"], [NAN]], "sequence 1, position 0: label missing"),
        ([["a", []], ["b"]], "sequence 0, position 1: label .* is not hashable"),
    ],
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        labels_of(y, [2, 1])


def test_weights_whose_squares_overflow():
    with pytest.raises(ValueError, match=r"sample_weight of sample 1 is 1e\+300: at most 1e\+100"):
        check_sample_weight([1.0, 1e300], 2, "sample")
    assert check_sample_weight([1.0, 1e100], 2).tolist() == [1.0, 1e100]
