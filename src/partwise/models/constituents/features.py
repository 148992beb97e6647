"""Features of words, places and spans: attributes of the rows of a grammar's tables, and their weights.

A word has one value of each property. Values that occur in training are numbered from 2; 0 is a place outside the
sentence, 1 a value unknown from training, which makes no feature. An attribute is a template and the numbers of up to
two values, packed into one integer. Templates name properties of words at places:

    table   row             places
    start   s               0: the first word of the span, -1: the word before it, 1: the word after it
    split   q               0: the first word of the right part, -1: the last word of the left part
    end     t               0: the last word, -1: the word before it, 1: the word after it
    span    s, t            first, last, before, after; `length`: a class of lengths; `marks`: the shape of the span
    word    w               0: the word, -1 and 1: its neighbours

A weight belongs to a rule, to a pair (attribute, column) that gold trees have `min_count` times, or to a hashed tuple.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from partwise.features import AttributeSegment, LinearMap, Segment, SharedSegment, SlotSegment
from partwise.models.constituents.treebank.grammar import WordClasses
from partwise.models.features import PairLayout, look_up, numbered, places_in
from partwise.support.arrays import Booleans, Floats, Ints, pointers
from partwise.support.lazy import cached_property

#: word: as it is written; low: in lower case; kind: itself if it is frequent, else its class of unknown words (class);
#: pre, suf: first and last characters; shape: kinds of characters.
PROPERTIES = ("word", "low", "kind", "class", "pre1", "pre2", "suf1", "suf2", "suf3", "shape")
#: Shapes of spans are numbered like a property.
MARKS = "marks"
#: The longest spans that have a shape.
LONGEST_SHAPE = 8
OUTSIDE, UNKNOWN, FIRST = 0, 1, 2
#: Words seen so many times have a kind of their own.
FREQUENT = 10

_RUNS = re.compile(r"(.)\1+")


@lru_cache(1 << 16)
def shape_of(word: str) -> str:
    """Return the word with X for capitals, x for other letters, d for digits; runs longer than two are cut."""
    kinds = "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)
    return _RUNS.sub(r"\1\1", kinds)


def mark_of(word: str) -> str:
    """Return one character for a word: d with a digit, X with a first capital, x for a letter, or the first."""
    if any(c.isdigit() for c in word):
        return "d"
    if word[:1].isalpha():
        return "X" if word[0].isupper() else "x"
    return word[:1]


def span_shapes(words: Sequence[str]) -> list[str]:
    """Return the marks of the words, without repeats, of each span of two words or more; "" for long spans."""
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
    """Numbers of words' properties; values: those of each property that have numbers, in their order."""

    values: dict[str, tuple[str, ...]]
    classes: WordClasses

    @cached_property
    def _numbers(self) -> dict[str, dict[str, int]]:
        return {name: {v: k for k, v in enumerate(own, FIRST)} for name, own in self.values.items()}

    def properties(self, word: str, first: bool) -> tuple[str, ...]:
        """Return the values of `PROPERTIES`; those of the kind begin with a space if it is a class."""
        own = self.classes(word, first)
        kind = word if word in self._numbers["kind"] else f" {own}"
        ends = (word[:1], word[:2], word[-1:], word[-2:], word[-3:])
        return word, word.lower(), kind, own, *ends, shape_of(word)

    def codes(self, sentences: Sequence[Sequence[str]]) -> Ints:
        """Return (properties, words + 2 per sentence) numbers, with a place before and after each sentence's words."""
        tables = [self._numbers[name] for name in PROPERTIES]

        @cache
        def codes_of(word: str, first: bool) -> tuple[int, ...]:
            return tuple(table.get(v, UNKNOWN) for table, v in zip(tables, self.properties(word, first), strict=True))

        outside = (OUTSIDE,) * len(PROPERTIES)
        rows: list[tuple[int, ...]] = []
        for words in sentences:
            rows += [outside, *(codes_of(word, k == 0) for k, word in enumerate(words)), outside]
        return np.ascontiguousarray(np.array(rows, dtype=np.int64).reshape(-1, len(PROPERTIES)).T)

    def shapes(self, sentences: Sequence[Sequence[str]]) -> Ints:
        """Return the number of the shape of each span, all sentences end to end."""
        shapes = (shape for words in sentences for shape in span_shapes(words))
        return np.array([self._numbers[MARKS].get(shape, UNKNOWN) for shape in shapes], dtype=np.int64)

    def name(self, prop: str, code: int) -> str:
        return "<outside>" if code == OUTSIDE else self.values[prop][code - FIRST].strip()


