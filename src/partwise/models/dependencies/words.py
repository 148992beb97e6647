"""Reading sentences and trees for the dependency parser.

Errors are ValueErrors that name the sentence, with its file and line where it came from one.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.features import ArcTokens
from partwise.features.arcs import COLUMNS, arc_tokens
from partwise.io.conllu import FEATS, FORM, LEMMA, UPOS, XPOS, ConlluSentence, parse_columns_list, split_feats
from partwise.io.errors import FormatError
from partwise.support.arrays import Ints, pointers
from partwise.support.memory import check_room

#: The columns that a word may have.
FIELDS = COLUMNS[:5]
_PLACES = (FORM, LEMMA, UPOS, XPOS, FEATS)
_BLANK = "_"
#: Measured: 150 bytes per arc, and 4 more for each of its features.
ARC_BYTES = 400


@dataclass(frozen=True)
class Words:
    """The words of sentences, end to end; `numbers` are those of the caller's list."""

    lengths: Ints
    columns: list[list[str]]
    numbers: Sequence[int]
    sources: list[Any]
    _tokens: dict[tuple[str, ...], ArcTokens] = field(default_factory=dict, repr=False, compare=False)

    def name(self, i: int) -> str:
        """What a sentence is called in messages."""
        source, number = self.sources[i], self.numbers[i]
        place = f" ({source.path}:{source.line})" if isinstance(source, ConlluSentence) else ""
        return f"sentence {number}{place}"

    def blank(self) -> list[str]:
        """The columns without a value."""
        return [name for name, values in zip(FIELDS, self.columns, strict=True) if all(v == _BLANK for v in values)]

    def tokens(self, keys: Sequence[str] = ()) -> ArcTokens:
        """The words for the core, with these single features as columns of their own; made once.

        FormatError or ValueError, with the place, where feats is no list of features.
        """
        wanted = tuple(keys)
        if wanted not in self._tokens:
            if wanted:
                self._check_features()
            self._tokens[wanted] = arc_tokens(self.lengths, self.columns, wanted)
        return self._tokens[wanted]

    def _check_features(self) -> None:
        cells, known = self.columns[-1], set[str]()
        for at, cell in enumerate(cells):
            if cell in known:
                continue
            known.add(cell)
            try:
                split_feats(cell)
            except ValueError as error:
                i = int(np.searchsorted(self.offsets, at, side="right")) - 1
                word, source = at - int(self.offsets[i]) + 1, self.sources[i]
                if isinstance(source, ConlluSentence):
                    raise FormatError(str(error), source.path, source.line_of(word)) from None
                raise ValueError(f"{self.name(i)}, word {word}: {error}") from None

    def take(self, kept: NDArray[np.bool_]) -> Words:
        """Some of the sentences."""
        if kept.all():
            return self
        chosen = np.repeat(kept, self.lengths).tolist()
        columns = [list(compress(column, chosen)) for column in self.columns]
        some = np.flatnonzero(kept).tolist()
        return Words(self.lengths[kept], columns, [self.numbers[i] for i in some], [self.sources[i] for i in some])

    def pick(self, indices: Ints) -> Words:
        """Sentences by their numbers here; one may come more than once."""
        offsets, some = self.offsets.tolist(), indices.tolist()
        columns = [
            list(chain.from_iterable(column[offsets[i] : offsets[i + 1]] for i in some)) for column in self.columns
        ]
        return Words(self.lengths[indices], columns, [self.numbers[i] for i in some], [self.sources[i] for i in some])

    @property
    def offsets(self) -> Ints:
        return pointers(self.lengths)


def input_columns(inputs: Any) -> tuple[str, ...]:
    """The columns of words that may be looked at, from a list such as "form,upos" or None. ValueError for others."""
    if inputs is None:
        return FIELDS
    names = [column.name for column in parse_columns_list(inputs)]
    for name in names:
        if name not in FIELDS:
            raise ValueError(f"inputs: a parser looks at {', '.join(FIELDS)}, not at {name!r}")
    return tuple(names)


def as_sentences(X: Any, name: str = "X") -> list[Any]:
    """A list of sentences."""
    if isinstance(X, (str, bytes, dict, ConlluSentence)) or not isinstance(X, Sized):
        raise ValueError(f"{name} must be a list of sentences, got {type(X).__name__}")
    sentences: list[Any] = list(X)  # type: ignore[call-overload]
    return sentences


