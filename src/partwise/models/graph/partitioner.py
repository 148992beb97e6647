"""Graphs with labels of their nodes from blocks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.models.encoded import EncodedTables, Kind, Whole, row_columns, row_kinds, rows_of
from partwise.models.features import Rows
from partwise.models.graph.features import GraphRows
from partwise.models.graph.inputs import Graphs, labelled_graphs
from partwise.models.graph.kinds import KindCounts
from partwise.models.labels import check_distinct, sorted_labels
from partwise.models.partition import AttributeCounts, ChangedData, Partitioner
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.model_files.parts import ModelParts
    from partwise.models.graph.model import GraphModel


class GraphPartitioner(Partitioner):
    """Learns a `GraphModel`."""

    def __init__(self, model: GraphModel) -> None:
        self.model = model
        self._labels: set[Any] = set()
        self._nodes, self._edges = AttributeCounts(), AttributeCounts()
        self._types: list[Any] | None = None
        self._given: tuple[bool, bool] | None = None  # whether edges have features, and types
        self._kinds: KindCounts | None = None

    def look(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> None:
        graphs, targets, _ = self._read(X, y, sample_weight)
        self._labels.update(targets.classes().tolist())
        check_distinct(self._labels)
        self._nodes.look(self.model.reader_for(graphs.nodes), graphs.nodes, n_jobs)
        n_edges = sum(map(len, graphs.edges))
        if graphs.edge_rows is not None:
            self._edges.look(self.model.reader_for(graphs.edge_rows), graphs.edge_rows, n_jobs)
        if graphs.types is not None:
            self._types = self.model.distinct_types([*graphs.types, self._types or []])
        if n_edges:
            own = graphs.edge_rows is not None, graphs.types is not None
            if self._given not in (None, own):
                raise ValueError("X: edges of some blocks have features or types, and those of others have none")
            self._given = own

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Graphs, Any, Floats | None]:
        return labelled_graphs(self.model.graphs_of(X), y, sample_weight)

    def settle(self) -> None:
        model = self.model
        model.use_labels(sorted_labels(self._labels))
        model.reader = self._nodes.settle(1)
        if not model.reader.n_attributes:
            raise ValueError("X: no node has an attribute")
        model.edge_reader = None if self._edges.reader is None else self._edges.settle(1)
        model.types, model.kinds = self._types, None
        if model.kind_features is not None:
            self._kinds = KindCounts(model.picked(), model.n_labels)

    def encode(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> EncodedTables:
        model = self.model
        graphs, targets, weight = self._read(X, y, sample_weight)
        labels = targets.encode(model.classes)
        nodes = model.reader.read(graphs.nodes)
        features = None
        if model.edge_reader is not None:
            features = self._edges.stored(model.edge_rows_of(graphs))
        if (labels < 0).any() or nodes.unknown[0] or (features is not None and features.unknown[0]):
            raise ChangedData
        if self._kinds is not None:
            self._kinds.add(nodes, labels)
        counts = np.array([len(pairs) for pairs in graphs.edges], dtype=np.int64)
        edges = np.concatenate(graphs.edges)
        lengths, columns = row_columns("nodes", self._nodes.compact(nodes))
        columns |= {"nodes/labels": labels, "edges/pairs": edges, "edges/types": model.type_numbers(graphs, len(edges))}
        lengths["edges"] = counts
        if features is not None:
            more = row_columns("edges", Rows(counts, features.n_attributes, features.table))
            lengths |= more[0]
            columns |= more[1]
        model.refuse_wide(graph_rows(model, EncodedTables(lengths, columns, counts)), graphs.numbers)
        return EncodedTables(lengths, columns, entries_of(model, lengths, columns), weight)

    def n_slots(self, encoded: EncodedTables) -> int:
        return self.model.batch_of(graph_rows(self.model, encoded)).n_slots

    def finish(self) -> None:
        if self._kinds is not None:
            self.model.kinds = self._kinds.kinds()


def entries_of(model: GraphModel, lengths: Any, columns: Any) -> Ints:
    """What graphs take once they are open: rows of attributes, and a table of labels for nodes and pairs of nodes.

    Those of edges are written out for both directions, with numbers of their types.
    """
    n = model.n_labels
    pairs = 2 * n * n if model.edge_reader is not None or model.untied else n
    found: Ints = lengths["nodes"] * n + lengths["edges"] * pairs
    for name, copies in (("nodes", 1), ("edges", 3)):
        if f"{name}/table" in columns:
            found = found + copies * lengths[name] * columns[f"{name}/table"].shape[1]
        elif f"{name}-entries" in lengths:
            found = found + copies * lengths[f"{name}-entries"]
    return found


def read_encoded(model: GraphModel, parts: ModelParts) -> EncodedTables:
    """From a file, checked."""
    tables, kinds = row_kinds("nodes", parts, model.reader.n_attributes)
    kinds["nodes/labels"] = Whole(0, model.n_labels)
    kinds |= {"edges/pairs": Whole(0, 1 << 40, 2), "edges/types": Whole(0, model.n_types)}
    more: tuple[list[str], dict[str, Kind]] = (["edges"], {})
    if model.edge_reader is not None:
        more = row_kinds("edges", parts, model.edge_reader.n_attributes)
    found = EncodedTables.read(parts, [*tables, *more[0]], {**kinds, **more[1]})
    lengths = found.lengths
    pairs = found.columns["edges/pairs"]
    n = np.repeat(lengths["nodes"], lengths["edges"])
    if not lengths["nodes"].all() or (pairs >= n[:, np.newaxis]).any() or (pairs[:, 0] == pairs[:, 1]).any():
        raise ModelFormatError("has a graph without nodes, or edges of other nodes than it has")
    return EncodedTables(lengths, found.columns, entries_of(model, lengths, found.columns), found.weight)


def graph_rows(model: GraphModel, encoded: EncodedTables) -> GraphRows:
    """Encoded graphs as the model takes them."""
    nodes = rows_of("nodes", encoded, model.reader.n_attributes)
    features = None if model.edge_reader is None else rows_of("edges", encoded, model.edge_reader.n_attributes)
    return model.rows_from(
        nodes, encoded.lengths["edges"], encoded.columns["edges/pairs"], encoded.columns["edges/types"], features
    )
