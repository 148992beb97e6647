"""Sentences, trees and constraints as the dependency parser takes them.

Errors are ValueErrors that name the sentence, with its file and line where it came from one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, cast

import numpy as np

from partwise.features import ArcTokens
from partwise.features.arcs import COLUMNS, arc_tokens
from partwise.io import conllu
from partwise.io.conllu import ConlluSentence, find_cycle, parse_columns_list, split_feats
from partwise.io.errors import FormatError
from partwise.models.constraints import ConstraintError
from partwise.models.readers import as_list, as_trees
from partwise.structures import Tree
from partwise.support.arrays import Booleans, Bytes, Floats, Ints, pointers
from partwise.support.memory import check_room

#: The columns that a word may have.
FIELDS = COLUMNS[:5]
_FIELDS_OF = itemgetter(*map(conllu.COLUMNS.index, FIELDS))
ALL_CROSSING = "all gold trees have crossing arcs: use structure='spanning' or non_projective='lift'"
#: Measured: 150 bytes per arc, and 4 more for each of its features.
ARC_BYTES = 400


@dataclass(frozen=True)
class Words:
    """The words of sentences, end to end; `numbers` are those of the caller's list."""

    lengths: Ints
    columns: list[list[str]]
    numbers: Sequence[int]
    sources: Sequence[object]
    _tokens: dict[tuple[str, ...], ArcTokens] = field(default_factory=dict, repr=False, compare=False)

    def name(self, i: int) -> str:
        source, number = self.sources[i], self.numbers[i]
        place = f" ({source.path}:{source.line})" if isinstance(source, ConlluSentence) else ""
        return f"sentence {number}{place}"

    def blank(self) -> list[str]:
        """Return the columns in which no word has a value."""
        return [name for name, values in zip(FIELDS, self.columns, strict=True) if set(values) <= {conllu.BLANK}]

    def tokens(self, keys: Sequence[str] = ()) -> ArcTokens:
        """Return words with these single features as columns, cached; FormatError or ValueError for malformed feats."""
        wanted = tuple(keys)
        if wanted not in self._tokens:
            if wanted:
                self._check_features()
            self._tokens[wanted] = arc_tokens(self.lengths, self.columns, wanted)
        return self._tokens[wanted]

    def _check_features(self) -> None:
        for cell in dict.fromkeys(self.columns[-1]):
            try:
                split_feats(cell)
            except ValueError as error:
                at = self.columns[-1].index(cell)
                i = int(np.searchsorted(self.offsets, at, side="right")) - 1
                word, source = at - int(self.offsets[i]) + 1, self.sources[i]
                if isinstance(source, ConlluSentence):
                    raise FormatError(str(error), source.path, source.line_of(word)) from None
                raise ValueError(f"{self.name(i)}, word {word}: {error}") from None

    def take(self, some: Booleans | Ints) -> Words:
        """Return some of the sentences, by a mask or by numbers, in which a sentence may occur twice."""
        if some.dtype == bool and some.all():
            return self
        chosen = np.flatnonzero(some) if some.dtype == bool else some
        ends, indices = self.offsets.tolist(), chosen.tolist()
        columns = [list(chain(*(column[ends[i] : ends[i + 1]] for i in indices))) for column in self.columns]
        numbers, sources = ([each[i] for i in indices] for each in (self.numbers, self.sources))
        return Words(self.lengths[chosen], columns, numbers, sources)

    @property
    def offsets(self) -> Ints:
        """Where the words of each sentence begin, and the last end."""
        return pointers(self.lengths)

    def chains(self) -> Ints:
        """Return heads of trees that every structure has: each word's head is the word before it."""
        return np.arange(int(self.lengths.sum())) - np.repeat(self.offsets[:-1], self.lengths)


