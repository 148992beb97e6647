"""Precision, recall and F1 over labelled chunks, by the rules of the CoNLL shared tasks' conlleval script.

A label is ``O`` or ``P-TYPE`` with P one of B, I, E, S. A chunk starts at a token that is not ``O`` when

- its prefix is B or S, or
- the token before it is ``O``, E or S, or the sentence starts here, or
- its type differs from the type of the token before it,

and lasts until the next start, the next ``O`` or the end of the sentence. So an I after ``O`` opens a chunk (IOB1), and
labels that no scheme would write still have one reading. A predicted chunk is right when a gold chunk has the same
first token, last token and type. On B, I, O and on well-formed E and S labels this is conlleval's count; the one
difference is a B after an E of its own type, which starts a chunk here and which the script, made before B and E were
used together, joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from partwise.metrics.labels import Ratios, paired, share
from partwise.support.arrays import Ints

#: Prefixes of each scheme's labels.
SCHEMES = {"iob1": ("B", "I", "O"), "iob2": ("B", "I", "O"), "iobes": ("B", "I", "O", "E", "S")}

Labels = Sequence[str] | NDArray[np.str_] | NDArray[np.object_]


@dataclass(frozen=True)
class TypeScores(Ratios):
    """Counts of the chunks of a type: in gold, predicted, and right."""

    n_gold: int
    n_predicted: int
    n_right: int


@dataclass(frozen=True)
class ChunkScores(TypeScores):
    """Counts of all chunks together, of each type, and of tokens whose label is right."""

    n_tokens: int
    n_right_tokens: int
    by_type: dict[str, TypeScores]

    @property
    def accuracy(self) -> float:
        """The share of tokens whose label is right."""
        return share(self.n_right_tokens, self.n_tokens)

    def table(self) -> list[dict[str, object]]:
        """Return a row for each type, then one for all: label, precision, recall, f1, and counts."""
        shares = {name: name for name in ("precision", "recall", "f1")}
        columns = {**shares, "true": "n_gold", "predicted": "n_predicted", "correct": "n_right"}
        rows = [*self.by_type.items(), ("all", self)]
        return [{"label": label, **{key: getattr(row, name) for key, name in columns.items()}} for label, row in rows]

    def __str__(self) -> str:
        """Return a text in the layout of conlleval's report, in per cent."""
        head = (
            f"processed {self.n_tokens} tokens with {self.n_gold} phrases; "
            f"found: {self.n_predicted} phrases; correct: {self.n_right}."
        )
        total = f"accuracy: {100 * self.accuracy:6.2f}%; {_percentages(self)}"
        rows = [f"{name:>17}: {_percentages(row)}  {row.n_predicted}" for name, row in self.by_type.items()]
        return "\n".join([head, total, *rows])


def chunk_scores(y_true: Iterable[Labels], y_pred: Iterable[Labels], *, scheme: str | None = None) -> ChunkScores:
    """Compare predicted with gold labels of sentences.

    Parameters
    ----------
    y_true, y_pred : iterables of label sequences, one per sentence
    scheme : {None, "iob1", "iob2", "iobes"}
        Which prefixes there may be: B and I for the first two, which conlleval reads by the same rules; B, I, E and S
        for the third and for None. It refuses labels and does not change what they mean.

    Raises ValueError if the numbers of sentences or tokens differ, or a label is not in the scheme.
    """
    pairs = paired(y_true, y_pred)
    gold, guess = [own for own, _ in pairs], [own for _, own in pairs]
    if scheme is not None:
        _check_scheme(scheme, gold, guess)
    numbers: dict[str, int] = {"": 0}
    starts, stops, types = _encode(gold, numbers)
    guessed_starts, guessed_stops, guessed_types = _encode(guess, numbers)

    _, i, j = np.intersect1d(starts, guessed_starts, assume_unique=True, return_indices=True)
    # A chunk's end is known by the break that closes it, so equal breaks mean equal last tokens.
    hit = (stops[i] == guessed_stops[j]) & (types[i] == guessed_types[j])

    columns = (types, guessed_types, types[i][hit])
    counts = np.stack([np.bincount(column, minlength=len(numbers)) for column in columns], axis=1)
    by_type = {name: TypeScores(*counts[k].tolist()) for name, k in sorted(numbers.items()) if counts[k].any()}
    n_tokens = sum(map(len, gold))
    right = sum(a == b for a, b in zip(chain.from_iterable(gold), chain.from_iterable(guess), strict=True))
    n_gold, n_predicted, n_right = counts.sum(axis=0).tolist()
    return ChunkScores(n_gold, n_predicted, n_right, n_tokens, right, by_type)


