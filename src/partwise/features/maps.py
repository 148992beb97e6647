"""Feature maps from rows of input: of multiclass problems and chains (`slots` has those of any structure).

Rows of input are a dense array (rows x inputs), a SciPy CSR matrix, or `Attributes`. Weights lie in this order:

    rows of labels     one weight per (attribute, label) of the layout, or per (input, label)
    transitions        tied: one per (label, next label); untied: one per (edge attribute, label, next label)
    begin, end         one per label each, where the chain has ends

A `segment_map` has the tables of `SegmentChain` in their order, a `second_order_map` rows of labels, pairs and triples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np

from partwise._core import (
    AttributeSegment,
    Chain,
    DenseSegment,
    HistoryChain,
    LinearMap,
    Multiclass,
    RowLayout,
    SecondOrderChain,
    Segment,
    SegmentChain,
    SharedSegment,
)
from partwise.support.arrays import Booleans, Bytes, Floats, InputRows, Ints, pointers


@dataclass(frozen=True, eq=False)
class Attributes:
    """Sparse rows: row p has attributes[row_ptr[p]:row_ptr[p + 1]] with `values` (None: all 1); -1 is ignored."""

    row_ptr: Ints
    attributes: Ints
    num_attributes: int
    values: Floats | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.row_ptr) - 1

    def take(self, rows: Ints) -> "Attributes":
        """Return these rows, in this order; one may come more than once."""
        sizes = np.diff(self.row_ptr)[rows]
        row_ptr = pointers(sizes)
        entries = np.repeat(self.row_ptr[rows] - row_ptr[:-1], sizes) + np.arange(row_ptr[-1])
        values = None if self.values is None else self.values[entries]
        return Attributes(row_ptr, self.attributes[entries], self.num_attributes, values)

    def entries(self, chosen: Booleans) -> Iterator[tuple[int, int, float]]:
        """Yield (attribute, row, value) of what is known of these rows."""
        owner = np.repeat(np.arange(self.n_rows), np.diff(self.row_ptr))
        some = np.flatnonzero(chosen[owner] & (self.attributes >= 0))
        values = np.ones(len(some)) if self.values is None else self.values[some]
        yield from zip(self.attributes[some].tolist(), owner[some].tolist(), values.tolist(), strict=True)


def attribute_map(structure: Multiclass | Chain, rows: Any, **options: Any) -> LinearMap:
    """`multiclass_map` or `chain_map`, whichever the structure asks for."""
    if isinstance(structure, Multiclass):
        return multiclass_map(structure, rows, **options)
    return chain_map(structure, rows, **options)


def multiclass_map(structure: Multiclass, rows: Any, *, layout: RowLayout | None = None) -> LinearMap:
    """One row of input per example.

    layout: which (attribute, label) pairs have a weight (sparse rows only; default: all).
    """
    ptr = np.arange(structure.num_examples + 1, dtype=np.int64)
    return LinearMap([_row_segment(rows, ptr, structure.n_labels, structure.width, layout)])


def chain_map(
    structure: Chain,
    rows: Any,
    *,
    layout: RowLayout | None = None,
    edge_rows: Any = None,
    edge_layout: RowLayout | None = None,
    transition_mask: Bytes | None = None,
    once: bool = False,
) -> LinearMap:
    """One row of input per position, all sequences end to end.

    Parameters
    ----------
    structure : Chain
    rows : rows of input, one per position
    layout : RowLayout, optional
        Which (attribute, label) pairs have a weight (sparse rows only; default: all).
    edge_rows : rows of input, optional
        Untied chains: one row per edge (length - 1 per sequence). Default: one attribute, always present.
    edge_layout : RowLayout, optional
        Untied chains: which (edge attribute, label * width + next label) pairs have a weight (default: all).
    transition_mask : bytes of n_labels * width, optional
        Tied chains: which transitions have a weight (default: all).
    once : bool
        Scores will be asked for about once per sequence, as in prediction: do not prepare the rows for many passes. The
        scores are the same (but for rounding where all sequences have one position).
    """
    lengths, n_labels, width = structure.lengths, structure.n_labels, structure.width
    segments = [_row_segment(rows, pointers(lengths), n_labels, width, layout, once)]
    table = n_labels * width
    if structure.tied:
        if edge_rows is not None or edge_layout is not None:
            raise ValueError("rows of input on edges need an untied chain (tied=False)")
        segments.append(SharedSegment(table, lengths - 1, transition_mask))
    else:
        if transition_mask is not None:
            raise ValueError("a transition mask needs a tied chain; untied ones take an edge_layout")
        edge_ptr = pointers(lengths - 1)
        edges = _bias_rows(int(edge_ptr[-1])) if edge_rows is None else edge_rows
        segments.append(_row_segment(edges, edge_ptr, table, table, edge_layout, once))
    if structure.ends:
        segments.append(SharedSegment(2 * width, np.full(len(lengths), 2, dtype=np.int64)))
    return LinearMap(segments)


def history_chain_map(structure: HistoryChain, rows: Any, *, layout: RowLayout) -> LinearMap:
    """One row of input per position, all sequences end to end; for prediction: rows are not prepared for passes.

    The layout may have more attributes than the rows: those of histories, whose scores the structure has.
    """
    ptr = pointers(structure.lengths)
    return LinearMap([_row_segment(rows, ptr, structure.n_labels, structure.width, layout, once=True)])


def second_order_map(
    structure: SecondOrderChain,
    rows: Any,
    *,
    layout: RowLayout | None = None,
    transition_mask: Bytes | None = None,
    triple_mask: Bytes | None = None,
    once: bool = False,
) -> LinearMap:
    """One row of input per position, all sequences end to end; one weight per pair and per triple of labels.

    transition_mask, triple_mask: which of them have a weight (default: all), n_labels * width and n_labels * n_labels *
    width bytes; the other arguments are those of `chain_map`.
    """
    lengths, n_labels, width = structure.lengths, structure.n_labels, structure.width
    nodes = _row_segment(rows, pointers(lengths), n_labels, width, layout, once)
    pairs = SharedSegment(n_labels * width, lengths - 1, transition_mask)
    triples = SharedSegment(n_labels * n_labels * width, np.maximum(lengths - 2, 0), triple_mask)
    return LinearMap([nodes, pairs, triples])


@dataclass(frozen=True)
class TableRows:
    """Rows of input of one of a segment chain's tables; which (attribute, label) pairs have a weight (None: all)."""

    rows: Any
    layout: RowLayout | None = None