class WordCounts:
    """Counts of words and shapes of spans, from which `WordCodes` are made."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, bool]] = Counter()  # words, and whether they are the first of a sentence
        self._shapes: set[str] = set()

    def add(self, sentences: Iterable[Sequence[str]]) -> None:
        for words in sentences:
            self._counts.update((word, k == 0) for k, word in enumerate(words))
            self._shapes.update(span_shapes(words))

    def codes(self, classes: WordClasses) -> WordCodes:
        totals: Counter[str] = Counter()
        for (word, _), n in self._counts.items():
            totals[word] += n
        bare = WordCodes({"kind": tuple(sorted(word for word, n in totals.items() if n >= FREQUENT))}, classes)
        columns = zip(*(bare.properties(word, first) for word, first in self._counts), strict=True)
        values = {name: tuple(sorted(set(own))) for name, own in zip(PROPERTIES, columns, strict=True)}
        return WordCodes({**values, MARKS: tuple(sorted(self._shapes))}, classes)


#: Pairs of a property and a place ("" for properties of whole spans).
Template = tuple[tuple[str, str], ...]


def _templates(text: str) -> tuple[Template, ...]:
    """Read templates: properties at places, joined by `&`; `bias` is an attribute that is always there."""
    rows = ([] if word == "bias" else word.split("&") for word in text.split())
    return tuple(tuple((name, place) for name, _, place in (atom.partition(":") for atom in row)) for row in rows)


TEMPLATES: dict[str, tuple[Template, ...]] = {
    "start": _templates("word:0 kind:0 suf2:0 shape:0 word:-1 kind:-1 suf2:-1 shape:-1 kind:0&kind:+1 kind:-1&kind:0"),
    "split": _templates("word:0 kind:0 suf2:0 word:-1 kind:-1 suf2:-1 kind:-1&kind:0"),
    "end": _templates("word:0 kind:0 suf2:0 shape:0 word:+1 kind:+1 suf2:+1 shape:+1 kind:-1&kind:0 kind:0&kind:+1"),
    "span": _templates(
        "bias length marks kind:first&kind:last kind:before&kind:after kind:before&kind:first kind:last&kind:after "
        "kind:first&length kind:last&length kind:before&length kind:after&length"
    ),
    "word": _templates(
        "bias word:0 low:0 kind:0 class:0 pre1:0 pre2:0 suf1:0 suf2:0 suf3:0 shape:0 "
        "word:-1 suf2:-1 word:+1 suf2:+1 kind:-1&kind:0 kind:0&kind:+1 kind:-1&kind:+1"
    ),
}
TABLES = tuple(TEMPLATES)
_BITS = 27
#: The first length of each class.
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 8, 11, 16, 21, 31])


def span_rows(lengths: Ints) -> Ints:
    """Return how many spans of at least two words each sentence has."""
    return lengths * (lengths - 1) // 2


@dataclass(frozen=True)
class CodedSentences:
    """Sentences and the numbers of their words' properties."""

    codes: WordCodes
    sentences: Sequence[Sequence[str]]

    @cached_property
    def lengths(self) -> Ints:
        return np.array([len(words) for words in self.sentences], dtype=np.int64)

    @cached_property
    def values(self) -> dict[str, Ints]:
        """Numbers of the values of each property, sentences with a place before and one after them."""
        return dict(zip(PROPERTIES, self.codes.codes(self.sentences), strict=True))

    def keys(self, table: str) -> Ints:
        """Return the attributes of all rows of a table, (rows, templates); -1 where a value is unknown."""
        lengths = self.lengths
        first = pointers(lengths + 2)[:-1] + 1  # of each sentence's words in `values`
        whole: dict[str, Ints] = {}
        if table == "span":
            spans = [np.empty((2, 0), dtype=np.int64), *(np.stack(np.triu_indices(n + 1, 2)) for n in lengths.tolist())]
            (s, t), begin = np.concatenate(spans, axis=1), np.repeat(first, span_rows(lengths))
            places = {"first": begin + s, "last": begin + t - 1, "before": begin + s - 1, "after": begin + t}
            whole = {"length": np.searchsorted(LENGTHS, t - s, side="right"), MARKS: self.codes.shapes(self.sentences)}
        else:
            at = np.repeat(first - pointers(lengths)[:-1], lengths) + np.arange(int(lengths.sum()))
            places = {"-1": at - 1, "0": at, "+1": at + 1}
        n_rows = len(next(iter(places.values())))
        out = np.empty((n_rows, len(TEMPLATES[table])), dtype=np.int64)
        for k, template in enumerate(TEMPLATES[table]):
            key = np.full(n_rows, k, dtype=np.int64)
            known = np.ones(n_rows, dtype=bool)
            for name, place in template:
                own = self.values[name][places[place]] if place else whole[name]
                if name != "length":
                    known &= own != UNKNOWN
                key = (key << _BITS) | own
            out[:, k] = np.where(known, key << (_BITS * (2 - len(template))), -1)
        return out


