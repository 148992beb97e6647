"""What a model of graphs knows and weighs: labels, attributes, types of edges, and the weights by name and in files."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import decode_labels, encode_labels
from partwise.model_files.values import encode as encode_value
from partwise.models.base import Model
from partwise.models.files import coefficient_arrays, padded, read_coefficients, unpadded
from partwise.models.graph.kinds import Kinds
from partwise.models.graph.saved import read_reader, read_types
from partwise.models.inspection import TopFeatures, choose_kept, counts_of, largest
from partwise.models.labels import encode_flat, label_array
from partwise.models.readers import Reader
from partwise.structures import padded_width
from partwise.support.arrays import Floats, Ints


class GraphWeights(Model):
    """The half of `GraphModel` that is about weights."""

    directed: bool
    classes: NDArray[Any]
    reader: Reader
    edge_reader: Reader | None
    types: list[Any] | None  # None: edges have no types
    kinds: Kinds | None

    @property
    def n_labels(self) -> int:
        return len(self.classes)

    @property
    def n_types(self) -> int:
        return 1 if self.types is None else len(self.types)

    @property
    def n_edge_attributes(self) -> int:
        """Of one type: its features, and one that is always 1."""
        return 1 if self.edge_reader is None else self.edge_reader.n_attributes + 1

    @property
    def n_node_attributes(self) -> int:
        return self.reader.n_attributes + 1

    def carried(self, old: Self) -> Floats | None:
        """Weights of the same attributes, labels and types."""
        nodes = self.reader.numbers_in(old.reader)
        if nodes is None or (self.edge_reader is None) != (old.edge_reader is None) or self.directed != old.directed:
            return None
        edges: Ints | None = np.empty(0, dtype=np.int64)
        if self.edge_reader is not None and old.edge_reader is not None:
            edges = self.edge_reader.numbers_in(old.edge_reader)
        if edges is None or (self.types is None) != (old.types is None):
            return None
        own_nodes, own_edges = old.tables()
        labels = encode_flat(self.classes.tolist(), old.classes)
        types = np.zeros(1, dtype=np.int64)
        if self.types is not None and old.types is not None:
            types = encode_flat(self.types, label_array(old.types))
        nodes = np.append(nodes, old.n_node_attributes - 1)
        edges = np.append(edges, old.n_edge_attributes - 1)
        return np.concatenate(
            [
                padded(_taken(own_nodes, nodes, labels)),
                padded(_taken(own_edges, types, edges, labels, labels)),
            ]
        )

    # weights

    def tables(self) -> tuple[Floats, Floats]:
        """Weights by (attribute, label) and by (type, edge attribute, label, label), without padding."""
        cut = self.n_node_attributes * padded_width(self.n_labels)
        nodes = unpadded(self.weights[:cut], self.n_node_attributes, self.n_labels)
        shape = (self.n_types, self.n_edge_attributes, self.n_labels, self.n_labels)
        return nodes, unpadded(self.weights[cut:], *shape)

    def node_name(self, attribute: int) -> Any:
        """None for the attribute that is always 1."""
        return None if attribute == self.reader.n_attributes else self.reader.name(attribute)

    def edge_name(self, kind: int, attribute: int) -> Any:
        """The type and the attribute of an edge, as far as there are some; None for the type that all edges have."""
        plain = self.edge_reader is None or attribute == self.edge_reader.n_attributes
        name = None if plain or self.edge_reader is None else self.edge_reader.name(attribute)
        if self.types is None:
            return name
        return self.types[kind] if name is None else (self.types[kind], name)

    # inspection

    def top_features(self, n: int = 10) -> TopFeatures:
        """The largest weights of every label, and of every pair of labels of an edge's nodes."""
        nodes, edges = self.tables()
        classes = self.classes.tolist()
        ids = np.arange(len(nodes))
        labels = {label: largest(self.node_name, ids, nodes[:, a], n) for a, label in enumerate(classes)}
        flat = edges.reshape(-1, self.n_labels, self.n_labels)
        ids = np.arange(len(flat))
        pairs: dict[tuple[Any, ...], Any] = {}
        for a, first in enumerate(classes):
            for b, second in enumerate(classes):
                rows = largest(lambda k: self.edge_name(*divmod(k, self.n_edge_attributes)), ids, flat[:, a, b], n)
                if rows:
                    pairs[first, second] = rows
        return TopFeatures(labels, dict(sorted(pairs.items(), key=lambda item: -abs(item[1][0][1]))))

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[Self, tuple[int, int, float]]:
        """Small weights are zero; files hold nonzero weights alone where most are zero."""
        tables = self.tables()
        values = np.concatenate([table.ravel() for table in tables])
        kept = choose_kept(values, threshold, keep)
        smaller = np.where(kept, values, 0.0)
        cut = tables[0].size
        runs = [padded(smaller[:cut].reshape(tables[0].shape)), padded(smaller[cut:].reshape(tables[1].shape))]
        return self.with_weights(np.concatenate(runs)), counts_of(values, kept)

    # model files

    def to_parts(self, parts: ModelParts) -> None:
        nodes, edges = self.tables()
        parts.settings["labels"] = encode_labels(self.classes)
        if self.types is not None:
            parts.settings["types"] = [encode_value(each, "the type of an edge") for each in self.types]
        parts.add("reader", self.reader.to_parts())
        if self.edge_reader is not None:
            parts.add("edge_reader", self.edge_reader.to_parts())
        if self.kinds is not None:
            parts.add("kinds", self.kinds.to_parts())
        for name, table in (("nodes", nodes), ("edges", edges.reshape(-1, self.n_labels**2))):
            parts.add(name, ModelParts("table", {"n_features": table.shape[1]}, coefficient_arrays(table)))

    def from_parts(self, parts: ModelParts) -> Self:
        self.classes = decode_labels(parts.settings.get("labels"))
        self.reader = read_reader(parts.part("reader"))
        self.edge_reader = read_reader(parts.part("edge_reader")) if parts.has("edge_reader") else None
        self.types = read_types(parts.settings["types"]) if parts.has("types") else None
        self.kinds = None
        if parts.has("kinds"):
            self.kinds = Kinds.from_parts(parts.part("kinds"), self.reader.n_attributes, self.n_labels)
        nodes = read_coefficients(parts.part("nodes"), self.n_node_attributes)
        edges = read_coefficients(parts.part("edges"), self.n_types * self.n_edge_attributes)
        if nodes.shape[1] != self.n_labels or edges.shape[1] != self.n_labels**2:
            raise ModelFormatError(f"has weights for another number of labels than {self.n_labels}")
        table = edges.reshape(-1, self.n_labels, self.n_labels)
        self._weights = np.concatenate([padded(nodes), padded(table)])
        return self


def _taken(table: Floats, *numbers: Ints) -> Floats:
    """Entries of these numbers along each axis, 0 where a number is -1."""
    out = table
    for axis, own in enumerate(numbers):
        out = np.take(out, np.maximum(own, 0), axis=axis)
        shape = [1] * out.ndim
        shape[axis] = len(own)
        out = out * (own >= 0).reshape(shape)
    return out
