"""The compiled vocabulary behaves like a dictionary."""

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.odd_strings import ODD_STRINGS
from partwise import SequenceTagger
from partwise._core import Vocabulary

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def pack(names):
    encoded = [name.encode() for name in names]
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), np.cumsum([0, *map(len, encoded)], dtype=np.int64)


def expected_order(names, min_count):
    counts = Counter(names)
    return sorted((name for name in counts if counts[name] >= min_count), key=lambda name: -counts[name])


@given(st.lists(TEXT, max_size=40), st.lists(TEXT, max_size=10), st.integers(1, 3))
def test_learning_and_looking_up(names, others, min_count):
    table, ids = Vocabulary.learn(names, min_count)
    order = expected_order(names, min_count)
    index = {name: k for k, name in enumerate(order)}
    assert table.names() == order
    assert ids.tolist() == [index.get(name, -1) for name in names]
    asked = names + others
    wanted = [index.get(name, -1) for name in asked]
    assert table.ids(asked).tolist() == wanted
    assert table.packed_ids(*pack(asked)).tolist() == wanted
    assert [name in table for name in asked] == [k >= 0 for k in wanted]
    for copy in (Vocabulary(table.bytes, table.offsets), pickle.loads(pickle.dumps(table))):
        assert copy.names() == order
        assert [copy[k] for k in range(len(copy))] == order
        assert copy.ids(asked).tolist() == wanted


def test_many_names_on_threads():
    rng = np.random.default_rng(0)
    names = [f"name{k}" for k in rng.zipf(1.3, 60000).clip(max=10**9)]
    table, ids = Vocabulary.learn(names)
    order = expected_order(names, 1)
    assert table.names() == order
    assert [order[k] for k in ids.tolist()] == names
    for n_jobs in (1, 3):
        np.testing.assert_array_equal(table.packed_ids(*pack(names), n_jobs), ids)


def test_prefixes():
    table, _ = Vocabulary.learn(["ab", "b", "", "ba"])
    assert table.starts_with(["b", "x"]).tolist() == [0, 1, 0, 1]
    assert table.starts_with([""]).tolist() == [1, 1, 1, 1]
    assert table.starts_with([]).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("data", "offsets", "message"),
    [
        (b"ab", [], "start at 0"),
        (b"ab", [1, 2], "start at 0"),
        (b"ab", [0, 1], "end at the number of bytes"),
        (b"ab", [0, 3], "end at the number of bytes"),
        (b"ab", [0, 2, 1, 2], "must not decrease"),
        (b"aa", [0, 1, 2], "name 1 occurs twice"),
        (b"a\xff", [0, 1, 2], "name 1: not UTF-8"),
        (b"\xed\xa0\x80", [0, 3], "name 0: a lone surrogate"),
    ],
)
def test_damaged_tables_are_refused(data, offsets, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(np.frombuffer(data, dtype=np.uint8), np.array(offsets, dtype=np.int64))


def test_repetitions_among_many_names():
    names = [f"name {k}" for k in range(20_000)]
    data = np.frombuffer("".join(names).encode(), dtype=np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(name) for name in names])]).astype(np.int64)
    table = Vocabulary(data, offsets)
    assert table.ids([*names[::-1], "name", ""]).tolist() == [*range(19_999, -1, -1), -1, -1]
    # the error names the first repetition, wherever the table holds it
    repeated = [*names, "name 19999", "name 3"]
    data = np.frombuffer("".join(repeated).encode(), dtype=np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(name) for name in repeated])]).astype(np.int64)
    with pytest.raises(ValueError, match="name 20000 occurs twice"):
        Vocabulary(data, offsets)


@pytest.mark.parametrize("names", [["a", "\ud800"], ["a", 1], ["a", None]])
def test_names_are_strings_of_characters(names):
    with pytest.raises(ValueError, match="name 1"):
        Vocabulary.learn(names)
    with pytest.raises(ValueError, match="name 1"):
        Vocabulary.learn(["a"])[0].ids(names)


def test_a_tagger_with_unusual_attribute_names():
    X, y = [[[text] for text in ODD_STRINGS]], [["a", "b"] * (len(ODD_STRINGS) // 2)]
    tagger = SequenceTagger(solver="lbfgs", C=100.0).fit(X, y)
    assert set(tagger.attributes_) == set(ODD_STRINGS)
    assert pickle.loads(pickle.dumps(tagger)).predict(X) == y
    with pytest.raises(ValueError, match=r"sequence 0, position 1: .*lone surrogate"):
        tagger.predict([[["a"], ["b", "\udfff"]]])
