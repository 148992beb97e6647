"""Features of a chain: pairs (attribute, label) and pairs of labels, chosen from all rows or from counts of blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise.features import Attributes, RowLayout
from partwise.models.features import PairLayout, Rows, layout_of
from partwise.models.partition import PairCounts
from partwise.structures import padded_width
from partwise.support.arrays import Booleans, Bytes, InputRows, Ints, pointers


def node_layout(
    rows: Rows, labels: Ints, n_labels: int, *, observed: bool, min_count: int, edge_only: Booleans | None = None
) -> PairLayout:
    """Features of positions; edge_only: attributes that have weights for pairs of labels and none for labels."""
    width = padded_width(n_labels)
    of_nodes = rows if edge_only is None else without(rows, edge_only)
    if observed:
        return _observed(of_nodes, labels, n_labels, width, min_count)
    return frequent_attributes(attribute_counts(of_nodes), n_labels, min_count, some=edge_only is not None)


def edge_layout(
    rows: Rows, labels: Ints, n_labels: int, edge_ids: Ints, *, observed: bool, min_count: int, plain: bool
) -> PairLayout:
    """Features of transitions conditioned on observations; plain: whether pairs of labels have weights of their own."""
    width = padded_width(n_labels)
    size = n_labels * width
    found = edge_attributes(rows, edge_ids)
    n_edge_attributes = found.num_attributes
    if observed:
        cells = transitions(rows.lengths, labels, width)
        ids = found.attributes if plain else np.where(found.attributes > 0, found.attributes, -1)
        core = RowLayout.observed(n_edge_attributes, size, size, found.row_ptr, ids, cells, min_count)
        return PairLayout(core, all_pairs=False)
    return every_edge(n_edge_attributes, n_labels, plain)


def every_edge(n_edge_attributes: int, n_labels: int, plain: bool) -> PairLayout:
    """All transitions for all edge attributes; plain: for the one that is on every edge too."""
    width = padded_width(n_labels)
    size = n_labels * width
    if plain:
        return PairLayout.every(n_edge_attributes, size, size)
    columns = np.flatnonzero(np.tile(_label_columns(n_labels, width), n_labels)).astype(np.int64)
    counts = np.full(n_edge_attributes, len(columns), dtype=np.int64)
    counts[0] = 0  # the attribute that is on every edge
    every = np.tile(columns, n_edge_attributes - 1)
    return PairLayout.some(n_edge_attributes, size, size, pointers(counts), every)


def transition_mask(lengths: Ints, labels: Ints, n_labels: int, observed: bool, min_count: int) -> Bytes:
    """Which transitions have a weight: all of them, or those that occur `min_count` times."""
    width = padded_width(n_labels)
    if not observed:
        return np.tile(_label_columns(n_labels, width), n_labels)
    return (transition_counts(lengths, labels, n_labels) >= min_count).astype(np.uint8)


def transition_counts(lengths: Ints, labels: Ints, n_labels: int) -> Ints:
    """How often each transition occurs, (n_labels * width,)."""
    width = padded_width(n_labels)
    counts: Ints = np.bincount(transitions(lengths, labels, width), minlength=n_labels * width)
    return counts


def label_triples(lengths: Ints, labels: Ints, n_labels: int, observed: bool, min_count: int) -> Bytes:
    """Which triples of labels have a weight: all of them, or those that occur `min_count` times."""
    if not observed:
        return every_triple(n_labels)
    return (triple_counts(lengths, labels, n_labels) >= min_count).astype(np.uint8)


def every_triple(n_labels: int) -> Bytes:
    """All triples of labels."""
    return np.tile(_label_columns(n_labels, padded_width(n_labels)), n_labels * n_labels)


def triple_counts(lengths: Ints, labels: Ints, n_labels: int) -> Ints:
    """How often each triple of labels occurs, (n_labels * n_labels * width,)."""
    width, inner = padded_width(n_labels), has_left_neighbour(lengths)
    both = inner[2:] & inner[1:-1]
    cells = (labels[:-2] * n_labels + labels[1:-1]) * width + labels[2:]
    counts: Ints = np.bincount(cells[both], minlength=n_labels * n_labels * width)
    return counts


def transitions(lengths: Ints, labels: Ints, width: int) -> Ints:
    """label * width + next label of all edges."""
    inner = has_left_neighbour(lengths)[1:]
    cells: Ints = labels[:-1][inner] * width + labels[1:][inner]
    return cells


def _observed(rows: Rows, labels: Ints, n_labels: int, width: int, min_count: int) -> PairLayout:
    """The pairs (attribute, label) seen together `min_count` times; the dense layout if that is all of them."""
    if isinstance(rows.table, Attributes):
        found = rows.table
        core = RowLayout.observed(
            rows.n_attributes, n_labels, width, found.row_ptr, found.attributes, labels, min_count
        )
        return PairLayout(core, all_pairs=False)
    return frequent_pairs(pair_table(rows.table, labels, n_labels), min_count)


def pair_table(table: InputRows, labels: Ints, n_labels: int) -> Ints:
    """How often each attribute of dense rows is not 0 with each label, (n_attributes, n_labels)."""
    counts = np.empty((table.shape[1], n_labels), dtype=np.int64)
    for label in range(n_labels):
        counts[:, label] = np.count_nonzero(table[labels == label], axis=0)
    return counts


def frequent_pairs(counts: Ints, min_count: int) -> PairLayout:
    """The pairs of a table that occur `min_count` times; the dense layout if that is all of them."""
    (n_attributes, n_labels), kept = counts.shape, counts >= min_count
    width = padded_width(n_labels)
    if kept.all():
        return PairLayout.every(n_attributes, n_labels, width)
    indptr = pointers(kept.sum(axis=1))
    return PairLayout.some(n_attributes, n_labels, width, indptr, np.nonzero(kept)[1].astype(np.int64))


def without(rows: Rows, attributes: Booleans) -> Rows:
    """The rows without these attributes, which keep their numbers."""
    found = rows.attributes()
    known = found.attributes >= 0
    ids = np.where(known & ~attributes[np.where(known, found.attributes, 0)], found.attributes, -1)
    return Rows(rows.lengths, rows.n_attributes, Attributes(found.row_ptr, ids, found.num_attributes, found.values))


def attribute_counts(rows: Rows) -> Ints:
    """How often each attribute occurs."""
    if isinstance(rows.table, Attributes):
        seen = rows.table.attributes
        return np.bincount(seen[seen >= 0], minlength=rows.n_attributes)
    counts: Ints = np.count_nonzero(rows.table, axis=0)
    return counts


def frequent_attributes(counts: Ints, n_labels: int, min_count: int, some: bool) -> PairLayout:
    """All labels for the attributes seen `min_count` times; the dense layout if that is all, unless `some` are out."""
    width, kept = padded_width(n_labels), counts >= min_count
    if not some and (min_count == 1 or kept.all()):
        return PairLayout.every(len(counts), n_labels, width)
    columns = np.tile(np.arange(n_labels, dtype=np.int64), int(kept.sum()))
    return PairLayout.some(len(counts), n_labels, width, pointers(kept * n_labels), columns)


def edge_attributes(rows: Rows, edge_ids: Ints) -> Attributes:
    """Rows of edges: attribute 0, then the chosen attributes of the edge's right end."""
    found = rows.attributes()
    ids = np.append(edge_ids, -1)[found.attributes]  # of -1, the last: -1
    owner = np.repeat(np.arange(rows.n_rows), np.diff(found.row_ptr))
    inner = has_left_neighbour(rows.lengths)
    kept = (ids >= 0) & inner[owner]
    row_ptr = pointers(np.bincount(owner[kept], minlength=rows.n_rows)[inner] + 1)
    later = np.ones(int(row_ptr[-1]), dtype=bool)  # all entries of an edge but its first
    later[row_ptr[:-1]] = False
    attributes = np.zeros(len(later), dtype=np.int64)
    attributes[later] = ids[kept]
    values = None
    if found.values is not None:
        values = np.ones(len(later))
        values[later] = found.values[kept]
    return Attributes(row_ptr, attributes, int(edge_ids.max(initial=0)) + 1, values)


def has_left_neighbour(lengths: Ints) -> Booleans:
    """All positions but the first of each sequence."""
    inner = np.ones(int(lengths.sum()), dtype=bool)
    inner[pointers(lengths)[:-1]] = False
    return inner


def _label_columns(n_labels: int, width: int) -> Bytes:
    mask = np.zeros(width, dtype=np.uint8)
    mask[:n_labels] = 1
    return mask


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
            self._pairs.add_rows(of_nodes.table, labels)
        else:
            found = pair_table(of_nodes.table, labels, choice.n_labels)
            self._table = found if self._table is None else self._table + found
        if not choice.observed_transitions:
            return
        if choice.edge_ids is None:
            self._transitions += transition_counts(rows.lengths, labels, choice.n_labels)
        else:
            cells = transitions(rows.lengths, labels, choice.width)
            self._edges.add_rows(edge_attributes(rows, choice.edge_ids), cells)

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
