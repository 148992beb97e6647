"""Segment models from blocks of sequences.

The first pass finds the types, the longest segment and the features of whole segments, by which slots are counted; the
second counts the attributes of positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partwise.models.encoded import Column, EncodedTables, row_columns
from partwise.models.features import Rows
from partwise.models.partition import ChangedData
from partwise.models.segments.features import SegmentCounts
from partwise.models.segments.labels import Types
from partwise.models.sequences.partition import SequencePartitioner
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.models.segments.model import SegmentModel

#: Tables that an attribute of a position may be in: inside of a segment, at its first and its last position.
PLACES = 3


class SegmentPartitioner(SequencePartitioner):
    """Learns a `SegmentModel`."""

    model: SegmentModel
    _given: NDArray[Any]
    _counts: SegmentCounts

    def __init__(self, model: SegmentModel) -> None:
        super().__init__(model)
        model.whole = model.make_whole()
        self._longest = 0

    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        super().scan(X, y, sample_weight, n_jobs)
        sequences, targets, _, _ = self.model.training_sequences(X, y, sample_weight)
        lengths = sequences.lengths()
        types = Types.of(targets.classes().tolist())
        gold = types.segments(targets, lengths)
        self._longest = max(self._longest, int(gold.sizes.max()))
        words = self.model.with_words(Rows(lengths, 0, np.empty((int(lengths.sum()), 0))), sequences).words
        if words is not None:
            self.model.whole.count(words, gold, types.outside)

    def begin(self) -> None:
        model = self.model
        self._given = model.classes
        model.types = Types.of(self._given.tolist())
        model.longest = self._longest if model.max_length is None else int(model.max_length)
        model.classes = model.types.classes(model.longest)
        model.whole.choose(model.min_count)
        self._counts = model.new_counts()

    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables:
        model = self.model
        sequences, read, labels, weight = self._read_again(X, y, sample_weight, n_jobs, self._given)
        rows = model.with_words(read, sequences)
        gold = model.types.segments_of(labels, self._given.tolist(), rows.lengths)
        longest = model.longest
        model.choose_length(gold, rows)
        if model.max_length is None and model.longest > longest:
            raise ChangedData
        model.longest = longest
        self._counts.add(rows, gold)
        lengths, columns = row_columns("rows", rows)
        columns |= {"rows/types": gold.types, "rows/begins": gold.begins.astype(np.int64)}
        if rows.words is not None:
            columns["rows/words"] = rows.words.flat()
        return EncodedTables(lengths, columns, segment_entries(lengths, columns), weight)

    def count(self, rows: Rows, labels: Ints) -> None:
        """Do nothing: `encode` counts segments, not labels."""

    def n_slots(self, encoded: EncodedTables) -> int:
        rows, _ = self.model.encoded_rows(encoded)
        return int(self.model.structure_of(rows, self.model.find(rows)).slot_offsets()[-1])

    def choose_features(self) -> None:
        self.model.use_features(self._counts)


def segment_entries(lengths: Mapping[str, Ints], columns: Mapping[str, Column]) -> Ints:
    """Return the memory that opened sequences take, in entries: their attributes, in each table."""
    table = columns.get("rows/table")
    own = lengths["rows-entries"] if table is None else lengths["rows"] * table.shape[1]
    found: Ints = PLACES * (own + lengths["rows"])
    return found
