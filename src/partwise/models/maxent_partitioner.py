"""Maxent taggers from blocks of sequences: positions are the examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partwise.models.encoded import EncodedRows
from partwise.models.layout import PairLayout, layout_of
from partwise.models.partitioner import PairCounts
from partwise.models.rows import Rows
from partwise.models.sequences.partitioner import SequencePartitioner
from partwise.structures import Multiclass, padded_width
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.models.maxent_chain import MaxentChainModel


class MaxentPartitioner(SequencePartitioner):
    """Learns a `MaxentChainModel`."""

    model: MaxentChainModel
    _pairs: PairCounts

    def begin(self) -> None:
        self.model.n_attributes = self.model.reader.n_attributes
        self._pairs = PairCounts(self.model.n_labels)

    def count(self, rows: Rows, labels: Ints) -> None:
        if self.model.observed:
            self._pairs.add(self.model.with_history(rows, labels), labels)

    def n_slots(self, encoded: EncodedRows) -> int:
        return int(Multiclass(encoded.size.n_rows, self.model.n_labels).slot_offsets()[-1])

    def finish(self) -> None:
        model, n = self.model, self.model.n_labels
        size, width = model.n_history_attributes, padded_width(n)
        if model.observed:
            model.nodes = layout_of(size, n, width, *self._pairs.pairs(int(model.min_count)))
        else:
            model.nodes = PairLayout.every(size, n, width)
