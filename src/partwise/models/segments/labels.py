"""Labels of chunks (B-NP, I-NP, O; IOB1, IOB2, IOBES) to labelled segments and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partwise.metrics.chunks import chunk_starts, split_label
from partwise.models.labels import Targets, label_array
from partwise.support.arrays import Booleans, Ints, pointers


class Span(NamedTuple):
    """A segment with its label: the positions from `begin` up to, not including, `end`.

    probability: that the sequence has exactly this segment; None where the loss gives no probabilities.
    """

    label: str
    begin: int
    end: int
    probability: float | None = None


@dataclass(frozen=True)
class Segments:
    """Segments of all sequences as a type per position (-1: unknown) and whether a segment begins there."""

    types: Ints
    begins: Booleans
    lengths: Ints

    @property
    def firsts(self) -> Ints:
        return np.flatnonzero(self.begins)

    @property
    def sizes(self) -> Ints:
        return np.diff(np.append(self.firsts, len(self.types)))

    @property
    def lasts(self) -> Ints:
        return self.firsts + self.sizes - 1


class Types:
    """The labels of segments: None is O, whose segments have one position."""

    def __init__(self, names: list[str | None]) -> None:
        self.names = names

    @classmethod
    def of(cls, labels: list[str]) -> Types:
        """Return the types of these chunk labels; ValueError for a label that is not one of a chunk."""
        parts = [split_label(label) for label in labels]
        for label, (prefix, name) in zip(labels, parts, strict=True):
            if prefix != "O" and name == "O":
                raise ValueError(f"label {label!r}: the type O is that of positions outside of segments")
        names: list[str | None] = [*sorted({name for prefix, name in parts if prefix != "O"})]
        return cls([None, *names] if any(prefix == "O" for prefix, _ in parts) else names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def outside(self) -> Booleans:
        return np.array([name is None for name in self.names])

    def name(self, k: int) -> str:
        name = self.names[k]
        return "O" if name is None else name

    def segments(self, targets: Targets, lengths: Ints) -> Segments:
        distinct = targets.classes()
        return self.segments_of(targets.encode(distinct), distinct.tolist(), lengths)

    def segments_of(self, codes: Ints, labels: list[str], lengths: Ints) -> Segments:
        """Turn labels, given by their numbers in `labels`, into segments."""
        if not len(codes):
            return Segments(codes, np.empty(0, dtype=bool), lengths)
        parts = [split_label(label) for label in labels]
        index = {name: k for k, name in enumerate(self.names)}
        prefixes = np.array([ord(prefix) for prefix, _ in parts], dtype=np.uint8)
        kinds = np.unique([name for _, name in parts], return_inverse=True)[1]
        types = np.array([index.get(None if p == "O" else name, -1) for p, name in parts], dtype=np.int64)
        begins = chunk_starts(prefixes[codes], kinds[codes]) | (prefixes[codes] == ord("O"))
        begins[pointers(lengths[lengths > 0])[:-1]] = True
        return Segments(types[codes], begins, lengths)

    def classes(self, max_length: int) -> NDArray[Any]:
        """Return the labels in IOB2, sorted."""
        found = [label for k in range(len(self)) for label in self._pair(k)[: 1 + (max_length > 1)]]
        return label_array(sorted(set(found)))

    def numbers(self, classes: NDArray[Any]) -> Ints:
        """Return (types x 2) the number in `classes` of each type's label at a first and a later position, or -1."""
        index = {label: k for k, label in enumerate(classes.tolist())}
        return np.array([[index.get(label, -1) for label in self._pair(k)] for k in range(len(self))], dtype=np.int64)

    def _pair(self, k: int) -> tuple[str, str]:
        name = self.names[k]
        if name is None:
            return "O", "O"
        return (f"B-{name}", f"I-{name}") if name else ("B", "I")

    def labels(self, segments: Segments, scheme: str) -> list[str]:
        types, begins = segments.types, segments.begins
        prefix = np.where(begins, "B", "I")
        if scheme == "iob1":
            before = np.concatenate([[-1], types[:-1]])
            before[pointers(segments.lengths[segments.lengths > 0])[:-1]] = -1
            prefix = np.where(begins & (before == types), "B", "I")
        elif scheme == "iobes":
            last = np.zeros(len(types), dtype=bool)
            last[segments.lasts] = True
            prefix = np.where(last, np.where(begins, "S", "E"), prefix)
        rows = zip(prefix.tolist(), types.tolist(), self.outside[types].tolist(), strict=True)
        tails = ["" if not name else f"-{name}" for name in self.names]
        return ["O" if out else p + tails[k] for p, k, out in rows]
