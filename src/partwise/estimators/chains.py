"""A tagger's features as a feature map: rows of labels, then transitions, then begin and end.

The weights are one vector, in this order:

    nodes        one run of weights an attribute, for its labels (all, or the observed ones)
    transitions  n_labels x width, shared by all edges; or, for transitions conditioned on observations, one run of
                 weights an edge attribute, for its pairs (a, b) of labels at column a * width + b. Edge attribute 0 is
                 there on every edge.
    ends         a row for the first label and a row for the last
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise._core import Chain, LinearMap, RowLayout, padded_width
from partwise.estimators.inputs import Floats, Ints, Rows, pointers
from partwise.features import Attributes, chain_map

Booleans = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


class PairLayout:
    """A RowLayout that can be pickled."""

    def __init__(self, core: RowLayout, all_pairs: bool) -> None:
        self.core = core
        self.all_pairs = all_pairs

    @classmethod
    def every(cls, n_attributes: int, n_columns: int, width: int) -> PairLayout:
        """Every (attribute, column) pair."""
        return cls(RowLayout.dense(n_attributes, n_columns, width), all_pairs=True)

    @classmethod
    def some(cls, n_attributes: int, n_columns: int, width: int, indptr: Ints, columns: NDArray[Any]) -> PairLayout:
        """Just these pairs."""
        return cls(RowLayout.from_pairs(n_attributes, n_columns, width, indptr, columns), all_pairs=False)

    def __reduce__(self) -> tuple[Any, ...]:
        shape = (self.core.num_attributes, self.core.n_columns, self.core.width)
        if self.all_pairs:
            return PairLayout.every, shape
        return PairLayout.some, (*shape, *self.core.pairs())


@dataclass(frozen=True)
class ChainModel:
    """Which features a tagger has: enough to map any rows to slots, and to read the weights."""

    n_labels: int
    ends: bool
    nodes: PairLayout
    edges: PairLayout | None  # None: tied transitions
    edge_ids: Ints | None  # attribute -> edge attribute (-1: none), for untied transitions
    transition_mask: Bytes | None = field(repr=False)  # tied: (n_labels * width,)

    @property
    def n_attributes(self) -> int:
        """Number of attributes of positions."""
        return self.nodes.core.num_attributes

    @property
    def width(self) -> int:
        """Padded number of labels."""
        return padded_width(self.n_labels)

    def structure(self, lengths: Ints) -> Chain:
        """The labellings of sequences of these lengths (none of them 0)."""
        return Chain(lengths, self.n_labels, tied=self.edges is None, ends=self.ends)

    def features(self, rows: Rows, structure: Chain, *, once: bool = False) -> LinearMap:
        """The feature map of these rows; once: for a single look at each, as in prediction."""
        dense = self.nodes.all_pairs and not isinstance(rows.table, Attributes)
        return chain_map(
            structure,
            rows.table if dense else rows.attributes(),
            layout=None if dense else self.nodes.core,
            edge_rows=None if self.edge_ids is None else edge_attributes(rows, self.edge_ids),
            edge_layout=None if self.edges is None else self.edges.core,
            transition_mask=self.transition_mask,
            once=once,
        )

    def split(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """The runs of node, transition and end weights."""
        n_nodes = self.nodes.core.num_weights
        n_edges = self.n_labels * self.width if self.edges is None else self.edges.core.num_weights
        nodes, edges, ends = np.split(weights, [n_nodes, n_nodes + n_edges])
        return nodes, edges, ends

    def node_features(self, weights: Floats) -> tuple[Ints, Ints, Floats]:
        """(attributes, labels, weights) of the features of positions."""
        attributes, labels = expand_pairs(*self.nodes.core.pairs())
        return attributes, labels, self.nodes.core.unpack(self.split(weights)[0])

    def edge_pairs(self) -> tuple[Ints, Ints]:
        """(indptr, columns): edge attribute e has weights for label * width + next label in columns[indptr[e]:...].

        Tied transitions are edge attribute 0. A layout of all pairs has padded columns too.
        """
        if self.edges is not None:
            return self.edges.core.pairs()
        assert self.transition_mask is not None
        columns = np.flatnonzero(self.transition_mask).astype(np.int64)
        return np.array([0, len(columns)], dtype=np.int64), columns

    def edge_features(self, weights: Floats) -> tuple[Ints, Ints, Floats]:
        """(edge attributes, columns, weights) of the features of transitions, in the order of `edge_pairs`."""
        run = self.split(weights)[1]
        attributes, columns = expand_pairs(*self.edge_pairs())
        return attributes, columns, run[columns] if self.edges is None else self.edges.core.unpack(run)


def make_model(
    rows: Rows,
    labels: Ints,
    n_labels: int,
    *,
    observed: bool,
    observed_transitions: bool,
    edge_ids: Ints | None,
    ends: bool,
    min_count: int,
    edge_only: Booleans | None = None,
    plain_transitions: bool = True,
) -> ChainModel:
    """Choose a tagger's features from its training data.

    edge_only: attributes that have weights for pairs of labels and none for labels. plain_transitions: whether pairs of
    labels have weights of their own.
    """
    width = padded_width(n_labels)
    of_nodes = rows if edge_only is None else _without(rows, edge_only)
    if observed:
        nodes = _observed(of_nodes, labels, n_labels, width, min_count)
    else:
        nodes = _frequent(of_nodes, n_labels, width, min_count, edge_only)

    edges = mask = None
    if edge_ids is not None:
        size = n_labels * width
        found = edge_attributes(rows, edge_ids)
        n_edge_attributes = found.num_attributes
        if observed_transitions:
            cells = _transitions(rows.lengths, labels, width)
            ids = found.attributes if plain_transitions else np.where(found.attributes > 0, found.attributes, -1)
            core = RowLayout.observed(n_edge_attributes, size, size, found.row_ptr, ids, cells, min_count)
            edges = PairLayout(core, all_pairs=False)
        elif plain_transitions:
            edges = PairLayout.every(n_edge_attributes, size, size)
        else:
            columns = np.flatnonzero(np.tile(_label_columns(n_labels, width), n_labels)).astype(np.int64)
            counts = np.full(n_edge_attributes, len(columns), dtype=np.int64)
            counts[0] = 0  # the attribute that is on every edge
            every = np.tile(columns, n_edge_attributes - 1)
            edges = PairLayout.some(n_edge_attributes, size, size, pointers(counts), every)
    else:
        mask = transition_mask(rows.lengths, labels, n_labels, observed_transitions, min_count)
        if not plain_transitions:
            mask[:] = 0
    return ChainModel(n_labels, ends, nodes, edges, edge_ids, mask)


def transition_mask(lengths: Ints, labels: Ints, n_labels: int, observed: bool, min_count: int) -> Bytes:
    """Which transitions have a weight: all of them, or those that occur `min_count` times."""
    width = padded_width(n_labels)
    if not observed:
        return np.tile(_label_columns(n_labels, width), n_labels)
    counts = np.bincount(_transitions(lengths, labels, width), minlength=n_labels * width)
    return (counts >= min_count).astype(np.uint8)


def _transitions(lengths: Ints, labels: Ints, width: int) -> Ints:
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
    kept = np.empty((rows.n_attributes, n_labels), dtype=bool)
    for label in range(n_labels):
        kept[:, label] = np.count_nonzero(rows.table[labels == label], axis=0) >= min_count
    if kept.all():
        return PairLayout.every(rows.n_attributes, n_labels, width)
    indptr = pointers(kept.sum(axis=1))
    return PairLayout.some(rows.n_attributes, n_labels, width, indptr, np.nonzero(kept)[1].astype(np.int64))


def _without(rows: Rows, attributes: Booleans) -> Rows:
    """The rows without these attributes, which keep their numbers."""
    found = rows.attributes()
    known = found.attributes >= 0
    ids = np.where(known & ~attributes[np.where(known, found.attributes, 0)], found.attributes, -1)
    return Rows(rows.lengths, rows.n_attributes, Attributes(found.row_ptr, ids, found.num_attributes, found.values))


def _frequent(rows: Rows, n_labels: int, width: int, min_count: int, left_out: Booleans | None = None) -> PairLayout:
    """All labels for the attributes seen `min_count` times; the dense layout if that is all of them."""
    if isinstance(rows.table, Attributes):
        seen = rows.table.attributes
        counts = np.bincount(seen[seen >= 0], minlength=rows.n_attributes)
    else:
        counts = np.count_nonzero(rows.table, axis=0)
    kept = counts >= min_count
    if left_out is None and (min_count == 1 or kept.all()):
        return PairLayout.every(rows.n_attributes, n_labels, width)
    columns = np.tile(np.arange(n_labels, dtype=np.int64), int(kept.sum()))
    return PairLayout.some(rows.n_attributes, n_labels, width, pointers(kept * n_labels), columns)


def edge_attributes(rows: Rows, edge_ids: Ints) -> Attributes:
    """Rows of edges: attribute 0, then the chosen attributes of the edge's right end."""
    found = rows.attributes()
    ids = np.where(found.attributes >= 0, edge_ids[found.attributes], -1)
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


def expand_pairs(indptr: Ints, columns: Ints) -> tuple[Ints, Ints]:
    """(row, column) of each entry of a CSR pattern."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), columns


def has_left_neighbour(lengths: Ints) -> Booleans:
    """All positions but the first of each sequence."""
    inner = np.ones(int(lengths.sum()), dtype=bool)
    inner[pointers(lengths)[:-1]] = False
    return inner


def _label_columns(n_labels: int, width: int) -> Bytes:
    mask = np.zeros(width, dtype=np.uint8)
    mask[:n_labels] = 1
    return mask
