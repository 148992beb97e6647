"""Features of segments: of positions inside them and at their borders, and of whole segments.

A whole segment has features by its text, its shape and the lists that contain it; segments without such features take
no memory. Texts are compared by rolling 64-bit keys: h(w_1..w_d) = h(w_1..w_{d-1}) * M + h(w_d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partwise.features import Attributes
from partwise.features.template import Gazetteer, short_shape
from partwise.io.coded import CodedSequences
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts, encode_names
from partwise.models.features import PairLayout, Rows, numbered, places_in
from partwise.models.segments.labels import Segments
from partwise.models.sequences.features import FeatureChoice, FeatureCounts, transition_counts
from partwise.models.sequences.template_reader import add_gazetteers, read_gazetteers
from partwise.support.arrays import Booleans, Ints, UInt64s, pointers

_STEP = np.uint64(0x9E3779B97F4A7C15)
#: By family of features: the string of a word by which known segments are recognised (its text, or its shape).
FAMILIES: dict[str, Callable[[str], str]] = {"text": str, "shape": short_shape}


@dataclass(frozen=True, eq=False)
class WordRows(Rows):
    """Rows with the words of the positions, if they are known, and the sequences' numbers, for messages."""

    words: CodedSequences | None = None
    numbers: Sequence[int] = ()


class SegmentCounts:
    """Counts the attributes of positions inside segments and at their borders, and pairs of neighbouring segments."""

    def __init__(self, choice: FeatureChoice, borders: str) -> None:
        names = ["inside", *(name for name in ("first", "last") if borders in ("both", name))]
        self._choice, self._tables = choice, {name: FeatureCounts(choice) for name in names}
        self.transitions: Ints = np.zeros(choice.n_labels * choice.width, dtype=np.int64)

    def add(self, rows: Rows, gold: Segments) -> None:
        self._tables["inside"].add(rows, gold.types)
        for name in self._tables.keys() - {"inside"}:
            places = gold.firsts if name == "first" else gold.lasts
            table = rows.table.take(places) if isinstance(rows.table, Attributes) else rows.table[places]
            one_each = np.ones(len(places), dtype=np.int64)
            self._tables[name].add(Rows(one_each, rows.n_attributes, table), gold.types[places])
        n_segments = np.diff(np.searchsorted(gold.firsts, np.cumsum(gold.lengths)), prepend=0)
        self.transitions += transition_counts(n_segments, gold.types[gold.firsts], self._choice.n_labels)

    def layouts(self, outside: Booleans) -> dict[str, PairLayout]:
        """Return the chosen features by table, without borders of O (`outside`), which would repeat its inside."""
        found = {name: counts.nodes() for name, counts in self._tables.items()}
        for name in found.keys() - {"inside"}:
            found[name] = found[name].chosen(~outside[found[name].pairs()[1]])
        return found


class Listed(NamedTuple):
    """Segments that have features, as `SegmentChain` takes them, and a row of attributes for each."""

    listed: tuple[Ints, Ints, Ints]
    rows: Attributes


class Known(NamedTuple):
    """The known texts or shapes: keys in ascending order, their names, and the words of the longest."""

    keys: UInt64s
    names: list[str]
    longest: int


