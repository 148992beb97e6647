"""Chains from blocks of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partwise.features import NameCounts
from partwise.models.chain.counting import Choice, LayoutCounts
from partwise.models.encoded import EncodedRows
from partwise.models.partitioner import ChangedData, Partitioner
from partwise.models.rows import Density
from partwise.models.sequences.column_reader import ColumnReader
from partwise.models.sequences.labels import sorted_labels
from partwise.models.sequences.legal import kept_scheme, scheme_of
from partwise.models.sequences.reader import Reader, VocabularyReader

if TYPE_CHECKING:
    from partwise.models.chain.model import ChainModel


class ChainPartitioner(Partitioner):
    """Learns a `ChainModel`."""

    _counts: LayoutCounts

    def __init__(self, model: ChainModel) -> None:
        self.model = model
        self._labels: set[Any] = set()
        self._names = NameCounts()
        self._reader: Reader | None = None
        self._density = Density()

    def look(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> None:
        sequences, targets, _, _ = self.model.training_sequences(X, y, sample_weight)
        self._labels.update(targets.classes().tolist())
        reader = self.model.suitable_reader(sequences)
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
        self._reader = reader

    def settle(self) -> None:
        model, reader = self.model, self._reader
        assert reader is not None
        model.use_labels(sorted_labels(self._labels))
        # `encode` drops it if the data do not keep to it
        model.label_scheme = scheme_of(tuple(model.classes.tolist()))
        if model.legal is True:
            model.kept_scheme()
        if isinstance(reader, VocabularyReader):
            reader = reader.with_vocabulary(self._names.vocabulary(model.rarest))
        model.reader = reader
        model.check_attributes()
        self._names = NameCounts()  # its memory
        self._counts = LayoutCounts(
            Choice(
                n_attributes=reader.n_attributes,
                n_labels=model.n_labels,
                observed=model.observed,
                observed_transitions=model.observed_transitions,
                min_count=int(model.min_count),
                edge_only=reader.edge_only(),
                edge_ids=reader.edge_ids(model.chosen),
                plain=reader.plain_transitions,
            )
        )
        model.edges, model.edge_ids = None, self._counts.choice.edge_ids
        model.transition_mask = self._counts.mask() if model.edge_ids is None else None

    def encode(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> EncodedRows:
        model = self.model
        sequences, targets, weight, _ = model.training_sequences(X, y, sample_weight)
        rows = model.reader.read(sequences, n_jobs=n_jobs)
        labels = targets.encode(model.classes)
        if (labels < 0).any() or (rows.unknown[0] and model.rarest == 1):
            raise ChangedData
        rows = self._density.compact(rows)
        if model.label_scheme is not None:
            model.label_scheme = kept_scheme(tuple(model.classes.tolist()), labels, rows.lengths)
        self._counts.add(rows, labels)
        return EncodedRows(rows, labels, weight)

    def n_slots(self, encoded: EncodedRows) -> int:
        return int(self.model.structure(encoded.rows.lengths).slot_offsets()[-1])

    def finish(self) -> None:
        self.model.nodes = self._counts.nodes()
        if self.model.edge_ids is None:
            self.model.transition_mask = self._counts.mask()
        else:
            self.model.edges = self._counts.edges()
