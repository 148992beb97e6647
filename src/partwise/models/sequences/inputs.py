"""Sequences as users give them. Errors are ValueErrors that name the sequence and the position."""

from __future__ import annotations

import numbers
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from partwise.io import Sentences
from partwise.support.arrays import Ints


@dataclass(frozen=True)
class Sequences:
    """Sequences to read, with the numbers they have in the caller's list (for messages)."""

    #: What messages call one of them, and a row of it.
    one: ClassVar[str] = "sequence"
    row: ClassVar[str] = "position"

    items: list[Any]
    numbers: Sequence[int]

    @classmethod
    def of(cls, X: Any, name: str = "X") -> Sequences:
        """All of `X`, a list (or other sized iterable) of sequences; itself if it is one of these."""
        if isinstance(X, Sequences):
            return X
        if isinstance(X, Sentences):
            raise ValueError(f"{name} is a table of strings: attributes are made of it by a template")
        if isinstance(X, (str, bytes, dict)) or sparse.issparse(X) or not isinstance(X, Sized):
            raise ValueError(f"{name} must be a list of sequences, got {type(X).__name__}")
        items = list(X)  # type: ignore[call-overload]
        return cls(items, range(len(items)))

    def take(self, indices: Ints) -> Sequences:
        """Some of them, under their own numbers."""
        chosen = indices.tolist()
        return Sequences([self.items[i] for i in chosen], [self.numbers[i] for i in chosen])

    def lengths(self, name: str = "X") -> Ints:
        """Number of positions of each."""
        for number, item in zip(self.numbers, self.items, strict=True):
            if isinstance(item, (str, bytes, dict)) or not (isinstance(item, Sized) or sparse.issparse(item)):
                found = type(item).__name__
                raise ValueError(
                    f"{name}: {self.one} {number} must be a list or a 2-D array of {self.row}s, got {found}"
                )
        return np.fromiter(map(length_of, self.items), dtype=np.int64, count=len(self.items))

    def where(self, lengths: Ints, row: int) -> str:
        """The name of a row when all sequences lie end to end."""
        ends = np.cumsum(lengths)
        i = int(np.searchsorted(ends, row, side="right"))
        return f"{self.one} {self.numbers[i]}, {self.row} {row - int(ends[i] - lengths[i])}"


def length_of(item: Any) -> int:
    """Number of positions of a sequence."""
    return int(item.shape[0]) if hasattr(item, "shape") else len(item)


def input_form(sequences: Sequences) -> str:
    """Which of "names" (lists of strings, dicts), "dense", "sparse", or "none" when there is no position at all."""
    for number, item in zip(sequences.numbers, sequences.items, strict=True):
        if length_of(item) == 0:
            continue
        if sparse.issparse(item):
            return "sparse"
        if isinstance(item, np.ndarray) and item.dtype != object:
            if item.ndim == 2 and item.dtype.kind in "biufU":
                return "names" if item.dtype.kind == "U" else "dense"
            raise ValueError(
                f"X: {sequences.one} {number} is a {item.ndim}-D array of {item.dtype}; "
                f"expected 2-D numbers, one row per {sequences.row}"
            )
        first = next(iter(item))
        if sparse.issparse(first):
            return "sparse"
        if isinstance(first, np.ndarray) and first.dtype.kind in "biuf":
            return "dense"
        if isinstance(first, (list, tuple)) and first and isinstance(first[0], (numbers.Real, np.bool_)):
            return "dense"
        return "names"
    return "none"
