"""Labels of the nodes of graphs: a Markov random field whose scores are linear in features of nodes and edges."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import decode, decode_labels, encode, encode_labels
from partwise.models import labels as user_labels
from partwise.models import partition as blocks
from partwise.models.base import InputReport, Labellings, Learnt, Model, Reading, Training
from partwise.models.constraints import ConstraintError, check_choices
from partwise.models.costs import LabelCost, row_costs
from partwise.models.features import Rows
from partwise.models.files import coefficient_arrays, padded, read_coefficients, unpadded
from partwise.models.graph.features import GraphRows, KindLabels, check_widths, mask_nodes
from partwise.models.graph.inputs import Graphs, distinct_types, node_masks
from partwise.models.inspection import (
    Contribution,
    Explanation,
    TopFeatures,
    by_size,
    choose_among,
    explanation,
    largest,
)
from partwise.models.partition import AttributeCounts, ChangedData, EncodedTables, Partitioner
from partwise.models.readers import ColumnReader, NameReader, Reader, Sequences, input_form, read_reader
from partwise.problem import Batch, LabelledBatch
from partwise.problem.batch import Gold
from partwise.structures import Graph, padded_width
from partwise.support.arrays import Booleans, Floats, Ints
from partwise.support.checks import check_choice, check_positive, check_sample_weight
from partwise.support.memory import check_weights


class GraphSource(NamedTuple):
    """What decoding needs: all graphs, rows of those with nodes, and (unknown attributes, all attributes)."""

    graphs: Graphs
    rows: GraphRows
    unknown: tuple[int, int] = (0, 0)


GraphReading = Reading[GraphSource]


@dataclass(eq=False, repr=False, kw_only=True)
class GraphModel(Model[GraphSource]):
    """A label per node. Parameters: see `GraphLabeler`."""

    constraints: ClassVar[tuple[str, ...]] = ("allowed", "fixed")
    takes_classes: ClassVar[bool] = True
    late: ClassVar[tuple[str, ...]] = ("memory_limit", "node_key", "edge_key", "type_key")

    untied: ClassVar[bool] = False  # whether each edge has a table of slots of its own although it has no features

    directed: bool
    kind_features: object
    memory_limit: float
    node_key: str
    edge_key: str | None
    type_key: str | None
    cost: InitVar[object] = None

    classes: user_labels.LabelArray = field(init=False)
    reader: Reader = field(init=False)
    edge_reader: Reader | None = field(init=False)
    types: list[Hashable] | None = field(init=False)  # None: edges have no types
    kinds: KindLabels | None = field(init=False)

    def __post_init__(self, cost: object) -> None:
        self.label_cost = LabelCost.of(cost)
        self.check()

    def check(self) -> None:
        check_choice("directed", self.directed, (True, False))
        check_positive("memory_limit", self.memory_limit)

    @property
    def n_labels(self) -> int:
        return len(self.classes)

    @property
    def n_types(self) -> int:
        return 1 if self.types is None else len(self.types)

    @property
    def n_node_attributes(self) -> int:
        """Attributes of nodes, with the one that is always 1."""
        return self.reader.n_attributes + 1

    @property
    def n_edge_attributes(self) -> int:
        """Attributes of edges of one type, with the one that is always 1."""
        return 1 if self.edge_reader is None else self.edge_reader.n_attributes + 1

    @property
    def tied(self) -> bool:
        """Whether edges share a table of slots per type."""
        return self.edge_reader is None and not self.untied

    def learn(self, X: object, y: object, sample_weight: object, training: Training) -> Learnt:
        given = self.graphs_of(X)
        if not given.edges:
            raise ValueError("X holds no graphs")
        graphs, targets, weight = given.labelled(y, sample_weight)
        pairs = self.use_labels(user_labels.all_labels(targets.classes(), training.classes))
        labels = targets.encode(self.classes)
        self.costs_of(self.classes.tolist())  # an error for those of other labels, before the work
        user_labels.warn_of_many_labels(np.bincount(labels, minlength=self.n_labels), pairs, place="node")
        reader, edge_rows = self.reader_for(graphs.nodes), graphs.edge_rows
        edge_reader = None if edge_rows is None else self.reader_for(edge_rows)
        nodes = reader.read(graphs.nodes)
        features = None if edge_rows is None or edge_reader is None else edge_reader.read(edge_rows)
        self.use_readers(reader, edge_reader)
        self.types = None if graphs.types is None else distinct_types(graphs.types)
        self.kinds = self.new_kinds()
        if self.kinds is not None:
            self.kinds.add(nodes, labels)
        rows = self.rows_from(nodes.compact(), graphs.edge_counts, graphs.pairs, self.type_numbers(graphs), features)
        batch = self.batch_of(rows)
        structure: Graph = batch.structure  # type: ignore[assignment]
        check_widths(structure, graphs.numbers)
        reading = Reading(batch, len(given.edges), source=GraphSource(graphs, rows)) if weight is None else None
        shape = (self.n_labels, structure.members.tobytes(), structure.tables.tobytes())
        gold = structure.encode(labels)
        return Learnt(LabelledBatch(batch, gold, weight, self.slot_costs(structure, gold)), shape, reading=reading)

    def use_labels(self, classes: user_labels.LabelArray) -> int:
        """Set the labels, return the size of a table of their pairs; ValueError for one label or too many."""
        self.classes = classes
        if self.n_labels < 2:
            raise ValueError(f"y holds one label only ({classes.tolist()[0]!r}): there is nothing to learn")
        pairs = self.n_labels * padded_width(self.n_labels)
        check_weights(pairs, f"a table of {self.n_labels:,} labels with those of neighbours")
        return pairs

    @staticmethod
    def reader_for(rows: Sequences) -> Reader:
        return NameReader() if input_form(rows) == "names" else ColumnReader()

    def use_readers(self, nodes: Reader, edges: Reader | None) -> None:
        """Set the readers of nodes and edges; ValueError if nodes have no attribute."""
        self.reader, self.edge_reader = nodes, edges
        if not nodes.n_attributes:
            raise ValueError("X: no node has an attribute")

    def new_kinds(self) -> KindLabels | None:
        """Return kinds of nodes by the attributes that `kind_features` names, before any node is counted."""
        chosen = self.kind_features
        if chosen is None:
            return None
        if isinstance(chosen, (str, bytes)) or not isinstance(chosen, Iterable):
            raise ValueError(f"kind_features must be None or a list, got {chosen!r}")
        return KindLabels(self.reader.pick(chosen, "kind_features"), self.n_labels)

    def slot_costs(self, structure: Any, gold: Gold) -> Floats | None:
        table = self.costs_of(self.classes.tolist())
        if table is None:
            return None
        width, labels = padded_width(self.n_labels), structure.decode(*gold)
        return row_costs(structure.slot_offsets(), np.diff(structure.vertex_ptr), width, labels, table)

    def graphs_of(self, X: object) -> Graphs:
        return Graphs.of(X, self.directed, self.node_key, self.edge_key, self.type_key)

    def read_rows(self, graphs: Graphs) -> tuple[Rows, Rows | None]:
        """Return features of nodes, and of edges (None if edges had no features in training)."""
        nodes, reader = self.reader.read(self.reader.sequences(graphs.nodes)), self.edge_reader
        if reader is None:
            return nodes, None
        if graphs.edge_rows is not None:
            return nodes, reader.read(reader.sequences(graphs.edge_rows))
        size = reader.n_attributes
        return nodes, Rows(np.zeros(len(graphs.edges), dtype=np.int64), size, np.empty((0, size)))

    def type_numbers(self, graphs: Graphs) -> Ints:
        if not self.types:
            return np.zeros(int(graphs.edge_counts.sum()), dtype=np.int64)
        number, found = {each: k for k, each in enumerate(self.types)}, []
        for i, own in zip(graphs.numbers, graphs.types or [], strict=False):
            for k, each in enumerate(own):
                if not isinstance(each, Hashable) or each not in number:
                    raise ValueError(f"X: graph {i}, edge {k}: type {each!r} was not in the training data")
                found.append(number[each])
        return np.array(found, dtype=np.int64)

    def rows_from(self, nodes: Rows, counts: Ints, edges: Ints, types: Ints, features: Rows | None) -> GraphRows:
        """Put nodes and edges together; counts: the number of edges of each graph."""
        allowed = None if self.kinds is None else self.kinds.allowed(nodes)
        return GraphRows(nodes.with_ones(), counts, edges, types, features, self.n_types, not self.directed, allowed)

    def batch_of(self, rows: GraphRows, once: bool = False) -> Batch:
        """Return structure and features of graphs; once: each graph is scored only once, as in prediction."""
        return rows.batch(self.n_labels, float(self.memory_limit), tied=self.tied, once=once)

    def feature_parameters(self) -> dict[str, Any]:
        kinds = [*self.kind_features] if isinstance(self.kind_features, Iterable) else None
        return {"directed": bool(self.directed), "kind_features": encode(kinds, "kind_features")}

    def partitioner(self) -> GraphPartitioner:
        return GraphPartitioner(self)

    def encoded(self, parts: ModelParts) -> EncodedTables:
        tables, kinds = blocks.row_kinds("nodes", parts, self.reader.n_attributes)
        kinds["nodes/labels"] = blocks.Whole(0, self.n_labels)
        kinds |= {"edges/pairs": blocks.Whole(0, 1 << 40, 2), "edges/types": blocks.Whole(0, self.n_types)}
        reader = self.edge_reader
        edges, more = (["edges"], {}) if reader is None else blocks.row_kinds("edges", parts, reader.n_attributes)
        found = EncodedTables.read(parts, tables + edges, kinds | more)
        lengths, pairs = found.lengths, found.columns["edges/pairs"]
        n = np.repeat(lengths["nodes"], lengths["edges"])
        if not lengths["nodes"].all() or (pairs >= n[:, np.newaxis]).any() or (pairs[:, 0] == pairs[:, 1]).any():
            raise ModelFormatError("has a graph without nodes, or edges of other nodes than it has")
        entries = graph_entries(lengths, found.columns, self.n_labels, self.tied)
        return EncodedTables(lengths, found.columns, entries, found.weight)

    def encoded_rows(self, encoded: EncodedTables) -> GraphRows:
        nodes, columns = blocks.rows_of("nodes", encoded, self.reader.n_attributes), encoded.columns
        features = None if self.edge_reader is None else blocks.rows_of("edges", encoded, self.edge_reader.n_attributes)
        return self.rows_from(nodes, encoded.lengths["edges"], columns["edges/pairs"], columns["edges/types"], features)

    def labelled(self, encoded: EncodedTables, by_features: bool | None = False) -> LabelledBatch:
        batch = self.batch_of(self.encoded_rows(encoded))
        structure: Graph = batch.structure  # type: ignore[assignment]
        return LabelledBatch(batch, structure.encode(encoded.columns["nodes/labels"]), encoded.weight)

    def read(self, X: object, n_jobs: int = 1) -> GraphReading:
        graphs = self.graphs_of(X)
        lengths = graphs.nodes.lengths()
        kept = np.flatnonzero(lengths)
        some = graphs if len(kept) == len(lengths) else graphs.take(kept)
        if some.edge_rows is not None and self.edge_reader is None:
            raise ValueError("X: edges have features, those of the training data had none")
        if some.types is not None and self.types is None:
            raise ValueError("X: edges have types, those of the training data had none")
        lacks = (some.edge_rows is None and self.edge_reader is not None) or (some.types is None and self.types)
        if lacks and some.edge_counts.any():
            raise ValueError("X: edges need features and types where those of the training data had some")
        nodes, features = self.read_rows(some)
        rows = self.rows_from(nodes, some.edge_counts, some.pairs, self.type_numbers(some), features)
        more = (0, 0) if features is None else features.unknown
        unknown = nodes.unknown[0] + more[0], nodes.unknown[1] + more[1]
        return Reading(lambda: self.batch_of(rows, once=True), len(lengths), kept, GraphSource(graphs, rows, unknown))

    def decode(self, reading: GraphReading, which: Ints, labellings: Labellings, n_jobs: int = 1) -> list[Any]:
        lengths = reading.source.rows.nodes.lengths[which]
        plain = user_labels.label_lists(labellings.choices(lengths, padded_width(self.n_labels)), self.classes, lengths)
        return [self._by_name(reading, i, own) for i, own in zip(reading.numbers[which].tolist(), plain, strict=True)]

    def _by_name(self, reading: GraphReading, i: int, values: list[Any]) -> Any:
        """Return one value per node of graph i of X: a dict by node for a networkx graph, else a list."""
        names = reading.source.graphs.names[i]
        return values if names is None else dict(zip(names, values, strict=True))

    def encode(self, reading: GraphReading, y: object) -> tuple[Labellings, Booleans]:
        source = reading.source
        labels = source.graphs.targets(y).check(source.graphs.nodes.lengths()).encode(self.classes)
        wrong = labels < 0
        labels = np.maximum(labels, 0)
        if source.rows.allowed is not None:
            wrong |= ~source.rows.allowed[np.arange(len(labels)), labels]
        possible = np.ones(reading.batch.n_examples, dtype=bool)
        possible[np.repeat(np.arange(len(possible)), source.rows.nodes.lengths)[wrong]] = False
        return Labellings(*reading.structure(Graph).encode(labels)), possible

    def constrain(self, reading: GraphReading, allowed: object = None, fixed: object = None) -> None:
        source = reading.source
        masks, structure = node_masks(allowed, fixed, source.graphs, self.classes.tolist()), reading.structure(Graph)
        for i, number in enumerate(reading.numbers.tolist()):
            mask = masks[number]
            if mask is None:
                continue
            if source.rows.allowed is not None:
                mask = mask & source.rows.allowed[structure.vertex_ptr[i] : structure.vertex_ptr[i + 1]]
            check_choices(mask, number, f"allowed: graph {number}", "node", source.graphs.node_names(number))
            try:
                mask_nodes(structure, i, mask)
            except ValueError as error:
                raise ConstraintError(f"graph {number}: no labelling is allowed ({error})", number) from None

    def check_reading(self, reading: GraphReading) -> None:
        check_widths(reading.structure(Graph), reading.numbers.tolist())

    def left_out(self, reading: GraphReading, i: int) -> Any:
        return self._by_name(reading, i, [])

    def marginals(self, reading: GraphReading, counts: Floats, output: str = "dict") -> list[Any]:
        """Return dicts {label: probability} per node, or arrays of shape (nodes, labels)."""
        n_labels, width = self.n_labels, padded_width(self.n_labels)
        slots = user_labels.split(counts, np.diff(reading.structure(Graph).slot_offsets()))
        lengths = reading.source.rows.nodes.lengths.tolist()
        found = [own[: n * width].reshape(n, width)[:, :n_labels] for own, n in zip(slots, lengths, strict=True)]
        arrays = reading.spread([each.copy() for each in found], lambda: np.empty((0, n_labels)))
        values = user_labels.label_dicts(arrays, self.classes.tolist(), output)
        return values if output == "array" else [self._by_name(reading, i, own) for i, own in enumerate(values)]

    def edge_marginals(self, reading: GraphReading, counts: Floats) -> list[Floats]:
        """Return probabilities of pairs of labels, (edges, labels, labels) per graph, of an `untied` model."""
        rows, n_labels, width = reading.source.rows, self.n_labels, padded_width(self.n_labels)
        slots = user_labels.split(counts, np.diff(reading.structure(Graph).slot_offsets()))
        sizes = zip(rows.nodes.lengths.tolist(), rows.edge_counts.tolist(), strict=True)
        found = [
            own[n_nodes * width :].reshape(n_edges, rows.directions, n_labels, width)[:, 0, :, :n_labels].copy()
            for own, (n_nodes, n_edges) in zip(slots, sizes, strict=True)
        ]
        return reading.spread(found, lambda: np.empty((0, n_labels, n_labels)))

    def score(self, X: object, y: object, predicted: object, sample_weight: object) -> float:
        """Return the share of nodes with the right label, which must be a label of the training data."""
        graphs = self.graphs_of(X)
        lengths = graphs.nodes.lengths()
        truth = graphs.targets(y).check(lengths).encode(self.classes)
        found = graphs.targets(predicted).encode(self.classes)
        weight = check_sample_weight(sample_weight, len(lengths), "graph")
        each = np.repeat(np.ones(len(lengths)) if weight is None else weight, lengths)
        if not each.any():
            raise ValueError("there is no node to score")
        return float(np.average(truth == found, weights=each))

    def report(self, reading: GraphReading, labellings: Labellings | None) -> InputReport:
        unknown = reading.source.unknown
        return InputReport(lambda: unknown)

    def tables(self) -> tuple[Floats, Floats]:
        """Weights by (attribute, label) and by (type, edge attribute, label, label), without padding."""
        cut = self.n_node_attributes * padded_width(self.n_labels)
        nodes = unpadded(self.weights[:cut], self.n_node_attributes, self.n_labels)
        shape = (self.n_types, self.n_edge_attributes, self.n_labels, self.n_labels)
        return nodes, unpadded(self.weights[cut:], *shape)

    def carried(self, old: Self) -> Floats | None:
        """Return the old weights where attributes, labels and types agree, else 0; None if nothing can agree."""
        nodes = self.reader.numbers_in(old.reader)
        if nodes is None or (self.edge_reader is None) != (old.edge_reader is None) or self.directed != old.directed:
            return None
        edges: Ints | None = np.empty(0, dtype=np.int64)
        if self.edge_reader is not None and old.edge_reader is not None:
            edges = self.edge_reader.numbers_in(old.edge_reader)
        if edges is None or (self.types is None) != (old.types is None):
            return None
        own_nodes, own_edges = old.tables()
        labels = user_labels.encode_flat(self.classes.tolist(), old.classes)
        types = user_labels.encode_flat(self.types or [None], user_labels.label_array(old.types or [None]))
        nodes, edges = np.append(nodes, old.n_node_attributes - 1), np.append(edges, old.n_edge_attributes - 1)
        tables = _taken(own_nodes, nodes, labels), _taken(own_edges, types, edges, labels, labels)
        return np.concatenate([padded(table) for table in tables])

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[Self, tuple[int, int, float]]:
        """Set small weights to zero; model files leave out zeros where there are many."""
        tables = self.tables()
        kept, counts = choose_among([table.ravel() for table in tables], threshold, keep)
        runs = [padded(np.where(own.reshape(table.shape), table, 0.0)) for table, own in zip(tables, kept, strict=True)]
        return self.with_weights(np.concatenate(runs)), counts

    def node_name(self, attribute: int) -> Hashable:
        """Return the name of a node's attribute; None for the attribute that is always 1."""
        return None if attribute == self.reader.n_attributes else self.reader.name(attribute)

    def edge_name(self, number: int) -> Hashable:
        """Return the type and the attribute of an edge, those that exist; None for the weight of every edge."""
        kind, attribute = divmod(number, self.n_edge_attributes)
        named = self.edge_reader is not None and attribute < self.edge_reader.n_attributes
        name: Hashable = self.edge_reader.name(attribute) if self.edge_reader is not None and named else None
        if self.types is None:
            return name
        return self.types[kind] if name is None else (self.types[kind], name)

    def top_features(self, n: int = 10) -> TopFeatures:
        """Return the largest weights of every label, and of every pair of labels of an edge's nodes."""
        nodes, edges = self.tables()
        classes, ids = self.classes.tolist(), np.arange(len(nodes))
        labels = {label: largest(self.node_name, ids, nodes[:, a], n) for a, label in enumerate(classes)}
        flat = edges.reshape(-1, self.n_labels, self.n_labels)
        ids = np.arange(len(flat))
        pairs = {
            (first, second): largest(self.edge_name, ids, flat[:, a, b], n)
            for a, first in enumerate(classes)
            for b, second in enumerate(classes)
        }
        return TopFeatures(labels, by_size({pair: rows for pair, rows in pairs.items() if rows}))

    def explain(self, reading: GraphReading) -> Explanation:
        """Compare the best labelling of a graph with the second-best one, feature by feature."""
        if not len(reading.numbers):
            raise ValueError("a graph without nodes has nothing to explain")
        structure, rows = reading.structure(Graph), reading.source.rows
        best = structure.k_best(0, reading.batch.features.scores(0, self.weights), 2)
        if len(best) < 2:
            raise ValueError("the graph has one labelling only: there is no other to compare it with")
        one, two = (structure.decode_of(0, slots, counts) for _, slots, counts in best)
        found = self._contributions(rows, one, two)
        answers = [self._by_name(reading, 0, self.classes[labels].tolist()) for labels in (one, two)]
        return explanation(answers[0], answers[1], (best[0][0], best[1][0]), found)

    def _contributions(self, rows: GraphRows, one: Ints, two: Ints) -> list[Contribution]:
        """Return what attributes of nodes, then of edges, contribute where the two labellings differ."""
        (weights, pairs), classes, found = self.tables(), self.classes.tolist(), []
        for attribute, node, value in rows.nodes.attributes().entries(one != two):
            name, (a, b) = self.node_name(attribute), (int(one[node]), int(two[node]))
            amount = value * float(weights[attribute, a] - weights[attribute, b])
            kind = "intercept" if name is None else "attribute"
            found.append(Contribution(kind, name, node, classes[a], classes[b], amount))
        weights, ends = pairs.reshape(-1, self.n_labels, self.n_labels), rows.cliques()
        changed = (one[ends] != two[ends]).any(axis=1)
        for attribute, k, value in rows.edge_attributes().entries(changed):
            (a, b), (c, d) = one[ends[k]].tolist(), two[ends[k]].tolist()
            amount = value * float(weights[attribute, a, b] - weights[attribute, c, d])
            names = (classes[a], classes[b]), (classes[c], classes[d])
            found.append(Contribution("edge", self.edge_name(attribute), k // rows.directions, *names, amount))
        return found

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {"classes_": self.classes, "edge_types_": self.types}
        if not self.reader.named:
            found["n_features_in_"] = self.reader.n_attributes
        return found

    def to_parts(self, parts: ModelParts) -> None:
        nodes, edges = self.tables()
        parts.settings["labels"] = encode_labels(self.classes)
        if self.types is not None:
            parts.settings["types"] = [encode(each, "the type of an edge") for each in self.types]
        parts.add("reader", self.reader.to_parts())
        if self.edge_reader is not None:
            parts.add("edge_reader", self.edge_reader.to_parts())
        if self.kinds is not None:
            parts.add("kinds", self.kinds.to_parts())
        for name, table in (("nodes", nodes), ("edges", edges.reshape(-1, self.n_labels**2))):
            parts.add(name, ModelParts("table", {"n_features": table.shape[1]}, coefficient_arrays(table)))

    def from_parts(self, parts: ModelParts) -> Self:
        self.classes = decode_labels(parts.settings.get("labels"))
        kinds: tuple[type[Reader], ...] = ColumnReader, NameReader
        self.reader = read_reader(parts.part("reader"), *kinds)
        self.edge_reader = read_reader(parts.part("edge_reader"), *kinds) if parts.has("edge_reader") else None
        self.types = _read_types(parts.settings["types"]) if parts.has("types") else None
        self.kinds = None
        if parts.has("kinds"):
            self.kinds = KindLabels.from_parts(parts.part("kinds"), self.reader.n_attributes, self.n_labels)
        nodes = read_coefficients(parts.part("nodes"), self.n_node_attributes)
        edges = read_coefficients(parts.part("edges"), self.n_types * self.n_edge_attributes)
        if nodes.shape[1] != self.n_labels or edges.shape[1] != self.n_labels**2:
            raise ModelFormatError(f"has weights for another number of labels than {self.n_labels}")
        self._weights = np.concatenate([padded(nodes), padded(edges.reshape(-1, self.n_labels, self.n_labels))])
        return self


def _read_types(found: object) -> list[Hashable]:
    """Return the types of edges that a model file holds; they must differ."""
    if not isinstance(found, list) or not found:
        raise ModelFormatError("has types of edges that cannot be read")
    types = [decode(each) for each in found]
    try:
        distinct = distinct_types([types])
    except ValueError:
        distinct = []
    if len(distinct) < len(types):
        raise ModelFormatError("has types of edges that are missing or occur twice")
    return types


def _taken(table: Floats, *numbers: Ints) -> Floats:
    """Return the entries with these numbers along each axis; 0 where a number is -1."""
    for axis, own in enumerate(numbers):
        shape = [1] * table.ndim
        shape[axis] = len(own)
        table = np.take(table, np.maximum(own, 0), axis=axis) * (own >= 0).reshape(shape)
    return table


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
        user_labels.check_distinct(self._labels)
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
        model.use_labels(user_labels.sorted_labels(self._labels))
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
        lengths, columns = blocks.row_columns("nodes", self._nodes.density.compact(nodes))
        columns |= {"nodes/labels": labels, "edges/pairs": graphs.pairs, "edges/types": model.type_numbers(graphs)}
        lengths["edges"] = graphs.edge_counts
        if features is not None:
            stored = self._edges.in_form(features)
            more = blocks.row_columns("edges", Rows(graphs.edge_counts, stored.n_attributes, stored.table))
            lengths, columns = lengths | more[0], columns | more[1]
        encoded = EncodedTables(lengths, columns, graph_entries(lengths, columns, model.n_labels, model.tied), weight)
        batch = model.batch_of(model.encoded_rows(encoded), once=True)
        check_widths(batch.structure, graphs.numbers)  # type: ignore[arg-type]
        return encoded

    def n_slots(self, encoded: EncodedTables) -> int:
        return self.model.batch_of(self.model.encoded_rows(encoded)).n_slots

    def choose_features(self) -> None:
        self.model.kinds = self._kinds


def graph_entries(lengths: Mapping[str, Ints], columns: Mapping[str, blocks.Column], n_labels: int, tied: bool) -> Ints:
    """Return the memory of opened graphs, in entries: rows of attributes (edges: three copies) and tables of slots."""
    found = lengths["nodes"] * n_labels + lengths["edges"] * (n_labels if tied else 2 * n_labels * n_labels)
    for name, copies in (("nodes", 1), ("edges", 3)):
        if f"{name}/table" in columns:
            found = found + copies * lengths[name] * columns[f"{name}/table"].shape[1]
        elif f"{name}-entries" in lengths:
            found = found + copies * lengths[f"{name}-entries"]
    return found
