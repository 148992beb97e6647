"""Segments of sequences with labels: semi-Markov CRFs and max-margin models.

The weights are one vector, in the order of `SegmentChain`'s tables:

    inside       for (attribute, type) pairs of positions, anywhere in a segment
    first, last  the same for the first and the last position of segments, if the model has these borders
    lengths      max_length x width: a segment of this length with this type
    transitions  n_types x width: a segment of one type after one of another
    whole        for (feature, type) pairs of whole segments

A type is the text after B- and I-. The type O has segments of one position.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from partwise.features import Attributes, TableRows, segment_map
from partwise.features.presets import read_gazetteers
from partwise.io.coded import CodedSequences
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import encode
from partwise.models import inspection
from partwise.models import labels as user_labels
from partwise.models import partition as tables
from partwise.models.base import Labellings, Learnt, Training
from partwise.models.constraints import as_booleans
from partwise.models.costs import row_costs
from partwise.models.features import PairLayout, Rows, layout_of, look_up
from partwise.models.files import layout_parts, padded, read_layout, unpadded
from partwise.models.inspection import Contribution
from partwise.models.labels import LabelArray, LabelSequence, Targets
from partwise.models.partition import ChangedData, EncodedTables, Partitioner
from partwise.models.readers import Sequences
from partwise.models.segments.features import FAMILIES, Listed, SegmentCounts, WholeFeatures, WordRows
from partwise.models.segments.labels import Segments, Span, Types
from partwise.models.sequences.constraints import label_masks, no_labelling
from partwise.models.sequences.features import FeatureChoice
from partwise.models.sequences.model import SequenceModel, SequenceReading
from partwise.models.sequences.template_reader import TextSequences
from partwise.problem import Batch, LabelledBatch
from partwise.problem.batch import Gold, structure_costs
from partwise.structures import SegmentChain, Structure, padded_width
from partwise.support.arrays import Booleans, Bytes, Floats, Ints, pointers
from partwise.support.checks import check_choice, check_count

#: The largest max_length: each sequence has a row of slots per length.
MOST_POSITIONS = 1 << 20
#: Tables of attributes: by name, the prefix of its attributes' names and the kind of its contributions.
TABLES = {
    "inside": ("", "attribute"),
    "first": ("first: ", "first"),
    "last": ("last: ", "last"),
    "whole": ("segment: ", "segment"),
}
#: All tables, in the order of their weights.
RUNS = ("inside", "first", "last", "lengths", "transitions", "whole")
SCHEMES = ("iob2", "iob1", "iobes")
BORDERS = ("both", "first", "last", "none")


@dataclass(eq=False, repr=False, kw_only=True)
class SegmentModel(SequenceModel):
    """Labelled segments of a sequence. Parameters: see `SegmentTagger`. `longest`: the largest length of a segment."""

    kind: ClassVar[str] = "segments"
    late: ClassVar[tuple[str, ...]] = ("scheme",)
    takes_classes: ClassVar[bool] = False  # its types are those of the segments seen

    max_length: int | None
    borders: str
    segment_features: str | Collection[str]
    lists: object
    segment_cost: bool
    transitions: str
    scheme: str

    types: Types = field(init=False)
    longest: int = field(init=False)
    layouts: dict[str, PairLayout] = field(init=False)
    whole: WholeFeatures = field(init=False)
    transition_mask: Bytes = field(init=False)

    def __post_init__(self, cost: object) -> None:
        super().__post_init__(cost)
        self.segment_cost = bool(self.segment_cost)

    def check(self) -> None:
        super().check()
        check_choice("transitions", self.transitions, ("auto", "observed", "all"))
        check_choice("borders", self.borders, BORDERS)
        check_choice("scheme", self.scheme, SCHEMES)
        if self.max_length is not None:
            check_count("max_length", self.max_length)
            if self.max_length > MOST_POSITIONS:
                raise ValueError(f"max_length must be at most {MOST_POSITIONS}, got {self.max_length}")
        if self.template is not None and self.template.edges:
            raise ValueError("B lines with macros are not available for segments")
        self._families()
        for name, each in read_gazetteers({} if self.lists is None else self.lists).items():
            if not each.phrases:
                raise ValueError(f"lists: {name!r} has no phrases")

    def _families(self) -> tuple[str, ...]:
        chosen = self.segment_features
        if chosen == "auto":
            return tuple(FAMILIES) if self.template is not None else ()
        if isinstance(chosen, str) or not isinstance(chosen, Collection) or not set(FAMILIES).issuperset(chosen):
            raise ValueError(f"segment_features must be 'auto' or some of {', '.join(FAMILIES)}, got {chosen!r}")
        return tuple(name for name in FAMILIES if name in chosen)

    @property
    def n_types(self) -> int:
        return len(self.types)

    @property
    def width(self) -> int:
        return padded_width(self.n_types)

    def max_lengths(self) -> Ints:
        return np.where(self.types.outside, 1, self.longest).astype(np.int64)

    def _first_reading(self, sequences: Sequences, n_jobs: int) -> WordRows:
        rows = super()._first_reading(sequences, n_jobs)
        self.whole = self.make_whole()
        return self.with_words(rows, sequences)

    def make_whole(self) -> WholeFeatures:
        """Return features of whole segments, before any segment is counted."""
        if self.lists is not None:
            self.lists = read_gazetteers(self.lists)  # once, because files may change
        return WholeFeatures(self._families(), self.lists or {})

    def with_words(self, rows: Rows, sequences: Sequences) -> WordRows:
        """Return rows with their words, if there are features of whole segments."""
        words = None
        if self.whole.needs_words:
            if not isinstance(sequences, TextSequences):
                raise ValueError("features of whole segments need words: give a template, which reads them")
            empty = CodedSequences([], np.empty(0, np.int32), rows.lengths)
            words = CodedSequences.of(sequences.table, 0) if rows.lengths.any() else empty  # without rows no columns
        return WordRows(rows.lengths, rows.n_attributes, rows.table, rows.unknown, words, sequences.numbers)

    def _learn_features(self, rows: Rows, labels: Ints, weight: Floats | None, training: Training) -> Learnt:
        assert isinstance(rows, WordRows)
        gold = self.types.segments_of(labels, self.classes.tolist(), rows.lengths)
        self.longest = self.longest_of(gold, rows)
        if rows.words is not None:
            self.whole.count(rows.words, gold, self.types.outside)
        counts = self.new_counts()
        counts.add(rows, gold)
        self.use_features(counts)
        examples = self._gold_examples(rows, gold, weight)
        reading = self._training_reading(examples.batch, rows)
        return Learnt(examples, (self.n_types, self.longest, rows.lengths), reading=reading)

    def use_labels(self, classes: LabelArray) -> None:
        super().use_labels(classes)
        self.types = Types.of(classes.tolist())

    def new_counts(self) -> SegmentCounts:
        """Return empty counts, when all segments were seen; from here on labels are IOB2."""
        if self.max_length is not None:
            self.longest = int(self.max_length)
        self.classes = self.types.classes(self.longest)
        self.whole.choose(self.min_count)
        # transitions of segments are counted apart
        choice = FeatureChoice(self.reader.n_attributes, self.n_types, self.observed, False, self.min_count)
        return SegmentCounts(choice, self.borders)

    def use_features(self, counts: SegmentCounts) -> None:
        n, width, none = self.n_types, self.width, np.empty(0, dtype=np.int64)
        self.layouts = dict.fromkeys(TABLES, layout_of(0, n, width, none, none)) | counts.layouts(self.types.outside)
        n_whole = len(self.whole.names)
        if n_whole and self.whole.needs_words:
            # All pairs have weights: negative ones say which type a segment of the text does not have.
            self.layouts["whole"] = PairLayout.every(n_whole, n, width)
        mask = np.tile((np.arange(width) < n).astype(np.uint8), n)
        if (self.features if self.transitions == "auto" else self.transitions) == "observed":
            mask = (counts.transitions >= self.min_count).astype(np.uint8)
        self.transition_mask = mask if self.reader.plain_transitions else np.zeros_like(mask)

    def _gold_examples(self, rows: Rows, gold: Segments, weight: Floats | None) -> LabelledBatch:
        batch = self.batch(rows, once=False)
        structure = batch.structure
        assert isinstance(structure, SegmentChain)
        slots = structure.encode(gold.types, gold.begins.astype(np.uint8))
        return LabelledBatch(batch, slots, weight, self.slot_costs(structure, slots))

    def slot_costs(self, structure: Structure, gold: Gold) -> Floats | None:
        table = self.costs_of(self.cost_labels())
        if table is None:
            return None
        assert isinstance(structure, SegmentChain)
        borders, (types, _) = structure_costs(structure, gold), structure.decode(*gold)
        return row_costs(structure.slot_offsets(), structure.lengths, structure.width, types, table, borders)

    def feature_parameters(self) -> dict[str, object]:
        phrases = {name: sorted(each.phrases) for name, each in read_gazetteers(self.lists or {}).items()}
        return {
            **super().feature_parameters(),
            **{name: getattr(self, name) for name in ("borders", "segment_cost", "transitions")},
            "max_length": None if self.max_length is None else int(self.max_length),
            "segment_features": list(self._families()),
            "lists": None if self.lists is None else encode(phrases, "lists"),
        }

    def partitioner(self) -> Partitioner:
        self.whole, self.longest = self.make_whole(), 1
        return super().partitioner()

    def scan_block(self, sequences: Sequences, targets: Targets) -> None:
        lengths = sequences.lengths()
        types = Types.of(targets.classes().tolist())
        gold = types.segments(targets, lengths)
        self.longest = max(self.longest, int(gold.sizes.max()))
        words = self.with_words(Rows(lengths, 0, np.empty((int(lengths.sum()), 0))), sequences).words
        if words is not None:
            self.whole.count(words, gold, types.outside)

    def encode_block(
        self, counts: SegmentCounts, given: tuple[Sequences, Targets], rows: Rows, labels: Ints, weight: Floats | None
    ) -> EncodedTables:
        sequences, targets = given
        rows = self.with_words(rows, sequences)
        gold = self.types.segments(targets, rows.lengths)
        if self.longest_of(gold, rows) > self.longest:
            raise ChangedData
        counts.add(rows, gold)
        lengths, columns = tables.row_columns("rows", rows)
        columns |= {"rows/types": gold.types, "rows/begins": gold.begins.astype(np.int64)}
        if rows.words is not None:
            columns["rows/words"] = rows.words.flat()
        return _tables(lengths, columns, weight)

    def encoded(self, parts: ModelParts) -> EncodedTables:
        names, kinds = tables.row_kinds("rows", parts, self.reader.n_attributes)
        kinds |= {"rows/types": tables.Whole(0, self.n_types), "rows/begins": tables.Whole(0, 2)}
        if self.whole.needs_words:
            kinds["rows/words"] = str
        found = EncodedTables.read(parts, names, kinds)
        if not found.lengths["rows"].all():
            raise ModelFormatError("has a sequence without positions")
        return _tables(found.lengths, found.columns, found.weight)

    def encoded_rows(self, encoded: EncodedTables) -> tuple[WordRows, Segments]:
        rows = tables.rows_of("rows", encoded, self.reader.n_attributes)
        words = None
        if self.whole.needs_words:
            words = CodedSequences.from_lists(user_labels.split(encoded.columns["rows/words"], rows.lengths))
        gold = Segments(encoded.columns["rows/types"], encoded.columns["rows/begins"].astype(bool), rows.lengths)
        return WordRows(rows.lengths, rows.n_attributes, rows.table, (0, 0), words, range(len(rows.lengths))), gold

    def training_structure(self, encoded: EncodedTables) -> SegmentChain:
        rows, _ = self.encoded_rows(encoded)
        return self.structure_of(rows, self.find(rows))

    def labelled(self, encoded: EncodedTables, by_features: bool | None = False) -> LabelledBatch:
        rows, gold = self.encoded_rows(encoded)
        return self._gold_examples(rows, gold, encoded.weight)

    def cost_labels(self) -> list[Hashable]:
        return [name or "O" for name in Types.of(self.classes.tolist()).names]

    def longest_of(self, gold: Segments, rows: WordRows) -> int:
        """Return the largest length of a segment; ValueError names a gold segment that is longer than the parameter."""
        sizes = gold.sizes
        most = int(sizes.max())
        longest = most if self.max_length is None else int(self.max_length)
        user_labels.warn_of_long_segments(rows.lengths, longest, len(self.types))
        if most <= longest:
            return longest
        k = int(np.argmax(sizes > longest))
        first, size = int(gold.firsts[k]), int(sizes[k])
        i = int(np.searchsorted(np.cumsum(rows.lengths), first, side="right"))
        begin = first - int(pointers(rows.lengths)[i])
        segment = f"the segment {self.types.names[gold.types[first]]!r} at positions {begin} to {begin + size - 1}"
        raise ValueError(f"sequence {rows.numbers[i]}: {segment} has {size} positions, max_length is {longest}")

    @property
    def length_mask(self) -> Bytes:
        """Which lengths have a weight: all that segments of a type may have, where it has more than one."""
        mask, lengths = np.zeros((self.longest, self.width), dtype=np.uint8), np.arange(1, self.longest + 1)
        mask[:, : self.n_types] = (lengths[:, None] <= self.max_lengths()) & ~self.types.outside
        return mask.ravel()

    def find(self, rows: WordRows) -> Listed:
        return self.whole.find(rows.words, rows.lengths, self.longest)

    def structure_of(self, rows: Rows, found: Listed) -> SegmentChain:
        sizes = self.n_types, self.longest, self.max_lengths()
        return SegmentChain(rows.lengths, *sizes, found.listed, self.segment_cost)

    def batch(self, rows: Rows, *, once: bool = True) -> Batch:
        assert isinstance(rows, WordRows)
        found = self.find(rows)
        structure = self.structure_of(rows, found)

        def of(name: str) -> TableRows | None:
            layout = self.layouts[name]
            if not layout.core.num_attributes and name != "inside":
                return None
            return TableRows(found.rows, layout.core) if name == "whole" else TableRows(*layout.fitting(rows))

        options: dict[str, Any] = {name: of(name) for name in TABLES}
        options |= {"length_mask": self.length_mask, "transition_mask": self.transition_mask, "once": once}
        return Batch(structure, segment_map(structure, **options))

    def _read_rows(self, sequences: Sequences, n_jobs: int) -> WordRows:
        return self.with_words(super()._read_rows(sequences, n_jobs), sequences)

    def segments_of(self, reading: SequenceReading, which: Ints, labellings: Labellings) -> Segments:
        """Return the segments of these labellings: slots are rows `inside`, rows `first`, then others."""
        lengths = reading.source.rows.lengths[which]
        owner = np.repeat(np.arange(len(which)), np.diff(labellings.indptr))
        row = labellings.slots // self.width - lengths[owner]
        first = (row >= 0) & (row < lengths[owner])
        begins = np.zeros(int(lengths.sum()), dtype=bool)
        begins[(pointers(lengths)[owner] + row)[first]] = True
        return Segments(labellings.choices(lengths, self.width), begins, lengths)

    def labels_of(self, reading: SequenceReading, which: Ints, labellings: Labellings) -> Ints:
        found = self.segments_of(reading, which, labellings)
        return self.types.numbers(self.classes)[found.types, 1 - found.begins.astype(np.int64)]

    def label_numbers(self, reading: SequenceReading, labellings: Labellings) -> Ints | None:
        return super().label_numbers(reading, labellings) if self.scheme == "iob2" else None

    def decode(
        self, reading: SequenceReading, which: Ints, labellings: Labellings, n_jobs: int = 1
    ) -> list[LabelSequence]:
        found = self.segments_of(reading, which, labellings)
        return user_labels.split(self.types.labels(found, self.scheme), found.lengths)

    def spans(self, reading: SequenceReading, labellings: Labellings, temperature: float | None) -> list[list[Span]]:
        """Return the segments of the best labellings that are not O; temperature None: without probabilities."""
        found = self.segments_of(reading, np.arange(reading.batch.n_examples), labellings)
        begun, every = user_labels.split(found.begins, found.lengths), list[list[Span]]()
        for i, types in enumerate(user_labels.split(found.types, found.lengths)):
            firsts = np.flatnonzero(begun[i])
            inner = ~self.types.outside[types[firsts]]
            begins, ends = firsts[inner], np.append(firsts[1:], len(types))[inner]
            values: list[float | None] = [None] * len(begins)
            if temperature is not None:
                values = self.segment_probabilities(reading, i, begins, ends, types[begins], temperature).tolist()
            rows = zip(types[begins].tolist(), begins.tolist(), ends.tolist(), values, strict=True)
            every.append([Span(str(self.types.names[b]), s, t, p) for b, s, t, p in rows])
        return every

    def segment_probabilities(
        self, reading: SequenceReading, i: int, begins: Ints, ends: Ints, labels: Ints, temperature: float
    ) -> Floats:
        """Return the probabilities of segments of example i of the batch, in the order of ends."""
        scores = reading.batch.features.scores(i, self.weights)
        return reading.structure(SegmentChain).segment_probabilities(i, scores, begins, ends, labels, temperature)

    def encode(self, reading: SequenceReading, y: object) -> tuple[Labellings, Booleans]:
        lengths = reading.source.lengths
        found = self.types.segments(Targets.of(y).check(lengths), lengths)
        kept = reading.source.rows.lengths
        owner = np.repeat(np.arange(len(kept)), kept)
        wrong = found.types < 0
        long = found.sizes > self.max_lengths()[found.types[found.firsts]]
        wrong[found.firsts[long]] = True
        possible = np.ones(len(kept), dtype=bool)
        possible[owner[wrong]] = False
        bad = ~possible[owner]
        types, begins = np.where(bad, 0, found.types), found.begins | bad
        return Labellings(*reading.structure(SegmentChain).encode(types, begins.astype(np.uint8))), possible

    def rows_of_labels(self, reading: SequenceReading, values: Floats) -> list[Floats]:
        """Return probabilities of labels in IOB2, (length, n_labels) per sequence, from those of slots."""
        numbers, arrays = self.types.numbers(self.classes), []
        offsets, lengths = reading.batch.structure.slot_offsets().tolist(), reading.source.rows.lengths.tolist()
        later = numbers[:, 1] >= 0
        for start, n in zip(offsets, lengths, strict=False):
            rows = values[start : start + 2 * n * self.width].reshape(2, n, self.width)
            inside, first = rows[:, :, : self.n_types]
            array = np.zeros((n, len(self.classes)))
            array[:, numbers[later, 1]] = np.maximum(inside - first, 0.0)[:, later]
            array[:, numbers[:, 0]] = first
            arrays.append(array)
        return reading.spread(arrays, lambda: np.empty((0, len(self.classes))))

    def constrain(self, reading: SequenceReading, allowed: object = None, allowed_transitions: object = None) -> None:
        """Apply constraints on labels in IOB2: B-X at a position begins a segment X there, I-X continues one."""
        n_labels, structure = len(self.classes), reading.structure(SegmentChain)
        if isinstance(allowed_transitions, str):
            given = f"allowed_transitions={allowed_transitions!r}"
            raise ValueError(f"{given}: segments keep to a scheme by themselves; give an array")
        pairs = None if allowed_transitions is None else as_booleans(allowed_transitions, (n_labels, n_labels))
        if allowed_transitions is not None and pairs is None:
            raise ValueError(f"allowed_transitions must be a boolean array of shape ({n_labels}, {n_labels})")
        masks = label_masks(allowed, reading.source.lengths, self.classes)
        numbers, n = self.types.numbers(self.classes), self.n_types
        tables = None if pairs is None else np.concatenate(self._allowed_tables(numbers, pairs))
        for i, number in enumerate(reading.numbers.tolist()):
            own, length = masks[number], int(reading.source.rows.lengths[i])
            if own is None and tables is None:
                continue
            mask: Bytes = np.ones((structure.num_slots(i) // self.width, self.width), dtype=np.uint8)
            if tables is not None:
                mask[3 * length : 3 * length + len(tables), :n] = tables
            later = None
            if own is not None:
                begins, later = own[:, numbers[:, 0]], np.ones((length, self.width), dtype=np.uint8)
                later[:, :n] = np.where(numbers[:, 1] >= 0, own[:, numbers[:, 1]], False)
                mask[:length, :n] = begins | later[:, :n]
                mask[length : 2 * length, :n] = begins
            try:
                structure.set_mask(i, mask.ravel())
                if later is not None:
                    structure.set_continuation(i, later.ravel())
            except ValueError as error:
                raise no_labelling(number, error) from None

    def _allowed_tables(self, numbers: Ints, pairs: Booleans) -> tuple[Booleans, Booleans]:
        """Return which (length, type) and (type, next type) these pairs of labels allow."""
        begin, later = numbers.T
        has_later = (later >= 0) & ~self.types.outside
        after_one = pairs[np.ix_(begin, begin)]  # a segment of one position, then one that begins
        after_more = np.where(has_later[:, None], pairs[np.ix_(later, begin)], after_one)
        differ = np.argwhere(after_one != after_more)
        if len(differ):
            a, b = (self.types.name(k) for k in differ[0].tolist())
            why = f"B-{a} and I-{a} differ before {b}, which segments cannot tell apart"
            raise ValueError(f"allowed_transitions: {why}")
        lengths = np.ones((self.longest, self.n_types), dtype=bool)
        lengths[1:] &= np.where(has_later, pairs[begin, later], True)
        lengths[2:] &= np.where(has_later, pairs[later, later], True)
        return lengths, after_one

    def _right(self, truth: Targets, found: Targets, lengths: Ints) -> Booleans:
        """Return whether each position has the right type, and begins a segment where it should."""
        right, guess = self.types.segments(truth, lengths), self.types.segments(found, lengths)
        return cast(Booleans, (right.types == guess.types) & (right.begins == guess.begins))

    def split(self, weights: Floats) -> dict[str, Floats]:
        sizes = {name: layout.core.num_weights for name, layout in self.layouts.items()}
        sizes |= {"lengths": self.longest * self.width, "transitions": self.n_types * self.width}
        return dict(zip(RUNS, np.split(weights, np.cumsum([sizes[name] for name in RUNS])[:-1]), strict=True))

    def table(self, name: str) -> tuple[Ints, Ints, Floats]:
        """Return (attributes, types, weights) of one of the `TABLES`."""
        layout = self.layouts[name]
        return *layout.pairs(), layout.core.unpack(self.split(self.weights)[name])

    def node_features(self) -> tuple[Ints, Ints, Floats]:
        return self.table("inside")

    def attribute_name(self, table: str, attribute: int) -> Hashable:
        return self.whole.names[attribute] if table == "whole" else self.reader.name(attribute)

    def _cells(self, name: str, mask: Bytes, n_rows: int) -> tuple[Ints, Ints, Floats]:
        """Return (rows, types, weights) of lengths or transitions that have a weight."""
        run = unpadded(self.split(self.weights)[name], n_rows, self.n_types)
        rows, columns = np.nonzero(unpadded(mask, n_rows, self.n_types))
        return rows, columns, run[rows, columns]

    def transition_weights(self) -> dict[tuple[Hashable, ...], float]:
        cells = (part.tolist() for part in self._cells("transitions", self.transition_mask, self.n_types))
        return {(self.types.name(a), self.types.name(b)): weight for a, b, weight in zip(*cells, strict=True)}

    def length_features(self) -> dict[tuple[int, str], float]:
        cells = (part.tolist() for part in self._cells("lengths", self.length_mask, self.longest))
        return {(d + 1, self.types.name(b)): weight for d, b, weight in zip(*cells, strict=True)}

    def carried(self, old: SegmentModel) -> Floats | None:
        numbers = self.reader.numbers_in(old.reader)
        if numbers is None:
            return None
        types = user_labels.encode_flat(self.types.names, user_labels.label_array(old.types.names))
        of_whole = user_labels.encode_flat(self.whole.names, user_labels.label_array(old.whole.names))
        runs = {}
        for name in TABLES:
            attributes, columns = self.layouts[name].pairs()
            there = (of_whole if name == "whole" else numbers)[attributes]
            runs[name] = self.layouts[name].core.pack(look_up(old.table(name), there, types[columns]))
        names, sizes = [*map(self.types.name, range(self.n_types))], range(1, self.longest + 1)
        lengths, moves = old.length_features(), old.transition_weights()
        runs["lengths"] = padded(np.array([[lengths.get((d, b), 0.0) for b in names] for d in sizes]))
        runs["transitions"] = padded(np.array([[moves.get((a, b), 0.0) for b in names] for a in names]))
        return np.concatenate([runs[name] for name in RUNS])

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[SegmentModel, tuple[int, int, float]]:
        runs, pruned = self.split(self.weights), copy.copy(self)
        cells = {"lengths": np.flatnonzero(self.length_mask), "transitions": np.flatnonzero(self.transition_mask)}
        values = [runs[name][cells[name]] if name in cells else self.table(name)[2] for name in RUNS]
        parts, counts = inspection.choose_among(values, threshold, keep)
        chosen = dict(zip(RUNS, parts, strict=True))
        used = {name: layout.pairs()[0][chosen[name]] for name, layout in self.layouts.items()}
        at_positions = np.concatenate([used["inside"], used["first"], used["last"]])
        pruned.reader, number = self.reader.keep(np.isin(np.arange(self.reader.n_attributes), at_positions))
        pruned.whole, whole_number = self.whole.kept(np.isin(np.arange(len(self.whole.names)), used["whole"]))
        pruned.layouts = {
            name: layout.chosen(chosen[name], whole_number if name == "whole" else number)
            for name, layout in self.layouts.items()
        }
        for name, own in zip(RUNS, values, strict=True):
            if name in cells:
                runs[name] = np.zeros_like(runs[name])
                runs[name][cells[name][chosen[name]]] = own[chosen[name]]
            else:
                runs[name] = pruned.layouts[name].core.pack(own[chosen[name]])
        moves = cells["transitions"][chosen["transitions"]]
        pruned.transition_mask = np.isin(np.arange(len(self.transition_mask)), moves).astype(np.uint8)
        return pruned.with_weights(np.concatenate([runs[name] for name in RUNS])), counts

    def named_tables(self) -> list[tuple[Callable[[int], Hashable], tuple[Ints, Ints, Floats]]]:
        def named(table: str, attribute: int) -> str:
            return f"{TABLES[table][0]}{self.attribute_name(table, attribute)}"

        found = [(partial(named, name), self.table(name)) for name in TABLES]
        return [*found, (lambda d: f"length {d + 1}", self._cells("lengths", self.length_mask, self.longest))]

    def contributions(self, reading: SequenceReading, one: Ints, two: Ints) -> list[Contribution]:
        """Return what slots contribute that the two segmentations use in different numbers."""
        counts = np.zeros((2, reading.batch.structure.num_slots(0)))  # how often each uses a slot
        names = [self.classes[labels].tolist() for labels in (one, two)]
        for row, labels in zip(counts, names, strict=True):
            uses = self.encode(reading, [labels])[0]
            row[uses.slots] = uses.counts
        tables = counts.reshape(2, -1, self.width)
        rows, source = tables[0] - tables[1], reading.source.rows
        length, n, table = len(one), self.n_types, source.attributes()
        found: list[Contribution] = []

        def add(name: str, rows: Floats, table: Attributes, positions: Ints) -> None:
            owner = np.repeat(np.arange(len(rows)), np.diff(table.row_ptr))
            values = np.ones(len(owner)) if table.values is None else table.values
            types, some = np.nonzero((rows[owner, :n] != 0).T & (table.attributes >= 0))
            ids, place = table.attributes[some], owner[some]
            amounts = rows[place, types] * values[some] * look_up(self.table(name), ids, types)
            for j, t, amount in zip(ids.tolist(), positions[place].tolist(), amounts.tolist(), strict=True):
                kind, attribute = TABLES[name][1], self.attribute_name(name, j)
                found.append(Contribution(kind, attribute, t, names[0][t], names[1][t], amount))

        for k, name in enumerate(("inside", "first", "last")):
            if self.layouts[name].core.num_attributes:
                add(name, rows[k * length : (k + 1) * length], table, np.arange(length))
        runs, start = self.split(self.weights), 3 * length
        for name, kind, size in (("lengths", "length", self.longest), ("transitions", "transition", n)):
            own, weights = rows[start : start + size, :n], runs[name].reshape(size, self.width)[:, :n]
            for a, b in np.argwhere(own).tolist():
                title = f"{a + 1 if kind == 'length' else self.types.name(a)} {self.types.name(b)}"
                first, second = (int(each[start + a, b]) for each in tables)
                found.append(Contribution(kind, title, None, first, second, float(own[a, b] * weights[a, b])))
            start += size
        if self.layouts["whole"].core.num_attributes:
            assert isinstance(source, WordRows)
            listed = self.find(source)
            add("whole", rows[start:], listed.rows, listed.listed[1])
        return found

    def _to_parts(self) -> ModelParts:
        runs, n = self.split(self.weights), self.n_types
        parts = ModelParts(self.kind, {"types": self.types.names, "max_length": self.longest})
        for name in TABLES:
            parts.add(name, layout_parts(self.layouts[name], runs[name]))
        parts.add("features", self.whole.to_parts())
        parts.arrays["length_weights"] = unpadded(runs["lengths"], self.longest, n)
        parts.arrays["transition_weights"] = unpadded(runs["transitions"], n, n)
        parts.arrays["transitions"] = unpadded(self.transition_mask, n, n)
        return parts

    def _from_parts(self, parts: ModelParts, n_attributes: int) -> None:
        names = parts.settings.get("types")
        if not isinstance(names, list) or not names or not all(name is None or type(name) is str for name in names):
            raise ModelFormatError("has no list of its types of segments")
        if len(set(names)) < len(names):
            raise ModelFormatError("has a type of segments twice")
        self.types, self.longest = Types(names), parts.integer("max_length", 1, MOST_POSITIONS)
        if self.types.classes(self.longest).tolist() != self.classes.tolist():
            raise ModelFormatError("has other labels than its types of segments")
        n = self.n_types
        lengths = padded(parts.floats("length_weights", self.longest, n))
        self.whole = WholeFeatures.from_parts(parts.part("features"))
        self.layouts, runs = {}, {}
        for name in TABLES:
            self.layouts[name], runs[name] = read_layout(parts.part(name), n)
            known = self.layouts[name].core.num_attributes
            wanted = len(self.whole.names) if name == "whole" else n_attributes
            if known != wanted and (known or name == "inside"):
                raise ModelFormatError(f"has weights of {name!r} for {known} attributes and knows {wanted}")
        self.transition_mask = padded(parts.mask("transitions", n, n).astype(np.uint8))
        runs |= {"lengths": lengths, "transitions": padded(parts.floats("transition_weights", n, n))}
        self._weights = np.concatenate([runs[name] for name in RUNS])


def _tables(lengths: Mapping[str, Ints], columns: Mapping[str, tables.Column], weight: Floats | None) -> EncodedTables:
    """Return encoded sequences; in memory each has its attributes in the tables of three places."""
    table = columns.get("rows/table")
    own = lengths["rows-entries"] if table is None else lengths["rows"] * table.shape[1]
    return EncodedTables(lengths, columns, 3 * (own + lengths["rows"]), weight)
