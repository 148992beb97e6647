"""Features of a chain: pairs (attribute, label) and pairs of labels, chosen by how often they occur."""

from dataclasses import dataclass, replace

import numpy as np

from partwise.features import Attributes
from partwise.models.features import PairCounts, PairLayout, Rows
from partwise.models.files import padded
from partwise.structures import padded_width
from partwise.support.arrays import Booleans, Bytes, Ints, pointers


@dataclass(frozen=True)
class FeatureChoice:
    """Which features a chain is to have."""

    n_attributes: int
    n_labels: int
    observed: bool  # only those that occur `min_count` times
    observed_transitions: bool  # the same of transitions
    min_count: int
    edge_only: Booleans | None = None  # attributes with weights for pairs of labels alone
    edge_ids: Ints | None = None  # each attribute's number as an edge attribute; None for tied transitions
    plain: bool = True  # whether pairs of labels have weights of their own
    order: int = 1  # 2 for triples of labels

    @property
    def n_edge_attributes(self) -> int:
        """Number of attributes of edges, 0 for tied transitions."""
        return 0 if self.edge_ids is None else int(self.edge_ids.max(initial=0)) + 1

    @property
    def width(self) -> int:
        return padded_width(self.n_labels)

    def cells(self, counts: Ints, order: int = 1) -> Bytes:
        """Return which tuples of order + 1 labels have a weight of their own, by how often each tuple occurs."""
        if not self.plain:
            return np.zeros(len(counts), dtype=np.uint8)
        if self.observed_transitions:
            return (counts >= self.min_count).astype(np.uint8)
        return padded(np.ones((self.n_labels,) * (order + 1), dtype=np.uint8))


class FeatureCounts:
    """Counts over blocks of rows that a chain's features are chosen by."""

    def __init__(self, choice: FeatureChoice) -> None:
        self.choice = choice
        n, width = choice.n_labels, choice.width
        self._pairs = PairCounts(choice.n_attributes, n, width)
        self._table: Ints | None = None  # of dense rows, in place of the pairs
        self._attributes = np.zeros(choice.n_attributes, dtype=np.int64)
        self._edges = PairCounts(choice.n_edge_attributes, n * width, n * width)
        self._runs = {order: np.zeros(n**order * width, dtype=np.int64) for order in range(1, choice.order + 1)}

    def add(self, rows: Rows, labels: Ints) -> None:
        """Count a block: attributes of positions, or pairs of attribute and label, and neighbouring labels."""
        choice, lengths = self.choice, rows.lengths
        table = rows.table
        if choice.edge_only is not None:  # these have weights for pairs of labels alone
            table = rows.attributes()
            left_out = np.append(choice.edge_only, True)  # of -1, the last
            table = replace(table, attributes=np.where(left_out[table.attributes], -1, table.attributes))
        if isinstance(table, Attributes):
            if choice.observed:
                self._pairs.add(table, labels)
            else:
                self._attributes += np.bincount(table.attributes[table.attributes >= 0], minlength=rows.n_attributes)
        elif not choice.observed:
            self._attributes += np.count_nonzero(table, axis=0)
        else:
            columns = [np.count_nonzero(table[labels == label], axis=0) for label in range(choice.n_labels)]
            found = np.stack(columns, axis=1)
            self._table = found if self._table is None else self._table + found
        if not choice.observed_transitions:
            return
        for order, counts in self._runs.items():
            counts += transition_counts(lengths, labels, choice.n_labels, order)
        if choice.edge_ids is None:
            return
        edges = edge_attributes(rows, choice.edge_ids)
        if not choice.plain:  # attribute 0 is on every edge
            edges = replace(edges, attributes=np.where(edges.attributes > 0, edges.attributes, -1))
        self._edges.add(edges, transitions(lengths, labels, choice.n_labels))

    def nodes(self) -> PairLayout:
        """Return the features of positions: the dense layout if that is all pairs."""
        choice = self.choice
        shape = choice.n_attributes, choice.n_labels
        if choice.observed and self._table is None:
            return self._pairs.layout(choice.min_count)
        counts = np.broadcast_to(self._attributes[:, None], shape) if self._table is None else self._table
        kept: Booleans = counts >= choice.min_count
        # An attribute that did not occur has weights too where all features do.
        every = choice.observed or choice.edge_only is None
        if every and (kept.all() or (choice.min_count == 1 and not choice.observed)):
            return PairLayout.every(*shape, choice.width)
        return PairLayout.some(*shape, choice.width, pointers(kept.sum(axis=1)), np.nonzero(kept)[1].astype(np.int64))

    def edges(self) -> PairLayout:
        choice = self.choice
        n, size = choice.n_edge_attributes, choice.n_labels * choice.width
        if choice.observed_transitions:
            return self._edges.layout(choice.min_count)
        if choice.plain:
            return PairLayout.every(n, size, size)
        columns = np.flatnonzero(padded(np.ones((choice.n_labels, choice.n_labels), dtype=np.uint8)))
        counts = np.full(n, len(columns), dtype=np.int64)
        counts[0] = 0
        return PairLayout.some(n, size, size, pointers(counts), np.tile(columns.astype(np.int64), n - 1))

    def mask(self, order: int = 1) -> Bytes:
        """Return which tied transitions (order 2: triples) have a weight, (n_labels ** order * width,)."""
        return self.choice.cells(self._runs[order], order)


def transition_counts(lengths: Ints, labels: Ints, n_labels: int, order: int = 1) -> Ints:
    """Return how often each transition (order 2: each triple) occurs, (n_labels ** order * width,)."""
    cells = transitions(lengths, labels, n_labels, order)
    return np.bincount(cells, minlength=n_labels**order * padded_width(n_labels))


def transitions(lengths: Ints, labels: Ints, n_labels: int, order: int = 1) -> Ints:
    """Return label * width + next label of all edges; order 2: of all triples, pair of labels * width + next label."""
    before, inner = labels[:-1], has_left_neighbour(lengths)[1:]
    if order == 2:
        before, inner = before[:-1] * n_labels + before[1:], inner[:-1] & inner[1:]
    return before[inner] * padded_width(n_labels) + labels[order:][inner]


def edge_attributes(rows: Rows, edge_ids: Ints) -> Attributes:
    """Return rows of edges: attribute 0, then the chosen attributes of the edge's right end."""
    found = rows.attributes()
    ids = np.append(edge_ids, -1)[found.attributes]  # of -1, the last: -1
    owner = np.repeat(np.arange(rows.n_rows), np.diff(found.row_ptr))
    inner = has_left_neighbour(rows.lengths)
    kept = (ids >= 0) & inner[owner]
    counts = np.bincount(owner[kept], minlength=rows.n_rows)[inner]
    begins = pointers(counts)[:-1]
    attributes = np.insert(ids[kept], begins, 0)
    values = None if found.values is None else np.insert(found.values[kept], begins, 1.0)
    return Attributes(pointers(counts + 1), attributes, int(edge_ids.max(initial=0)) + 1, values)


def has_left_neighbour(lengths: Ints) -> Booleans:
    """Return which positions are not the first of their sequence."""
    inner = np.ones(int(lengths.sum()), dtype=bool)
    inner[pointers(lengths)[:-1]] = False
    return inner
