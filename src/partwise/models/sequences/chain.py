"""Chains of first and second order: linear-chain CRFs and max-margin chains.

The weights are one vector, in this order:

    nodes        for positions: one run per attribute, for its labels (all, or the observed ones)
    transitions  n_labels x width, shared by all edges; or, conditioned on observations, one run per edge attribute, for
                 its pairs (a, b) of labels at column a * width + b; edge attribute 0 is on every edge
    ends         a row for the first label and a row for the last
    triples      of the second order alone: n_labels * n_labels rows (a, b) of `width`
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from partwise.features import FeatureMap, chain_map, second_order_map
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import encode
from partwise.models import files, inspection
from partwise.models.base import Ability, Learnt, NotAvailable, Shortcut, Training
from partwise.models.features import PairLayout, Rows, layout_of, look_up, numbered
from partwise.models.files import padded, unpadded
from partwise.models.inspection import Contribution, Named
from partwise.models.labels import encode_flat
from partwise.models.partition import EncodedRows
from partwise.models.readers import NameReader, VocabularyReader
from partwise.models.sequences.features import FeatureChoice, FeatureCounts, edge_attributes
from partwise.models.sequences.model import SequenceModel, SequenceReading
from partwise.problem import Batch, LabelledBatch
from partwise.problem.inference import NamedChain
from partwise.structures import Chain, SecondOrderChain, padded_width
from partwise.support.arrays import Bytes, Floats, Ints
from partwise.support.checks import check_choice
from partwise.support.lazy import cached_property


@dataclass(eq=False, repr=False, kw_only=True)
class ChainBase(SequenceModel):
    """Labels with transitions between neighbours, with or without a kernel. Parameters: see `SequenceTagger`."""

    ruled: ClassVar[bool] = True

    transitions: str
    transition_features: object
    ends: bool
    #: Which tied transitions have a weight, (n_labels * width,); None if transitions depend on observations.
    transition_mask: Bytes | None = field(init=False, default=None)

    def __post_init__(self, cost: object) -> None:
        super().__post_init__(cost)
        self.ends = bool(self.ends)

    def check(self) -> None:
        super().check()
        check_choice("transitions", self.transitions, ("auto", "observed", "all"))

    @property
    def observed_transitions(self) -> bool:
        return (self.features if self.transitions == "auto" else self.transitions) == "observed"

    @property
    def width(self) -> int:
        return padded_width(self.n_labels)

    @property
    def label_table(self) -> int:
        return self.n_labels * self.width

    @property
    def tied(self) -> bool:
        return self.transition_mask is not None

    @property
    def tied_cells(self) -> Ints:
        """The tied transitions that have a weight, as label * width + next label."""
        assert self.transition_mask is not None
        return np.flatnonzero(self.transition_mask)

    def structure(self, lengths: Ints) -> Chain | SecondOrderChain:
        return Chain(lengths, self.n_labels, tied=self.tied, ends=self.ends)

    @property
    @abstractmethod
    def run_lengths(self) -> tuple[int, int]:
        """How many weights nodes and transitions have."""

    @abstractmethod
    def edge_features(self) -> tuple[Ints, Ints, Floats]:
        """Return (edge attributes, label * width + next label, weights) of the features of transitions."""

    def edge_names(self) -> list[tuple[Hashable, ...]]:
        """Return the name of each edge attribute: () for the one that is on every edge, else (attribute,)."""
        return [()]

    def edge_keys(self, ids: Ints, cells: Ints) -> Iterator[tuple[Hashable, ...]]:
        """Yield the names of weights of transitions; a column of padding has the label None."""
        names, width = self.edge_names(), self.width
        classes = [*self.classes.tolist(), *[None] * (width - self.n_labels)]
        for e, k in zip(ids.tolist(), cells.tolist(), strict=True):
            yield *names[e], classes[k // width], classes[k % width]

    def split(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        n_nodes, n_edges = self.run_lengths
        nodes, edges, ends = np.split(weights, [n_nodes, n_nodes + n_edges])
        return nodes, edges, ends

    def transition_weights(self) -> dict[tuple[Hashable, ...], float]:
        ids, cells, weights = self.edge_features()
        return dict(zip(self.edge_keys(ids, cells), weights.tolist(), strict=True))

    def boundary_features(self) -> dict[tuple[str, Hashable], float]:
        if not self.ends:
            return {}
        rows = zip(("begin", "end"), self.split(self.weights)[2].reshape(2, self.width).tolist(), strict=True)
        return {(end, label): w for end, row in rows for label, w in zip(self.label_names, row, strict=False)}

    def _tail_to_parts(self, parts: ModelParts) -> None:
        _, edges, ends = self.split(self.weights)
        n = self.n_labels
        if self.transition_mask is not None:
            parts.arrays["transitions"] = unpadded(self.transition_mask, n, n)
            parts.arrays["transition_weights"] = unpadded(edges, n, n)
        if self.ends:
            parts.arrays["end_weights"] = unpadded(ends, 2, n)

    def _read_mask(self, parts: ModelParts) -> None:
        self.ends = parts.flag("ends")
        if not parts.has("edges"):
            self.transition_mask = padded(parts.mask("transitions", self.n_labels, self.n_labels).astype(np.uint8))

    def _read_tail(self, parts: ModelParts) -> list[Floats]:
        n = self.n_labels
        tail = [padded(parts.floats("transition_weights", n, n))] if self.tied else []
        return [*tail, padded(parts.floats("end_weights", 2, n))] if self.ends else tail


class ChainModel(ChainBase):
    """Weights for (attribute, label) pairs and for transitions."""

    kind = "chain"
    #: Of how many labels before a label there are weights.
    order: ClassVar[int] = 1

    nodes: PairLayout
    edges: PairLayout | None  # None: tied transitions
    edge_ids: Ints | None  # attribute -> edge attribute (-1: none), for untied transitions

    @property
    def n_attributes(self) -> int:
        return self.nodes.core.num_attributes

    @property
    def run_lengths(self) -> tuple[int, int]:
        n_edges = self.n_labels * self.width if self.edges is None else self.edges.core.num_weights
        return self.nodes.core.num_weights, n_edges

    def new_counts(self) -> FeatureCounts:
        reader = self.reader
        sizes, observed = (reader.n_attributes, self.n_labels), (self.observed, self.observed_transitions)
        edges = reader.edge_only(), reader.edge_ids(self.transition_features)
        choice = FeatureChoice(*sizes, *observed, self.min_count, *edges, reader.plain_transitions, self.order)
        counts = FeatureCounts(choice)
        self.edge_ids, self.transition_mask = choice.edge_ids, counts.mask() if choice.edge_ids is None else None
        return counts

    def use_features(self, counts: FeatureCounts) -> None:
        self.nodes = counts.nodes()
        self.edges = None if self.edge_ids is None else counts.edges()
        self.transition_mask = counts.mask() if self.edge_ids is None else None

    def _learn_features(self, rows: Rows, labels: Ints, weight: Floats | None, training: Training) -> Learnt:
        counts = self.new_counts()
        counts.add(rows, labels)
        self.use_features(counts)
        examples = self._examples(self.batch(rows, once=False), labels, weight)
        shape = self.n_labels, self.tied, self.ends, rows.lengths
        return Learnt(examples, shape, reading=self._training_reading(examples.batch, rows))

    def feature_parameters(self) -> dict[str, object]:
        own: dict[str, object] = {"transitions": self.transitions, "ends": self.ends}
        own["transition_features"] = encode(self.transition_features, "transition_features")
        return super().feature_parameters() | own

    def labelled(self, encoded: EncodedRows, by_features: bool | None = False) -> LabelledBatch:
        return self._examples(self.batch(encoded.rows, once=False), encoded.labels, encoded.weight)

    def batch(self, rows: Rows, *, once: bool = True) -> Batch:
        structure = self.structure(rows.lengths)
        return Batch(structure, self._map_rows(structure, rows, once))

    def _map_rows(self, structure: Chain | SecondOrderChain, rows: Rows, once: bool) -> FeatureMap:
        assert isinstance(structure, Chain)
        table, layout = self.nodes.fitting(rows)
        edges: dict[str, Any] = {"transition_mask": self.transition_mask}
        if self.edges is not None and self.edge_ids is not None:
            edges |= {"edge_rows": edge_attributes(rows, self.edge_ids), "edge_layout": self.edges.core}
        return chain_map(structure, table, layout=layout, once=once, **edges)

    @cached_property
    def named_chain(self) -> NamedChain | None:
        """The core's form of the model, for calls with named attributes, if the core has one for its features."""
        reader, rule, weights = self.reader, self.kept_rule(), self.weights
        if type(reader) is not NameReader or self.transition_mask is None or self.order > 1:
            return None
        unruled = rule is None or rule.for_any_length  # else batches name the sequence without an answer
        if not unruled or weights.dtype != "float64" or not weights.flags.c_contiguous:
            return None
        return NamedChain(
            reader.known, reader.separator, self.nodes.core, self.label_names, self.transition_mask,
            self.ends, None if rule is None else rule.as_bytes, weights,
        )  # fmt: skip

    def shortcut(self, X: object) -> Shortcut | None:
        chain = None if X is None else self.named_chain
        rows = None if chain is None else chain.read(X)
        return None if chain is None or rows is None else Shortcut(chain, self.classes.tolist(), rows)

    def __copy__(self) -> Self:
        other = super().__copy__()
        vars(other).pop("named_chain", None)  # another rule or other weights may follow
        return other

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "named_chain"}

    def carried(self, old: ChainModel) -> Floats | None:
        attributes = self.reader.numbers_in(old.reader)
        if attributes is None:
            return None
        labels = encode_flat(self.classes.tolist(), old.classes)
        found, columns = self.nodes.pairs()
        runs = [self.nodes.core.pack(look_up(old.node_features(), attributes[found], labels[columns]))]
        ids, cells = self.edge_pairs()
        transitions, ends = ChainBase.transition_weights(old), old.boundary_features()
        values = [transitions.get(key, 0.0) for key in self.edge_keys(ids, cells)]
        runs.append(self._pack_edges(cells, np.array(values)))
        if self.ends:
            rows = [[ends.get((end, label), 0.0) for label in self.label_names] for end in ("begin", "end")]
            runs.append(padded(np.array(rows)))
        return np.concatenate(runs)

    def _pack_edges(self, cells: Ints, values: Floats) -> Floats:
        """Return the run of transitions, of values in the order of `edge_pairs`."""
        if self.edges is not None:
            return self.edges.core.pack(values)
        run = np.zeros(self.n_labels * self.width)
        run[cells] = values
        return run

    def joined(self, old: ChainModel) -> Self:
        """Return the model with the old one's attributes, which keep their numbers, and pairs."""
        reader, other, numbers = self.reader, old.reader, self.reader.numbers_in(old.reader)
        if numbers is None or not isinstance(reader, VocabularyReader) or not isinstance(other, VocabularyReader):
            raise NotAvailable("partial_fit with grow=True: attributes need names, columns of numbers have none")
        if self.transition_mask is None or old.edges is not None:
            raise NotAvailable("partial_fit with grow=True: not available with transitions conditioned on attributes")
        fresh, width = numbers < 0, self.width
        own = np.where(fresh, numbered(fresh, old.n_attributes), numbers)
        labels = encode_flat(old.classes.tolist(), self.classes)
        joined = copy.copy(self)
        joined.reader = other.with_names_of(reader, fresh)
        n = joined.reader.n_attributes
        if self.nodes.all_pairs:
            joined.nodes = PairLayout.every(n, self.n_labels, width)
        else:
            (ids, columns), (old_ids, old_columns) = self.nodes.pairs(), old.nodes.pairs()
            cells = np.unique(np.concatenate([own[ids] * width + columns, old_ids * width + labels[old_columns]]))
            joined.nodes = layout_of(n, self.n_labels, width, *np.divmod(cells, width))
        joined.transition_mask = self.transition_mask.copy()
        first, second = np.divmod(old.tied_cells, old.width)
        joined.transition_mask[labels[first] * width + labels[second]] = 1
        return joined

    def node_features(self) -> tuple[Ints, Ints, Floats]:
        return *self.nodes.pairs(), self.nodes.core.unpack(self.split(self.weights)[0])

    def edge_pairs(self) -> tuple[Ints, Ints]:
        """Return (edge attribute, label * width + next label) of all weights of transitions, also of padding."""
        if self.edges is not None:
            return self.edges.pairs()
        return np.zeros(len(self.tied_cells), dtype=np.int64), self.tied_cells

    def edge_features(self) -> tuple[Ints, Ints, Floats]:
        run = self.split(self.weights)[1]
        attributes, cells = self.edge_pairs()
        values = run[cells] if self.edges is None else self.edges.core.unpack(run)
        real = cells % self.width < self.n_labels
        return attributes[real], cells[real], values[real]

    def on_edges(self) -> Ints:
        """Return the attribute that each edge attribute is, -1 for the one that is on every edge."""
        chosen = np.empty(0, dtype=np.int64) if self.edge_ids is None else np.flatnonzero(self.edge_ids > 0)
        return np.concatenate([[-1], chosen])

    def edge_names(self) -> list[tuple[Hashable, ...]]:
        chosen = self.on_edges()[1:].tolist()
        names = (self.reader.names() if chosen else None) or range(self.n_attributes)
        return [(), *((names[j],) for j in chosen)]

    def top_transitions(self, n: int) -> dict[tuple[Hashable, ...], Named]:
        pairs: dict[tuple[Hashable, ...], Named] = {}
        for key, weight in ChainBase.transition_weights(self).items():
            if weight:
                pairs.setdefault(key[-2:], []).append((key[0] if len(key) > 2 else None, weight))
        return {pair: sorted(rows, key=lambda row: -abs(row[1]))[:n] for pair, rows in pairs.items()}

    def contributions(self, reading: SequenceReading, one: Ints, two: Ints) -> list[Contribution]:
        found = super().contributions(reading, one, two)
        names, weights, rows = self.edge_names(), ChainBase.transition_weights(self), reading.source.rows
        table = edge_attributes(rows, np.full(self.n_attributes, -1) if self.edge_ids is None else self.edge_ids)
        pairs = [np.stack([labels[:-1], labels[1:]], axis=1) for labels in (one, two)]
        for e, t, value in table.entries((pairs[0] != pairs[1]).any(axis=1)):
            best, other = (tuple(self.classes[labels[t]].tolist()) for labels in pairs)
            amount = value * (weights.get((*names[e], *best), 0.0) - weights.get((*names[e], *other), 0.0))
            found.append(Contribution("transition", names[e][0] if e else None, t + 1, best, other, amount))
        if self.ends:
            classes, ends = self.classes.tolist(), self.split(self.weights)[2].reshape(2, self.width)
            for kind, row, t in zip(("begin", "end"), ends, (0, len(one) - 1), strict=True):
                amount = float(row[one[t]] - row[two[t]])
                found.append(Contribution(kind, None, t, classes[one[t]], classes[two[t]], amount))
        return found

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[Self, tuple[int, int, float]]:
        (ids, _, values), (edge_ids, cells, edge_values) = self.node_features(), self.edge_features()
        (on_nodes, on_edges), counts = inspection.choose_among([values, edge_values], threshold, keep)
        edge_ids, cells = edge_ids[on_edges], cells[on_edges]
        attributes = self.on_edges()
        has_weight = np.isin(np.arange(len(attributes)), np.append(edge_ids, 0))
        edges_used = attributes[has_weight][1:]
        # Attributes without any weight are no longer known.
        used = np.isin(np.arange(self.n_attributes), np.concatenate([ids[on_nodes], edges_used]))
        pruned = copy.copy(self)
        pruned.reader, number = self.reader.keep(used)
        pruned.nodes = self.nodes.chosen(on_nodes, number)
        size = self.n_labels * self.width
        if self.edges is None:
            pruned.transition_mask = np.isin(np.arange(size), cells).astype(np.uint8)
        else:
            pruned.edges = layout_of(len(edges_used) + 1, size, size, numbered(has_weight)[edge_ids], cells)
            pruned.edge_ids = numbered(np.isin(np.arange(pruned.n_attributes), number[edges_used]), first=1)
        runs = [pruned.nodes.core.pack(values[on_nodes]), pruned._pack_edges(cells, edge_values[on_edges])]
        return pruned.with_weights(np.concatenate([*runs, self.split(self.weights)[2]])), counts

    def _to_parts(self) -> ModelParts:
        nodes, edges, _ = self.split(self.weights)
        parts = ModelParts(self.kind, {"ends": self.ends})
        parts.add("nodes", files.layout_parts(self.nodes, nodes))
        if self.edges is not None and self.edge_ids is not None:
            parts.add("edges", files.layout_parts(self.edges, edges, self.n_labels))
            parts.arrays["on_edges"] = (self.edge_ids > 0).astype(np.uint8)
        self._tail_to_parts(parts)
        return parts

    def _from_parts(self, parts: ModelParts, n_attributes: int) -> None:
        self._read_mask(parts)
        # Room for the other weights after those of the nodes, nearly all of a large model: they are not copied again.
        room = self.n_labels * self.width + (2 * self.width if self.ends else 0) if self.tied else 0
        self.nodes, run = files.read_layout(parts.part("nodes"), self.n_labels, room)
        if self.n_attributes != n_attributes:
            raise ModelFormatError(f"has weights for {self.n_attributes} attributes and knows {n_attributes}")
        self.edges = self.edge_ids = None
        tail = self._read_tail(parts)
        if self.tied:
            run[len(run) - room :] = np.concatenate(tail)
            self._weights = run
            return
        self.edges, others = files.read_edge_layout(parts.part("edges"), self.n_labels)
        chosen = parts.mask("on_edges", n_attributes)
        if int(chosen.sum()) + 1 != self.edges.core.num_attributes:
            raise ModelFormatError("has weights of transitions for other attributes than it says")
        self.edge_ids = numbered(chosen, first=1)
        self._weights = np.concatenate([run, others, *tail])


