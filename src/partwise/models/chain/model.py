"""Chains whose positions are weighed by their attributes: linear-chain CRFs and max-margin chains.

Node weights are one run per attribute, for its labels (all, or the observed ones). Transitions conditioned on
observations have one run per edge attribute, for its pairs (a, b) of labels at column a * width + b; edge attribute 0
is on every edge.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from partwise.features import Attributes, chain_map
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import encode
from partwise.models.base import Learnt, Reading, Training
from partwise.models.chain.base import ChainBase
from partwise.models.chain.carrying import carry_weights, join_features
from partwise.models.chain.explaining import explain_edges, explain_ends, explain_positions
from partwise.models.chain.layout import edge_attributes, edge_layout, node_layout, transition_mask
from partwise.models.chain.partitioner import ChainPartitioner
from partwise.models.chain.shortcut import ChainShortcut, named_chain
from partwise.models.encoded import EncodedRows
from partwise.models.inspection import Explanation, TopFeatures, choose_kept, counts_of, explanation, largest
from partwise.models.layout import PairLayout, expand_pairs, layout_of
from partwise.models.rows import Rows
from partwise.models.saved import edge_layout_parts, layout_parts, read_edge_layout, read_layout
from partwise.models.sequences.model import SequenceSource
from partwise.problem import Batch, LabelledBatch
from partwise.problem.calls import NamedChain
from partwise.support.arrays import Floats, Ints


class ChainModel(ChainBase):
    """Weights for (attribute, label) pairs and for transitions."""

    kind = "chain"

    nodes: PairLayout
    edges: PairLayout | None  # None: tied transitions
    edge_ids: Ints | None  # attribute -> edge attribute (-1: none), for untied transitions

    @property
    def n_attributes(self) -> int:
        """Number of attributes of positions."""
        return self.nodes.core.num_attributes

    @property
    def run_lengths(self) -> tuple[int, int]:
        n_edges = self.n_labels * self.width if self.edges is None else self.edges.core.num_weights
        return self.nodes.core.num_weights, n_edges

    # features

    def _training_batch(self, rows: Rows, labels: Ints) -> Batch:
        shared: dict[str, Any] = {"min_count": int(self.min_count)}
        observed, plain = self.observed_transitions, self.reader.plain_transitions
        self.nodes = node_layout(
            rows, labels, self.n_labels, observed=self.observed, edge_only=self.reader.edge_only(), **shared
        )
        self.edges, self.edge_ids = None, self.reader.edge_ids(self.chosen)
        if self.edge_ids is not None:
            self.edges = edge_layout(
                rows, labels, self.n_labels, self.edge_ids, observed=observed, plain=plain, **shared
            )
        else:
            self.transition_mask = transition_mask(rows.lengths, labels, self.n_labels, observed, int(self.min_count))
            if not plain:
                self.transition_mask[:] = 0
        return self.batch(rows, once=False)

    def _learn_features(self, rows: Rows, labels: Ints, weight: Floats | None, training: Training) -> Learnt:
        learnt = super()._learn_features(rows, labels, weight, training)
        if rows.unknown[0]:  # `report` would have to count those of each sequence
            return learnt
        # without the attributes, which the batch has in a form of its own
        light = Rows(rows.lengths, rows.n_attributes, np.empty((0, rows.n_attributes)))
        batch, rule = learnt.examples.batch, self.kept_rule()
        if rule is not None:  # for answers, not for training
            batch = Batch(self.structure(rows.lengths), batch.features)
            rule.put_on(batch.structure)
        source = SequenceSource(rows.lengths, light, rule)
        return replace(learnt, reading=Reading(batch, len(rows.lengths), source=source))

    def feature_parameters(self) -> dict[str, Any]:
        return {
            **super().feature_parameters(),
            "transitions": self.transitions,
            "transition_features": encode(self.chosen, "transition_features"),
            "ends": self.ends,
        }

    def partitioner(self) -> ChainPartitioner:
        return ChainPartitioner(self)

    def encoded(self, parts: ModelParts) -> EncodedRows:
        return EncodedRows.from_parts(parts, self.n_attributes, self.n_labels)

    def labelled(self, encoded: EncodedRows, by_features: bool | None = False) -> LabelledBatch:
        return self._examples(self.batch(encoded.rows, once=False), encoded.labels, encoded.weight)

    def batch(self, rows: Rows, *, once: bool = True) -> Batch:
        structure = self.structure(rows.lengths)
        dense = self.nodes.all_pairs and not isinstance(rows.table, Attributes)
        features = chain_map(
            structure,
            rows.table if dense else rows.attributes(),
            layout=None if dense else self.nodes.core,
            edge_rows=None if self.edge_ids is None else edge_attributes(rows, self.edge_ids),
            edge_layout=None if self.edges is None else self.edges.core,
            transition_mask=self.transition_mask,
            once=once,
        )
        return Batch(structure, features)

    # calls

    _named: tuple[Floats, NamedChain | None] | None = None

    def named_chain(self) -> NamedChain | None:
        """The core's form of the model, for calls with named attributes; None where it has none."""
        if self._named is None or self._named[0] is not self._weights:
            self._named = self._weights, named_chain(self)
        return self._named[1]

    def shortcut(self, X: Any) -> ChainShortcut | None:
        chain = None if X is None else self.named_chain()
        rows = None if chain is None else chain.read(X)
        return None if chain is None or rows is None else ChainShortcut(chain, self.classes.tolist(), rows)

    def __copy__(self) -> Self:
        other = super().__copy__()
        other._named = None  # another rule or other weights may follow
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_named"}

    def carried(self, old: ChainModel) -> Floats | None:
        return carry_weights(old, self)

    def joined(self, old: ChainModel) -> Self:
        return join_features(self, old)

    # weights by name

    def node_features(self) -> tuple[Ints, Ints, Floats]:
        attributes, labels = expand_pairs(*self.nodes.core.pairs())
        return attributes, labels, self.nodes.core.unpack(self.split(self.weights)[0])

    def edge_pairs(self) -> tuple[Ints, Ints]:
        """(indptr, columns): edge attribute e has weights for label * width + next label in columns[indptr[e]:...].

        Tied transitions are edge attribute 0. A layout of all pairs has padded columns too.
        """
        if self.edges is not None:
            return self.edges.core.pairs()
        assert self.transition_mask is not None
        columns = np.flatnonzero(self.transition_mask).astype(np.int64)
        return np.array([0, len(columns)], dtype=np.int64), columns

    def edge_features(self) -> tuple[Ints, Ints, Floats]:
        run = self.split(self.weights)[1]
        attributes, columns = expand_pairs(*self.edge_pairs())
        return attributes, columns, run[columns] if self.edges is None else self.edges.core.unpack(run)

    def on_edges(self) -> Ints:
        """The attribute that each edge attribute is, -1 for the one that is on every edge."""
        chosen = np.empty(0, dtype=np.int64) if self.edge_ids is None else np.flatnonzero(self.edge_ids > 0)
        return np.concatenate([[-1], chosen])

    def edge_names(self) -> list[tuple[Any, ...]]:
        names: Any = self.reader.names() or range(self.n_attributes)
        return [(), *((names[j],) for j in self.on_edges()[1:])]

    def top_features(self, n: int = 10) -> TopFeatures:
        """The largest weights of every label and every transition."""
        names, classes = self.reader.name, self.classes.tolist()
        attributes, labels, values = self.node_features()
        found = {}
        for b, label in enumerate(classes):
            own = labels == b
            found[label] = largest(names, attributes[own], values[own], n)
        ids, cells, values = self.edge_features()
        attributes = self.on_edges()[ids]  # -1 is the pair's own weight
        order = np.argsort(cells, kind="stable")
        cells, starts = np.unique(cells[order], return_index=True)
        pairs: dict[tuple[Any, ...], list[tuple[Any, float]]] = {}
        for cell, own in zip(cells.tolist(), np.split(order, starts[1:]), strict=True):
            first, second = divmod(cell, self.width)
            rows = largest(names, attributes[own], values[own], n) if second < len(classes) else []
            if rows:
                pairs[classes[first], classes[second]] = rows
        return TopFeatures(found, dict(sorted(pairs.items(), key=lambda item: -abs(item[1][0][1]))))

    def explain(self, reading: Reading, position: int | None = None, *asked: Any) -> Explanation:
        """The features that make the best labelling of a sequence better than the second-best one."""
        (one, score), (two, other) = self.two_best(reading, position, *asked)
        classes, rows = self.classes.tolist(), reading.source.rows
        found = explain_positions(self, rows, one, two)
        found += explain_edges(self, rows, one, two) if len(one) > 1 else []
        found += explain_ends(self, one, two) if self.ends else []
        best, second = ([classes[label] for label in labels] for labels in (one.tolist(), two.tolist()))
        return explanation(best, second, (score, other), found, position)

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[Self, tuple[int, int, float]]:
        nodes, edges, ends = self.split(self.weights)
        node_ids, node_columns = expand_pairs(*self.nodes.core.pairs())
        node_values = self.nodes.core.unpack(nodes)
        edge_ids, cells, edge_values = self.edge_features()
        real = cells % self.width < self.n_labels  # a layout of all pairs has padded cells too
        edge_ids, cells, edge_values = edge_ids[real], cells[real], edge_values[real]
        values = np.concatenate([node_values, edge_values])
        kept = choose_kept(values, threshold, keep)
        on_nodes, on_edges = kept[: len(node_values)], kept[len(node_values) :]
        # Attributes without any weight are no longer known.
        used = np.zeros(self.n_attributes, dtype=bool)
        used[node_ids[on_nodes]] = True
        attributes = self.on_edges()
        has_weight = np.zeros(len(attributes), dtype=bool)
        has_weight[edge_ids[on_edges]] = True
        edges_used = attributes[1:][has_weight[1:]]
        used[edges_used] = True
        pruned = self.with_weights(self.weights)
        pruned.reader, number = self.reader.keep(used)
        n = int(number.max(initial=-1)) + 1
        pruned.nodes = layout_of(n, self.n_labels, self.width, number[node_ids[on_nodes]], node_columns[on_nodes])
        parts = [pruned.nodes.core.pack(node_values[on_nodes])]
        if self.transition_mask is not None:
            table = np.zeros_like(edges)
            table[cells[on_edges]] = edge_values[on_edges]
            pruned.transition_mask = np.zeros_like(self.transition_mask)
            pruned.transition_mask[cells[on_edges]] = 1
            parts.append(table)
        else:
            renumbered = np.concatenate([[0], np.where(has_weight[1:], np.cumsum(has_weight[1:]), -1)])
            size = self.n_labels * self.width
            pruned.edges = layout_of(len(edges_used) + 1, size, size, renumbered[edge_ids[on_edges]], cells[on_edges])
            parts.append(pruned.edges.core.pack(edge_values[on_edges]))
            picked = np.zeros(n, dtype=bool)
            picked[number[edges_used]] = True
            pruned.edge_ids = np.where(picked, np.cumsum(picked), -1).astype(np.int64)
        return pruned.with_weights(np.concatenate([*parts, ends])), counts_of(values, kept)

    # model files

    def _to_parts(self) -> ModelParts:
        nodes, edges, _ = self.split(self.weights)
        parts = ModelParts(self.kind, {"ends": self.ends})
        parts.add("nodes", layout_parts(self.nodes, nodes))
        if self.edges is not None and self.edge_ids is not None:
            parts.add("edges", edge_layout_parts(self.edges, edges, self.n_labels))
            parts.arrays["on_edges"] = (self.edge_ids > 0).astype(np.uint8)
        self._tail_to_parts(parts)
        return parts

    def _from_parts(self, parts: ModelParts, n_attributes: int) -> None:
        self._read_mask(parts)
        # Room for the other weights after those of the nodes, nearly all of a large model: they are not copied again.
        room = self.n_labels * self.width + (2 * self.width if self.ends else 0) if self.tied else 0
        self.nodes, run = read_layout(parts.part("nodes"), self.n_labels, room)
        if self.n_attributes != n_attributes:
            raise ModelFormatError(f"has weights for {self.n_attributes} attributes and knows {n_attributes}")
        self.edges = self.edge_ids = None
        tail = self._read_tail(parts)
        if self.tied:
            run[len(run) - room :] = np.concatenate(tail)
            self._weights = run
            return
        self.edges, others = read_edge_layout(parts.part("edges"), self.n_labels)
        chosen = parts.mask("on_edges", n_attributes)
        if int(chosen.sum()) + 1 != self.edges.core.num_attributes:
            raise ModelFormatError("has weights of transitions for other attributes than it says")
        self.edge_ids = np.where(chosen, np.cumsum(chosen), -1).astype(np.int64)
        self._weights = np.concatenate([run, others, *tail])
