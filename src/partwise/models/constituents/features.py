"""Features of words, places and spans: attributes of the rows of a grammar's tables.

An attribute is a template and the numbers of up to two values, packed into 63 bits. Templates name properties of words
(`words.PROPERTIES`) at places:

    table   row             places
    start   s               0: the first word of the span, -1: the word before it
    end     t               0: the last word, 1: the word after it
    split   q               0: the first word of the right part, -1: the last word of the left part
    span    s, t            first, last, before, after; `length`: a class of lengths; `marks`: the shape of the span
    word    w               0: the word, -1 and 1: its neighbours

A weight belongs to a pair (attribute, column of the table); those that gold trees have at least `min_count` times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.arrays import Ints, pointers
from partwise.models.constituents.words import MARKS, PROPERTIES, UNKNOWN, WordCodes

#: Template: pairs (property, place); an empty one is always there.
Template = tuple[tuple[str, Any], ...]
TEMPLATES: dict[str, tuple[Template, ...]] = {
    "start": tuple(
        ((name, place),) for place in (0, -1) for name in ("word", "kind", "suf2", "shape")
    ) + ((("kind", 0), ("kind", 1)), (("kind", -1), ("kind", 0))),
    "end": tuple(
        ((name, place),) for place in (0, 1) for name in ("word", "kind", "suf2", "shape")
    ) + ((("kind", -1), ("kind", 0)), (("kind", 0), ("kind", 1))),
    "split": tuple(
        ((name, place),) for place in (0, -1) for name in ("word", "kind", "suf2")
    ) + ((("kind", -1), ("kind", 0)),),
    "span": (
        (), (("length", None),), ((MARKS, None),), (("kind", "first"), ("kind", "last")),
        (("kind", "before"), ("kind", "after")), (("kind", "first"), ("length", None)),
        (("kind", "last"), ("length", None)), (("kind", "before"), ("kind", "first")), (("kind", "last"), ("kind", "after")),
        (("kind", "before"), ("length", None)), (("kind", "after"), ("length", None)),
    ),
    "word": (
        (), *((("word", k),) for k in (-1, 0, 1)), *(((name, 0),) for name in PROPERTIES if name != "word"),
        (("suf2", -1),), (("suf2", 1),), (("kind", -1), ("kind", 0)), (("kind", 0), ("kind", 1)), (("kind", -1), ("kind", 1)),
    ),
}  # fmt: skip
TABLES = ("start", "split", "end", "span", "word")
_BITS = 27
#: The first length of each class.
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 8, 11, 16, 21, 31])


def spans_of(lengths: Ints) -> tuple[Ints, Ints, Ints]:
    """Spans of at least two words of all sentences in the order of slots: sentence, first word, end."""
    parts = []
    for i, n in enumerate(lengths.tolist()):
        s, t = np.triu_indices(n + 1, 2)
        parts.append(np.stack([np.full(len(s), i), s, t]))
    joined = np.concatenate(parts, axis=1) if parts else np.empty((3, 0), dtype=np.int64)
    return joined[0], joined[1], joined[2]


def keys_of(table: str, codes: WordCodes, sentences: Sequence[Sequence[str]]) -> Ints:
    """(rows, templates): attributes of all rows of a table, -1 where a value is unknown."""
    lengths = np.array([len(words) for words in sentences], dtype=np.int64)
    values = codes.codes(sentences)
    first = pointers(lengths + 2)[:-1] + 1  # of each sentence's words in `values`
    places: dict[Any, Ints]
    if table == "span":
        which, s, t = spans_of(lengths)
        begin = first[which]
        places = {"first": begin + s, "last": begin + t - 1, "before": begin + s - 1, "after": begin + t}
        whole = {"length": np.searchsorted(LENGTHS, t - s, side="right"), MARKS: codes.shapes(sentences)}
    else:
        at = np.repeat(first - pointers(lengths)[:-1], lengths) + np.arange(int(lengths.sum()))
        places = {place: at + place for place in (-1, 0, 1)}
        whole = {}
    n_rows = len(next(iter(places.values())))
    numbers = {name: values[k] for k, name in enumerate(PROPERTIES)}
    out = np.empty((n_rows, len(TEMPLATES[table])), dtype=np.int64)
    for k, template in enumerate(TEMPLATES[table]):
        key = np.full(n_rows, k, dtype=np.int64)
        known = np.ones(n_rows, dtype=bool)
        for name, place in template:
            own = whole[name] if place is None else numbers[name][places[place]]
            if name != "length":
                known &= own != UNKNOWN
            key = (key << _BITS) | own
        out[:, k] = np.where(known, key, -1)
    return out


@dataclass(frozen=True)
class Attributed:
    """The attributes of a table that have weights: their keys, ascending."""

    keys: Ints

    def numbers(self, keys: Ints) -> Ints:
        """The number of each key; -1 for those without weights."""
        if not len(self.keys):
            return np.full(keys.shape, -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, place, -1)


def name_of(table: str, key: int, codes: WordCodes) -> str:
    """An attribute in words."""
    mask = (1 << _BITS) - 1
    for size in (0, 1, 2):
        k = key >> (size * _BITS)
        if k < len(TEMPLATES[table]) and len(TEMPLATES[table][k]) == size:
            break
    template = TEMPLATES[table][k]
    parts = []
    for j, (name, place) in enumerate(template):
        code = (key >> ((size - 1 - j) * _BITS)) & mask
        if name == "length":
            parts.append(f"length>={LENGTHS[code - 1]}")
        else:
            where = "" if place in (0, None) else f"[{place}]" if isinstance(place, str) else f"[{place:+d}]"
            parts.append(f"{name}{where}={codes.name(name, code)}")
    return " ".join(parts) or "bias"
