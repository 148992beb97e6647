"""Strings of words as numbers: what features of words and spans are made of.

A word has one value of each property. Values that occur in training are numbered from 2; 0 is a place before or after
the sentence, 1 a value that training did not have, of which no feature is made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from partwise.models.constituents.treebank import WordClasses
from partwise.support.arrays import Ints

#: word: as it is written; low: in lower case; kind: itself if it is frequent, else its class of unknown words (class);
#: pre, suf: first and last characters; shape: kinds of characters.
PROPERTIES = ("word", "low", "kind", "class", "pre1", "pre2", "suf1", "suf2", "suf3", "shape")
#: Shapes of spans (`span_shapes`) are numbered like a property.
MARKS = "marks"
#: The longest spans that have a shape.
LONGEST_SHAPE = 8
OUTSIDE, UNKNOWN, FIRST = 0, 1, 2
#: Words seen so many times have a kind of their own.
FREQUENT = 10

_RUNS = re.compile(r"(.)\1+")


@lru_cache(1 << 16)
def shape_of(word: str) -> str:
    """Capitals X, other letters x, digits d, other characters as they are; runs longer than two are cut to two."""
    kinds = "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)
    return _RUNS.sub(r"\1\1", kinds)


def mark_of(word: str) -> str:
    """One character for a word: X with a capital, x without, d with a digit, else the word's first character."""
    if any(c.isdigit() for c in word):
        return "d"
    if word[:1].isalpha():
        return "X" if word[0].isupper() else "x"
    return word[:1]


def span_shapes(words: Sequence[str]) -> list[str]:
    """Marks of the words of all spans of at least two words, by begin and then end; empty for long spans.

    Runs of a mark count once.
    """
    marks = [mark_of(word) for word in words]
    out = []
    for s in range(len(words) - 1):
        shape = marks[s]
        for t in range(s + 2, min(s + LONGEST_SHAPE, len(words)) + 1):
            if marks[t - 1] != shape[-1:]:
                shape += marks[t - 1]
            out.append(shape)
        out += [""] * (len(words) - s - LONGEST_SHAPE)
    return out


@dataclass(frozen=True)
class WordCodes:
    """Numbers of words' properties.

    values: of each property, the values that have numbers, in their order. classes: classes of unknown words.
    """

    values: dict[str, tuple[str, ...]]
    classes: WordClasses

    def __post_init__(self) -> None:
        numbers = {name: {v: k for k, v in enumerate(own, FIRST)} for name, own in self.values.items()}
        object.__setattr__(self, "_numbers", numbers)
        object.__setattr__(self, "_kinds", frozenset(self.values["kind"]))

    @classmethod
    def learnt(cls, sentences: Sequence[Sequence[str]], classes: WordClasses) -> WordCodes:
        """From training sentences."""
        counts = WordCounts()
        counts.add(sentences)
        return counts.codes(classes)

    def properties(self, word: str, first: bool) -> tuple[str, ...]:
        """The values of `PROPERTIES`; those of the kind begin with a space if it is a class."""
        own = self.classes(word, first)
        kinds: frozenset[str] = self._kinds  # type: ignore[attr-defined]
        return (
            word, word.lower(), word if word in kinds else f" {own}", own, word[:1], word[:2], word[-1:], word[-2:],
            word[-3:], shape_of(word),
        )  # fmt: skip

    def codes(self, sentences: Sequence[Sequence[str]]) -> Ints:
        """(properties, words + 2 per sentence): each sentence's words with a place before and one after them."""
        numbers: dict[str, dict[str, int]] = self._numbers  # type: ignore[attr-defined]
        tables = [numbers[name] for name in PROPERTIES]
        outside = (OUTSIDE,) * len(PROPERTIES)
        known: dict[tuple[str, bool], tuple[int, ...]] = {}
        rows: list[tuple[int, ...]] = []
        for words in sentences:
            rows.append(outside)
            for k, word in enumerate(words):
                row = known.get((word, k == 0))
                if row is None:
                    values = self.properties(word, k == 0)
                    row = tuple(table.get(v, UNKNOWN) for table, v in zip(tables, values, strict=True))
                    known[word, k == 0] = row
                rows.append(row)
            rows.append(outside)
        return np.ascontiguousarray(np.array(rows, dtype=np.int64).reshape(-1, len(PROPERTIES)).T)

    def shapes(self, sentences: Sequence[Sequence[str]]) -> Ints:
        """The number of the shape of each span, all sentences end to end."""
        table: dict[str, int] = self._numbers[MARKS]  # type: ignore[attr-defined]
        return np.array(
            [table.get(shape, UNKNOWN) for words in sentences for shape in span_shapes(words)], dtype=np.int64
        )

    def name(self, prop: str, code: int) -> str:
        """A value by its number."""
        return "<outside>" if code == OUTSIDE else self.values[prop][code - FIRST].strip()


class WordCounts:
    """What `WordCodes` are learnt from, over sets of sentences."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, bool]] = Counter()  # words, and whether they are the first of a sentence
        self._shapes: set[str] = set()

    def add(self, sentences: Iterable[Sequence[str]]) -> None:
        """Count words."""
        for words in sentences:
            self._counts.update((word, k == 0) for k, word in enumerate(words))
            self._shapes.update(span_shapes(words))

    def codes(self, classes: WordClasses) -> WordCodes:
        """Of all words so far."""
        totals: Counter[str] = Counter()
        for (word, _), n in self._counts.items():
            totals[word] += n
        bare = WordCodes({"kind": tuple(sorted(word for word, n in totals.items() if n >= FREQUENT))}, classes)
        distinct: dict[str, set[str]] = {name: set() for name in PROPERTIES}
        for word, first in self._counts:
            for name, value in zip(PROPERTIES, bare.properties(word, first), strict=True):
                distinct[name].add(value)
        values = {name: tuple(sorted(own)) for name, own in distinct.items()}
        return WordCodes({**values, MARKS: tuple(sorted(self._shapes))}, classes)
