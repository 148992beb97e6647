"""Graphs (plain arrays, or networkx graphs) and constraints as users give them.

Errors are ValueErrors that name graph, node, edge.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from partwise.models.constraints import check_entries, label_mask
from partwise.models.labels import Targets, sorted_labels
from partwise.models.readers import Sequences, as_list, length_of
from partwise.support.arrays import Booleans, Floats, Ints
from partwise.support.checks import check_sample_weight


class GraphParts(NamedTuple):
    """One graph as it was given; names: the nodes of a networkx graph."""

    nodes: Any
    edges: object
    rows: Any = None
    types: Any = None
    names: list[Hashable] | None = None


def _networkx_parts(
    graph: Any, i: int, directed: bool, node_key: str, edge_key: str | None, type_key: str | None
) -> GraphParts:
    if directed and not graph.is_directed():
        raise ValueError(f"X: graph {i} is undirected, its edges have no first node: give directed=False")
    names = list(graph.nodes)
    number = {name: v for v, name in enumerate(names)}
    for name in names:
        if node_key not in graph.nodes[name]:
            raise ValueError(f"X: graph {i}, node {name!r} has no attribute {node_key!r}")
    nodes: Any = [graph.nodes[name][node_key] for name in names]
    pairs, columns = [], {key: list[object]() for key in (edge_key, type_key) if key is not None}
    for first, second, data in graph.edges(data=True):
        pairs.append((number[first], number[second]))
        for key, values in columns.items():
            if key not in data:
                raise ValueError(f"X: graph {i}, edge {(first, second)!r} has no attribute {key!r}")
            values.append(data[key])
    if nodes and not sparse.issparse(nodes[0]) and hasattr(nodes[0], "shape"):
        try:
            nodes = np.array(nodes)
        except ValueError:
            raise ValueError(f"X: graph {i} has nodes with different numbers of features") from None
    rows, types = (None if key is None else columns[key] for key in (edge_key, type_key))
    return GraphParts(nodes, pairs, rows, types, names)


@dataclass(frozen=True)
class Graphs:
    """Graphs to read; `names` are the nodes of networkx graphs, else None."""

    nodes: Sequences
    edges: list[Ints]
    edge_rows: Sequences | None
    types: list[list[Hashable]] | None
    names: list[list[Hashable] | None]

    @classmethod
    def of(cls, X: object, directed: bool, node_key: str, edge_key: str | None, type_key: str | None) -> Graphs:
        given = as_list(X, "X must be a list of graphs", single=isinstance(X, tuple) or is_networkx(X))
        keys = (directed, node_key, edge_key, type_key)
        parts = [_networkx_parts(g, i, *keys) if is_networkx(g) else _plain_parts(g, i) for i, g in enumerate(given)]
        numbers = range(len(parts))
        edges = [_pairs(part.edges, length_of(part.nodes), i) for i, part in enumerate(parts)]
        rows = _per_edge([part.rows for part in parts], edges, "features of edges")
        types = _per_edge([part.types for part in parts], edges, "types of edges")
        return cls(
            Sequences([part.nodes for part in parts], numbers, "graph", "node"),
            edges,
            None if rows is None else Sequences(rows, numbers, "graph", "edge"),
            None if types is None else [[t.item() if isinstance(t, np.generic) else t for t in own] for own in types],
            [part.names for part in parts],
        )

    @property
    def numbers(self) -> Sequence[int]:
        return self.nodes.numbers

    @property
    def edge_counts(self) -> Ints:
        return np.array([len(pairs) for pairs in self.edges], dtype=np.int64)

    @property
    def pairs(self) -> Ints:
        """The nodes of all edges, numbered within their graph."""
        return np.concatenate([np.empty((0, 2), dtype=np.int64), *self.edges])

    def take(self, indices: Ints) -> Graphs:
        """Return some of the graphs, which keep their numbers."""
        chosen = indices.tolist()
        return Graphs(
            self.nodes.take(indices),
            [self.edges[i] for i in chosen],
            None if self.edge_rows is None else self.edge_rows.take(indices),
            None if self.types is None else [self.types[i] for i in chosen],
            [self.names[i] for i in chosen],
        )

    def node_names(self, i: int) -> Sequence[Hashable]:
        """Return the nodes of a graph as the user calls them."""
        names = self.names[i]
        return range(length_of(self.nodes.items[i])) if names is None else names

    def targets(self, y: object) -> Targets:
        """Labels in the order of the nodes, given as a list per graph or a dict by node."""
        items = as_list(y, "y must be a list with the labels of each graph")
        if len(items) != len(self.edges):
            raise ValueError(f"X has {len(self.edges)} graphs but y has {len(items)}")
        return Targets([self._in_order(each, i) for i, each in enumerate(items)], self.numbers, "graph", "node")

    def _in_order(self, labels: object, i: int) -> object:
        if not isinstance(labels, dict):
            return labels
        names = self.node_names(i)
        for name in names:
            if name not in labels:
                raise ValueError(f"y: graph {self.numbers[i]} has no value for node {name!r}")
        if len(labels) != len(names):
            raise ValueError(f"y: graph {self.numbers[i]} has values for nodes that it does not have")
        return [labels[name] for name in names]

    def labelled(self, y: object, sample_weight: object) -> tuple[Graphs, Targets, Floats | None]:
        """Return the graphs of positive weight, their labels and weights; ValueError for a graph without nodes."""
        graphs, lengths, targets = self, self.nodes.lengths(), self.targets(y)
        targets.check(lengths)
        weight = check_sample_weight(sample_weight, len(self.edges), "graph")
        if weight is not None and not weight.all():
            keep = np.flatnonzero(weight)
            graphs, targets, lengths, weight = self.take(keep), targets.take(keep), lengths[keep], weight[keep]
        if not lengths.all():
            number = graphs.numbers[int(np.flatnonzero(lengths == 0)[0])]
            raise ValueError(f"graph {number} has no nodes: leave it out")
        return graphs, targets, weight


def is_networkx(item: object) -> bool:
    """Return whether this is a networkx graph; networkx need not be installed."""
    return hasattr(item, "is_directed") and hasattr(item, "adjacency") and hasattr(item, "nodes")


def distinct_types(types: Iterable[Sequence[Hashable]]) -> list[Hashable]:
    """Return the distinct types of edges, in order."""
    try:
        found = set[Hashable]().union(*types)
    except TypeError:
        raise ValueError("X: types of edges must be hashable, as strings and numbers are") from None
    if any(each is None or each != each for each in found):
        raise ValueError("X: the type of an edge is missing (None or NaN)")
    return cast(list[Hashable], sorted_labels(found).tolist())


def _plain_parts(item: object, i: int) -> GraphParts:
    if not isinstance(item, (tuple, list)) or not 2 <= len(item) <= 4:
        forms = "(nodes, edges), (nodes, edges, edge features) or (nodes, edges, edge features, edge types)"
        raise ValueError(f"X: graph {i} must be {forms}, or a networkx graph; got {type(item).__name__}")
    nodes = item[0]
    if isinstance(nodes, (str, bytes, dict)) or not (isinstance(nodes, Sized) or sparse.issparse(nodes)):
        raise ValueError(f"X: graph {i} must have a list or a 2-D array of nodes, got {type(nodes).__name__}")
    return GraphParts(*item)


def _per_edge(values: list[Any], edges: list[Ints], what: str) -> list[Any] | None:
    """Return one value per edge of each graph; None if no graph has values."""
    if not any(each is not None and length_of(each) for each in values):
        return None
    for i, (each, pairs) in enumerate(zip(values, edges, strict=True)):
        n = 0 if each is None else length_of(each)
        if n != len(pairs):
            raise ValueError(f"X: graph {i} has {len(pairs)} edges but {n} {what}")
    return [[] if each is None else each for each in values]


def _pairs(edges: object, n_nodes: int, i: int) -> Ints:
    try:
        array = np.asarray(edges)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if not array.size:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(f"X: graph {i}: edges must be pairs of numbers of nodes, an integer array of shape (m, 2)")
    pairs = np.ascontiguousarray(array, dtype=np.int64)
    for bad, what in (
        (((pairs < 0) | (pairs >= n_nodes)).any(axis=1), f"names a node that is not in [0, {n_nodes})"),
        (pairs[:, 0] == pairs[:, 1], "joins a node to itself"),
    ):
        if bad.any():
            k = int(np.argmax(bad))
            raise ValueError(f"X: graph {i}, edge {k} {tuple(pairs[k].tolist())} {what}")
    return pairs


def node_masks(allowed: object, fixed: object, graphs: Graphs, classes: list[object]) -> list[Booleans | None]:
    """Return a mask of shape (nodes, labels) for each graph, or None for no constraint."""
    index = {label: k for k, label in enumerate(classes)}
    masks: list[Booleans | None] = [None] * len(graphs.edges)
    for name, given in (("allowed", allowed), ("fixed", fixed)):
        for i, value in enumerate(() if given is None else check_entries(given, len(masks), "graphs", name)):
            if value is None:
                continue
            where, names = f"{name}: graph {graphs.numbers[i]}", graphs.node_names(i)
            if isinstance(value, dict):
                known = set(names)
                unknown = [node for node in value if node not in known]
                if unknown:
                    raise ValueError(f"{where} has no node {unknown[0]!r}")
                by_node = {node: [label] for node, label in value.items()} if name == "fixed" else value
                value = [by_node.get(node) for node in names]
            elif name == "fixed":
                raise ValueError(f"{where} must have None or a dict {{node: label}}, got {type(value).__name__}")
            mask = label_mask(value, index, where, "node", names, "an array, a list or a dict")
            before = masks[i]
            masks[i] = mask if before is None else before & mask
    return masks
