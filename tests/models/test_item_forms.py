"""The core's reader of items and the Python reader return the same names, numbers and values."""

from __future__ import annotations

from enum import Enum

import numpy as np
import pytest

from partwise.features import Vocabulary
from partwise.models.readers import add_dict, add_names

VALUES = ["x", "", 1, 0, -2.5, True, False, ["a", "b"], ("c",), {"d": 2.0, "e": {"f": "g", "h": ["i"]}}, {}, [], "ü"]


def slowly(items, separator):
    names, values, counts = [], [], []
    for item in items:
        before = len(names)
        if isinstance(item, dict):
            add_dict("", item, names, values, separator)
        else:
            add_names("", item, names, values)
        counts.append(len(names) - before)
    return counts, names, values


class Colour(str, Enum):  # noqa: UP042 (whose `format` is its letters)
    """A string whose `str()`, "Colour.RED", differs from its letters."""

    RED = "red"


def test_strings_are_their_letters_whatever_their_class():
    items = [{"c": Colour.RED, Colour.RED: 1.0, "in": [Colour.RED]}, [Colour.RED]]
    counts, names, _ = slowly(items, "=")
    assert names == ["c=red", "red", "in=red", "red"]
    vocabulary, ids = Vocabulary.learn(names, 1)
    found = vocabulary.read_items(items, "=")
    assert (found[0].tolist(), found[1].tolist()) == (counts, ids.tolist())


@pytest.mark.parametrize("separator", ["=", ":", "", "::"])
def test_same_as_in_python(separator):
    rng = np.random.default_rng(0)
    items = []
    for _ in range(200):
        if rng.random() < 0.3:
            items.append([f"n{k}" for k in rng.integers(9, size=rng.integers(4))])
        else:
            keys = rng.choice(["k", "key", "ö", "", "a=b"], size=rng.integers(5), replace=False)
            items.append({str(key): VALUES[rng.integers(len(VALUES))] for key in keys})
    counts, names, values = slowly(items, separator)
    vocabulary, ids = Vocabulary.learn(names, 2)
    learnt, found, joined = Vocabulary.learn_items(items, separator, 2)
    assert joined
    assert not Vocabulary.learn_items([["a"], {"b": 2.0, "c": True}], separator)[2]
    assert learnt.names() == vocabulary.names()
    for answer in (found, vocabulary.read_items(items, separator)):
        assert answer[0].tolist() == counts
        assert answer[1].tolist() == ids.tolist()
        assert answer[2].tolist() == values
    ones = vocabulary.read_items([item for item in items if isinstance(item, list)], separator)
    assert ones[2] is None


@pytest.mark.parametrize(
    "item",
    ["name", {"a"}, {"a": {"b"}},
     {"a": None}, {"a": np.float32(1)}, {"a": float("nan")}, {"a": float("inf")}, [1], [["a"]],
     {1: 2}, {"\ud800": 1}, ["\ud800"], {"a": "\ud800"}, {"a": 10**400}, b"a", 3, None, np.array(["a"])],
)  # fmt: skip
def test_other_forms_are_left_to_python(item):
    vocabulary, _ = Vocabulary.learn(["a"], 1)
    assert vocabulary.read_items([["a"], item], "=") is None
    assert Vocabulary.learn_items([item], "=", 1) is None


def test_deep_and_endless_dicts():
    deep = {"a": 1.0}
    for _ in range(100):
        deep = {"x": deep}
    endless: dict = {}
    endless["again"] = endless
    vocabulary, _ = Vocabulary.learn(["a"], 1)
    assert vocabulary.read_items([deep], "=") is None
    assert vocabulary.read_items([endless], "=") is None
