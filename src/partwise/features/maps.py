"""Feature maps from rows of input: of multiclass problems and chains, and by slots of structures of any kind.

Rows of input are a dense array (rows x inputs), a SciPy CSR matrix, or `Attributes`. Weights lie in this order:

    rows of labels     one weight per (attribute, label) of the layout, or per (input, label)
    transitions        tied: one per (label, next label); untied: one per (edge attribute, label, next label)
    begin, end         one per label each, where the chain has ends

A `segment_map` has the tables of `SegmentChain` in their order, a `second_order_map` rows of labels, pairs and triples,
a `slot_map` a weight per number of each block of rows, or per (number, label).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise._core import AttributeSegment, DenseSegment, LinearMap, RowLayout, Segment, SharedSegment, SlotSegment
from partwise.features.rows import Attributes, as_attributes, as_rows, own_sparse
from partwise.structures import Chain, HistoryChain, Multiclass, SecondOrderChain, SegmentChain, Structure
from partwise.support.arrays import Bytes, Ints, pointers
from partwise.support.checks import check_count


def attribute_map(structure: Multiclass | Chain, rows: object, **options: Any) -> LinearMap:
    """Return a structure's `multiclass_map` or `chain_map`."""
    if isinstance(structure, Multiclass):
        return multiclass_map(structure, rows, **options)
    return chain_map(structure, rows, **options)


def multiclass_map(structure: Multiclass, rows: object, *, layout: RowLayout | None = None) -> LinearMap:
    """Return the map of one row of input per example; layout: as for `chain_map`."""
    ptr = np.arange(structure.num_examples + 1, dtype=np.int64)
    return LinearMap([row_segment(rows, ptr, structure.n_labels, structure.width, layout)])


def chain_map(
    structure: Chain,
    rows: object,
    *,
    layout: RowLayout | None = None,
    edge_rows: object = None,
    edge_layout: RowLayout | None = None,
    transition_mask: Bytes | None = None,
    once: bool = False,
) -> LinearMap:
    """Return the map of one row of input per position, sequences concatenated.

    layout: which (attribute, label) pairs have a weight (sparse rows only; default: all). Untied chains: edge_rows has
    one row per edge, length - 1 per sequence (default: one attribute, always present), and edge_layout says which (edge
    attribute, label * width + next label) pairs have a weight (default: all). Tied chains: transition_mask, bytes of
    n_labels * width, says which transitions have a weight (default: all). once: scores are needed about once per
    sequence, as in prediction, so rows are not prepared for passes; rounding may differ if all have one position.
    """
    lengths, width, size = structure.lengths, structure.width, structure.n_labels * structure.width
    nodes = row_segment(rows, pointers(lengths), structure.n_labels, width, layout, once)
    if structure.tied:
        if edge_rows is not None or edge_layout is not None:
            raise ValueError("rows of input on edges need an untied chain (tied=False)")
        return stacked(structure, nodes, mask=transition_mask)
    if transition_mask is not None:
        raise ValueError("a transition mask needs a tied chain; untied ones take an edge_layout")
    edge_ptr = pointers(lengths - 1)
    if edge_rows is None:
        n_edges = int(edge_ptr[-1])
        edge_rows = Attributes(np.arange(n_edges + 1, dtype=np.int64), np.zeros(n_edges, dtype=np.int64), 1)
    return stacked(structure, nodes, row_segment(edge_rows, edge_ptr, size, size, edge_layout, once))


def stacked(structure: Chain, nodes: Segment, edges: Segment | None = None, mask: Bytes | None = None) -> LinearMap:
    """Return the map of a chain's positions, edges (None: tied transitions, with this mask) and ends."""
    lengths, width = structure.lengths, structure.width
    tied = SharedSegment(structure.n_labels * width, lengths - 1, mask) if edges is None else edges
    ends = [SharedSegment(2 * width, np.full(len(lengths), 2, dtype=np.int64))] if structure.ends else []
    return LinearMap([nodes, tied, *ends])


