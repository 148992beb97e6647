"""Segments of sequences with labels: semi-Markov CRFs and max-margin models.

The weights are one vector, in the order of `SegmentChain`'s tables:

    inside       for (attribute, type) pairs of positions, whatever their place in a segment
    first, last  the same for the first and the last position of segments, if the model has these borders
    lengths      max_length x width: a segment of this length with this type
    transitions  n_types x width: a segment of one type after one of another
    whole        for (feature, type) pairs of whole segments

Types are what stands behind B- and I-; O is one too, whose segments have one position.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from partwise.features import Attributes, RowLayout, TableRows, segment_map
from partwise.features.presets import read_gazetteers
from partwise.io.coded import CodedSequences
from partwise.model_files.parts import ModelParts
from partwise.models.base import Labellings, Learnt, Reading, Training
from partwise.models.encoded import EncodedTables
from partwise.models.features import PairLayout, Rows, expand_pairs
from partwise.models.files import unpadded
from partwise.models.inspection import Explanation, TopFeatures
from partwise.models.labels import Targets, warn_of_long_segments
from partwise.models.readers import Sequences
from partwise.models.segments.answering import best_spans, label_marginals
from partwise.models.segments.choosing import costs_of_segments
from partwise.models.segments.constraining import constrain_segments
from partwise.models.segments.counting import SegmentCounts
from partwise.models.segments.inspecting import explain_segments, prune_segments, top_features
from partwise.models.segments.partitioner import SegmentPartitioner, lists_names, read_encoded, word_rows
from partwise.models.segments.rows import WordRows
from partwise.models.segments.spans import Segments, Span, Types
from partwise.models.segments.storing import MOST_POSITIONS, carry_segments, read_segment_parts, segment_parts
from partwise.models.segments.whole import FAMILIES, Listed, WholeFeatures
from partwise.models.sequences.model import SequenceModel, SequenceSource
from partwise.models.sequences.template_reader import TextSequences
from partwise.problem import Batch, LabelledBatch
from partwise.problem.batch import Gold
from partwise.structures import SegmentChain, padded_width
from partwise.support.arrays import Booleans, Bytes, Floats, Ints, pointers
from partwise.support.checks import check_choice, check_count, check_sample_weight

SCHEMES = ("iob2", "iob1", "iobes")
BORDERS = ("both", "first", "last", "none")


class SegmentModel(SequenceModel):
    """Weights for positions inside segments and at their borders, for lengths, transitions and whole segments."""

    kind = "segments"
    late = ("scheme",)
    takes_classes = False  # its types are those of the segments seen

    types: Types
    max_length: int
    layouts: dict[str, PairLayout]
    whole: WholeFeatures
    transition_mask: Bytes

    def __init__(
        self,
        *,
        longest: int | None,
        borders: str,
        segment_features: Any,
        lists: Any,
        segment_cost: bool,
        transitions: str,
        scheme: str,
        **shared: Any,
    ) -> None:
        self.longest = longest
        self.borders = borders
        self.segment_features = segment_features
        self.lists = lists
        self.segment_cost = bool(segment_cost)
        self.transitions = transitions
        self.scheme = scheme
        super().__init__(**shared)

    def check(self) -> None:
        super().check()
        check_choice("transitions", self.transitions, ("auto", "observed", "all"))
        check_choice("borders", self.borders, BORDERS)
        check_choice("scheme", self.scheme, SCHEMES)
        if self.longest is not None:
            check_count("max_length", self.longest)
            if self.longest > MOST_POSITIONS:
                raise ValueError(f"max_length must be at most {MOST_POSITIONS}, got {self.longest}")
        if self.template is not None and self.template.edges:
            raise ValueError("B lines with macros are not available for segments")
        self._families()
        for name, each in ({} if self.lists is None else read_gazetteers(self.lists)).items():
            if not each.phrases:
                raise ValueError(f"lists: {name!r} has no phrases")

    def _families(self) -> tuple[str, ...]:
        chosen = self.segment_features
        if isinstance(chosen, str) and chosen == "auto":
            return tuple(FAMILIES) if self.template is not None else ()
        if isinstance(chosen, str) or not isinstance(chosen, Collection) or not set(FAMILIES).issuperset(chosen):
            raise ValueError(f"segment_features must be 'auto' or some of {', '.join(FAMILIES)}, got {chosen!r}")
        return tuple(name for name in FAMILIES if name in chosen)

    @property
    def n_types(self) -> int:
        """Number of labels of segments, O among them."""
        return len(self.types)

    @property
    def width(self) -> int:
        """Padded number of types."""
        return padded_width(self.n_types)

    @property
    def outside(self) -> Booleans:
        """Which types are O."""
        return np.array([name is None for name in self.types.names])

    def max_lengths(self) -> Ints:
        """Of the segments of each type."""
        return np.where(self.outside, 1, self.max_length).astype(np.int64)

    # training

    def _first_reading(self, sequences: Sequences, n_jobs: int) -> WordRows:
        rows = super()._first_reading(sequences, n_jobs)
        self.whole = self.make_whole()
        return self.with_words(rows, sequences)

    def make_whole(self) -> WholeFeatures:
        """Features of whole segments, of which none is known yet."""
        if self.lists is not None:
            self.lists = read_gazetteers(self.lists)  # files may change
        return WholeFeatures(self._families(), self.lists or {})

    def with_words(self, rows: Rows, sequences: Sequences) -> WordRows:
        """Rows with their words, if there are features of whole segments."""
        words = None
        if self.whole.needs_words:
            if not isinstance(sequences, TextSequences):
                raise ValueError("features of whole segments need words: give a template, which reads them")
            empty = not rows.lengths.any()  # a table without rows has no columns either
            words = (
                CodedSequences([], np.empty(0, np.int32), rows.lengths)
                if empty
                else CodedSequences.of(sequences.table, 0)
            )
        return WordRows(rows.lengths, rows.n_attributes, rows.table, rows.unknown, words, sequences.numbers)

    def _learn_features(self, rows: Rows, labels: Ints, weight: Floats | None, training: Training) -> Learnt:
        assert isinstance(rows, WordRows)
        given = self.classes.tolist()
        self.types = Types.of(given)
        codes = CodedSequences([str(label) for label in given], labels.astype(np.int32), rows.lengths)
        gold = self.types.segments(Targets.of(codes), rows.lengths)
        self.choose_length(gold, rows)
        self.classes = self.types.classes(self.max_length)
        if self.whole.needs_words:
            assert rows.words is not None
            self.whole.learn(rows.words, gold, self.outside, int(self.min_count))
        found = self.find(rows)
        self._choose_features(rows, gold, found)
        examples = self._gold_examples(rows, found, gold, weight)
        batch = examples.batch
        learnt = Learnt(examples, (self.n_types, self.max_length, rows.lengths))
        if rows.unknown[0]:
            return learnt
        light = Rows(rows.lengths, rows.n_attributes, np.empty((0, rows.n_attributes)))
        source = SequenceSource(rows.lengths, light)
        return replace(learnt, reading=Reading(batch, len(rows.lengths), source=source))

    def _gold_examples(self, rows: Rows, found: Listed, gold: Segments, weight: Floats | None) -> LabelledBatch:
        batch = self._batch(rows, found, once=False)
        structure: Any = batch.structure
        slots = structure.encode(gold.types, gold.begins.astype(np.uint8))
        return LabelledBatch(batch, slots, weight, self.slot_costs(structure, slots))

    def slot_costs(self, structure: Any, gold: Gold) -> Floats | None:
        return costs_of_segments(structure, gold, self.costs_of(self.cost_labels()))

    def feature_parameters(self) -> dict[str, Any]:
        return {
            **super().feature_parameters(),
            "max_length": None if self.longest is None else int(self.longest),
            "borders": self.borders,
            "segment_features": list(self._families()),
            "lists": lists_names(self.lists),
            "segment_cost": self.segment_cost,
            "transitions": self.transitions,
        }

    def partitioner(self) -> SegmentPartitioner:
        return SegmentPartitioner(self)

    def encoded(self, parts: ModelParts) -> EncodedTables:
        return read_encoded(self, parts)

    def labelled(self, encoded: EncodedTables, by_features: bool | None = False) -> LabelledBatch:
        rows, gold = word_rows(self, encoded)
        return self._gold_examples(rows, self.find(rows), gold, encoded.weight)

    def cost_labels(self) -> list[Any]:
        return [name or "O" for name in Types.of(self.classes.tolist()).names]

    def choose_length(self, gold: Segments, rows: WordRows) -> None:
        """The longest segment; ValueError naming the one that is longer than it may be."""
        sizes = gold.sizes
        most = int(sizes.max())
        self.max_length = most if self.longest is None else int(self.longest)
        warn_of_long_segments(rows.lengths, self.max_length, len(self.types))
        if most <= self.max_length:
            return
        first = int(gold.firsts[np.argmax(sizes > self.max_length)])
        size = int(sizes[np.argmax(sizes > self.max_length)])
        i = int(np.searchsorted(np.cumsum(rows.lengths), first, side="right"))
        begin = first - int(pointers(rows.lengths)[i])
        raise ValueError(
            f"sequence {rows.numbers[i]}: the segment {self.types.names[gold.types[first]]!r} at positions {begin} to "
            f"{begin + size - 1} has {size} positions, max_length is {self.max_length}"
        )

    def _choose_features(self, rows: Rows, gold: Segments, found: Listed) -> None:
        counts = SegmentCounts(self)
        counts.add(rows, gold)
        counts.choose()

    @property
    def length_mask(self) -> Bytes:
        """Which lengths have a weight: all that segments of a type may have, where it has more than one."""
        mask = np.zeros((self.max_length, self.width), dtype=np.uint8)
        mask[:, : self.n_types] = (np.arange(1, self.max_length + 1)[:, None] <= self.max_lengths()) & ~self.outside
        return mask.ravel()

    def find(self, rows: WordRows) -> Listed:
        """The segments of these sequences that have features of their own."""
        none = np.empty(0, dtype=np.int64)
        if rows.words is None:
            ptr = np.zeros(len(rows.lengths) + 1, dtype=np.int64)
            return Listed((ptr, none, none), Attributes(np.zeros(1, dtype=np.int64), none, 0))
        return self.whole.find(rows.words, rows.lengths, self.max_length)

    def structure_of(self, rows: Rows, found: Listed) -> SegmentChain:
        """The segmentations of sequences."""
        return SegmentChain(
            rows.lengths, self.n_types, self.max_length, self.max_lengths(), found.listed, self.segment_cost
        )

    def _batch(self, rows: Rows, found: Listed, *, once: bool) -> Batch:
        structure = self.structure_of(rows, found)
        dense = self.layouts["inside"].all_pairs and not isinstance(rows.table, Attributes)
        table = rows.table if dense else rows.attributes()

        def of(name: str) -> TableRows | None:
            layout = self.layouts[name]
            if not layout.core.num_attributes and name != "inside":
                return None
            if name == "whole":
                return TableRows(found.rows, layout.core)
            return TableRows(table, None) if dense and layout.all_pairs else TableRows(rows.attributes(), layout.core)

        inside = of("inside")
        assert inside is not None
        features = segment_map(
            structure,
            inside,
            first=of("first"),
            last=of("last"),
            whole=of("whole"),
            length_mask=self.length_mask,
            transition_mask=self.transition_mask,
            once=once,
        )
        return Batch(structure, features)

    def batch(self, rows: Rows) -> Batch:
        assert isinstance(rows, WordRows)
        return self._batch(rows, self.find(rows), once=True)

    # answers

    def read(self, X: Any, n_jobs: int = 1) -> Reading:
        sequences = self.reader.sequences(X)
        rows = self.with_words(self.reader.read(sequences, n_jobs=n_jobs), sequences)
        lengths, kept = rows.lengths, np.flatnonzero(rows.lengths)
        some = replace(rows, lengths=lengths[kept])
        return Reading(self.batch(some), len(lengths), kept, SequenceSource(lengths, some))

    def segments_of(self, reading: Reading, which: Ints, labellings: Labellings) -> Segments:
        """The segments of these labellings: slots are rows `inside`, rows `first`, then others."""
        width, lengths = self.width, reading.source.rows.lengths[which]
        owner = np.repeat(np.arange(len(which)), np.diff(labellings.indptr))
        row, label = np.divmod(labellings.slots, width)
        inside, first = row < lengths[owner], (row >= lengths[owner]) & (row < 2 * lengths[owner])
        starts = pointers(lengths)[owner]
        types, begins = np.empty(int(lengths.sum()), dtype=np.int64), np.zeros(int(lengths.sum()), dtype=bool)
        types[(starts + row)[inside]] = label[inside]
        begins[(starts + row - lengths[owner])[first]] = True
        return Segments(types, begins, lengths)

    def labels_of(self, reading: Reading, which: Ints, labellings: Labellings) -> Ints:
        found = self.segments_of(reading, which, labellings)
        return self.types.numbers(self.classes)[found.types, 1 - found.begins.astype(np.int64)]

    def label_numbers(self, reading: Reading, labellings: Labellings) -> Ints | None:
        return super().label_numbers(reading, labellings) if self.scheme == "iob2" else None

    def decode(self, reading: Reading, which: Ints, labellings: Labellings, n_jobs: int = 1) -> list[list[Any]]:
        found = self.segments_of(reading, which, labellings)
        flat, ends = self.types.labels(found, self.scheme), pointers(found.lengths).tolist()
        return [flat[a:b] for a, b in zip(ends, ends[1:], strict=False)]

    def spans(self, reading: Reading, labellings: Labellings, temperature: float | None) -> list[list[Span]]:
        """The segments of the best labellings that are not O, with their probabilities at this temperature."""
        return best_spans(self, reading, labellings, temperature)

    def encode(self, reading: Reading, y: Any) -> tuple[Labellings, Booleans]:
        lengths = reading.source.lengths
        targets = Targets.of(y).check(lengths)
        found = self.types.segments(targets, lengths)
        kept = reading.source.rows.lengths
        owner = np.repeat(np.arange(len(kept)), kept)
        wrong = found.types < 0
        long = found.sizes > self.max_lengths()[found.types[found.firsts]]
        wrong[found.firsts[long]] = True
        possible = np.ones(len(kept), dtype=bool)
        possible[owner[wrong]] = False
        bad = ~possible[owner]
        types, begins = np.where(bad, 0, found.types), found.begins | bad
        structure: Any = reading.batch.structure
        return Labellings(*structure.encode(types, begins.astype(np.uint8))), possible

    def marginals(self, reading: Reading, counts: Floats, output: str = "dict") -> list[Any]:
        """Of labels in IOB2: dicts {label: probability} per position, or arrays of shape (length, n_labels)."""
        check_choice("output", output, ("dict", "array"))
        arrays = label_marginals(self, reading, counts)
        if output == "array":
            return arrays
        labels = self.classes.tolist()
        return [[dict(zip(labels, row, strict=True)) for row in array.tolist()] for array in arrays]

    def constrain(self, reading: Reading, allowed: Any = None, allowed_transitions: Any = None) -> None:
        """As for `SequenceTagger`, by labels in IOB2."""
        constrain_segments(self, reading, allowed, allowed_transitions)

    def score(self, X: Any, y: Any, predicted: Any, sample_weight: Any) -> float:
        """Share of positions that have the right type and begin a segment where they should, whatever the scheme."""
        guess = Targets.of(predicted)
        lengths = guess.lengths()
        truth = self.types.segments(Targets.of(y).check(lengths), lengths)
        found = self.types.segments(guess, lengths)
        weight = check_sample_weight(sample_weight, len(lengths))
        each = np.repeat(np.ones(len(lengths)) if weight is None else weight, lengths)
        if not each.any():
            raise ValueError("there is no position to score")
        return float(np.average((truth.types == found.types) & (truth.begins == found.begins), weights=each))

    # weights by name

    def split(self, weights: Floats) -> dict[str, Floats]:
        """The runs of weights by name."""
        sizes = {name: self.layouts[name].core.num_weights for name in ("inside", "first", "last")}
        sizes |= {"lengths": self.max_length * self.width, "transitions": self.n_types * self.width}
        sizes["whole"] = self.layouts["whole"].core.num_weights
        parts = np.split(weights, np.cumsum(list(sizes.values()))[:-1])
        return dict(zip(sizes, parts, strict=True))

    def table(self, name: str) -> tuple[Ints, Ints, Floats]:
        """(attributes, types, weights) of one of the `TABLES`."""
        core: RowLayout = self.layouts[name].core
        attributes, types = expand_pairs(*core.pairs())
        return attributes, types, core.unpack(self.split(self.weights)[name])

    def node_features(self) -> tuple[Ints, Ints, Floats]:
        return self.table("inside")

    def attribute_name(self, table: str, attribute: int) -> Any:
        """The name of an attribute of a table."""
        return self.whole.names[attribute] if table == "whole" else self.reader.name(attribute)

    def type_name(self, k: int) -> str:
        """The name of a type."""
        name = self.types.names[k]
        return "O" if name is None else name

    def transition_features(self) -> dict[tuple[Any, ...], float]:
        run = unpadded(self.split(self.weights)["transitions"], self.n_types, self.n_types)
        mask = unpadded(self.transition_mask, self.n_types, self.n_types)
        cells = zip(*np.nonzero(mask), strict=True)
        return {(self.type_name(a), self.type_name(b)): float(run[a, b]) for a, b in cells}

    def length_features(self) -> dict[tuple[int, str], float]:
        """Weights of (length, type)."""
        run = unpadded(self.split(self.weights)["lengths"], self.max_length, self.n_types)
        mask = unpadded(self.length_mask, self.max_length, self.n_types)
        cells = zip(*np.nonzero(mask), strict=True)
        return {(int(d) + 1, self.type_name(b)): float(run[d, b]) for d, b in cells}

    def top_features(self, n: int = 10) -> TopFeatures:
        """The largest weights of every type and every transition."""
        return top_features(self, n)

    def explain(self, reading: Reading, position: int | None = None, *labels: Any) -> Explanation:
        """The features that make the best segmentation of a sequence better than the second-best one."""
        return explain_segments(self, reading, position, *labels)

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[SegmentModel, tuple[int, int, float]]:
        return prune_segments(self, threshold, keep)

    def carried(self, old: SegmentModel) -> Floats | None:
        return carry_segments(self, old)

    # model files

    def _to_parts(self) -> ModelParts:
        return segment_parts(self)

    def _from_parts(self, parts: ModelParts, n_attributes: int) -> None:
        read_segment_parts(self, parts, n_attributes)
