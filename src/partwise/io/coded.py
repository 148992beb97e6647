"""Tables of sentences, and sequences of strings held as numbers: a column of such a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import overload

import numpy as np
from numpy.typing import NDArray

from partwise._core import CodedColumn
from partwise._core import Sentences as Sentences
from partwise.support.arrays import Ints, pointers, runs


class CodedSequences(Sequence[list[str]]):
    """A list of lists of strings, held as one number per position; `SequenceTagger.fit` takes labels in this form.

    names: distinct strings, in the order in which they are first seen. codes: the index in `names` of each position's
    string; the sequences are concatenated. lengths: number of positions of each sequence.
    """

    def __init__(self, names: list[str], codes: NDArray[np.int32], lengths: Ints) -> None:
        self.names, self.codes, self.lengths = names, codes, lengths
        self._offsets = pointers(lengths)
        self._strings = np.array(names, dtype=object)

    @classmethod
    def of(cls, table: Sentences, j: int) -> CodedSequences:
        """Return column j of a table; -1 is the last one."""
        column = CodedColumn.of(table, j + table.n_columns if j < 0 else j)
        return cls(column.names(), column.codes, table.lengths)

    @classmethod
    def from_lists(cls, sequences: Iterable[Sequence[str]]) -> CodedSequences:
        """Return lists of strings in this form."""
        lists = list(sequences)
        flat = list(chain.from_iterable(lists))
        number = {name: k for k, name in enumerate(dict.fromkeys(flat))}
        codes = np.fromiter(map(number.__getitem__, flat), dtype=np.int32, count=len(flat))
        return cls(list(number), codes, np.fromiter(map(len, lists), dtype=np.int64, count=len(lists)))

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, i: int) -> list[str]: ...
    @overload
    def __getitem__(self, i: slice) -> CodedSequences: ...
    def __getitem__(self, i: int | slice) -> list[str] | CodedSequences:
        if isinstance(i, slice):
            return self.take(np.arange(len(self))[i])
        k = range(len(self))[i]  # IndexError, and negative numbers
        found: list[str] = self._strings[self.codes[self._offsets[k] : self._offsets[k + 1]]].tolist()
        return found

    def __iter__(self) -> Iterator[list[str]]:
        flat, ends = self.flat(), self._offsets.tolist()
        return (flat[a:b] for a, b in zip(ends, ends[1:], strict=False))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} sequences of {len(self.codes)} strings, {len(self.names)} distinct ones>"

    def flat(self) -> list[str]:
        """Return the strings of all sequences in one list."""
        found: list[str] = self._strings[self.codes].tolist()
        return found

    def distinct(self) -> list[str]:
        """Return the strings that occur, in the order of `names`: after `take` these may be fewer."""
        seen = np.bincount(self.codes, minlength=len(self.names))
        return [name for name, count in zip(self.names, seen.tolist(), strict=True) if count]

    def numbers_in(self, names: Iterable[str]) -> Ints:
        """Return the index of each position's string among other names; -1 for a string that is not among them."""
        place = {name: k for k, name in enumerate(names)}
        numbers = np.fromiter((place.get(name, -1) for name in self.names), dtype=np.int64, count=len(self.names))
        return numbers[self.codes]

    def take(self, indices: Ints) -> CodedSequences:
        """Return some of the sequences, in this order."""
        lengths = self.lengths[indices]
        return CodedSequences(self.names, self.codes[runs(self._offsets[:-1][indices], lengths)], lengths)