def history_chain_map(structure: HistoryChain, rows: object, *, layout: RowLayout) -> LinearMap:
    """Return the map of one row of input per position, for prediction: rows are not prepared for passes.

    The layout may have more attributes than the rows: those of histories, whose scores the structure computes.
    """
    ptr = pointers(structure.lengths)
    return LinearMap([row_segment(rows, ptr, structure.n_labels, structure.width, layout, once=True)])


def second_order_map(
    structure: SecondOrderChain,
    rows: object,
    *,
    layout: RowLayout | None = None,
    transition_mask: Bytes | None = None,
    triple_mask: Bytes | None = None,
    once: bool = False,
) -> LinearMap:
    """Return the map of one row of input per position, with a weight per pair and per triple of labels.

    transition_mask, triple_mask: which pairs and triples have a weight (default: all), n_labels * width and
    n_labels * n_labels * width bytes; the other arguments are those of `chain_map`.
    """
    lengths, n_labels, width = structure.lengths, structure.n_labels, structure.width
    nodes = row_segment(rows, pointers(lengths), n_labels, width, layout, once)
    pairs = SharedSegment(n_labels * width, lengths - 1, transition_mask)
    triples = SharedSegment(n_labels * n_labels * width, np.maximum(lengths - 2, 0), triple_mask)
    return LinearMap([nodes, pairs, triples])


@dataclass(frozen=True)
class TableRows:
    """Rows of input of one of a segment chain's tables; which (attribute, label) pairs have a weight (None: all)."""

    rows: object
    layout: RowLayout | None = None


def segment_map(
    structure: SegmentChain,
    inside: TableRows | None,
    *,
    first: TableRows | None = None,
    last: TableRows | None = None,
    whole: TableRows | None = None,
    length_mask: Bytes | None = None,
    transition_mask: Bytes | None = None,
    once: bool = False,
) -> LinearMap:
    """Return the map of a segment chain's tables of rows of input; a table without rows has no weights.

    inside, first, last: a row per position, for segments that hold it, begin or end with it. whole: a row per listed
    segment. Each (length, label) and each pair of labels has a weight. length_mask, transition_mask: which lengths
    (max_length * width bytes) and transitions (n_labels * width) have a weight (default: all). once: see `chain_map`.
    """
    lengths, n_labels, width = structure.lengths, structure.n_labels, structure.width
    positions, listed = pointers(lengths), structure.listed[0]

    def table(given: TableRows | None, example_ptr: Ints) -> Segment:
        if given is None:
            empty = np.zeros(int(example_ptr[-1]) + 1, dtype=np.int64)
            given = TableRows(Attributes(empty, empty[:0], 0))
        return row_segment(given.rows, example_ptr, n_labels, width, given.layout, once)

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


def row_segment(
    rows: object, example_ptr: Ints, n_columns: int, width: int, layout: RowLayout | None = None, once: bool = False
) -> Segment:
    """Return the features of rows of labels from rows of input, examples concatenated."""
    rows = as_rows(rows, single=True)
    found, expected = rows.shape[0], int(example_ptr[-1])
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


@dataclass(frozen=True, eq=False)
class SlotRows:
    """Rows of numbers for some of each example's slots, and how often labellings use these slots.

    rows: one entry per example, which holds that example's rows: a dense array (its last axis are the numbers, the
    others count the rows), a SciPy sparse matrix, or for all examples one array (examples x ... x numbers). Or all
    examples end to end: a two-dimensional array, a sparse matrix or `Attributes`.
    n_labels: 1 if a row is a slot's, with a weight per number. Else a row is that of n_labels slots, one after the
    other, with a weight per (number, label): number j of label a has weight j * n_labels + a.
    uses: how often a labelling uses a slot, at most. Certificates and step sizes rely on it.
    parts: how many parts a labelling has, at most, counted as often as they are used (None: any number). Known, it
    makes for better bounds, and so for larger steps of `eg` and `excessive-gap`.
    """

    rows: object
    n_labels: int = 1
    uses: int = 1
    parts: int | None = None

    def __post_init__(self) -> None:
        check_count("n_labels", self.n_labels)
        check_count("uses", self.uses)
        if self.parts is not None:
            check_count("parts", self.parts)