class WholeFeatures:
    """The features of whole segments that a model knows.

    families: of `FAMILIES`, for segments of two words or more. lists: phrases by name, compared in lower case.
    """

    def __init__(self, families: tuple[str, ...], lists: Mapping[str, Gazetteer]) -> None:
        self.lists = dict(lists)
        self.known = {name: Known(np.empty(0, dtype=np.uint64), [], 0) for name in families}
        #: By family and key how often it was counted, its name and its words.
        self._counted: dict[str, dict[int, tuple[int, str, int]]] = {name: {} for name in families}

    def count(self, words: CodedSequences, gold: Segments, outside: Booleans) -> None:
        """Count texts and shapes of gold segments of two words or more; outside: which types are O."""
        firsts, sizes = gold.firsts, gold.sizes
        chosen = (sizes > 1) & ~outside[gold.types[firsts]]
        firsts, sizes = firsts[chosen], sizes[chosen]
        for family, counted in self._counted.items():
            texts = [FAMILIES[family](name) for name in words.names]
            found = np.zeros(len(firsts), dtype=np.uint64)
            for size, rolled in _rolled(_keys(texts)[words.codes], int(sizes.max(initial=0))):
                own = sizes == size
                found[own] = rolled[firsts[own]]
            keys, where, counts = np.unique(found, return_index=True, return_counts=True)
            for key, k, count in zip(keys.tolist(), where.tolist(), counts.tolist(), strict=True):
                a, n = int(firsts[k]), int(sizes[k])
                name = " ".join(texts[code] for code in words.codes[a : a + n].tolist())
                counted[key] = counted.get(key, (0,))[0] + count, name, n

    def choose(self, min_count: int) -> None:
        for family, counted in self._counted.items():
            kept = sorted((key, name, n) for key, (count, name, n) in counted.items() if count >= min_count)
            keys = np.array([key for key, _, _ in kept], dtype=np.uint64)
            self.known[family] = Known(keys, [name for _, name, _ in kept], max((n for _, _, n in kept), default=0))
        self._counted = {}  # frees its memory

    @property
    def needs_words(self) -> bool:
        return bool(self.known or self.lists)

    @property
    def names(self) -> list[str]:
        found = [f"{family}={name}" for family, known in self.known.items() for name in known.names]
        return [*found, *(f"list={name}" for name in self.lists)]

    def find(self, words: CodedSequences | None, lengths: Ints, max_length: int) -> Listed:
        """Return the segments of these sequences that have features: none, without words."""
        positions, ends_of = np.arange(int(lengths.sum())), np.repeat(np.cumsum(lengths), lengths)
        found = [np.empty((3, 0), dtype=np.int64)]  # first positions, ends and attributes
        for keys, numbers, codes, shortest, longest in () if words is None else self._searches(words):
            for size, rolled in _rolled(codes, min(longest, max_length)):
                if size < shortest:
                    continue
                place = places_in(keys, rolled)
                begin = np.flatnonzero((place >= 0) & (positions[: len(rolled)] + size <= ends_of[: len(rolled)]))
                found.append(np.stack([begin, begin + size, numbers[place[begin]]]))
        n_attributes = len(self.lists) + sum(len(known.keys) for known in self.known.values())
        return _grouped(np.concatenate(found, axis=1), n_attributes, lengths)

    def _searches(self, words: CodedSequences) -> Iterator[tuple[UInt64s, Ints, UInt64s, int, int]]:
        """Yield searches: keys and the attribute of each, keys of all words, the fewest and the most words."""
        first = 0
        for family, known in self.known.items():
            if len(known.keys):
                codes = _keys([FAMILIES[family](name) for name in words.names])[words.codes]
                yield known.keys, np.arange(first, first + len(known.keys)), codes, 2, known.longest
            first += len(known.keys)
        lowered = _keys([name.lower() for name in words.names] if self.lists else [])
        for number, gazetteer in enumerate(self.lists.values(), first):
            phrases = [phrase.split() for phrase in gazetteer.phrases]
            keys = np.sort(np.array([_key_of(phrase) for phrase in phrases], dtype=np.uint64))
            yield keys, np.full(len(keys), number), lowered[words.codes], 1, max(map(len, phrases))

    def kept(self, used: Booleans) -> tuple[WholeFeatures, Ints]:
        """Return the features without unused attributes, and the new number of each attribute (-1: unused)."""
        other, first = WholeFeatures(tuple(self.known), {}), 0
        for family, known in self.known.items():
            own = used[first : first + len(known.keys)]
            names = list(compress(known.names, own))
            other.known[family] = Known(known.keys[own], names, known.longest if names else 0)
            first += len(own)
        other.lists = dict(compress(self.lists.items(), used[first:]))
        return other, numbered(used)

    def to_parts(self) -> ModelParts:
        parts = ModelParts("whole", {"families": list(self.known)})
        for family, known in self.known.items():
            arrays = {**encode_names(known.names), "keys": known.keys.view(np.int64)}
            parts.add(family, ModelParts("texts", {"longest": known.longest}, arrays))
        add_gazetteers(parts, "lists", self.lists)
        return parts

    @classmethod
    def from_parts(cls, parts: ModelParts) -> WholeFeatures:
        families, found = parts.settings.get("families"), read_gazetteers(parts, "lists")
        if not isinstance(families, list) or not set(families) <= set(FAMILIES) or len(set(families)) < len(families):
            raise ModelFormatError("has unknown features of segments")
        if any(not each.phrases for each in found.values()) or len(found) < len(parts.settings["lists"]):
            raise ModelFormatError("has a list without phrases")
        whole = cls(tuple(families), found)
        for family in families:
            part = parts.part(family)
            keys = part.ints("keys", None, low=-(1 << 63), high=1 << 63).view(np.uint64)
            names = part.names()
            if len(names) != len(keys) or (len(keys) > 1 and not bool((keys[1:] > keys[:-1]).all())):
                raise ModelFormatError("has keys of segments that are not in order")
            whole.known[family] = Known(keys, names, part.integer("longest"))
        return whole


def _keys(texts: list[str]) -> UInt64s:
    found = b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(found, dtype="<u8").astype(np.uint64)


def _key_of(words: list[str]) -> int:
    key = 0
    for word in _keys(words).tolist():
        key = (key * int(_STEP) + word) % (1 << 64)
    return key


def _rolled(codes: UInt64s, longest: int) -> Iterator[tuple[int, UInt64s]]:
    """Yield (size, key of that many words from each position on) for sizes 1 to `longest`."""
    rolled = np.zeros(len(codes), dtype=np.uint64)
    for size in range(1, min(longest, len(codes)) + 1):
        n = len(codes) - size + 1
        rolled = rolled[:n] * _STEP + codes[size - 1 :]
        yield size, rolled


def _grouped(found: NDArray[np.int64], n_attributes: int, lengths: Ints) -> Listed:
    """Return triples (first position, end, attribute) as one row of attributes per segment, by (end, begin)."""
    begin, end, number = found.take(np.lexsort(found[[2, 0, 1]]), axis=1)
    rows = np.unique(end * (int(lengths.sum()) + 1) + begin, return_index=True)[1]
    row_ptr = np.append(rows, len(begin)).astype(np.int64)
    starts = pointers(lengths)
    owner = np.searchsorted(starts, begin[rows], side="right") - 1
    ptr = np.searchsorted(owner, np.arange(len(lengths) + 1)).astype(np.int64)
    listed = (ptr, begin[rows] - starts[owner], end[rows] - starts[owner])
    return Listed(listed, Attributes(row_ptr, number, n_attributes))
