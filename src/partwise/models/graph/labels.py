"""Kinds of nodes, by which of some attributes they have, and the labels that each was seen with in training."""

from __future__ import annotations

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.models.features import Rows
from partwise.support.arrays import Booleans, Ints, pointers


class KindLabels:
    """The labels that nodes of each kind were seen with; a kind is the set of those `picked` attributes that it has."""

    def __init__(self, picked: Booleans, n_labels: int) -> None:
        self.picked, self.n_labels = picked, n_labels
        self.seen: dict[tuple[int, ...], Booleans] = {}

    def add(self, rows: Rows, labels: Ints) -> None:
        """Count training nodes and their labels."""
        for kind, label in zip(self._kinds(rows), labels.tolist(), strict=True):
            self.seen.setdefault(kind, np.zeros(self.n_labels, dtype=bool))[label] = True

    def allowed(self, rows: Rows) -> Booleans:
        """Return which labels nodes may have, (nodes, labels): those seen with their kind, all for an unseen kind."""
        every = np.ones(self.n_labels, dtype=bool)
        found = [self.seen.get(kind, every) for kind in self._kinds(rows)]
        return np.array(found, dtype=bool).reshape(-1, self.n_labels)

    def _kinds(self, rows: Rows) -> list[tuple[int, ...]]:
        """Return the picked attributes, ascending, whose value is not 0 at each node."""
        table = rows.attributes()
        ids = np.maximum(table.attributes, 0)
        kept = (table.attributes >= 0) & (ids < len(self.picked)) & self.picked[np.minimum(ids, len(self.picked) - 1)]
        owner = np.repeat(np.arange(table.n_rows), np.diff(table.row_ptr))[kept]
        ends = pointers(np.bincount(owner, minlength=table.n_rows)).tolist()
        flat = table.attributes[kept].tolist()
        return [tuple(sorted(set(flat[a:b]))) for a, b in zip(ends, ends[1:], strict=False)]

    def to_parts(self) -> ModelParts:
        """Return the parts of a model file."""
        flat = np.array([a for kind in self.seen for a in kind], dtype=np.int64)
        labels = np.array(list(self.seen.values()), dtype=np.uint8).reshape(-1, self.n_labels)
        arrays = {"picked": self.picked.astype(np.uint8), "labels": labels}
        return ModelParts("kinds", {}, {**arrays, "attributes": flat, "offsets": pointers(list(map(len, self.seen)))})

    @classmethod
    def from_parts(cls, parts: ModelParts, n_attributes: int, n_labels: int) -> KindLabels:
        """Read what `to_parts` wrote."""
        found = cls(parts.mask("picked", n_attributes), n_labels)
        flat = parts.ints("attributes", None, low=0, high=n_attributes)
        labels = parts.mask("labels", None, n_labels)
        ends = parts.pointers("offsets", len(labels), len(flat)).tolist()
        kinds = (tuple(flat[a:b].tolist()) for a, b in zip(ends, ends[1:], strict=False))
        found.seen = dict(zip(kinds, labels, strict=True))
        if len(found.seen) != len(labels) or not labels.any(axis=1).all():
            raise ModelFormatError("has kinds of nodes that occur twice or have no label")
        return found