def slot_map(
    structure: Structure, *blocks: Any, uses: int = 1, parts: int | None = None, n_weights: int | None = None
) -> LinearMap:
    """Return the map of one row of input per slot, for any structure: a slot scores its row times the weights.

    blocks: rows of input, or `SlotRows`, which says which forms rows may have. An example's slots are those of the
    first block, then those of the second, and so on; each block has weights of its own. Several blocks must all be
    given example by example. uses, parts: those of `SlotRows`, for the other blocks. n_weights: the number of all
    weights, needed if there are no examples to determine it, else compared.

    ValueError if rows and slots do not agree, or a number is not finite; the message names the example.
    """
    if not blocks:
        raise ValueError("slot_map needs rows of input")
    slot_ptr = structure.slot_offsets()
    given = [each if isinstance(each, SlotRows) else SlotRows(each, 1, uses, parts) for each in blocks]
    read = [_read(each, len(slot_ptr) - 1, n_weights if len(given) == 1 else None) for each in given]
    if len(given) == 1 and read[0][1] is None:
        rows, found = read[0][0].n_rows, int(slot_ptr[-1])
        if rows != found:
            raise ValueError(f"{rows} rows of input, the structure has {found} slots")
        pieces = [slot_ptr]
    else:
        pieces = _pieces([number for _, number in read], given, slot_ptr)
    segments = [
        SlotSegment(table.num_attributes, piece, table.row_ptr, table.attributes, table.values, block.uses, block.parts)
        for (table, _), block, piece in zip(read, given, pieces, strict=True)
    ]
    found = sum(segment.num_weights for segment in segments)
    if n_weights is not None and found != n_weights:
        raise ValueError(f"rows of input for {found} weights, expected {n_weights}")
    return LinearMap(segments)


def label_features(rows: Any, labels: Any, width: int | None = None) -> Any:
    """Return rows for `slot_map` whose weights belong to features of labels, not to labels.

    The slot of row x and label a has the products x_j * labels[a, k], with the weight j * K + k. Labels that share
    features share weights, and a new label is scored by its features: x W labels[a] with W = weights.reshape(-1, K).

    rows: an array or sparse matrix, all examples end to end, or a list with each example's own. labels: the features of
    each label, n_labels x K. width: slots of a row of labels, `structure.width`; those beyond the labels are padding.
    """
    from scipy import sparse

    table = sparse.csr_matrix(labels, dtype=np.float64)
    n_slots = table.shape[0] if width is None else width
    if n_slots < table.shape[0]:
        raise ValueError(f"features of {table.shape[0]} labels for rows of {n_slots} slots")
    table.resize(n_slots, table.shape[1])

    def products(rows: Any) -> Any:
        return sparse.csr_matrix(sparse.kron(sparse.csr_matrix(rows, dtype=np.float64), table))

    return [products(each) for each in rows] if isinstance(rows, list | tuple) else products(rows)


def _pieces(numbers: list[Ints | None], blocks: list[SlotRows], slot_ptr: Ints) -> list[Ints]:
    """Return the slots of each block, examples concatenated; ValueError names an example with too few or many."""
    lengths = []
    for k, (number, block) in enumerate(zip(numbers, blocks, strict=True)):
        if number is None:
            raise ValueError(f"block {k} of rows is not given example by example, which several blocks must be")
        lengths.append(number * block.n_labels)
    have, expected = np.sum(lengths, axis=0), np.diff(slot_ptr)
    if (bad := np.flatnonzero(have != expected)).size:
        i = int(bad[0])
        raise ValueError(f"example {i}: rows of input for {have[i]} slots, the structure has {expected[i]}")
    return [pointers(each) for each in lengths]