def segment_map(
    structure: SegmentChain,
    inside: TableRows,
    *,
    first: TableRows | None = None,
    last: TableRows | None = None,
    whole: TableRows | None = None,
    length_mask: Bytes | None = None,
    transition_mask: Bytes | None = None,
    once: bool = False,
) -> LinearMap:
    """One row of input per position for segments that hold it (`inside`), begin with it (`first`) or end with it
    (`last`), one per listed segment (`whole`), all sequences end to end; one weight per length and label, and per pair
    of labels. A table without rows has no weights.

    length_mask, transition_mask: which lengths (max_length * width bytes) and transitions (n_labels * width) have a
    weight (default: all). once: see `chain_map`.
    """
    lengths, n_labels, width = structure.lengths, structure.n_labels, structure.width
    positions, listed = pointers(lengths), structure.listed[0]

    def table(given: TableRows | None, example_ptr: Ints) -> Segment:
        if given is None:
            given = TableRows(Attributes(np.zeros(int(example_ptr[-1]) + 1, dtype=np.int64), _NONE, 0))
        return _row_segment(given.rows, example_ptr, n_labels, width, given.layout, once)

    return LinearMap(
        [
            table(inside, positions),
            table(first, positions),
            table(last, positions),
            SharedSegment(structure.max_length * width, lengths, length_mask),
            SharedSegment(n_labels * width, lengths - 1, transition_mask),
            table(whole, listed),
        ]
    )


def _row_segment(
    rows: Any, example_ptr: Ints, n_columns: int, width: int, layout: RowLayout | None, once: bool = False
) -> Segment:
    rows = as_rows(rows, single=True)
    found, expected = (rows.n_rows if isinstance(rows, Attributes) else len(rows)), int(example_ptr[-1])
    if found != expected:
        raise ValueError(f"{found} rows of input, the structure has {expected}")
    if isinstance(rows, Attributes):
        layout = RowLayout.dense(rows.num_attributes, n_columns, width) if layout is None else layout
        if (layout.n_columns, layout.width) != (n_columns, width):
            raise ValueError(
                f"the layout has {layout.n_columns} columns in rows of {layout.width}, "
                f"the structure {n_columns} in rows of {width}"
            )
        return AttributeSegment(layout, example_ptr, rows.row_ptr, rows.attributes, rows.values, once)
    if layout is not None:
        raise ValueError("dense input has a weight for every (input, label): a layout needs sparse rows")
    return DenseSegment(rows, example_ptr, n_columns, width)


@overload
def as_rows(rows: Any) -> "Attributes | Floats": ...


@overload
def as_rows(rows: Any, *, single: Literal[True]) -> "Attributes | InputRows": ...


def as_rows(rows: Any, *, single: bool = False) -> "Attributes | InputRows":
    """Rows of input as `Attributes` or as a C-contiguous array of floats; single: float32 stays float32."""
    if isinstance(rows, Attributes):
        return rows
    if hasattr(rows, "tocsr"):  # SciPy's, without importing it
        from partwise.features.sparse_inputs import own_sparse

        matrix = own_sparse(rows, "the matrix of rows").tocsr()
        return Attributes(
            np.ascontiguousarray(matrix.indptr, dtype=np.int64),
            np.ascontiguousarray(matrix.indices, dtype=np.int64),
            int(matrix.shape[1]),
            np.ascontiguousarray(matrix.data, dtype=np.float64),
        )
    dense: InputRows = np.ascontiguousarray(rows)
    if not (single and dense.dtype == np.float32):
        dense = np.ascontiguousarray(dense, dtype=np.float64)
    if dense.ndim != 2:
        raise ValueError(f"rows of input must be a two-dimensional array, got {dense.ndim} dimension(s)")
    return dense


def as_attributes(rows: Any) -> Attributes:
    """Rows of input as `Attributes`; zeros of a dense array are left out."""
    if not isinstance(rows, Attributes) and not hasattr(rows, "tocsr"):
        from scipy import sparse

        dense = np.asarray(rows, dtype=np.float64)
        if dense.ndim != 2:
            raise ValueError(f"rows of input must be a two-dimensional array, got {dense.ndim} dimension(s)")
        rows = sparse.csr_array(dense)
    table = as_rows(rows)
    assert isinstance(table, Attributes)
    # 0/1 features are stored without values.
    if table.values is not None and np.all(table.values == 1.0):
        return Attributes(table.row_ptr, table.attributes, table.num_attributes)
    return table


_NONE: Ints = np.empty(0, dtype=np.int64)


def _bias_rows(n_rows: int) -> Attributes:
    return Attributes(np.arange(n_rows + 1, dtype=np.int64), np.zeros(n_rows, dtype=np.int64), 1)
