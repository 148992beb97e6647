"""What chains of labels share, whatever their positions are compared by: transitions and ends.

The weights are one vector, in this order:

    nodes        for positions: what the model makes of them
    transitions  n_labels x width, shared by all edges; or, for transitions conditioned on observations, what the model
                 makes of those
    ends         a row for the first label and a row for the last
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from partwise.model_files.parts import ModelParts
from partwise.models.base import Learnt, Training
from partwise.models.rows import Rows
from partwise.models.saved import padded, unpadded
from partwise.models.sequences.model import SequenceModel
from partwise.problem import Batch
from partwise.structures import Chain, padded_width
from partwise.support.arrays import Bytes, Floats, Ints
from partwise.support.checks import check_choice


class ChainBase(SequenceModel):
    """Labels with transitions between neighbours: a CRF or a max-margin chain, by its loss.

    transitions, transition_features, ends: see `SequenceTagger`.
    """

    ruled: ClassVar[bool] = True
    #: Tied transitions: which of them have a weight, (n_labels * width,); None for others.
    transition_mask: Bytes | None = None

    def __init__(self, *, transitions: str, transition_features: Any, ends: bool, **shared: Any) -> None:
        self.transitions = transitions
        self.chosen = transition_features
        self.ends = bool(ends)
        super().__init__(**shared)

    def check(self) -> None:
        super().check()
        check_choice("transitions", self.transitions, ("auto", "observed", "all"))

    @property
    def observed_transitions(self) -> bool:
        """Whether weights are for transitions that occur."""
        return (self.features if self.transitions == "auto" else self.transitions) == "observed"

    @property
    def width(self) -> int:
        """Padded number of labels."""
        return padded_width(self.n_labels)

    @property
    def label_table(self) -> int:
        return self.n_labels * self.width

    @property
    def tied(self) -> bool:
        """Whether all edges share their transitions."""
        return self.transition_mask is not None

    def structure(self, lengths: Ints) -> Chain:
        """The labellings of sequences of these lengths (none of them 0)."""
        return Chain(lengths, self.n_labels, tied=self.tied, ends=self.ends)

    def _learn_features(self, rows: Rows, labels: Ints, weight: Floats | None, training: Training) -> Learnt:
        batch = self._training_batch(rows, labels)
        return Learnt(self._examples(batch, labels, weight), (self.n_labels, self.tied, self.ends, rows.lengths))

    @abstractmethod
    def _training_batch(self, rows: Rows, labels: Ints) -> Batch:
        """Choose features from the training rows, and map these."""

    @property
    @abstractmethod
    def run_lengths(self) -> tuple[int, int]:
        """How many weights nodes and transitions have."""

    @abstractmethod
    def edge_features(self) -> tuple[Ints, Ints, Floats]:
        """(edge attributes, label * width + next label, weights) of the features of transitions."""

    def edge_names(self) -> list[tuple[Any, ...]]:
        """Name of each edge attribute: () for the one that is on every edge, else (attribute,)."""
        return [()]

    def split(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """The runs of node, transition and end weights."""
        n_nodes, n_edges = self.run_lengths
        nodes, edges, ends = np.split(weights, [n_nodes, n_nodes + n_edges])
        return nodes, edges, ends

    def transition_features(self) -> dict[tuple[Any, ...], float]:
        names, width, classes = self.edge_names(), self.width, self.classes.tolist()
        pairs = {a * width + b: (first, second) for a, first in enumerate(classes) for b, second in enumerate(classes)}
        parts = (part.tolist() for part in self.edge_features())
        return {(*names[e], *pairs[cell]): w for e, cell, w in zip(*parts, strict=True) if cell in pairs}

    def boundary_features(self) -> dict[tuple[str, Any], float]:
        rows = self.split(self.weights)[2].reshape(-1, self.width)
        found = zip(("begin", "end"), rows.tolist(), strict=False)
        return {(name, label): w for name, row in found for label, w in zip(self.classes.tolist(), row, strict=False)}

    # model files: transitions that are tied, and ends

    def _tail_to_parts(self, parts: ModelParts) -> None:
        _, edges, ends = self.split(self.weights)
        n = self.n_labels
        if self.transition_mask is not None:
            parts.arrays["transitions"] = unpadded(self.transition_mask, n, n)
            parts.arrays["transition_weights"] = unpadded(edges, n, n)
        if self.ends:
            parts.arrays["end_weights"] = unpadded(ends, 2, n)

    def _read_mask(self, parts: ModelParts) -> None:
        self.ends = parts.flag("ends")
        if not parts.has("edges"):
            self.transition_mask = padded(parts.mask("transitions", self.n_labels, self.n_labels).astype(np.uint8))

    def _read_tail(self, parts: ModelParts) -> list[Floats]:
        n = self.n_labels
        tail = []
        if self.tied:
            tail.append(padded(parts.floats("transition_weights", n, n)))
        if self.ends:
            tail.append(padded(parts.floats("end_weights", 2, n)))
        return tail