def name_of(table: str, key: int, codes: WordCodes) -> str:
    """Return an attribute in words, as explanations show it."""
    parts = []
    for j, (name, place) in enumerate(TEMPLATES[table][key >> (2 * _BITS)]):
        code = (key >> ((1 - j) * _BITS)) & ((1 << _BITS) - 1)
        if name == "length":
            parts.append(f"length>={LENGTHS[code - 1]}")
        else:
            where = "" if place in ("0", "") else f"[{place}]"
            parts.append(f"{name}{where}={codes.name(name, code)}")
    return " ".join(parts) or "bias"


@dataclass(frozen=True)
class Table:
    """One table's attributes: `keys`, ascending, and which of the columns each has a weight for."""

    keys: Ints
    layout: PairLayout

    def numbers(self, keys: Ints) -> Ints:
        return places_in(self.keys, keys)

    def chosen(self, kept: Booleans) -> Table:
        used = np.bincount(self.layout.pairs()[0][kept], minlength=len(self.keys)) > 0
        return Table(self.keys[used], self.layout.chosen(kept, numbered(used)))


@dataclass(frozen=True)
class Tables:
    """All weights: those of rules, then those of each table in the order of `TABLES`, then those of hashed tuples."""

    n_rules: int
    codes: WordCodes
    tables: Mapping[str, Table]
    n_tuples: int = 0

    def tuple_options(self, sentences: Sequence[Sequence[str]]) -> dict[str, Any]:
        if not self.n_tuples:
            return {}
        ends = pointers(np.array([len(words) + 2 for words in sentences], dtype=np.int64))
        kinds = self.codes.codes(sentences)[PROPERTIES.index("kind")]
        inside = np.ones(len(kinds), dtype=bool)
        inside[ends[:-1]] = inside[ends[1:] - 1] = False
        return {"tuple_codes": kinds[inside], "n_tuples": self.n_tuples}

    def feature_map(self, sentences: Sequence[Sequence[str]], once: bool, n_gold: Ints | None = None) -> LinearMap:
        """Return the feature map of sentences. n_gold: how many slots of `other` and gold rules have no features."""
        coded = CodedSentences(self.codes, sentences)
        lengths = coded.lengths
        segments: list[Segment] = [SharedSegment(self.n_rules, lengths - 1)]
        longest = int(lengths.max(initial=2)) - 1
        for name in TABLES:
            table, keys = self.tables[name], coded.keys(name)
            rows = span_rows(lengths) if name == "span" else lengths
            if name != "word" and not self.n_rules:  # trees of one word: the structure has no tables of phrases
                keys, rows = keys[:0], np.zeros_like(lengths)
            ends = np.arange(len(keys) + 1, dtype=np.int64) * len(TEMPLATES[name])
            most = max(longest, 1) if name in ("start", "end") else 1  # several phrases may begin at a word, or end
            uses = lengths if name == "word" else lengths - 1
            ids = table.numbers(keys).ravel()
            segments.append(AttributeSegment(table.layout.core, pointers(rows), ends, ids, None, once, most, uses))
        if n_gold is not None:
            nothing = np.zeros(int(n_gold.sum()) + 1, dtype=np.int64)
            segments.append(SlotSegment(0, pointers(n_gold), nothing, np.empty(0, dtype=np.int64)))
        if self.n_tuples:
            segments.append(SharedSegment(self.n_tuples, lengths - 1))
        return LinearMap(segments)

    def split(self, weights: Floats) -> dict[str, Floats]:
        """Split weights into those of "rules", of each table (one per pair), and of hashed "tuples"."""
        cores = {name: self.tables[name].layout.core for name in TABLES}
        ends = np.cumsum([self.n_rules, *(core.num_weights for core in cores.values())])
        runs = dict(zip(("rules", *TABLES, "tuples"), np.split(weights, ends), strict=True))
        return runs | {name: core.unpack(np.ascontiguousarray(runs[name])) for name, core in cores.items()}

    def joined(self, parts: Mapping[str, Floats]) -> Floats:
        """Join what `split` separated."""
        packed = [self.tables[name].layout.core.pack(parts[name]) for name in TABLES]
        return np.concatenate([parts["rules"], *packed, parts["tuples"]])

    def triples(self, weights: Floats) -> Iterator[tuple[str, tuple[Ints, Ints, Floats]]]:
        """Yield each table's name with (attribute, column, weight) of its pairs."""
        parts = self.split(weights)
        for name in TABLES:
            yield name, (*self.tables[name].layout.pairs(), parts[name])

    def carried(self, weights: Floats, old: Tables, rules: Floats, same_rules: bool) -> Floats | None:
        """Return another model's weights, with these of rules (tuples: if `same_rules`); None if its words differ."""
        if self.codes.values != old.codes.values:
            return None
        parts = {"rules": rules, "tuples": np.zeros(self.n_tuples)}
        if same_rules and self.n_tuples == old.n_tuples:
            parts["tuples"] = old.split(weights)["tuples"]
        for name, triples in old.triples(weights):
            mine, own_columns = self.tables[name].layout.pairs()
            wanted = old.tables[name].numbers(self.tables[name].keys)[mine] if len(mine) else mine
            parts[name] = look_up(triples, wanted, own_columns)
        return self.joined(parts)

    def pruned(self, weights: Floats, choose: Sequence[Booleans]) -> tuple[Tables, Floats]:
        """Return tables and weights with the chosen ones of each part of `split`; other rules and tuples get 0."""
        parts = self.split(weights)
        kept = dict(zip(parts, choose, strict=True))
        tables = {name: self.tables[name].chosen(kept[name]) for name in TABLES}
        fewer = Tables(self.n_rules, self.codes, tables, self.n_tuples)
        left = {name: parts[name][kept[name]] for name in TABLES}
        zeroed = {name: np.where(kept[name], parts[name], 0.0) for name in ("rules", "tuples")}
        return fewer, fewer.joined(left | zeroed)
