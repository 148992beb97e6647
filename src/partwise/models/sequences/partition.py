"""Taggers from blocks of sequences: labels, attributes and rows, then what each kind of tagger counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partwise.models.encoded import EncodedRows, EncodedTables
from partwise.models.features import PairCounts, PairLayout, Rows, layout_of
from partwise.models.labels import check_distinct, sorted_labels
from partwise.models.partition import AttributeCounts, ChangedData, Partitioner
from partwise.models.readers import Sequences
from partwise.models.sequences.constraints import kept_scheme, scheme_of
from partwise.models.sequences.features import FeatureCounts, triple_counts
from partwise.structures import Multiclass, padded_width
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.models.sequences.chain import ChainModel, SecondOrderModel
    from partwise.models.sequences.maxent_chain import MaxentChainModel
    from partwise.models.sequences.model import SequenceModel


class SequencePartitioner(Partitioner):
    """Learns a `SequenceModel`; subclasses choose its features."""

    model: SequenceModel

    def __init__(self, model: SequenceModel) -> None:
        self.model = model
        self._labels: set[Hashable] = set()
        self._attributes = AttributeCounts()

    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        sequences, targets, _, _ = self.model.training_sequences(X, y, sample_weight)
        self._labels.update(targets.classes().tolist())
        check_distinct(self._labels)
        self._attributes.add(self.model.suitable_reader(sequences), sequences, n_jobs)

    def choose_vocabulary(self) -> None:
        model = self.model
        model.use_labels(sorted_labels(self._labels))
        # `encode` drops it if the data do not keep to it
        model.label_scheme = scheme_of(tuple(model.classes.tolist())) if model.ruled else None
        if model.legal is True:
            model.kept_scheme()
        model.reader = self._attributes.reader_of(model.rarest)
        model.check_attributes()
        self.begin()

    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables:
        model = self.model
        _, rows, labels, weight = self._read_again(X, y, sample_weight, n_jobs, model.classes)
        if model.label_scheme is not None:
            # numbers of sequences are those of their block
            model.label_scheme = kept_scheme(
                tuple(model.classes.tolist()), labels, rows.lengths, warn=model.legal == "auto"
            )
        self.count(rows, labels)
        return EncodedRows(rows, labels, weight)

    def _read_again(
        self, X: object, y: object, sample_weight: object, n_jobs: int, classes: NDArray[Any]
    ) -> tuple[Sequences, Rows, Ints, Floats | None]:
        """Return sequences of the second pass, their rows, labels by number and weights; ChangedData for new names."""
        model = self.model
        sequences, targets, weight, _ = model.training_sequences(X, y, sample_weight)
        rows = model.reader.read(sequences, n_jobs=n_jobs)
        labels = targets.encode(classes)
        if (labels < 0).any() or (rows.unknown[0] and model.rarest == 1):
            raise ChangedData
        return sequences, self._attributes.compact(rows), labels, weight

    @abstractmethod
    def begin(self) -> None:
        """Prepare to count features: labels and attributes are known."""

    @abstractmethod
    def count(self, rows: Rows, labels: Ints) -> None:
        """Count the features of a block."""


class ChainPartitioner(SequencePartitioner):
    """Learns a `ChainModel`."""

    model: ChainModel
    _counts: FeatureCounts

    def begin(self) -> None:
        self._counts = FeatureCounts(self.model.feature_choice())
        self.model.edges, self.model.edge_ids = None, self._counts.choice.edge_ids
        self.model.transition_mask = self._counts.mask() if self.model.edge_ids is None else None

    def count(self, rows: Rows, labels: Ints) -> None:
        self._counts.add(rows, labels)

    def n_slots(self, encoded: EncodedRows) -> int:
        return int(self.model.structure(encoded.rows.lengths).slot_offsets()[-1])

    def choose_features(self) -> None:
        self.model.nodes = self._counts.nodes()
        if self.model.edge_ids is None:
            self.model.transition_mask = self._counts.mask()
        else:
            self.model.edges = self._counts.edges()


class SecondOrderPartitioner(ChainPartitioner):
    """Learns a `SecondOrderModel`: triples of labels besides."""

    model: SecondOrderModel
    _triples: Ints

    def begin(self) -> None:
        super().begin()
        self._triples = np.zeros(self.model.n_labels**2 * self.model.width, dtype=np.int64)

    def count(self, rows: Rows, labels: Ints) -> None:
        super().count(rows, labels)
        if self.model.observed_transitions:
            self._triples += triple_counts(rows.lengths, labels, self.model.n_labels)

    def choose_features(self) -> None:
        super().choose_features()
        self.model.triple_mask = self._counts.choice.cells(self._triples, order=2)


class MaxentPartitioner(SequencePartitioner):
    """Learns a `MaxentChainModel`."""

    model: MaxentChainModel
    _pairs: PairCounts

    def begin(self) -> None:
        self.model.n_attributes = self.model.reader.n_attributes
        self._pairs = PairCounts(self.model.n_labels)

    def count(self, rows: Rows, labels: Ints) -> None:
        if self.model.observed:
            self._pairs.add_rows(self.model.with_history(rows, labels), labels)

    def n_slots(self, encoded: EncodedRows) -> int:
        return int(Multiclass(encoded.size.n_rows, self.model.n_labels).slot_offsets()[-1])

    def choose_features(self) -> None:
        model, n = self.model, self.model.n_labels
        size, width = model.n_history_attributes, padded_width(n)
        if model.observed:
            model.nodes = layout_of(size, n, width, *self._pairs.pairs(model.min_count))
        else:
            model.nodes = PairLayout.every(size, n, width)