def input_columns(inputs: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns of words that may be looked at, from a list such as "form,upos" or None (all)."""
    names = FIELDS if inputs is None else tuple(column.name for column in parse_columns_list(inputs))
    for name in names:
        if name not in FIELDS:
            raise ValueError(f"inputs: a parser looks at {', '.join(FIELDS)}, not at {name!r}")
    return names


def as_sentences(X: object) -> list[Any]:
    """Return a list of sentences."""
    return as_list(X, "X must be a list of sentences", single=isinstance(X, ConlluSentence))


def trees_of(y: object, n_sentences: int) -> list[Any]:
    """Return a list of as many trees."""
    return as_trees(y, n_sentences, single=isinstance(y, ConlluSentence))


def read_words(sentences: Sequence[object], numbers: Sequence[int], max_length: int) -> Words:
    """Return the columns of all words; ValueError at once for sentences longer than `max_length`."""
    words = check_lengths(sentences, numbers, max_length)
    for number, sentence in zip(numbers, sentences, strict=True):
        rows: list[Sequence[str]] = []
        if isinstance(sentence, ConlluSentence):
            rows += map(_FIELDS_OF, sentence.fields())
        else:
            try:
                rows += map(_word, cast(Iterable[object], sentence))
            except ValueError as error:
                raise ValueError(f"sentence {number}, word {len(rows) + 1}: {error}") from None
        for column, values in zip(words.columns, zip(*rows, strict=True), strict=False):
            column.extend(values)
    return words


def check_lengths(sentences: Sequence[object], numbers: Sequence[int], max_length: int) -> Words:
    """Return the lengths of sentences, without columns; ValueError for one that is not a list or too long."""
    for number, sentence in zip(numbers, sentences, strict=True):
        if isinstance(sentence, (str, bytes, dict)) or not isinstance(sentence, Sized):
            raise ValueError(f"sentence {number} must be a list of words, got {type(sentence).__name__}")
    lengths = np.array([len(cast(Sized, sentence)) for sentence in sentences], dtype=np.int64)
    words = Words(lengths, [[] for _ in FIELDS], numbers, list(sentences))
    long = np.flatnonzero(lengths > max_length)
    if len(long):
        n = int(lengths[long[0]])
        # Measured: 3 n^3 nanoseconds for marginals.
        raise ValueError(
            f"{words.name(int(long[0]))} has {n} words, more than max_length = {max_length}: it would take about "
            f"{ARC_BYTES * n * n / 1e6:.2g} MB and {3e-9 * n**3:.2g} s per visit; leave it out or raise that limit"
        )
    if len(lengths):
        n = int(lengths.max())
        check_room(ARC_BYTES * float(n) ** 2, f"{words.name(int(lengths.argmax()))}, of {n:,} words,")
    return words


def _word(word: object) -> Sequence[str]:
    if isinstance(word, str):
        return (word, *[conllu.BLANK] * 4)
    if isinstance(word, dict):
        if "form" not in word or not word.keys() <= set(FIELDS):
            raise ValueError(f"a dict needs the key 'form' and may have {', '.join(FIELDS[1:])}; got {list(word)}")
        values = [word.get(name) or conllu.BLANK for name in FIELDS]
    elif isinstance(word, (tuple, list)) and len(word) in (1, 2, 5):
        form, *rest = word if len(word) != 2 else (word[0], conllu.BLANK, word[1])
        values = [form, *rest, *[conllu.BLANK] * (4 - len(rest))]
    else:
        raise ValueError(f"expected a string, a dict, (form, upos) or (form, lemma, upos, xpos, feats); got {word!r}")
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"columns must be strings, got {word!r}")
    return values


class GoldTrees(NamedTuple):
    """Sentences to learn from; kept: those with a tree (`heads`) of the structure; n_crossing: how many lack one."""

    words: Words
    gold: Ints  # heads of all words as they were given
    relations: list[str] | None
    weight: Floats | None
    kept: Booleans
    heads: Ints
    n_crossing: int

    def used(self) -> tuple[Words, Ints, Floats | None]:
        """Return words, heads and weights of the sentences that are kept; ValueError without any."""
        if not self.kept.any():
            raise ValueError(ALL_CROSSING)
        heads = self.heads[np.repeat(self.kept, self.words.lengths)]
        return self.words.take(self.kept), heads, None if self.weight is None else self.weight[self.kept]


def read_trees(y: Sequence[object] | None, words: Words) -> tuple[Ints, list[str] | None]:
    """Return heads of all words and their relations, if any: of sentences (y is None), or heads, or pairs of both."""
    heads: list[int] = []
    relations: list[str] = []
    for i, length in enumerate(words.lengths.tolist()):
        source = words.sources[i] if y is None else y[i]
        if isinstance(source, ConlluSentence):
            if len(source.heads) != length:
                raise ValueError(f"{words.name(i)} has no tree" if not source.heads else f"{words.name(i)}: wrong tree")
            heads += source.heads
            relations += source.deprels
            continue
        if y is None:
            raise ValueError(f"{words.name(i)} has no tree: give y, or sentences from a file with trees")
        if not isinstance(source, Sized) or isinstance(source, (str, dict)) or len(source) != length:
            raise ValueError(f"y: {words.name(i)} needs a list of {length} heads")
        for word, arc in enumerate(cast(Iterable[object], source), start=1):
            head, relation = arc if isinstance(arc, (tuple, list)) and len(arc) == 2 else (arc, None)
            if isinstance(head, bool) or not isinstance(head, (int, np.integer)):
                raise ValueError(f"y: {words.name(i)}, word {word}: the head must be a number, got {head!r}")
            if not isinstance(relation, str | None):
                raise ValueError(f"y: {words.name(i)}, word {word}: the relation must be a string, got {relation!r}")
            heads.append(int(head))
            relations += [] if relation is None else [relation]
    if relations and len(relations) != len(heads):
        raise ValueError("y: some words have relations and others have none")
    return np.array(heads, dtype=np.int64), relations or None


def check_tree(heads: Ints, single_root: bool, name: Callable[[], str]) -> None:
    """Raise ValueError for heads that do not form a tree, projective or not."""
    n = len(heads)
    for word, head in enumerate(heads.tolist(), start=1):
        if not 0 <= head <= n:
            raise ValueError(f"{name()}: head {head} of word {word} is out of range: there are {n} words")
    word = find_cycle(heads.tolist())
    if word:
        raise ValueError(f"{name()}: the heads make a cycle through word {word}")
    roots = np.flatnonzero(heads == 0) + 1
    if single_root and len(roots) != 1:
        words = ", ".join(map(str, roots[:5]))
        raise ValueError(f"{name()} has {len(roots)} roots (words {words}): single_root=False allows that")


def crossing_trees(structure: Tree, words: Words, heads: Ints) -> Ints:
    """Return the sentences whose trees have crossing arcs that the structure excludes; ValueError for other faults."""
    offsets, found = words.offsets, []
    for i in range(len(words.lengths)):
        own = heads[offsets[i] : offsets[i + 1]]
        try:
            structure.check_heads(i, own)
        except ValueError:
            check_tree(own, structure.single_root, lambda i=i: words.name(i))  # type: ignore[misc]
            found.append(i)
    return np.array(found, dtype=np.int64)


def lift(heads: Ints) -> Ints:
    """Return a projective tree: while arcs cross, attach the end of the shortest such arc to its head's head.

    An arc jumps over a stranger if a word between its ends does not descend from its head (Nivre and Nilsson 2005).
    """
    parent = [0, *heads.tolist()]

    def is_below(word: int, head: int) -> bool:
        while word not in (head, 0):
            word = parent[word]
        return word == head

    def jumps() -> Iterator[tuple[int, int]]:
        """Yield (length, modifier) of each arc that jumps over a stranger."""
        for m, h in enumerate(parent):
            if h and not all(is_below(word, h) for word in range(min(h, m) + 1, max(h, m))):
                yield abs(h - m), m

    while shortest := min(jumps(), default=None):
        parent[shortest[1]] = parent[parent[shortest[1]]]
    return np.array(parent[1:], dtype=np.int64)


def arc_mask(value: object, number: int, name: str, n: int) -> Bytes | None:
    """Return which arcs are allowed, a byte per slot; None if all arcs are."""
    if value is None:
        return None
    mask = np.ones((n, n + 1), dtype=np.uint8)
    if isinstance(value, dict):
        for word, heads in value.items():
            choices = list(heads) if isinstance(heads, Collection) and not isinstance(heads, str) else [heads]
            numbers = [word, *choices]
            if not all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) and 0 <= x <= n for x in numbers):
                raise ValueError(f"allowed: {name}: {word!r}: {heads!r} are not numbers of words (there are {n})")
            if word == 0:
                raise ValueError(f"allowed: {name}: the root has no head")
            mask[word - 1] = 0
            mask[word - 1, choices] = 1
    else:
        array = np.asarray(value)
        if array.shape != mask.shape or not (array.dtype == bool or np.isin(array, (0, 1)).all()):
            raise ValueError(f"allowed: {name} needs a boolean array of shape {mask.shape}")
        mask[:] = array
    np.fill_diagonal(mask[:, 1:], 0)
    short = np.flatnonzero(~mask.any(axis=1))
    if len(short):
        raise ConstraintError(f"allowed: {name}: word {short[0] + 1} has no head left", number, int(short[0]))
    return mask.ravel()
