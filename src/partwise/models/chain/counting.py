"""The features of a chain chosen from counts over blocks of rows: the same that `layout` chooses from all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise.features import Attributes
from partwise.models.chain.layout import (
    attribute_counts,
    edge_attributes,
    every_edge,
    frequent_attributes,
    frequent_pairs,
    pair_table,
    transition_counts,
    transitions,
    without,
)
from partwise.models.layout import PairLayout, layout_of
from partwise.models.partitioner import PairCounts
from partwise.models.rows import Rows
from partwise.structures import padded_width
from partwise.support.arrays import Booleans, Bytes, Ints


@dataclass(frozen=True)
class Choice:
    """Which features there are to be.

    observed, observed_transitions: those that occur `min_count` times, or all. edge_only: attributes with weights for
    pairs of labels alone. edge_ids: attribute -> edge attribute, None for tied transitions. plain: whether pairs of
    labels have weights of their own.
    """

    n_attributes: int
    n_labels: int
    observed: bool
    observed_transitions: bool
    min_count: int
    edge_only: Booleans | None
    edge_ids: Ints | None
    plain: bool

    @property
    def width(self) -> int:
        """Padded number of labels."""
        return padded_width(self.n_labels)


class LayoutCounts:
    """Counts what layouts are chosen by."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        size = choice.n_labels * choice.width
        self._pairs = PairCounts(choice.n_labels)
        self._table: Ints | None = None  # of dense rows, in place of the pairs
        self._attributes = np.zeros(choice.n_attributes, dtype=np.int64)
        self._edges = PairCounts(size)
        self._transitions = np.zeros(size, dtype=np.int64)

    def add(self, rows: Rows, labels: Ints) -> None:
        """Count a block's rows."""
        choice = self.choice
        of_nodes = rows if choice.edge_only is None else without(rows, choice.edge_only)
        if not choice.observed:
            self._attributes += attribute_counts(of_nodes)
        elif isinstance(of_nodes.table, Attributes):
            self._pairs.add(of_nodes.table, labels)
        else:
            found = pair_table(of_nodes.table, labels, choice.n_labels)
            self._table = found if self._table is None else self._table + found
        if not choice.observed_transitions:
            return
        if choice.edge_ids is None:
            self._transitions += transition_counts(rows.lengths, labels, choice.n_labels)
        else:
            self._edges.add(edge_attributes(rows, choice.edge_ids), transitions(rows.lengths, labels, choice.width))

    def nodes(self) -> PairLayout:
        """Features of positions."""
        choice = self.choice
        if not choice.observed:
            some = choice.edge_only is not None
            return frequent_attributes(self._attributes, choice.n_labels, choice.min_count, some)
        if self._table is not None:
            return frequent_pairs(self._table, choice.min_count)
        return layout_of(choice.n_attributes, choice.n_labels, choice.width, *self._pairs.pairs(choice.min_count))

    def edges(self) -> PairLayout:
        """Features of transitions conditioned on observations."""
        choice = self.choice
        assert choice.edge_ids is not None
        n_edge_attributes = int(choice.edge_ids.max(initial=0)) + 1
        if not choice.observed_transitions:
            return every_edge(n_edge_attributes, choice.n_labels, choice.plain)
        attributes, columns = self._edges.pairs(choice.min_count)
        if not choice.plain:  # without the attribute that is on every edge
            attributes, columns = attributes[attributes > 0], columns[attributes > 0]
        size = choice.n_labels * choice.width
        return layout_of(n_edge_attributes, size, size, attributes, columns)

    def mask(self) -> Bytes:
        """Which tied transitions have a weight."""
        choice = self.choice
        if not choice.plain:
            return np.zeros(choice.n_labels * choice.width, dtype=np.uint8)
        if choice.observed_transitions:
            return (self._transitions >= choice.min_count).astype(np.uint8)
        real = np.arange(choice.width) < choice.n_labels
        return np.tile(real.astype(np.uint8), choice.n_labels)
