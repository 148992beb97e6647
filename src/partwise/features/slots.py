"""Feature maps for structures of any kind: rows of numbers for slots, dense or sparse, example by example.

Weights lie in the order of the blocks; a block has a weight per number of its rows, or per (number, label).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise._core import LinearMap, SlotSegment, Structure
from partwise.features.maps import Attributes, as_attributes
from partwise.support.arrays import Ints, pointers
from partwise.support.checks import check_count


@dataclass(frozen=True, eq=False)
class SlotRows:
    """Rows of numbers for some of each example's slots, with what is known of how labellings use them.

    Parameters
    ----------
    rows : rows of input
        One entry per example, which holds that example's rows: a dense array (its last axis are the numbers, the others
        count the rows), a SciPy sparse matrix, or for all examples one array (examples x ... x numbers). Or all
        examples end to end: a two-dimensional array, a sparse matrix or `Attributes`.
    n_labels : int
        1: a row is a slot's, with a weight per number. Else a row is that of n_labels slots, one after the other, with
        a weight per (number, label): number j of label a has weight j * n_labels + a.
    uses : int
        How often a labelling uses a slot, at most. Certificates and step sizes rely on it.
    parts : int, optional
        How many parts a labelling has, at most, counted as often as they are used (default: any number). Known, it
        makes for better bounds, and so for larger steps of `eg` and `excessive-gap`.
    """

    rows: Any
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
    """A row of input per slot, for structures of any kind: the score of a slot is the product of its row and w.

    Parameters
    ----------
    structure : Structure
    *blocks : rows of input, or `SlotRows`
        An example's slots are those of the first block, then those of the second, and so on; each block has weights of
        its own. `SlotRows` says which forms rows may have. Of several blocks all must be given example by example.
    uses, parts : int
        Of the blocks that are not `SlotRows`; see there.
    n_weights : int, optional
        How many weights there are in all; needed where there may be no example to tell, else compared.

    Raises
    ------
    ValueError
        If rows and slots do not agree, or a number is not finite; the message names the example.
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
    segments = [_segment(table, block, piece) for (table, _), block, piece in zip(read, given, pieces, strict=True)]
    found = sum(segment.num_weights for segment in segments)
    if n_weights is not None and found != n_weights:
        raise ValueError(f"rows of input for {found} weights, expected {n_weights}")
    return LinearMap(segments)


def label_features(rows: Any, labels: Any, width: int | None = None) -> Any:
    """Rows for `slot_map` whose weights belong to features of labels, and not to labels.

    The slot of row x and label a has the products x_j * labels[a, k], and weight j * K + k for each. Labels that share
    features share weights, and a new label is scored by its features: x W labels[a] with W = weights.reshape(-1, K).

    Parameters
    ----------
    rows : array or sparse matrix, or a list of them
        Rows of input, all examples end to end; or each example's own.
    labels : array or sparse matrix, n_labels x K
        The features of each label.
    width : int, optional
        Slots of a row of labels, `structure.width`; those beyond the labels are padding (default: none).
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
    """The slots of each block, all examples end to end; ValueError naming an example with others than it has."""
    lengths = []
    for k, (number, block) in enumerate(zip(numbers, blocks, strict=True)):
        if number is None:
            raise ValueError(f"block {k} of rows is not given example by example, which several blocks must be")
        lengths.append(number * block.n_labels)
    have, expected = np.sum(lengths, axis=0), np.diff(slot_ptr)
    bad = np.flatnonzero(have != expected)
    if bad.size:
        i = int(bad[0])
        raise ValueError(f"example {i}: rows of input for {have[i]} slots, the structure has {expected[i]}")
    return [pointers(each) for each in lengths]


def _segment(table: Attributes, block: SlotRows, slot_ptr: Ints) -> SlotSegment:
    return SlotSegment(
        table.num_attributes,
        slot_ptr,
        table.row_ptr,
        table.attributes,
        table.values,
        uses=block.uses,
        parts=block.parts,
    )


def _read(block: SlotRows, n_examples: int, n_weights: int | None) -> tuple[Attributes, Ints | None]:
    """A block's rows, one per slot, and how many rows each example has before labels are counted (None: unknown)."""
    rows, lengths = block.rows, None
    if not isinstance(rows, Attributes) and not hasattr(rows, "tocsr"):
        rows, lengths = _end_to_end(rows, n_examples, None if n_weights is None else n_weights // block.n_labels)
    return _per_slot(rows, block.n_labels), lengths


def _end_to_end(rows: Any, n_examples: int, n_numbers: int | None) -> tuple[Any, Ints | None]:
    """Dense rows, or rows by example, as one matrix; how many each example has, None if that was not given."""
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
    for i, table in enumerate(tables):
        if table.shape[1] != tables[0].shape[1]:
            raise ValueError(
                f"example {i}: rows of {table.shape[1]} numbers, those of example 0 have {tables[0].shape[1]}"
            )
    numbers = np.array([table.shape[0] for table in tables], dtype=np.int64)
    if any(hasattr(table, "tocsr") for table in tables):
        from scipy import sparse

        return sparse.vstack([sparse.csr_array(table) for table in tables], format="csr"), numbers
    return np.concatenate(tables), numbers


def _entry(rows: Any, i: int) -> Any:
    """The rows of example i as a matrix."""
    if hasattr(rows, "tocsr"):
        from partwise.features.sparse_inputs import own_sparse  # and with it SciPy

        return own_sparse(rows, f"the matrix of example {i}")
    try:
        table = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"example {i}: rows of input must be an array of numbers ({error})") from None
    if table.ndim < 2:
        raise ValueError(f"example {i}: rows of input must have two dimensions or more, got {table.ndim}")
    return table.reshape(int(np.prod(table.shape[:-1])), table.shape[-1])


def _per_slot(rows: Any, n_labels: int) -> Attributes:
    """One row per slot. Row t of the input is that of slots (t, a), with weights (j, a)."""
    table = as_attributes(rows)
    if n_labels == 1:
        return table
    # Entry k of row t becomes one entry in each of the n_labels rows that follow each other.
    counts = np.repeat(np.diff(table.row_ptr), n_labels)
    row_ptr = pointers(counts)
    order = np.arange(row_ptr[-1]) + np.repeat(np.repeat(table.row_ptr[:-1], n_labels) - row_ptr[:-1], counts)
    label = np.repeat(np.tile(np.arange(n_labels), table.n_rows), counts)
    attributes = table.attributes[order]
    attributes = np.where(attributes < 0, -1, attributes * n_labels + label)
    values = None if table.values is None else table.values[order]
    return Attributes(row_ptr, attributes, table.num_attributes * n_labels, values)
