"""Graphs as users give them: plain arrays, or networkx graphs. Errors are ValueErrors that name graph, node, edge."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from partwise.models.labels import Targets
from partwise.models.readers import Sequences, length_of
from partwise.support.arrays import Floats, Ints
from partwise.support.checks import check_sample_weight


class Nodes(Sequences):
    """Rows of nodes."""

    one: ClassVar[str] = "graph"
    row: ClassVar[str] = "node"


class EdgeRows(Sequences):
    """Rows of edges."""

    one: ClassVar[str] = "graph"
    row: ClassVar[str] = "edge"


class NodeTargets(Targets):
    """Labels of nodes."""

    one: ClassVar[str] = "graph"
    row: ClassVar[str] = "node"


@dataclass(frozen=True)
class Keys:
    """Attributes of networkx graphs: features of nodes, and those and types of edges (None: there are none)."""

    node: str
    edge: str | None
    type: str | None


@dataclass(frozen=True)
class Graphs:
    """Graphs to read; `numbers` are those of the caller's list, `names` the nodes of networkx graphs, else None."""

    nodes: Nodes
    edges: list[Ints]
    edge_rows: EdgeRows | None
    types: list[list[Any]] | None
    names: list[list[Any] | None]

    @property
    def numbers(self) -> Sequence[int]:
        return self.nodes.numbers

    @classmethod
    def of(cls, X: Any, keys: Keys, directed: bool) -> Graphs:
        """All of `X`."""
        if isinstance(X, (str, bytes, dict, tuple)) or sparse.issparse(X) or not isinstance(X, Sized) or is_networkx(X):
            raise ValueError(f"X must be a list of graphs, got {type(X).__name__}")
        items: list[Any] = list(X)  # type: ignore[call-overload]
        parts = [_networkx(g, i, keys, directed) if is_networkx(g) else _plain(g, i) for i, g in enumerate(items)]
        numbers = range(len(parts))
        edges = [_edges(part[1], length_of(part[0]), i) for i, part in enumerate(parts)]
        found: list[list[Any] | None] = []
        for place, what in ((2, "features of edges"), (3, "types of edges")):
            own = [part[place] for part in parts]
            if not any(each is not None and length_of(each) for each in own):
                found.append(None)
                continue
            for i, (each, pairs) in enumerate(zip(own, edges, strict=True)):
                n = 0 if each is None else length_of(each)
                if n != len(pairs):
                    raise ValueError(f"X: graph {i} has {len(pairs)} edges but {n} {what}")
            found.append([[] if each is None else each for each in own])
        rows, types = found
        return cls(
            Nodes([part[0] for part in parts], numbers),
            edges,
            None if rows is None else EdgeRows(rows, numbers),
            None if types is None else [_plain_types(each) for each in types],
            [part[4] for part in parts],
        )

    def take(self, indices: Ints) -> Graphs:
        """Some of them, under their own numbers."""
        chosen = indices.tolist()
        nodes = self.nodes.take(indices)
        rows = None if self.edge_rows is None else self.edge_rows.take(indices)
        return Graphs(
            Nodes(nodes.items, nodes.numbers),
            [self.edges[i] for i in chosen],
            None if rows is None else EdgeRows(rows.items, rows.numbers),
            None if self.types is None else [self.types[i] for i in chosen],
            [self.names[i] for i in chosen],
        )


def is_networkx(item: Any) -> bool:
    """Whether this is a networkx graph; networkx need not be there."""
    return hasattr(item, "is_directed") and hasattr(item, "adjacency") and hasattr(item, "nodes")


def targets_of(y: Any, graphs: Graphs) -> NodeTargets:
    """Labels in the order of nodes: a list per graph, or a dict by node."""
    if isinstance(y, (str, bytes, dict)) or not isinstance(y, Sized):
        raise ValueError(f"y must be a list with the labels of each graph, got {type(y).__name__}")
    items: list[Any] = list(y)  # type: ignore[call-overload]
    if len(items) != len(graphs.edges):
        raise ValueError(f"X has {len(graphs.edges)} graphs but y has {len(items)}")
    return NodeTargets([in_order(each, graphs, i, "y") for i, each in enumerate(items)], graphs.numbers)