class SecondOrderModel(ChainModel):
    """Weights for (attribute, label) pairs, for pairs of neighbouring labels and for triples."""

    kind = "second-order chain"
    order = 2
    lacks: Mapping[Ability, str] = {Ability.GROWTH: "partial_fit with grow=True: not available with order=2"}

    #: Which triples have a weight, (n_labels * n_labels * width,).
    triple_mask: Bytes

    @property
    def label_table(self) -> int:
        return self.n_labels * super().label_table

    def structure(self, lengths: Ints) -> SecondOrderChain:
        return SecondOrderChain(lengths, self.n_labels)

    def use_features(self, counts: FeatureCounts) -> None:
        super().use_features(counts)
        self.triple_mask = counts.mask(order=2)

    def _map_rows(self, structure: Chain | SecondOrderChain, rows: Rows, once: bool) -> FeatureMap:
        assert isinstance(structure, SecondOrderChain)
        table, layout = self.nodes.fitting(rows)
        masks = {"transition_mask": self.transition_mask, "triple_mask": self.triple_mask}
        return second_order_map(structure, table, layout=layout, once=once, **masks)

    def triple_cells(self) -> dict[tuple[Hashable, ...], int]:
        """Return the place of the weight of each triple of labels that has one."""
        n, width, classes = self.n_labels, self.width, self.classes.tolist()
        cells = np.flatnonzero(self.triple_mask).tolist()
        return {(classes[k // width // n], classes[k // width % n], classes[k % width]): k for k in cells}

    def triples(self) -> dict[tuple[Hashable, ...], float]:
        run = self.split(self.weights)[2]
        return {labels: float(run[cell]) for labels, cell in self.triple_cells().items()}

    def transition_weights(self) -> dict[tuple[Hashable, ...], float]:
        return super().transition_weights() | self.triples()

    def top_transitions(self, n: int) -> dict[tuple[Hashable, ...], Named]:
        return super().top_transitions(n) | {key: [(None, weight)] for key, weight in self.triples().items() if weight}

    def contributions(self, reading: SequenceReading, one: Ints, two: Ints) -> list[Contribution]:
        found, triples = super().contributions(reading, one, two), self.triples()
        for t in range(2, len(one)):
            best, second = (tuple(self.classes[labels[t - 2 : t + 1]].tolist()) for labels in (one, two))
            if best != second:
                amount = triples.get(best, 0.0) - triples.get(second, 0.0)
                found.append(Contribution("transition", None, t, best, second, amount))
        return found

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[Self, tuple[int, int, float]]:
        nodes, _, run = self.split(self.weights)
        cells = np.flatnonzero(self.triple_mask)
        values = np.concatenate([self.nodes.core.unpack(nodes), self.edge_features()[2], run[cells]])
        counts = inspection.choose_among([values], threshold, keep)[1]
        least = counts[2]  # the largest that goes; of weights as large as it none stays
        pruned, _ = super().pruned(least, None)
        stays = np.zeros_like(self.triple_mask)
        stays[cells[np.abs(run[cells]) > least]] = 1
        pruned.triple_mask = stays
        weights = np.concatenate([pruned.weights[: -len(run)], np.where(stays, run, 0.0)])
        return pruned.with_weights(weights), (counts[0], int(np.count_nonzero(np.abs(values) > least)), least)

    def carried(self, old: ChainModel) -> Floats | None:
        start = super().carried(old)
        if start is None or not isinstance(old, SecondOrderModel):
            return None
        before, run = old.triples(), np.zeros(len(self.triple_mask))
        for labels, cell in self.triple_cells().items():
            run[cell] = before.get(labels, 0.0)
        return np.concatenate([start, run])

    def _tail_to_parts(self, parts: ModelParts) -> None:
        super()._tail_to_parts(parts)
        shape = (self.n_labels,) * 3
        parts.arrays["triples"] = unpadded(self.triple_mask, *shape)
        parts.arrays["triple_weights"] = unpadded(self.split(self.weights)[2], *shape)

    def _from_parts(self, parts: ModelParts, n_attributes: int) -> None:
        super()._from_parts(parts, n_attributes)
        shape = (self.n_labels,) * 3
        self.triple_mask = padded(parts.mask("triples", *shape).astype(np.uint8))
        self._weights = np.concatenate([self._weights, padded(parts.floats("triple_weights", *shape))])
