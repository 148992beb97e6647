"""Segment models from blocks of sequences.

The first pass finds the types, the longest segment and the features of whole segments, by which slots are counted; the
second counts the attributes of positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from partwise.models.encoded import Column, EncodedTables, row_columns
from partwise.models.features import Rows
from partwise.models.labels import Targets
from partwise.models.partition import ChangedData
from partwise.models.readers import Sequences
from partwise.models.segments.labels import Types
from partwise.models.sequences.partition import SequencePartitioner
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.models.segments.model import SegmentModel

#: Tables that an attribute of a position may be in: inside of a segment, at its first and its last position.
PLACES = 3


class SegmentPartitioner(SequencePartitioner):
    """Learns a `SegmentModel`."""

    model: SegmentModel

    def __init__(self, model: SegmentModel) -> None:
        super().__init__(model)
        model.whole = model.make_whole()
        model.longest = 1

    def scan_segments(self, sequences: Sequences, targets: Targets) -> None:
        lengths = sequences.lengths()
        types = Types.of(targets.classes().tolist())
        gold = types.segments(targets, lengths)
        self.model.longest = max(self.model.longest, int(gold.sizes.max()))
        words = self.model.with_words(Rows(lengths, 0, np.empty((int(lengths.sum()), 0))), sequences).words
        if words is not None:
            self.model.whole.count(words, gold, types.outside)

    def count(self, sequences: Sequences, rows: Rows, labels: Ints, weight: Floats | None) -> EncodedTables:
        model = self.model
        rows = model.with_words(rows, sequences)
        gold = model.types.segments_of(labels, self._given.tolist(), rows.lengths)
        if model.longest_of(gold, rows) > model.longest:
            raise ChangedData
        self._counts.add(rows, gold)
        lengths, columns = row_columns("rows", rows)
        columns |= {"rows/types": gold.types, "rows/begins": gold.begins.astype(np.int64)}
        if rows.words is not None:
            columns["rows/words"] = rows.words.flat()
        return EncodedTables(lengths, columns, segment_entries(lengths, columns), weight)


def segment_entries(lengths: Mapping[str, Ints], columns: Mapping[str, Column]) -> Ints:
    """Return the memory that opened sequences take, in entries: their attributes, in each table."""
    table = columns.get("rows/table")
    own = lengths["rows-entries"] if table is None else lengths["rows"] * table.shape[1]
    found: Ints = PLACES * (own + lengths["rows"])
    return found