def labelled_graphs(graphs: Graphs, y: Any, sample_weight: Any) -> tuple[Graphs, Targets, Floats | None]:
    """Graphs to learn from, their labels and weights: without those of weight zero; one without nodes is refused."""
    lengths = graphs.nodes.lengths()
    targets: Targets = targets_of(y, graphs)
    targets.check_count()
    targets.check(lengths)
    weight = check_sample_weight(sample_weight, len(graphs.edges), "graph")
    if weight is not None and not weight.all():
        keep = np.flatnonzero(weight)
        graphs, targets, lengths, weight = graphs.take(keep), targets.take(keep), lengths[keep], weight[keep]
    if not lengths.all():
        number = graphs.numbers[int(np.flatnonzero(lengths == 0)[0])]
        raise ValueError(f"graph {number} has no nodes: leave it out")
    return graphs, targets, weight


def in_order(values: Any, graphs: Graphs, i: int, what: str) -> Any:
    """Values of a graph's nodes, a dict by node put in order; one that has no value for a node is refused."""
    if not isinstance(values, dict):
        return values
    names = node_names(graphs, i)
    missing = [name for name in names if name not in values]
    if missing or len(values) != len(names):
        odd = f"no value for node {missing[0]!r}" if missing else "values for nodes that it does not have"
        raise ValueError(f"{what}: graph {graphs.numbers[i]} has {odd}")
    return [values[name] for name in names]


def node_names(graphs: Graphs, i: int) -> list[Any]:
    """Nodes as the user calls them."""
    names = graphs.names[i]
    return list(range(length_of(graphs.nodes.items[i]))) if names is None else names


Parts = tuple[Any, Any, Any, Any, list[Any] | None]


def _plain(item: Any, i: int) -> Parts:
    if not isinstance(item, (tuple, list)) or not 2 <= len(item) <= 4:
        raise ValueError(
            f"X: graph {i} must be (nodes, edges), (nodes, edges, edge features) or "
            f"(nodes, edges, edge features, edge types), or a networkx graph; got {type(item).__name__}"
        )
    nodes, edges, rows, types = (*item, None, None)[:4]
    if isinstance(nodes, (str, bytes, dict)) or not (isinstance(nodes, Sized) or sparse.issparse(nodes)):
        raise ValueError(f"X: graph {i} must have a list or a 2-D array of nodes, got {type(nodes).__name__}")
    return nodes, edges, rows, types, None


def _networkx(graph: Any, i: int, keys: Keys, directed: bool) -> Parts:
    if directed and not graph.is_directed():
        raise ValueError(f"X: graph {i} is undirected, its edges have no first node: give directed=False")
    names = list(graph.nodes)
    number = {name: v for v, name in enumerate(names)}
    for name in names:
        if keys.node not in graph.nodes[name]:
            raise ValueError(f"X: graph {i}, node {name!r} has no attribute {keys.node!r}")
    nodes: Any = [graph.nodes[name][keys.node] for name in names]
    pairs: list[tuple[int, int]] = []
    rows: list[Any] = []
    types: list[Any] = []
    for first, second, data in graph.edges(data=True):
        pairs.append((number[first], number[second]))
        for key, values in ((keys.edge, rows), (keys.type, types)):
            if key is not None and key not in data:
                raise ValueError(f"X: graph {i}, edge {(first, second)!r} has no attribute {key!r}")
            if key is not None:
                values.append(data[key])
    if nodes and not sparse.issparse(nodes[0]) and hasattr(nodes[0], "shape"):
        try:
            nodes = np.array(nodes)
        except ValueError:
            raise ValueError(f"X: graph {i} has nodes with different numbers of features") from None
    return nodes, pairs, rows if keys.edge else None, types if keys.type else None, names


def _edges(edges: Any, n_nodes: int, i: int) -> Ints:
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


def _plain_types(types: Any) -> list[Any]:
    return [each.item() if isinstance(each, np.generic) else each for each in types]
