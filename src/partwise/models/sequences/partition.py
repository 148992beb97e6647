"""Taggers from blocks of sequences: labels, attributes and rows, then what each kind of tagger counts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from partwise.models.encoded import EncodedTables
from partwise.models.labels import check_distinct, sorted_labels
from partwise.models.partition import AttributeCounts, ChangedData, Partitioner
from partwise.models.sequences.constraints import kept_scheme, scheme_of

if TYPE_CHECKING:
    from partwise.models.sequences.model import SequenceModel


class SequencePartitioner(Partitioner):
    """Learns a `SequenceModel`."""

    def __init__(self, model: SequenceModel) -> None:
        self.model = model
        self._labels: set[Hashable] = set()
        self._attributes = AttributeCounts()

    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        sequences, targets, _, _ = self.model.training_sequences(X, y, sample_weight)
        self._labels.update(targets.classes().tolist())
        check_distinct(self._labels)
        self._attributes.add(self.model.suitable_reader(sequences), sequences, n_jobs)
        self.model.scan_block(sequences, targets)

    def choose_vocabulary(self) -> None:
        model = self.model
        model.use_labels(sorted_labels(self._labels))
        self._given = model.classes
        # `encode` drops it if the data do not keep to it
        model.label_scheme = scheme_of(model.label_names) if model.ruled else None
        model.reader = self._attributes.reader_of(model.rarest)
        model.check_attributes()
        self._counts = model.new_counts()

    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables:
        model = self.model
        sequences, targets, weight, _ = model.training_sequences(X, y, sample_weight)
        rows = model.reader.read(sequences, n_jobs=n_jobs)
        labels = targets.encode(self._given)
        if (labels < 0).any() or (rows.unknown[0] and model.rarest == 1):
            raise ChangedData
        rows = self._attributes.compact(rows)
        if model.label_scheme is not None:
            # numbers of sequences are those of their block
            model.label_scheme = kept_scheme(model.label_names, labels, rows.lengths, warn=model.legal == "auto")
        return model.encode_block(self._counts, (sequences, targets), rows, labels, weight)

    def n_slots(self, encoded: Any) -> int:
        return int(self.model.training_structure(encoded).slot_offsets()[-1])

    def choose_features(self) -> None:
        self.model.use_features(self._counts)
