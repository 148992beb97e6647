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
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Prefixes of each scheme's labels.
SCHEMES = {"iob1": ("B", "I", "O"), "iob2": ("B", "I", "O"), "iobes": ("B", "I", "O", "E", "S")}

Labels = Sequence[str] | NDArray[np.str_] | NDArray[np.object_]


@dataclass(frozen=True)
class TypeScores:
    """Counts of chunks, with the ratios as fractions of 1 (0 where nothing was counted)."""

    n_true: int
    n_predicted: int
    n_correct: int

    @property
    def precision(self) -> float:
        return self.n_correct / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        return self.n_correct / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        both = self.n_true + self.n_predicted
        return 2 * self.n_correct / both if both else 0.0


@dataclass(frozen=True)
class ChunkScores(TypeScores):
    """Scores of all chunks together, of each type, and the share of tokens whose label is right."""

    n_tokens: int
    n_correct_tokens: int
    by_type: dict[str, TypeScores]

    @property
    def accuracy(self) -> float:
        return self.n_correct_tokens / self.n_tokens if self.n_tokens else 0.0

    def table(self) -> list[dict[str, Any]]:
        """A row for each type, then one for all: label, precision, recall, f1, counts true, predicted and correct."""
        rows = [*self.by_type.items(), ("all", self)]
        return [
            {
                "label": name,
                "precision": row.precision,
                "recall": row.recall,
                "f1": row.f1,
                "true": row.n_true,
                "predicted": row.n_predicted,
                "correct": row.n_correct,
            }
            for name, row in rows
        ]

    def __str__(self) -> str:
        """The layout of conlleval's report, in per cent."""
        head = (
            f"processed {self.n_tokens} tokens with {self.n_true} phrases; "
            f"found: {self.n_predicted} phrases; correct: {self.n_correct}."
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

    Raises
    ------
    ValueError
        If the numbers of sentences or tokens differ, or a label is not in the scheme.
    """
    gold, guess = list(y_true), list(y_pred)
    _check_shapes(gold, guess)
    if scheme is not None:
        _check_scheme(scheme, gold, guess)
    types: dict[str, int] = {"": 0}
    true_table = _Encoded.from_sentences(gold, types)
    pred_table = _Encoded.from_sentences(guess, types)

    at_true, at_pred = true_table.starts, pred_table.starts
    both = np.intersect1d(at_true, at_pred, assume_unique=True)
    i, j = np.searchsorted(at_true, both), np.searchsorted(at_pred, both)
    # A chunk's end is known by the break that closes it, so equal breaks mean equal last tokens.
    hit = (true_table.stops[i] == pred_table.stops[j]) & (true_table.types[i] == pred_table.types[j])

    n = len(types)
    true_count = np.bincount(true_table.types, minlength=n).tolist()
    pred_count = np.bincount(pred_table.types, minlength=n).tolist()
    correct_count = np.bincount(true_table.types[i][hit], minlength=n).tolist()
    by_type = {
        name: TypeScores(true_count[k], pred_count[k], correct_count[k])
        for name, k in sorted(types.items())
        if true_count[k] or pred_count[k]
    }
    n_tokens = sum(len(labels) for labels in gold)
    right = sum(a == b for a, b in zip(chain.from_iterable(gold), chain.from_iterable(guess), strict=True))
    return ChunkScores(sum(true_count), sum(pred_count), sum(correct_count), n_tokens, int(right), by_type)


def chunk_f1(y_true: Iterable[Labels], y_pred: Iterable[Labels], *, scheme: str | None = None) -> float:
    """F1 over all chunks, between 0 and 1; see `chunk_scores`."""
    return chunk_scores(y_true, y_pred, scheme=scheme).f1


def chunk_spans(labels: Labels) -> list[tuple[str, int, int]]:
    """Chunks of one sentence as (type, first token, one past the last token)."""
    types: dict[str, int] = {"": 0}
    table = _Encoded.from_sentences([labels], types)
    names = list(types)
    # Token t lies at position t + 1: position 0 is the mark before the sentence.
    return [
        (names[k], start - 1, stop - 1)
        for k, start, stop in zip(table.types.tolist(), table.starts.tolist(), table.stops.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class _Encoded:
    """Chunks of sentences laid end to end with one ``O`` before, between and after them."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    types: NDArray[np.int64]

    @classmethod
    def from_sentences(cls, sentences: Sequence[Labels], types: dict[str, int]) -> _Encoded:
        flat = ["O"]
        for labels in sentences:
            flat.extend(labels)
            flat.append("O")
        prefix_of: dict[str, str] = {}
        type_of: dict[str, int] = {}
        for label in set(flat):
            prefix_of[label], name = split_label(label)
            type_of[label] = types.setdefault(name, len(types))
        prefixes = np.array([ord(prefix_of[label]) for label in flat], dtype=np.uint8)
        kind = np.array([type_of[label] for label in flat], dtype=np.int64)
        outside = prefixes == ord("O")
        opens = chunk_starts(prefixes, kind)
        starts = np.flatnonzero(opens)
        breaks = np.flatnonzero(opens | outside)
        stops = breaks[np.searchsorted(breaks, starts, side="right")]
        return cls(starts, stops, kind[starts])


def chunk_starts(prefixes: NDArray[np.uint8], types: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where chunks start, by the rules above, in labels end to end (prefixes are characters' codes)."""
    outside = prefixes == ord("O")
    closed = outside | (prefixes == ord("E")) | (prefixes == ord("S"))
    opens: NDArray[np.bool_] = (prefixes == ord("B")) | (prefixes == ord("S"))
    opens[1:] |= closed[:-1] | (types[1:] != types[:-1])
    opens &= ~outside
    return opens


def split_label(label: str) -> tuple[str, str]:
    """Prefix and type of a label; the type of O is ""."""
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


def _check_shapes(gold: Sequence[Labels], guess: Sequence[Labels]) -> None:
    if len(gold) != len(guess):
        raise ValueError(f"y_true has {len(gold)} sentences, y_pred has {len(guess)}")
    for i, (a, b) in enumerate(zip(gold, guess, strict=True)):
        if isinstance(a, str) or isinstance(b, str):
            raise ValueError(f"sentence {i} is a string: expected a sequence of labels")
        if len(a) != len(b):
            raise ValueError(f"sentence {i}: y_true has {len(a)} labels, y_pred has {len(b)}")


def _percentages(row: TypeScores) -> str:
    return f"precision: {100 * row.precision:6.2f}%; recall: {100 * row.recall:6.2f}%; FB1: {100 * row.f1:6.2f}"
