"""Labelled sequences from blocks of them: labels, attributes and rows, which all models of sequences share."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import Any

from numpy.typing import NDArray

from partwise.features import NameCounts
from partwise.features.template import Template
from partwise.models.encoded import Encoded, EncodedRows
from partwise.models.label_counts import check_distinct
from partwise.models.partitioner import ChangedData, Partitioner
from partwise.models.rows import Density, Rows
from partwise.models.sequences.column_reader import ColumnReader
from partwise.models.sequences.inputs import Sequences
from partwise.models.sequences.labels import sorted_labels
from partwise.models.sequences.legal import kept_scheme, scheme_of
from partwise.models.sequences.name_reader import NameReader
from partwise.models.sequences.reader import Reader, VocabularyReader
from partwise.support.arrays import Floats, Ints


class AttributeCounts:
    """The attributes of blocks of sequences: names are counted, numbers are looked at for how many are not 0."""

    def __init__(self) -> None:
        self._names = NameCounts()
        self._reader: Reader | None = None
        self._joined = False
        self._density = Density()

    def look(self, reader: Reader, sequences: Any, n_jobs: int = 1) -> None:
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

    def settle(self, min_count: int) -> Reader:
        """The reader of the attributes that occur so often."""
        assert self._reader is not None
        if isinstance(self._reader, VocabularyReader):
            self._reader = self._reader.with_vocabulary(self._names.vocabulary(min_count))
            if isinstance(self._reader, NameReader):
                self._reader.joined = self._joined
            self._names = NameCounts()  # its memory
        return self._reader

    @property
    def reader(self) -> Reader | None:
        """None if no block had any attributes."""
        return self._reader

    def stored(self, rows: Rows) -> Rows:
        """Rows of a block as those of all blocks are given: sparse, if some are."""
        sparse = self._density.sparse or isinstance(self._reader, VocabularyReader)
        return Rows(rows.lengths, rows.n_attributes, rows.attributes()) if sparse else rows

    def compact(self, rows: Rows) -> Rows:
        """Rows of a block in the storage that trains faster on all blocks."""
        return self._density.compact(rows)


class SequencePartitioner(Partitioner):
    """Learns a `SequenceModel`; subclasses choose its features."""

    model: Any

    def __init__(self, model: Any) -> None:
        self.model = model
        self._labels: set[Any] = set()
        self._attributes = AttributeCounts()

    def look(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> None:
        sequences, targets, _, _ = self.model.training_sequences(X, y, sample_weight)
        self._labels.update(targets.classes().tolist())
        check_distinct(self._labels)
        self._attributes.look(self.model.suitable_reader(sequences), sequences, n_jobs)

    def settle(self) -> None:
        model = self.model
        model.use_labels(sorted_labels(self._labels))
        # `encode` drops it if the data do not keep to it
        model.label_scheme = scheme_of(tuple(model.classes.tolist())) if model.ruled else None
        if model.legal is True:
            model.kept_scheme()
        model.reader = self._attributes.settle(model.rarest)
        model.check_attributes()
        self.begin()

    def encode(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> Encoded:
        model = self.model
        _, rows, labels, weight = self._looked_at(X, y, sample_weight, n_jobs, model.classes)
        if model.label_scheme is not None:
            # numbers of sequences are those of their block
            model.label_scheme = kept_scheme(
                tuple(model.classes.tolist()), labels, rows.lengths, warn=model.legal == "auto"
            )
        self.count(rows, labels)
        return EncodedRows(rows, labels, weight)

    def _looked_at(
        self, X: Any, y: Any, sample_weight: Any, n_jobs: int, classes: NDArray[Any]
    ) -> tuple[Sequences, Rows, Ints, Floats | None]:
        """Sequences of the second pass, their rows, labels by number and weights; ChangedData if they are others."""
        model = self.model
        sequences, targets, weight, _ = model.training_sequences(X, y, sample_weight)
        rows = model.reader.read(sequences, n_jobs=n_jobs)
        labels = targets.encode(classes)
        if (labels < 0).any() or (rows.unknown[0] and model.rarest == 1):
            raise ChangedData
        return sequences, self._attributes.compact(rows), labels, weight

    @abstractmethod
    def begin(self) -> None:
        """Labels and attributes are known."""

    @abstractmethod
    def count(self, rows: Rows, labels: Ints) -> None:
        """Count what features are chosen by in a block."""


def lists_digest(template: Template) -> str | None:
    """A short name of what a template looks words up in, None if there is nothing."""
    clusters, gazetteers = template.clusters, template.gazetteers
    if not clusters and not gazetteers:
        return None
    content = sorted(clusters.items()), sorted((name, sorted(found.phrases)) for name, found in gazetteers.items())
    return hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:16]
