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
from typing import Any

from partwise.features import NameCounts
from partwise.models.encoded import EncodedTables
from partwise.models.features import Density, Rows
from partwise.models.readers import ColumnReader, NameReader, Reader, Sequences, VocabularyReader


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
        return self._reader

    def in_form(self, rows: Rows) -> Rows:
        """Return rows of a block in the form of all blocks: sparse, if some are."""
        sparse = self._density.sparse or isinstance(self._reader, VocabularyReader)
        return Rows(rows.lengths, rows.n_attributes, rows.attributes()) if sparse else rows

    def compact(self, rows: Rows) -> Rows:
        """Return rows of a block in the storage that trains faster on all blocks."""
        return self._density.compact(rows)
