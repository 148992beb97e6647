"""Graphs with labels of their nodes from blocks of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from partwise.models.encoded import Column, EncodedTables, row_columns
from partwise.models.features import Rows
from partwise.models.graph.features import KindLabels, check_widths
from partwise.models.graph.inputs import distinct_types
from partwise.models.labels import check_distinct, sorted_labels
from partwise.models.partition import AttributeCounts, ChangedData, Partitioner
from partwise.support.arrays import Ints

if TYPE_CHECKING:
    from partwise.models.graph.model import GraphModel


class GraphPartitioner(Partitioner):
    """Learns a `GraphModel`."""

    def __init__(self, model: GraphModel) -> None:
        self.model = model
        self._labels: set[Hashable] = set()
        self._nodes, self._edges = AttributeCounts(), AttributeCounts()
        self._types: list[Hashable] | None = None
        self._given: tuple[bool, bool] | None = None  # whether edges have features, and types

    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        graphs, targets, _ = self.model.graphs_of(X).labelled(y, sample_weight)
        self._labels.update(targets.classes().tolist())
        check_distinct(self._labels)
        self._nodes.add(self.model.reader_for(graphs.nodes), graphs.nodes, n_jobs)
        if graphs.edge_rows is not None:
            self._edges.add(self.model.reader_for(graphs.edge_rows), graphs.edge_rows, n_jobs)
        if graphs.types is not None:
            self._types = distinct_types([*graphs.types, self._types or []])
        if graphs.edge_counts.any():
            own = graphs.edge_rows is not None, graphs.types is not None
            if self._given not in (None, own):
                raise ValueError("X: edges of some blocks have features or types, and those of others have none")
            self._given = own

    def choose_vocabulary(self) -> None:
        model = self.model
        model.use_labels(sorted_labels(self._labels))
        model.use_readers(self._nodes.reader_of(1), None if self._edges.reader is None else self._edges.reader_of(1))
        model.types, model.kinds = self._types, None
        self._kinds: KindLabels | None = model.new_kinds()

    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables:
        model = self.model
        graphs, targets, weight = model.graphs_of(X).labelled(y, sample_weight)
        labels = targets.encode(model.classes)
        nodes, features = model.read_rows(graphs)
        if (labels < 0).any() or nodes.unknown[0] or (features is not None and features.unknown[0]):
            raise ChangedData
        if self._kinds is not None:
            self._kinds.add(nodes, labels)
        lengths, columns = row_columns("nodes", self._nodes.compact(nodes))
        columns |= {"nodes/labels": labels, "edges/pairs": graphs.pairs, "edges/types": model.type_numbers(graphs)}
        lengths["edges"] = graphs.edge_counts
        if features is not None:
            stored = self._edges.in_form(features)
            more = row_columns("edges", Rows(graphs.edge_counts, stored.n_attributes, stored.table))
            lengths |= more[0]
            columns |= more[1]
        entries = graph_entries(lengths, columns, model.n_labels, model.tied)
        encoded = EncodedTables(lengths, columns, entries, weight)
        batch = model.batch_of(model.encoded_rows(encoded), once=True)
        check_widths(batch.structure, graphs.numbers)  # type: ignore[arg-type]
        return encoded

    def n_slots(self, encoded: EncodedTables) -> int:
        return self.model.batch_of(self.model.encoded_rows(encoded)).n_slots

    def choose_features(self) -> None:
        self.model.kinds = self._kinds


def graph_entries(lengths: Mapping[str, Ints], columns: Mapping[str, Column], n_labels: int, tied: bool) -> Ints:
    """Return the memory that opened graphs take, in entries: rows of attributes, tables of nodes and edges.

    Those of edges are written out for both directions, with numbers of their types. tied: edges share tables.
    """
    found = lengths["nodes"] * n_labels + lengths["edges"] * (n_labels if tied else 2 * n_labels * n_labels)
    for name, copies in (("nodes", 1), ("edges", 3)):
        if f"{name}/table" in columns:
            found = found + copies * lengths[name] * columns[f"{name}/table"].shape[1]
        elif f"{name}-entries" in lengths:
            found = found + copies * lengths[f"{name}-entries"]
    return found
