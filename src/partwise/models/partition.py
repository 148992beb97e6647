"""Learning a model from blocks of training data, two passes over them, in the memory of a block.

    partitioner = model.partitioner()
    for X, y in blocks: partitioner.scan(X, y, None)         labels and names are counted
    partitioner.choose_vocabulary()                          and chosen: numbers from here on
    for X, y in blocks: partitioner.encode(X, y, None)       examples as numbers; features are counted
    partitioner.choose_features()                            and chosen: the model is what `learn` would have made it

What is held grows with the model, not with the examples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from partwise.features import NameCounts
from partwise.models.encoded import EncodedTables
from partwise.models.features import Density, Rows
from partwise.models.readers import ColumnReader, NameReader, Reader, Sequences, VocabularyReader
from partwise.support.arrays import Ints


class Partitioner(ABC):
    """Learns the model that made it. Blocks come in the same order in both passes."""

    @abstractmethod
    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        """Count labels and names in a block of the first pass, which has examples of positive weight."""

    @abstractmethod
    def choose_vocabulary(self) -> None:
        """Choose labels and vocabulary, when the first pass is over."""

    @abstractmethod
    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables | None:
        """Return a block's examples of positive weight in the second pass, None without any; count their features."""

    @abstractmethod
    def choose_features(self) -> None:
        """Choose the model's features, when the second pass is over; it has no weights yet."""

    @abstractmethod
    def n_slots(self, encoded: Any) -> int:
        """Return the number of slots of all these examples, when labels are chosen."""


class ChangedData(ValueError):
    """The second pass met data that the first one did not."""

    def __init__(self) -> None:
        super().__init__("the data changed between the first pass and the second: give the same blocks twice")


#: Numbers of 64 bits, with a sign or without.
Keys: TypeAlias = NDArray[Any]


class KeyPairCounts:
    """How often each pair (key, column) occurs, where keys are any numbers of 64 bits."""

    def __init__(self) -> None:
        none = np.empty(0, dtype=np.int64)
        self._found: tuple[Keys, Ints, Ints] = (none, none, none)
        self._new: list[tuple[Keys, Ints, Ints]] = []
        self._n_new = 0

    def add(self, keys: Keys, columns: Ints) -> None:
        """Count pairs of a block."""
        self._new.append(_counted(keys, columns, np.ones(len(columns), dtype=np.int64)))
        self._n_new += len(columns)
        if self._n_new > len(self._found[0]):
            self._merge()

    def _merge(self) -> None:
        if not len(self._found[0]) and self._new:
            self._found = tuple(part[:0] for part in self._new[0])  # type: ignore[assignment]
        keys, columns, counts = (np.concatenate(each) for each in zip(self._found, *self._new, strict=True))
        self._found, self._new, self._n_new = _counted(keys, columns, counts), [], 0

    def keys(self) -> Keys:
        """Return all keys, in order."""
        self._merge()
        return np.unique(self._found[0])

    def pairs(self, min_count: int) -> tuple[Keys, Ints]:
        """Return (keys, columns) of the pairs that occur so often, in order."""
        self._merge()
        kept = self._found[2] >= min_count
        return self._found[0][kept], self._found[1][kept]


def _counted(keys: Keys, columns: Ints, counts: Ints) -> tuple[Keys, Ints, Ints]:
    order = np.lexsort((columns, keys))
    keys, columns, counts = keys[order], columns[order], counts[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (columns[1:] != columns[:-1])
    first = np.flatnonzero(new)
    return keys[first], columns[first], np.add.reduceat(counts, first) if len(first) else counts


class AttributeCounts:
    """The attributes of blocks of sequences: how often each name occurs, or the share of numbers that are not 0."""

    def __init__(self) -> None:
        self._names = NameCounts()
        self._reader: Reader | None = None
        self._joined = False
        self._density = Density()

    def add(self, reader: Reader, sequences: Sequences, n_jobs: int = 1) -> None:
        """Count a block; reader: one that has read nothing yet."""
        if self._reader is not None and type(reader) is not type(self._reader):
            raise ValueError("blocks must be of one form: names, or numbers, in all of them")
        if isinstance(reader, ColumnReader):
            # one reader for all blocks: it looks that they have equally many columns
            self._reader = reader = self._reader or reader
            self._density.add(reader.read(sequences, n_jobs=n_jobs))
            return
        assert isinstance(reader, VocabularyReader)
        found = reader.read(sequences, n_jobs=n_jobs).attributes()
        self._names.add(reader.known, found.attributes)
        self._joined = self._joined or (isinstance(reader, NameReader) and reader.joined)
        self._reader = reader

    def reader_of(self, min_count: int) -> Reader:
        """Return the reader of the attributes that occur so often."""
        assert self._reader is not None
        if isinstance(self._reader, VocabularyReader):
            self._reader = self._reader.with_vocabulary(self._names.vocabulary(min_count))
            if isinstance(self._reader, NameReader):
                self._reader.joined = self._joined
            self._names = NameCounts()  # its memory
        return self._reader

    @property
    def reader(self) -> Reader | None:
        """The reader; None if no block had any attributes."""
        return self._reader

    def in_form(self, rows: Rows) -> Rows:
        """Return rows of a block in the form of all blocks: sparse, if some are."""
        sparse = self._density.sparse or isinstance(self._reader, VocabularyReader)
        return Rows(rows.lengths, rows.n_attributes, rows.attributes()) if sparse else rows

    def compact(self, rows: Rows) -> Rows:
        """Return rows of a block in the storage that trains faster on all blocks."""
        return self._density.compact(rows)
