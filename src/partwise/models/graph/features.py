"""Structures and features of graphs, and kinds of nodes.

Weights: one per (attribute of a node, label), then one per (type of an edge, attribute of an edge, label of its first
node, label of its second). The last attribute of every node, and of every edge, is 1. Edges without features share a
table of slots per type; else each edge has its own, and its attributes have numbers that depend on its type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partwise.features import Attributes, LinearMap, Segment, SharedSegment
from partwise.features.maps import row_segment
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.models.features import Rows
from partwise.models.labels import split
from partwise.problem import Batch
from partwise.structures import Graph, padded_width
from partwise.support.arrays import Booleans, Ints, pointers


@dataclass(frozen=True)
class GraphRows:
    """All graphs, concatenated: their nodes, and edges (two numbers of nodes each) with types and features."""

    nodes: Rows
    edge_counts: Ints
    edges: Ints
    types: Ints
    features: Rows | None
    n_types: int
    both: bool  # edges count in both directions
    allowed: Booleans | None  # (nodes, labels); None: nodes may have all labels

    @property
    def directions(self) -> int:
        return 2 if self.both else 1

    def cliques(self) -> Ints:
        """Return pairs of nodes; where edges count in both directions, each pair is followed by its reverse."""
        if not self.both:
            return self.edges
        return np.stack([self.edges, self.edges[:, ::-1]], axis=1).reshape(-1, 2)

    def edge_attributes(self) -> Attributes:
        """Return the attributes of edges, once per direction; each type of edges has numbers of its own."""
        rows = self.features
        if rows is None:
            nothing = Attributes(np.zeros(len(self.edges) + 1, dtype=np.int64), np.empty(0, dtype=np.int64), 0)
            rows = Rows(self.edge_counts, 0, nothing)
        own = rows.with_ones().attributes()
        shift = np.repeat(self.types, np.diff(own.row_ptr)) * own.num_attributes
        shifted = np.where(own.attributes < 0, -1, own.attributes + shift)
        table = Attributes(own.row_ptr, shifted, own.num_attributes * self.n_types, own.values)
        return table.take(np.repeat(np.arange(table.n_rows), 2)) if self.both else table

    def batch(self, n_labels: int, memory_limit: float, *, tied: bool, once: bool = False) -> Batch:
        """Return structure and features. tied: edges have no features and share one table of slots per type."""
        lengths, width = self.nodes.lengths, padded_width(n_labels)
        counts, size, n_types = self.edge_counts * self.directions, n_labels * width, self.n_types
        clique_ptr, members = pointers(counts), self.cliques()
        types = np.repeat(self.types, self.directions)
        owner = np.repeat(np.arange(len(counts)), counts)
        tables = (2 * np.arange(n_types + 1), np.full(2 * n_types, n_labels)) if tied else (None, None)
        structure = Graph(
            pointers(lengths),
            np.full(self.nodes.n_rows, n_labels, dtype=np.int64),
            clique_ptr,
            2 * np.arange(len(members) + 1),
            np.ascontiguousarray(members).ravel(),
            types if tied else np.arange(len(members)) - clique_ptr[owner],
            memory_limit,
            *tables,
        )
        segments: list[Segment] = [row_segment(self.nodes.table, structure.vertex_ptr, n_labels, width, None, once)]
        if tied:
            uses = np.zeros((n_types, len(counts)), dtype=np.int64)
            np.add.at(uses, (types, owner), 1)
            segments += [SharedSegment(size, own) for own in uses]
        else:
            segments.append(row_segment(self.edge_attributes(), clique_ptr, size, size, None, once))
        if self.allowed is not None:
            for i, (start, stop) in enumerate(zip(structure.vertex_ptr, structure.vertex_ptr[1:], strict=False)):
                mask_nodes(structure, i, self.allowed[start:stop])
        return Batch(structure, LinearMap(segments))


def mask_nodes(structure: Graph, i: int, allowed: Booleans) -> None:
    """Allow the nodes of example i these labels only, (nodes, labels); ValueError if a node has no label left."""
    if allowed.all():
        return
    n, n_labels = allowed.shape
    mask = np.ones(structure.num_slots(i), dtype=np.uint8)
    mask[: n * padded_width(n_labels)].reshape(n, -1)[:, :n_labels] = allowed
    structure.set_mask(i, mask)


def check_widths(structure: Graph, numbers: Sequence[int]) -> None:
    """Raise ValueError, with its number in X, for a graph that needs more memory than the limit."""
    for i, number in enumerate(numbers):
        try:
            structure.width(i)
        except ValueError as error:
            raise ValueError(f"graph {number}: {str(error).partition(': ')[2]}") from None


class KindLabels:
    """The labels that nodes of each kind were seen with; a kind is the set of those `picked` attributes that it has."""

    def __init__(self, picked: Booleans, n_labels: int) -> None:
        self.picked, self.n_labels = picked, n_labels
        self.seen: dict[tuple[int, ...], Booleans] = {}

    def add(self, rows: Rows, labels: Ints) -> None:
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
        kept = (table.attributes >= 0) & self.picked[table.attributes]
        owner = np.repeat(np.arange(table.n_rows), np.diff(table.row_ptr))[kept]
        found = split(table.attributes[kept].tolist(), np.bincount(owner, minlength=table.n_rows))
        return [tuple(sorted(set(own))) for own in found]

    def to_parts(self) -> ModelParts:
        flat = np.array([a for kind in self.seen for a in kind], dtype=np.int64)
        labels = np.array(list(self.seen.values()), dtype=np.uint8).reshape(-1, self.n_labels)
        arrays = {"picked": self.picked.astype(np.uint8), "labels": labels}
        return ModelParts("kinds", {}, {**arrays, "attributes": flat, "offsets": pointers(list(map(len, self.seen)))})

    @classmethod
    def from_parts(cls, parts: ModelParts, n_attributes: int, n_labels: int) -> KindLabels:
        found = cls(parts.mask("picked", n_attributes), n_labels)
        flat = parts.ints("attributes", None, low=0, high=n_attributes)
        labels = parts.mask("labels", None, n_labels)
        kinds = split(flat.tolist(), np.diff(parts.pointers("offsets", len(labels), len(flat))))
        found.seen = dict(zip(map(tuple, kinds), labels, strict=True))
        if len(found.seen) != len(labels) or not labels.any(axis=1).all():
            raise ModelFormatError("has kinds of nodes that occur twice or have no label")
        return found
