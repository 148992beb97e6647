"""Chains whose labels are scored by the two before them: `SequenceTagger(order=2)`.

After the weights of nodes and transitions come those of triples, n_labels * n_labels rows (a, b) of `width`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from partwise.features import Attributes, second_order_map
from partwise.model_files.parts import ModelParts
from partwise.models.base import Ability
from partwise.models.features import Rows
from partwise.models.files import padded, unpadded
from partwise.models.inspection import Contribution, Named, choose_kept, counts_of
from partwise.models.sequences.chain import ChainModel
from partwise.models.sequences.features import triple_counts
from partwise.models.sequences.model import SequenceReading
from partwise.problem import Batch
from partwise.structures import SecondOrderChain
from partwise.support.arrays import Bytes, Floats, Ints

if TYPE_CHECKING:
    from partwise.models.sequences.partition import SecondOrderPartitioner


class SecondOrderModel(ChainModel):
    """Weights for (attribute, label) pairs, for pairs of neighbouring labels and for triples."""

    kind = "second-order chain"
    lacks: Mapping[Ability, str] = {Ability.GROWING: "partial_fit with grow=True: not available with order=2"}

    #: Which triples have a weight, (n_labels * n_labels * width,).
    triple_mask: Bytes

    @property
    def label_table(self) -> int:
        return self.n_labels * super().label_table

    def structure(self, lengths: Ints) -> Any:
        return SecondOrderChain(lengths, self.n_labels)

    def named_chain(self) -> None:
        """None: that form has first-order chains alone."""
        return

    def _training_batch(self, rows: Rows, labels: Ints) -> Batch:
        triples = triple_counts(rows.lengths, labels, self.n_labels)
        self.triple_mask = self.feature_choice().cells(triples, order=2)
        return super()._training_batch(rows, labels)

    def partitioner(self) -> SecondOrderPartitioner:
        from partwise.models.sequences.partition import SecondOrderPartitioner

        return SecondOrderPartitioner(self)

    def batch(self, rows: Rows, *, once: bool = True) -> Batch:
        structure = self.structure(rows.lengths)
        dense = self.nodes.all_pairs and not isinstance(rows.table, Attributes)
        features = second_order_map(
            structure,
            rows.table if dense else rows.attributes(),
            layout=None if dense else self.nodes.core,
            transition_mask=self.transition_mask,
            triple_mask=self.triple_mask,
            once=once,
        )
        return Batch(structure, features)

    def triples(self) -> dict[tuple[int, int, int], float]:
        """Weights of triples of labels by their numbers."""
        n, run = self.n_labels, self.split(self.weights)[2]
        cells = np.flatnonzero(self.triple_mask)
        rows, last = np.divmod(cells, self.width)
        named = zip((rows // n).tolist(), (rows % n).tolist(), last.tolist(), run[cells].tolist(), strict=True)
        return {(a, b, c): weight for a, b, c, weight in named}

    def transition_features(self) -> dict[tuple[Hashable, ...], float]:
        classes = self.classes.tolist()
        named = {tuple(classes[k] for k in labels): weight for labels, weight in self.triples().items()}
        return super().transition_features() | named

    def boundary_features(self) -> dict[tuple[str, Hashable], float]:
        return {}

    def top_transitions(self, n: int) -> dict[tuple[Hashable, ...], Named]:
        classes, found = self.classes.tolist(), super().top_transitions(n)
        for labels, weight in self.triples().items():
            if weight:
                found[tuple(classes[k] for k in labels)] = [(None, weight)]
        return found

    def contributions(self, reading: SequenceReading, one: Ints, two: Ints) -> list[Contribution]:
        found, triples, classes = super().contributions(reading, one, two), self.triples(), self.classes.tolist()
        for t in range(2, len(one)):
            first, second = (tuple(labels[t - 2 : t + 1].tolist()) for labels in (one, two))
            amount = triples.get(first, 0.0) - triples.get(second, 0.0)
            best, rival = (tuple(classes[k] for k in labels) for labels in (first, second))
            if first != second:
                found.append(Contribution("transition", None, t, best, rival, amount))
        return found

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[Self, tuple[int, int, float]]:
        nodes, _, run = self.split(self.weights)
        cells = np.flatnonzero(self.triple_mask)
        values = np.concatenate([self.nodes.core.unpack(nodes), self.edge_features()[2], run[cells]])
        counts = counts_of(values, choose_kept(values, threshold, keep))
        least = counts[2]  # the largest that goes; of weights as large as it none stays
        pruned, _ = super().pruned(least, None)
        stays = np.zeros_like(self.triple_mask)
        stays[cells[np.abs(run[cells]) > least]] = 1
        pruned.triple_mask = stays
        weights = np.concatenate([pruned.weights[: -len(run)], np.where(stays, run, 0.0)])
        return pruned.with_weights(weights), (counts[0], int(np.count_nonzero(np.abs(values) > least)), least)

    def carried(self, old: ChainModel) -> Floats | None:
        start = super().carried(old)
        if start is None or not isinstance(old, SecondOrderModel):
            return None
        index = {label: k for k, label in enumerate(old.classes.tolist())}
        places = [index.get(label, -1) for label in self.classes.tolist()]
        n, before, run = self.n_labels, old.triples(), np.zeros(len(self.triple_mask))
        for cell in np.flatnonzero(self.triple_mask).tolist():
            pair, c = divmod(cell, self.width)
            run[cell] = before.get((places[pair // n], places[pair % n], places[c]), 0.0)
        return np.concatenate([start, run])

    # model files

    def _tail_to_parts(self, parts: ModelParts) -> None:
        super()._tail_to_parts(parts)
        shape = (self.n_labels,) * 3
        parts.arrays["triples"] = unpadded(self.triple_mask, *shape)
        parts.arrays["triple_weights"] = unpadded(self.split(self.weights)[2], *shape)

    def _from_parts(self, parts: ModelParts, n_attributes: int) -> None:
        super()._from_parts(parts, n_attributes)
        shape = (self.n_labels,) * 3
        self.triple_mask = padded(parts.mask("triples", *shape).astype(np.uint8))
        self._weights = np.concatenate([self._weights, padded(parts.floats("triple_weights", *shape))])
