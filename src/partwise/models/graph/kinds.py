"""Kinds of nodes, by which of some attributes they have, and the labels that each was seen with in training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.models.features import Rows
from partwise.support.arrays import Booleans, Ints, pointers


@dataclass(frozen=True)
class Kinds:
    """picked: attributes that say what kind a node is. labels: (kinds, labels) that were seen together."""

    picked: Booleans
    keys: list[tuple[int, ...]]
    labels: Booleans

    @classmethod
    def learn(cls, picked: Booleans, rows: Rows, labels: Ints, n_labels: int) -> Kinds:
        """From training nodes and their labels."""
        found = KindCounts(picked, n_labels)
        found.add(rows, labels)
        return found.kinds()

    def allowed(self, rows: Rows) -> Booleans:
        """(nodes, labels): those of the node's kind; all for a kind that training did not have."""
        number = {key: k for k, key in enumerate(self.keys)}
        own = np.array([number.get(key, -1) for key in _keys(self.picked, rows)], dtype=np.int64)
        out: Booleans = np.where(own[:, np.newaxis] < 0, True, self.labels[own])
        return out

    def to_parts(self) -> ModelParts:
        lengths = [len(key) for key in self.keys]
        flat = np.array([a for key in self.keys for a in key], dtype=np.int64)
        arrays = {"picked": self.picked.astype(np.uint8), "labels": self.labels.astype(np.uint8)}
        return ModelParts("kinds", {}, {**arrays, "attributes": flat, "offsets": pointers(lengths)})

    @classmethod
    def from_parts(cls, parts: ModelParts, n_attributes: int, n_labels: int) -> Kinds:
        picked = parts.mask("picked", n_attributes)
        flat = parts.ints("attributes", None, low=0, high=n_attributes)
        labels = parts.mask("labels", None, n_labels)
        ends = parts.pointers("offsets", len(labels), len(flat)).tolist()
        keys = [tuple(flat[a:b].tolist()) for a, b in zip(ends, ends[1:], strict=False)]
        if len(set(keys)) != len(keys) or not labels.any(axis=1).all():
            raise ModelFormatError("has kinds of nodes that occur twice or have no label")
        return cls(picked, keys, labels)


class KindCounts:
    """Kinds over blocks of nodes."""

    def __init__(self, picked: Booleans, n_labels: int) -> None:
        self._picked, self._n_labels = picked, n_labels
        self._seen: dict[tuple[int, ...], set[int]] = {}

    def add(self, rows: Rows, labels: Ints) -> None:
        """A block's nodes with their labels."""
        for key, label in zip(_keys(self._picked, rows), labels.tolist(), strict=True):
            self._seen.setdefault(key, set()).add(label)

    def kinds(self) -> Kinds:
        table = np.zeros((len(self._seen), self._n_labels), dtype=bool)
        for k, labels in enumerate(self._seen.values()):
            table[k, sorted(labels)] = True
        return Kinds(self._picked, list(self._seen), table)


def _keys(picked: Booleans, rows: Rows) -> list[tuple[int, ...]]:
    """The picked attributes that each node has, ascending; what has the value 0 is not in the table."""
    table = rows.attributes()
    ids = np.maximum(table.attributes, 0)
    kept = (table.attributes >= 0) & (ids < len(picked)) & picked[np.minimum(ids, len(picked) - 1)]
    owner = np.repeat(np.arange(table.n_rows), np.diff(table.row_ptr))[kept]
    ends = pointers(np.bincount(owner, minlength=table.n_rows)).tolist()
    flat = table.attributes[kept].tolist()
    return [tuple(sorted(set(flat[a:b]))) for a, b in zip(ends, ends[1:], strict=False)]
