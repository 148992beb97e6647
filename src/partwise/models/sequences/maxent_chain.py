"""The maxent tagger: a classifier for each position that sees the tags before it.

    log p(y | x) = sum_t log p(y_t | x_t, y_{t-1}, y_{t-2}),   p(. | x_t, a, b) ~ exp(scores of x_t + of a + of (b, a))

(Huang et al. 2010, section 5.1, after Ratnaparkhi 1996.) In training the tags before a position are the gold ones, so
that positions are examples of a multinomial problem, with features for the position, the tag before it and the two tags
before it ("none" before the beginning). The structure `HistoryChain` labels whole sequences.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from partwise.features import Attributes, history_chain_map
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.models import files, inspection
from partwise.models.base import Ability, Learnt, Training
from partwise.models.classes.features import classifier_map
from partwise.models.features import PairCounts, PairLayout, Rows, with_last
from partwise.models.inspection import Contribution
from partwise.models.labels import Targets
from partwise.models.partition import EncodedRows, Size
from partwise.models.readers import Sequences
from partwise.models.sequences.model import SequenceModel, SequenceReading
from partwise.problem import Batch, LabelledBatch
from partwise.problem.inference import slot_scores
from partwise.structures import HistoryChain, Multiclass, padded_width
from partwise.support.arrays import Floats, Ints, pointers
from partwise.support.checks import check_choice

#: Why the model lacks abilities.
LACKS: Mapping[Ability, str] = {Ability.PARTIAL_FIT: "partial_fit: not available with model='maxent'"}


@dataclass(eq=False, repr=False, kw_only=True)
class MaxentChainModel(SequenceModel):
    """A classifier of positions. Tag n_labels stands for "before the sequence". Parameters: see `SequenceTagger`."""

    kind: ClassVar[str] = "local"
    ruled: ClassVar[bool] = True
    late: ClassVar[tuple[str, ...]] = ("legal", "beam_width")
    reads_by_weights: ClassVar[bool] = True
    has_columns: ClassVar[bool] = True
    lacks = LACKS

    history: int
    beam_width: int | None

    nodes: PairLayout = field(init=False)
    n_attributes: int = field(init=False)

    def __post_init__(self, cost: object) -> None:
        super().__post_init__(cost)
        self.history = int(self.history)

    def check(self) -> None:
        super().check()
        check_choice("history", self.history, (1, 2))
        width = self.beam_width
        if width is not None and (isinstance(width, bool) or not isinstance(width, (int, np.integer)) or width < 1):
            raise ValueError(f"beam_width must be None or an integer >= 1, got {width!r}")

    def _learn_features(self, rows: Rows, labels: Ints, weight: Floats | None, training: Training) -> Learnt:
        counts, found = self.new_counts(), self.with_history(rows, labels)
        counts.add(found, labels)
        self.use_features(counts)
        examples = self._positions(found, rows.lengths, labels, weight, training.by_features)
        return Learnt(examples, (self.n_labels, rows.lengths))

    def new_counts(self) -> PairCounts:
        self.n_attributes = self.reader.n_attributes
        return PairCounts(self.n_history_attributes, self.n_labels, padded_width(self.n_labels))

    def encode_block(
        self, counts: PairCounts, given: tuple[Sequences, Targets], rows: Rows, labels: Ints, weight: Floats | None
    ) -> EncodedRows:
        if self.observed:
            counts.add(self.with_history(rows, labels), labels)
        return EncodedRows.of(rows, labels, weight)

    def use_features(self, counts: PairCounts) -> None:
        shape = self.n_history_attributes, self.n_labels, padded_width(self.n_labels)
        self.nodes = counts.layout(self.min_count) if self.observed else PairLayout.every(*shape)

    def with_history(self, rows: Rows, labels: Ints) -> Attributes:
        """Return rows with an attribute more for the gold tag before, and for history=2 one for the two tags before."""
        tags, n = self.n_labels + 1, rows.n_attributes
        one, two = tags_before(rows.lengths, labels, self.n_labels)
        more = [n + one, n + tags + two * tags + one][: self.history]
        return with_last(rows.attributes(), more, self.n_history_attributes)

    @property
    def n_history_attributes(self) -> int:
        """Number of attributes of positions, and of the tags before them."""
        tags = self.n_labels + 1
        return self.n_attributes + tags + (tags * tags if self.history == 2 else 0)

    def _positions(
        self, found: Attributes, lengths: Ints, labels: Ints, weight: Floats | None, by_features: bool | None
    ) -> LabelledBatch:
        structure = Multiclass(len(labels), self.n_labels)
        batch = Batch(structure, classifier_map(structure, found, by_features, self.nodes.core))
        return self._examples(batch, labels, None if weight is None else np.repeat(weight, lengths))

    def feature_parameters(self) -> dict[str, object]:
        return {**super().feature_parameters(), "history": self.history}

    def training_structure(self, encoded: EncodedRows) -> Multiclass:
        return Multiclass(encoded.size.n_rows, self.n_labels)

    def labelled(self, encoded: EncodedRows, by_features: bool | None = False) -> LabelledBatch:
        rows, labels = encoded.rows, encoded.labels
        return self._positions(self.with_history(rows, labels), rows.lengths, labels, encoded.weight, by_features)

    def n_trained(self, size: Size) -> int:
        return size.n_rows

    def batch(self, rows: Rows) -> Batch:
        n_histories = (self.n_labels + 1) ** self.history
        width = 0 if self.beam_width is None else min(int(self.beam_width), n_histories)
        structure = HistoryChain(rows.lengths, self.n_labels, self.history, *self.history_scores(), width)
        found, layout = rows.attributes(), self.nodes.core
        table = Attributes(found.row_ptr, found.attributes, layout.num_attributes, found.values)
        return Batch(structure, history_chain_map(structure, table, layout=layout))

    def _features(self, of_history: bool) -> tuple[Ints, Ints, Floats]:
        """Return (attributes, labels, weights) of the features of positions, or of histories: tags count from 0."""
        attributes, labels = self.nodes.pairs()
        kept = (labels < self.n_labels) & ((attributes >= self.n_attributes) == of_history)
        first = self.n_attributes if of_history else 0
        return attributes[kept] - first, labels[kept], self.nodes.core.unpack(self.weights)[kept]

    def history_scores(self) -> tuple[Floats, Ints, Floats]:
        """Return weights after each tag, the pairs (older * tags + last, ascending) that have weights, and theirs."""
        tags = self.n_labels + 1
        place, labels, values = self._features(of_history=True)
        one = place < tags
        first = np.zeros((tags, self.n_labels))
        first[place[one], labels[one]] = values[one]
        pairs, row = np.unique(place[~one] - tags, return_inverse=True)
        second = np.zeros((len(pairs), self.n_labels))
        second[row, labels[~one]] = values[~one]
        return first.ravel(), pairs, second.ravel()

    def node_features(self) -> tuple[Ints, Ints, Floats]:
        return self._features(of_history=False)

    def transition_weights(self) -> dict[tuple[Hashable, ...], float]:
        tags, found = [*self.classes.tolist(), None], dict[tuple[Hashable, ...], float]()
        parts = (part.tolist() for part in self._features(of_history=True))
        for place, label, weight in zip(*parts, strict=True):
            pair, one = divmod(place - len(tags), len(tags))
            before = (tags[place],) if place < len(tags) else (tags[pair], tags[one])
            found[*before, tags[label]] = weight
        return found

    def contributions(self, reading: SequenceReading, one: Ints, two: Ints) -> list[Contribution]:
        """Return what features and local normalisers add to log p(one) - log p(two).

        log p(y) is the scores of y's features less log Z at each position, which depends on the tags before it.
        """
        found, classes, weights = super().contributions(reading, one, two), self.label_names, self.transition_weights()
        scores = slot_scores(reading.batch, self.weights).reshape(len(one), -1)[:, : self.n_labels]
        names, lengths = (*classes, None), reading.source.rows.lengths
        sides = []  # oldest tag first, then the label itself
        for labels in (one, two):
            back = tags_before(lengths, labels, self.n_labels)[: self.history]
            rows = np.stack([*back[::-1], labels], axis=1).tolist()
            sides.append([tuple(names[tag] for tag in row) for row in rows])

        def added(tags: tuple[Hashable, ...], label: Hashable) -> list[float]:
            return [weights.get((*tags[-n:], label), 0.0) for n in range(1, self.history + 1)]

        for t, (best, second) in enumerate(zip(*sides, strict=True)):
            amounts = zip(added(best[:-1], best[-1]), added(second[:-1], second[-1]), strict=True)
            for n, (mine, theirs) in enumerate(amounts, start=1):
                found.append(Contribution("transition", None, t, best[-1 - n :], second[-1 - n :], mine - theirs))
            if best[:-1] != second[:-1]:
                own, other = (
                    logsumexp(scores[t] + [sum(added(tags, label)) for label in classes])
                    for tags in (best[:-1], second[:-1])
                )
                found.append(Contribution("normaliser", None, t, best[:-1], second[:-1], float(other - own)))
        return found

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[MaxentChainModel, tuple[int, int, float]]:
        core = self.nodes.core
        values = core.unpack(self.weights)
        (kept,), counts = inspection.choose_among([values], threshold, keep)
        used = np.isin(np.arange(core.num_attributes), self.nodes.pairs()[0][kept])
        pruned = copy.copy(self)
        pruned.reader, number = self.reader.keep(used[: self.n_attributes])
        pruned.n_attributes = int(number.max(initial=-1)) + 1
        of_history = pruned.n_attributes + np.arange(core.num_attributes - self.n_attributes)
        pruned.nodes = self.nodes.chosen(kept, np.concatenate([number, of_history]))
        return pruned.with_weights(pruned.nodes.core.pack(values[kept])), counts

    def _to_parts(self) -> ModelParts:
        parts = ModelParts(self.kind, {"history": self.history})
        parts.add("nodes", files.layout_parts(self.nodes, self.weights))
        return parts

    def _from_parts(self, parts: ModelParts, n_attributes: int) -> None:
        self.history = parts.integer("history", 1, 2)
        self.nodes, self._weights = files.read_layout(parts.part("nodes"), self.n_labels)
        self.n_attributes = n_attributes
        if self.nodes.core.num_attributes != self.n_history_attributes:
            raise ModelFormatError(f"has weights for other attributes than the {n_attributes} it knows")


def tags_before(lengths: Ints, labels: Ints, none: int) -> tuple[Ints, Ints]:
    """Return the tags one and two positions back; `none` before the sequence's beginning."""
    place = np.arange(len(labels)) - np.repeat(pointers(lengths)[:-1], lengths)
    one = np.full(len(labels), none, dtype=np.int64)
    two = one.copy()
    one[1:] = np.where(place[1:] >= 1, labels[:-1], none)
    two[2:] = np.where(place[2:] >= 2, labels[:-2], none)
    return one, two