def read_words(sentences: Sequence[Any], numbers: Sequence[int], max_length: int) -> Words:
    """Columns of all words; sentences above `max_length` are refused before anything is done with them."""
    words = check_lengths(sentences, numbers, max_length)
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, ConlluSentence):
            for fields in sentence.fields():
                for column, place in zip(words.columns, _PLACES, strict=True):
                    column.append(fields[place])
        else:
            for k, word in enumerate(sentence):
                try:
                    values = _word(word)
                except ValueError as error:
                    raise ValueError(f"sentence {numbers[i]}, word {k + 1}: {error}") from None
                for column, value in zip(words.columns, values, strict=True):
                    column.append(value)
    return words


def check_lengths(sentences: Sequence[Any], numbers: Sequence[int], max_length: int) -> Words:
    """The sentences' lengths, with no columns yet; ValueError if one is not a list of words or too long."""
    lengths = np.empty(len(sentences), dtype=np.int64)
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, (str, bytes, dict)) or not isinstance(sentence, Sized):
            raise ValueError(f"sentence {numbers[i]} must be a list of words, got {type(sentence).__name__}")
        lengths[i] = len(sentence)
    words = Words(lengths, [[] for _ in FIELDS], numbers, list(sentences))
    if len(lengths):
        i = int(np.argmax(lengths))
        if lengths[i] <= max_length:
            check_room(ARC_BYTES * float(lengths[i]) ** 2, f"{words.name(i)}, of {lengths[i]:,} words,")
    long = np.flatnonzero(lengths > max_length)
    if len(long):
        n = int(lengths[long[0]])
        # Measured: 3 n^3 nanoseconds for marginals.
        raise ValueError(
            f"{words.name(int(long[0]))} has {n} words, more than max_length = {max_length}: it would take about "
            f"{ARC_BYTES * n * n / 1e6:.2g} MB and {3e-9 * n**3:.2g} s per visit; leave it out or raise that limit"
        )
    return words


def _word(word: Any) -> Sequence[str]:
    values: Sequence[Any]
    if isinstance(word, str):
        values = (word, *[_BLANK] * 4)
    elif isinstance(word, dict):
        unknown = [key for key in word if key not in FIELDS]
        if unknown or "form" not in word:
            raise ValueError(f"a dict needs the key 'form' and may have {', '.join(FIELDS[1:])}; got {list(word)}")
        values = [word.get(name) or _BLANK for name in FIELDS]
    elif isinstance(word, (tuple, list)) and len(word) in (1, 2, 5):
        form, *rest = word
        values = (form, _BLANK, *rest, _BLANK, _BLANK) if len(rest) == 1 else (form, *rest, *[_BLANK] * (4 - len(rest)))
    else:
        raise ValueError(f"expected a string, a dict, (form, upos) or (form, lemma, upos, xpos, feats); got {word!r}")
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"columns must be strings, got {word!r}")
    return values


@dataclass(frozen=True)
class Trees:
    """Heads of all words end to end, and their relations if they have any."""

    heads: Ints
    relations: list[str] | None


def read_trees(y: Any, words: Words) -> Trees:
    """Gold trees: of the sentences themselves (y is None), or lists of heads or of (head, relation) pairs."""
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
        arcs: list[Any] = list(source)  # type: ignore[call-overload]
        for word, arc in enumerate(arcs, start=1):
            head, relation = arc if isinstance(arc, (tuple, list)) and len(arc) == 2 else (arc, None)
            if isinstance(head, bool) or not isinstance(head, (int, np.integer)):
                raise ValueError(f"y: {words.name(i)}, word {word}: the head must be a number, got {head!r}")
            heads.append(int(head))
            if relation is not None:
                if not isinstance(relation, str):
                    raise ValueError(
                        f"y: {words.name(i)}, word {word}: the relation must be a string, got {relation!r}"
                    )
                relations.append(relation)
    if relations and len(relations) != len(heads):
        raise ValueError("y: some words have relations and others have none")
    return Trees(np.array(heads, dtype=np.int64), relations or None)