def _read(block: SlotRows, n_examples: int, n_weights: int | None) -> tuple[Attributes, Ints | None]:
    """Return a block's rows, one per slot, and how many rows of input each example has (None: unknown)."""
    if isinstance(block.rows, Attributes) or hasattr(block.rows, "tocsr"):
        return _per_slot(block.rows, block.n_labels), None
    n_numbers = None if n_weights is None else n_weights // block.n_labels
    rows, lengths = _end_to_end(block.rows, n_examples, n_numbers)
    return _per_slot(rows, block.n_labels), lengths


def _end_to_end(rows: Any, n_examples: int, n_numbers: int | None) -> tuple[Any, Ints | None]:
    """Return rows as one matrix, and how many each example has (None if not given example by example)."""
    if isinstance(rows, np.ndarray) and rows.dtype != object:
        if rows.ndim == 2 and (len(rows) or n_examples):
            return np.asarray(rows, dtype=np.float64), None
        if rows.ndim < 2:
            raise ValueError(f"rows of input must be a two-dimensional array, got {rows.ndim} dimension(s)")
        if len(rows) != n_examples:
            raise ValueError(f"rows of input of {len(rows)} examples, the structure has {n_examples}")
        numbers = np.full(n_examples, np.prod(rows.shape[1:-1], dtype=np.int64), dtype=np.int64)
        return np.asarray(rows, dtype=np.float64).reshape(-1, rows.shape[-1]), numbers
    entries = list(rows)
    if entries and all(np.ndim(each) == 1 and not hasattr(each, "tocsr") for each in entries):  # a list of rows
        return np.asarray(entries, dtype=np.float64), None
    if len(entries) != n_examples:
        raise ValueError(f"rows of input of {len(entries)} examples, the structure has {n_examples}")
    if not entries:
        if n_numbers is None:
            raise ValueError("no examples: slot_map needs n_weights, or np.empty((0, numbers)) for rows")
        return np.empty((0, n_numbers)), np.empty(0, dtype=np.int64)
    tables = [_entry(each, i) for i, each in enumerate(entries)]
    numbers, widths = np.array([table.shape for table in tables], dtype=np.int64).T
    if (bad := np.flatnonzero(widths != widths[0])).size:
        raise ValueError(f"example {bad[0]}: rows of {widths[bad[0]]} numbers, those of example 0 have {widths[0]}")
    if any(hasattr(table, "tocsr") for table in tables):
        from scipy import sparse

        return sparse.vstack([sparse.csr_array(table) for table in tables], format="csr"), numbers
    return np.concatenate(tables), numbers


def _entry(rows: Any, i: int) -> Any:
    if hasattr(rows, "tocsr"):
        return own_sparse(rows, f"the matrix of example {i}")
    try:
        table = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"example {i}: rows of input must be an array of numbers ({error})") from None
    if table.ndim < 2:
        raise ValueError(f"example {i}: rows of input must have two dimensions or more, got {table.ndim}")
    return table.reshape(int(np.prod(table.shape[:-1])), table.shape[-1])


def _per_slot(rows: object, n_labels: int) -> Attributes:
    """Return one row per slot: row t of the input becomes the rows of slots (t, a), with weights (j, a)."""
    table = as_attributes(rows)
    if n_labels == 1:
        return table
    found = table.take(np.repeat(np.arange(table.n_rows), n_labels))
    label = np.repeat(np.tile(np.arange(n_labels), table.n_rows), np.diff(found.row_ptr))
    attributes = np.where(found.attributes < 0, -1, found.attributes * n_labels + label)
    return Attributes(found.row_ptr, attributes, table.num_attributes * n_labels, found.values)
