"""Labels of the nodes of graphs: a Markov random field whose scores are linear in features of nodes and edges."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from partwise.model_files.parts import ModelParts
from partwise.model_files.values import encode as encode_value
from partwise.models.base import InputReport, Labellings, Learnt, Reading, Training
from partwise.models.costs import LabelCost, row_costs
from partwise.models.encoded import EncodedTables
from partwise.models.errors import ConstraintError
from partwise.models.features import Rows
from partwise.models.graph.constraints import node_masks, refuse_empty
from partwise.models.graph.explaining import explain_edges, explain_nodes
from partwise.models.graph.features import GraphRows, edge_tables, graph_batch, mask_nodes
from partwise.models.graph.inputs import Graphs, Keys, labelled_graphs, targets_of
from partwise.models.graph.kinds import Kinds
from partwise.models.graph.partitioner import GraphPartitioner, graph_rows, read_encoded
from partwise.models.graph.weights import GraphWeights
from partwise.models.inspection import Explanation, explanation
from partwise.models.labels import all_labels, label_lists, warn_of_many_labels
from partwise.models.readers import ColumnReader, NameReader, Reader, Sequences, input_form
from partwise.problem import Batch, LabelledBatch
from partwise.problem.batch import Gold
from partwise.structures import Graph, padded_width
from partwise.support.arrays import Booleans, Floats, Ints, pointers
from partwise.support.checks import check_choice, check_positive, check_sample_weight
from partwise.support.memory import check_weights


@dataclass(frozen=True)
class GraphSource:
    """All graphs as they were given, the rows of those with nodes, and (unknown attributes, all attributes)."""

    graphs: Graphs
    lengths: Ints
    rows: GraphRows
    unknown: tuple[int, int] = (0, 0)


class GraphModel(GraphWeights):
    """A label per node. Parameters: see `GraphLabeler`."""

    constraints: ClassVar[tuple[str, ...]] = ("allowed", "fixed")
    takes_classes: ClassVar[bool] = True
    late: ClassVar[tuple[str, ...]] = ("memory_limit", "node_key", "edge_key", "type_key")

    untied = False  # whether each edge has a table of slots of its own although it has no features

    def __init__(
        self,
        *,
        directed: bool,
        kind_features: Any,
        memory_limit: float,
        node_key: str,
        edge_key: str | None,
        type_key: str | None,
        cost: Any = None,
    ) -> None:
        self.directed = directed
        self.kind_features = kind_features
        self.memory_limit = memory_limit
        self.node_key, self.edge_key, self.type_key = node_key, edge_key, type_key
        self.label_cost = LabelCost.of(cost)
        self.check()

    def check(self) -> None:
        check_choice("directed", self.directed, (True, False))
        check_positive("memory_limit", self.memory_limit)

    # training

    def learn(self, X: Any, y: Any, sample_weight: Any, training: Training) -> Learnt:
        graphs = self.graphs_of(X)
        n_graphs = len(graphs.edges)
        if not n_graphs:
            raise ValueError("X holds no graphs")
        graphs, targets, weight = labelled_graphs(graphs, y, sample_weight)
        lengths = graphs.nodes.lengths()
        pairs = self.use_labels(all_labels(targets.classes(), training.classes))
        labels = targets.encode(self.classes)
        self.costs_of(self.classes.tolist())  # an error for those of other labels, before the work
        warn_of_many_labels(np.bincount(labels, minlength=self.n_labels), pairs, place="node")
        self.reader = _reader_for(graphs.nodes)
        nodes = self.reader.read(graphs.nodes)
        if not self.reader.n_attributes:
            raise ValueError("X: no node has an attribute")
        self.edge_reader = features = None
        if graphs.edge_rows is not None:
            self.edge_reader = _reader_for(graphs.edge_rows)
            features = self.edge_reader.read(graphs.edge_rows)
        self.types = None
        if graphs.types is not None:
            self.types = _distinct(graphs.types)
        self.kinds = None
        if self.kind_features is not None:
            self.kinds = Kinds.learn(self.picked(), nodes, labels, self.n_labels)
        rows = self._rows(graphs, nodes.compact(), features)
        batch = self._batch(rows, once=False)
        structure: Any = batch.structure
        _refuse_wide(structure, graphs.numbers)
        reading = Reading(batch, n_graphs, source=GraphSource(graphs, lengths, rows)) if weight is None else None
        shape = (self.n_labels, structure.members.tobytes(), structure.tables.tobytes())
        gold = structure.encode(labels)
        examples = LabelledBatch(batch, gold, weight, self.slot_costs(structure, gold))
        return Learnt(examples, shape, reading=reading)

    def slot_costs(self, structure: Any, gold: Gold) -> Floats | None:
        table = self.costs_of(self.classes.tolist())
        if table is None:
            return None
        width, labels = padded_width(self.n_labels), structure.decode(*gold)
        return row_costs(structure.slot_offsets(), np.diff(structure.vertex_ptr), width, labels, table)

    def picked(self) -> Booleans:
        """The attributes that `kind_features` names."""
        if isinstance(self.kind_features, (str, bytes)) or not isinstance(self.kind_features, Iterable):
            raise ValueError(f"kind_features must be None or a list, got {self.kind_features!r}")
        return self.reader.pick(self.kind_features, "kind_features")

    def graphs_of(self, X: Any) -> Graphs:
        """Graphs as they were given."""
        return Graphs.of(X, Keys(self.node_key, self.edge_key, self.type_key), self.directed)

    def _rows(self, graphs: Graphs, nodes: Rows, features: Rows | None) -> GraphRows:
        """Rows of graphs that all have nodes."""
        counts = np.array([len(pairs) for pairs in graphs.edges], dtype=np.int64)
        edges = np.concatenate(graphs.edges) if len(graphs.edges) else np.empty((0, 2), dtype=np.int64)
        return self.rows_from(nodes, counts, edges, self.type_numbers(graphs, len(edges)), features)

    def rows_from(self, nodes: Rows, counts: Ints, edges: Ints, types: Ints, features: Rows | None) -> GraphRows:
        """Nodes, and edges (so many of each graph) with their types and features."""
        allowed = None if self.kinds is None else self.kinds.allowed(nodes)
        return GraphRows(nodes.with_ones(), counts, edges, types, features, not self.directed, allowed)

    def type_numbers(self, graphs: Graphs, n_edges: int) -> Ints:
        """The numbers of the types of all edges."""
        if self.types is None:
            return np.zeros(n_edges, dtype=np.int64)
        number = {each: k for k, each in enumerate(self.types)}
        found = []
        for i, own in enumerate(graphs.types or []):
            for k, each in enumerate(own):
                if not isinstance(each, Hashable) or each not in number:
                    raise ValueError(
                        f"X: graph {graphs.numbers[i]}, edge {k}: type {each!r} was not in the training data"
                    )
                found.append(number[each])
        return np.array(found, dtype=np.int64)

    def _batch(self, rows: GraphRows, *, once: bool) -> Batch:
        tied = self.edge_reader is None and not self.untied
        return graph_batch(rows, self.n_labels, self.n_types, float(self.memory_limit), tied=tied, once=once)

    # partitions

    def use_labels(self, classes: NDArray[Any]) -> int:
        """Label nodes by these; the size of a table of pairs. ValueError if there is no choice, or too much of it."""
        self.classes = classes
        if self.n_labels < 2:
            raise ValueError(f"y holds one label only ({classes.tolist()[0]!r}): there is nothing to learn")
        pairs = self.n_labels * padded_width(self.n_labels)
        check_weights(pairs, f"a table of {self.n_labels:,} labels with those of neighbours")
        return pairs

    def feature_parameters(self) -> dict[str, Any]:
        kinds = self.kind_features if self.kind_features is None else [*self.kind_features]
        return {"directed": bool(self.directed), "kind_features": encode_value(kinds, "kind_features")}

    def partitioner(self) -> GraphPartitioner:
        return GraphPartitioner(self)

    def encoded(self, parts: ModelParts) -> EncodedTables:
        return read_encoded(self, parts)

    def labelled(self, encoded: EncodedTables, by_features: bool | None = False) -> LabelledBatch:
        batch = self._batch(graph_rows(self, encoded), once=False)
        structure: Any = batch.structure
        return LabelledBatch(batch, structure.encode(encoded.columns["nodes/labels"]), encoded.weight)

    def batch_of(self, rows: GraphRows) -> Batch:
        """Graphs to train on."""
        return self._batch(rows, once=False)

    def refuse_wide(self, rows: GraphRows, numbers: Sequence[int]) -> None:
        """ValueError for a graph beyond the memory limit, with its number."""
        _refuse_wide(self._batch(rows, once=True).structure, numbers)  # type: ignore[arg-type]

    def edge_rows_of(self, graphs: Graphs) -> Rows:
        """Features of edges; graphs without edges have none."""
        assert self.edge_reader is not None
        return _edge_features(self.edge_reader, graphs)

    @staticmethod
    def reader_for(rows: Sequences) -> Reader:
        """A reader of rows of this form, which has read nothing yet."""
        return _reader_for(rows)

    @staticmethod
    def distinct_types(types: Sequence[Sequence[Any]]) -> list[Any]:
        """Types of edges, in order."""
        return _distinct(types)

    # prediction

    def read(self, X: Any, n_jobs: int = 1) -> Reading:
        graphs = self.graphs_of(X)
        lengths = graphs.nodes.lengths()
        kept = np.flatnonzero(lengths)
        some = graphs if len(kept) == len(lengths) else graphs.take(kept)
        if some.edge_rows is not None and self.edge_reader is None:
            raise ValueError("X: edges have features, those of the training data had none")
        if some.types is not None and self.types is None:
            raise ValueError("X: edges have types, those of the training data had none")
        n_edges = sum(map(len, some.edges))
        lacks = (some.edge_rows is None and self.edge_reader is not None) or (some.types is None and self.types)
        if n_edges and lacks:
            raise ValueError("X: edges need features and types where those of the training data had some")
        nodes = self.reader.read(self.reader.sequences(some.nodes))
        features = None
        if self.edge_reader is not None:
            features = _edge_features(self.edge_reader, some)
        rows = self._rows(some, nodes, features)
        more = (0, 0) if features is None else features.unknown
        unknown = nodes.unknown[0] + more[0], nodes.unknown[1] + more[1]
        source = GraphSource(graphs, lengths, rows, unknown)
        return Reading(lambda: self._batch(rows, once=True), len(lengths), kept, source)

    def _structure(self, reading: Reading) -> Graph:
        structure: Graph = reading.batch.structure  # type: ignore[assignment]
        return structure

    def decode(self, reading: Reading, which: Ints, labellings: Labellings, n_jobs: int = 1) -> list[Any]:
        lengths, width = reading.source.rows.nodes.lengths[which], padded_width(self.n_labels)
        owner = np.repeat(np.arange(len(which)), np.diff(labellings.indptr))
        rows = labellings.slots < (lengths * width)[owner]  # those of nodes, which come first
        node, label = np.divmod(labellings.slots[rows], width)
        labels = np.empty(int(lengths.sum()), dtype=np.int64)
        labels[pointers(lengths)[owner[rows]] + node] = label
        plain = label_lists(labels, self.classes, lengths)
        return [self._by_name(reading, i, own) for i, own in zip(reading.numbers[which].tolist(), plain, strict=True)]

    def _by_name(self, reading: Reading, i: int, values: list[Any]) -> Any:
        """Values of the nodes of graph i of X: a dict for a networkx graph, else a list."""
        names = reading.source.graphs.names[i]
        return values if names is None else dict(zip(names, values, strict=True))

    def encode(self, reading: Reading, y: Any) -> tuple[Labellings, Booleans]:
        source: GraphSource = reading.source
        labels = targets_of(y, source.graphs).check(source.lengths).encode(self.classes)
        wrong = labels < 0
        labels = np.maximum(labels, 0)
        if source.rows.allowed is not None:
            wrong |= ~source.rows.allowed[np.arange(len(labels)), labels]
        possible = np.ones(reading.batch.n_examples, dtype=bool)
        possible[np.repeat(np.arange(len(possible)), source.rows.nodes.lengths)[wrong]] = False
        return Labellings(*self._structure(reading).encode(labels)), possible

    def constrain(self, reading: Reading, allowed: Any = None, fixed: Any = None) -> None:
        """`allowed` and `fixed` of `GraphLabeler`."""
        source: GraphSource = reading.source
        masks = node_masks(allowed, fixed, source.graphs, self.classes)
        structure = self._structure(reading)
        for i, number in enumerate(reading.numbers.tolist()):
            mask = masks[number]
            if mask is None:
                continue
            refuse_empty(mask, source.graphs, number)
            if source.rows.allowed is not None:
                mask = mask & source.rows.allowed[structure.vertex_ptr[i] : structure.vertex_ptr[i + 1]]
                refuse_empty(mask, source.graphs, number)
            try:
                mask_nodes(structure, i, mask)
            except ValueError as error:
                raise ConstraintError(f"graph {number}: no labelling is allowed ({error})", number) from None

    def check_reading(self, reading: Reading) -> None:
        _refuse_wide(self._structure(reading), reading.numbers.tolist())

    def left_out(self, reading: Reading, i: int) -> Any:
        return self._by_name(reading, i, [])

    def marginals(self, reading: Reading, counts: Floats, output: str = "dict") -> list[Any]:
        """Dicts {label: probability} per node, or arrays of shape (nodes, labels)."""
        check_choice("output", output, ("dict", "array"))
        structure, width = self._structure(reading), padded_width(self.n_labels)
        found = [
            counts[start : start + n * width].reshape(n, width)[:, : self.n_labels].copy()
            for start, n in zip(structure.slot_offsets().tolist(), np.diff(structure.vertex_ptr).tolist(), strict=False)
        ]
        arrays: list[Floats] = reading.spread(found, lambda: np.empty((0, self.n_labels)))
        if output == "array":
            return arrays
        labels = self.classes.tolist()
        plain = [[dict(zip(labels, row, strict=True)) for row in array.tolist()] for array in arrays]
        return [self._by_name(reading, i, own) for i, own in enumerate(plain)]

    def edge_marginals(self, reading: Reading, counts: Floats) -> list[Floats]:
        """(edges, labels, labels) per graph; the model must be `untied`."""
        tables = edge_tables(self._structure(reading), reading.source.rows, counts, self.n_labels)
        found: list[Floats] = reading.spread(tables, lambda: np.empty((0, self.n_labels, self.n_labels)))
        return found

    def score(self, X: Any, y: Any, predicted: Any, sample_weight: Any) -> float:
        """Share of nodes with the right label; a label that was not in the training data is an error."""
        graphs = self.graphs_of(X)
        lengths = graphs.nodes.lengths()
        truth = targets_of(y, graphs).check(lengths).encode(self.classes)
        found = targets_of(predicted, graphs).encode(self.classes)
        weight = check_sample_weight(sample_weight, len(lengths), "graph")
        each = np.repeat(np.ones(len(lengths)) if weight is None else weight, lengths)
        if not each.any():
            raise ValueError("there is no node to score")
        return float(np.average(truth == found, weights=each))

    def report(self, reading: Reading, labellings: Labellings | None) -> InputReport:
        unknown: tuple[int, int] = reading.source.unknown
        return InputReport(lambda: unknown)

    # inspection

    def explain(self, reading: Reading) -> Explanation:
        """The features that make the best labelling of a graph better than the second-best one."""
        if not len(reading.numbers):
            raise ValueError("a graph without nodes has nothing to explain")
        structure = self._structure(reading)
        best = structure.k_best(0, reading.batch.features.scores(0, self.weights), 2)
        if len(best) < 2:
            raise ValueError("the graph has one labelling only: there is no other to compare it with")
        one, two = (structure.decode_of(0, slots, counts) for _, slots, counts in best)
        found = explain_nodes(self, reading.source.rows, one, two) + explain_edges(self, reading.source.rows, one, two)
        answers = [self._by_name(reading, 0, self.classes[labels].tolist()) for labels in (one, two)]
        return explanation(answers[0], answers[1], (best[0][0], best[1][0]), found)

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {"classes_": self.classes, "edge_types_": self.types}
        if not self.reader.named:
            found["n_features_in_"] = self.reader.n_attributes
        return found


def _refuse_wide(structure: Graph, numbers: Sequence[int]) -> None:
    """ValueError for a graph beyond the memory limit, with its number in X."""
    for i, number in enumerate(numbers):
        try:
            structure.width(i)
        except ValueError as error:
            raise ValueError(f"graph {number}: {str(error).partition(': ')[2]}") from None


def _reader_for(rows: Sequences) -> Reader:
    return NameReader() if input_form(rows) == "names" else ColumnReader()


def _edge_features(reader: Reader, graphs: Graphs) -> Rows:
    """Features of edges; graphs without edges have none."""
    rows = graphs.edge_rows
    if rows is not None:
        return reader.read(reader.sequences(rows))
    none = np.empty((0, reader.n_attributes))
    return Rows(np.zeros(len(graphs.edges), dtype=np.int64), reader.n_attributes, none)


def _distinct(types: Sequence[Sequence[Any]]) -> list[Any]:
    """Types of edges, in order."""
    try:
        found: set[Any] = set().union(*types)
    except TypeError:
        raise ValueError("X: types of edges must be hashable, as strings and numbers are") from None
    if any(each is None or each != each for each in found):
        raise ValueError("X: the type of an edge is missing (None or NaN)")
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda each: (type(each).__name__, repr(each)))
