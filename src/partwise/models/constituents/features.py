"""Features of words, places and spans: attributes of the rows of a grammar's tables.

An attribute is a template and the numbers of up to two values, packed into one integer. Templates name properties of
words (`words.PROPERTIES`) at places:

    table   row             places
    start   s               0: the first word of the span, -1: the word before it, 1: the word after it
    split   q               0: the first word of the right part, -1: the last word of the left part
    end     t               0: the last word, -1: the word before it, 1: the word after it
    span    s, t            first, last, before, after; `length`: a class of lengths; `marks`: the shape of the span
    word    w               0: the word, -1 and 1: its neighbours

A weight belongs to a pair (attribute, column of the table), one of those that gold trees have `min_count` times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.models.constituents.words import MARKS, PROPERTIES, UNKNOWN, WordCodes
from partwise.support.arrays import Ints, pointers

#: Pairs (property, place); a template without any is always there.
Template = tuple[tuple[str, Any], ...]


def _each(names: Sequence[str], *places: Any) -> tuple[Template, ...]:
    return tuple(((name, place),) for place in places for name in names)


def _pair(one: Any, two: Any) -> Template:
    return (("kind", one), ("kind", two))


def _with_length(*places: str) -> tuple[Template, ...]:
    return tuple((("kind", place), ("length", None)) for place in places)


TEMPLATES: dict[str, tuple[Template, ...]] = {
    "start": (*_each(("word", "kind", "suf2", "shape"), 0, -1), _pair(0, 1), _pair(-1, 0)),
    "split": (*_each(("word", "kind", "suf2"), 0, -1), _pair(-1, 0)),
    "end": (*_each(("word", "kind", "suf2", "shape"), 0, 1), _pair(-1, 0), _pair(0, 1)),
    "span": (
        (),
        (("length", None),),
        ((MARKS, None),),
        _pair("first", "last"),
        _pair("before", "after"),
        _pair("before", "first"),
        _pair("last", "after"),
        *_with_length("first", "last", "before", "after"),
    ),
    "word": (
        (),
        *_each(PROPERTIES, 0),
        *_each(("word", "suf2"), -1, 1),
        _pair(-1, 0),
        _pair(0, 1),
        _pair(-1, 1),
    ),
}
TABLES = tuple(TEMPLATES)
_BITS = 27
#: The first length of each class.
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 8, 11, 16, 21, 31])


def span_rows(lengths: Ints) -> Ints:
    """Rows of spans of each sentence."""
    return lengths * (lengths - 1) // 2


def _spans(lengths: Ints) -> tuple[Ints, Ints, Ints]:
    """Spans of at least two words of all sentences in the order of slots: sentence, first word, end."""
    parts = [np.empty((3, 0), dtype=np.int64)]
    for i, n in enumerate(lengths.tolist()):
        s, t = np.triu_indices(n + 1, 2)
        parts.append(np.stack([np.full(len(s), i), s, t]))
    which, s, t = np.concatenate(parts, axis=1)
    return which, s, t


def keys_of(table: str, codes: WordCodes, sentences: Sequence[Sequence[str]]) -> Ints:
    """(rows, templates): attributes of all rows of a table, -1 where a value is unknown."""
    lengths = np.array([len(words) for words in sentences], dtype=np.int64)
    values = codes.codes(sentences)
    first = pointers(lengths + 2)[:-1] + 1  # of each sentence's words in `values`
    places: dict[Any, Ints]
    whole: dict[str, Ints] = {}
    if table == "span":
        which, s, t = _spans(lengths)
        begin = first[which]
        places = {"first": begin + s, "last": begin + t - 1, "before": begin + s - 1, "after": begin + t}
        whole = {"length": np.searchsorted(LENGTHS, t - s, side="right"), MARKS: codes.shapes(sentences)}
    else:
        at = np.repeat(first - pointers(lengths)[:-1], lengths) + np.arange(int(lengths.sum()))
        places = {place: at + place for place in (-1, 0, 1)}
    n_rows = len(next(iter(places.values())))
    numbers = dict(zip(PROPERTIES, values, strict=True))
    out = np.empty((n_rows, len(TEMPLATES[table])), dtype=np.int64)
    for k, template in enumerate(TEMPLATES[table]):
        key = np.full(n_rows, k, dtype=np.int64)
        known = np.ones(n_rows, dtype=bool)
        for name, place in template:
            own = whole[name] if place is None else numbers[name][places[place]]
            if name != "length":
                known &= own != UNKNOWN
            key = (key << _BITS) | own
        out[:, k] = np.where(known, key << (_BITS * (2 - len(template))), -1)
    return out


def name_of(table: str, key: int, codes: WordCodes) -> str:
    """An attribute in words."""
    template = TEMPLATES[table][key >> (2 * _BITS)]
    parts = []
    for j, (name, place) in enumerate(template):
        code = (key >> ((1 - j) * _BITS)) & ((1 << _BITS) - 1)
        if name == "length":
            parts.append(f"length>={LENGTHS[code - 1]}")
        else:
            where = "" if place in (0, None) else f"[{place}]" if isinstance(place, str) else f"[{place:+d}]"
            parts.append(f"{name}{where}={codes.name(name, code)}")
    return " ".join(parts) or "bias"