def chunk_f1(y_true: Iterable[Labels], y_pred: Iterable[Labels], *, scheme: str | None = None) -> float:
    """Return F1 over all chunks, between 0 and 1; see `chunk_scores`."""
    return chunk_scores(y_true, y_pred, scheme=scheme).f1


def chunk_spans(labels: Labels) -> list[tuple[str, int, int]]:
    """Return the chunks of one sentence as (type, first token, one past the last token)."""
    numbers: dict[str, int] = {"": 0}
    columns = [column.tolist() for column in _encode([labels], numbers)]
    names = list(numbers)
    # Token t lies at position t + 1: position 0 is the mark before the sentence.
    return [(names[k], start - 1, stop - 1) for start, stop, k in zip(*columns, strict=True)]


def _encode(sentences: Sequence[Labels], numbers: dict[str, int]) -> tuple[Ints, Ints, Ints]:
    """Return starts, stops and types of the chunks of sentences, with one ``O`` before, between and after these."""
    flat = ["O"]
    for labels in sentences:
        flat.extend(labels)
        flat.append("O")
    codes: dict[str, tuple[int, int]] = {}
    for label in set(flat):
        prefix, name = split_label(label)
        codes[label] = ord(prefix), numbers.setdefault(name, len(numbers))
    prefixes = np.array([codes[label][0] for label in flat], dtype=np.uint8)
    types = np.array([codes[label][1] for label in flat], dtype=np.int64)
    opens = chunk_starts(prefixes, types)
    starts = np.flatnonzero(opens)
    breaks = np.flatnonzero(opens | (prefixes == ord("O")))
    stops = breaks[np.searchsorted(breaks, starts, side="right")]
    return starts, stops, types[starts]


def chunk_starts(prefixes: NDArray[np.uint8], types: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where chunks start, by the rules above, in labels of all sentences (prefixes are characters' codes)."""
    outside = prefixes == ord("O")
    closed = outside | (prefixes == ord("E")) | (prefixes == ord("S"))
    opens: NDArray[np.bool_] = (prefixes == ord("B")) | (prefixes == ord("S"))
    opens[1:] |= closed[:-1] | (types[1:] != types[:-1])
    opens &= ~outside
    return opens


def split_label(label: str) -> tuple[str, str]:
    """Return prefix and type of a label; the type of O is ""."""
    prefix, _, name = str(label).partition("-")
    if prefix not in ("B", "I", "O", "E", "S"):
        raise ValueError(f"label {label!r} is not O or one of B, I, E, S followed by - and a type")
    return prefix, name


def _check_scheme(scheme: str, *sides: Sequence[Labels]) -> None:
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be None, {', '.join(map(repr, SCHEMES))}, got {scheme!r}")
    for side in sides:
        for label in {str(label) for labels in side for label in labels}:
            if label.partition("-")[0] not in SCHEMES[scheme]:
                raise ValueError(f"label {label!r} is not in the scheme {scheme!r}")


def _percentages(row: TypeScores) -> str:
    return f"precision: {100 * row.precision:6.2f}%; recall: {100 * row.recall:6.2f}%; FB1: {100 * row.f1:6.2f}"
