"""Segment models from blocks of sequences.

The first pass finds the types, the longest segment and the features of whole segments, by which slots are counted; the
second counts the attributes of positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partwise.features.presets import read_gazetteers
from partwise.io.coded import CodedSequences
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.values import encode
from partwise.models.encoded import EncodedTables, Text, Whole, row_columns, row_kinds, rows_of
from partwise.models.features import Rows
from partwise.models.labels import Targets
from partwise.models.partition import ChangedData
from partwise.models.segments.counting import SegmentCounts
from partwise.models.segments.rows import WordRows
from partwise.models.segments.spans import Segments, Types
from partwise.models.segments.whole import WholeCounts
from partwise.models.sequences.partition import SequencePartitioner
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.model_files.parts import ModelParts
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
        self._whole = WholeCounts(model.whole.families)
        self._longest = 0

    def look(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> None:
        super().look(X, y, sample_weight, n_jobs)
        sequences, targets, _, _ = self.model.training_sequences(X, y, sample_weight)
        lengths = sequences.lengths()
        types = Types.of(targets.classes().tolist())
        gold = types.segments(targets, lengths)
        self._longest = max(self._longest, int(gold.sizes.max()))
        words = self.model.with_words(Rows(lengths, 0, np.empty((int(lengths.sum()), 0))), sequences).words
        if words is not None:
            self._whole.add(words, gold, np.array([name is None for name in types.names]))

    def begin(self) -> None:
        model = self.model
        self._given = model.classes
        model.types = Types.of(self._given.tolist())
        model.max_length = self._longest if model.longest is None else int(model.longest)
        model.classes = model.types.classes(model.max_length)
        model.whole.known = self._whole.known(int(model.min_count))
        self._counts = SegmentCounts(model)

    def encode(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> EncodedTables:
        model = self.model
        sequences, read, labels, weight = self._looked_at(X, y, sample_weight, n_jobs, self._given)
        rows = model.with_words(read, sequences)
        codes = CodedSequences([str(label) for label in self._given.tolist()], labels.astype(np.int32), rows.lengths)
        gold = model.types.segments(Targets.of(codes), rows.lengths)
        longest = model.max_length
        model.choose_length(gold, rows)
        if model.longest is None and model.max_length > longest:
            raise ChangedData
        model.max_length = longest
        self._counts.add(rows, gold)
        lengths, columns = row_columns("rows", rows)
        columns |= {"rows/types": gold.types, "rows/begins": gold.begins.astype(np.int64)}
        if rows.words is not None:
            columns["rows/words"] = rows.words.flat()
        return EncodedTables(lengths, columns, entries_of(lengths, columns), weight)

    def count(self, rows: Rows, labels: Ints) -> None:
        """`encode` does it: segments are counted, not labels."""

    def n_slots(self, encoded: EncodedTables) -> int:
        rows, _ = word_rows(self.model, encoded)
        return int(self.model.structure_of(rows, self.model.find(rows)).slot_offsets()[-1])

    def finish(self) -> None:
        self._counts.choose()


def entries_of(lengths: Any, columns: Any) -> Ints:
    """What sequences take once they are open: their attributes, in each table."""
    table = columns.get("rows/table")
    own = lengths["rows-entries"] if table is None else lengths["rows"] * table.shape[1]
    found: Ints = PLACES * (own + lengths["rows"])
    return found


def read_encoded(model: SegmentModel, parts: ModelParts) -> EncodedTables:
    """From a file, checked."""
    tables, kinds = row_kinds("rows", parts, model.reader.n_attributes)
    kinds |= {"rows/types": Whole(0, model.n_types), "rows/begins": Whole(0, 2)}
    if model.whole.needs_words:
        kinds["rows/words"] = Text()
    found = EncodedTables.read(parts, tables, kinds)
    if not found.lengths["rows"].all():
        raise ModelFormatError("has a sequence without positions")
    return EncodedTables(found.lengths, found.columns, entries_of(found.lengths, found.columns), found.weight)


def word_rows(model: SegmentModel, encoded: EncodedTables) -> tuple[WordRows, Segments]:
    """Encoded sequences as the model takes them, and their segments."""
    rows = rows_of("rows", encoded, model.reader.n_attributes)
    words = None
    if model.whole.needs_words:
        flat = encoded.columns["rows/words"]
        number = {name: k for k, name in enumerate(dict.fromkeys(flat))}
        codes = np.fromiter(map(number.__getitem__, flat), dtype=np.int32, count=len(flat))
        words = CodedSequences(list(number), codes, rows.lengths)
    numbers = range(len(rows.lengths))
    gold = Segments(encoded.columns["rows/types"], encoded.columns["rows/begins"].astype(bool), rows.lengths)
    return WordRows(rows.lengths, rows.n_attributes, rows.table, (0, 0), words, numbers), gold


def lists_names(lists: Any) -> Any:
    """What tells lists of phrases from others, for a manifest."""
    if lists is None:
        return None
    return encode({name: sorted(each.phrases) for name, each in read_gazetteers(lists).items()}, "lists")
