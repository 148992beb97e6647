"""Chains from blocks of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partwise.models.chain.counting import Choice, LayoutCounts
from partwise.models.chain.layout import every_triple, triple_counts
from partwise.models.encoded import EncodedRows
from partwise.models.rows import Rows
from partwise.models.sequences.partitioner import SequencePartitioner
from partwise.support.arrays import Bytes, Ints

if TYPE_CHECKING:
    from partwise.models.chain.model import ChainModel
    from partwise.models.chain.second_order import SecondOrderModel


class ChainPartitioner(SequencePartitioner):
    """Learns a `ChainModel`."""

    model: ChainModel
    _counts: LayoutCounts

    def begin(self) -> None:
        model, reader = self.model, self.model.reader
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

    def count(self, rows: Rows, labels: Ints) -> None:
        self._counts.add(rows, labels)

    def n_slots(self, encoded: EncodedRows) -> int:
        return int(self.model.structure(encoded.rows.lengths).slot_offsets()[-1])

    def finish(self) -> None:
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

    def finish(self) -> None:
        super().finish()
        self.model.triple_mask = self._mask()

    def _mask(self) -> Bytes:
        if not self.model.reader.plain_transitions:
            return np.zeros(len(self._triples), dtype=np.uint8)
        if not self.model.observed_transitions:
            return every_triple(self.model.n_labels)
        return (self._triples >= int(self.model.min_count)).astype(np.uint8)
