"""Maps of maximum-entropy features f_t(x, y) with column access, for methods that change one weight at a time.

Three ways to have features:

    maxent_map         attributes of the context times labels: all pairs, or (OpenNLP's way) only some, each of which
                       ties an attribute to one label
    logistic_map       two labels and one weight per attribute, on the side of the second (Huang et al. 2010,
                       section 7.11)
    maxent_matrix_map  any sparse matrix with a row for each (context, label)

`merge_contexts` makes one example with a weight of equal ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partwise._core import MaxentMap, Multiclass, RowLayout
from partwise.features.rows import Attributes, as_attributes
from partwise.support.arrays import Floats, Ints, UInt64s, pointers


def maxent_map(
    structure: Multiclass,
    rows: object,
    *,
    layout: RowLayout | None = None,
    pairs: tuple[ArrayLike, ArrayLike] | None = None,
) -> MaxentMap:
    """Return the map of one row of attributes per example, with a weight for each (attribute, label).

    rows: `Attributes`, a SciPy sparse matrix or an array; zeros are not features. layout: which pairs have a weight
    (default: all), for instance `RowLayout.observed(...)`. pairs: the same as two arrays, attributes and labels.
    """
    table = as_attributes(rows)
    if table.n_rows != structure.num_examples:
        raise ValueError(f"{table.n_rows} rows of input, the structure has {structure.num_examples} examples")
    if pairs is not None:
        if layout is not None:
            raise ValueError("give a layout or pairs, not both")
        layout = _layout_of_pairs(structure, table.num_attributes, *pairs)
    if layout is None:
        layout = RowLayout.dense(table.num_attributes, structure.n_labels, structure.width)
    if (layout.n_columns, layout.width) != (structure.n_labels, structure.width):
        raise ValueError(f"the layout has {layout.n_columns} labels, the structure {structure.n_labels}")
    return MaxentMap(layout, table.row_ptr, table.attributes, table.values)


def logistic_map(structure: Multiclass, rows: object) -> MaxentMap:
    """Return the map of binary logistic regression: one weight per attribute, which counts for label 1."""
    if structure.n_labels != 2:
        raise ValueError(f"logistic regression has two labels, the structure has {structure.n_labels}")
    table = as_attributes(rows)
    each = np.arange(table.num_attributes)
    return maxent_map(structure, table, pairs=(each, np.ones_like(each)))


def maxent_matrix_map(structure: Multiclass, matrix: object) -> MaxentMap:
    """Return the map of any features: row i * n_labels + y of the matrix holds f(x_i, y), column t is feature t."""
    table, n, n_labels = as_attributes(matrix), structure.num_examples, structure.n_labels
    if table.n_rows != n * n_labels:
        raise ValueError(f"{table.n_rows} rows, {n} examples with {n_labels} labels each")
    if (table.attributes < 0).any():
        raise ValueError("a matrix of features has no columns below 0")
    rows = table.row_ptr, table.attributes, table.values
    return MaxentMap.of_matrix(n_labels, structure.width, table.num_attributes, *rows)


@dataclass(frozen=True, eq=False)
class Contexts:
    """Examples without repetitions: rows, labels, how much each weighs, and where each given example went."""

    rows: Attributes
    labels: Ints
    sample_weight: Floats
    index: Ints


def merge_contexts(rows: object, labels: ArrayLike, sample_weight: ArrayLike | None = None) -> Contexts:
    """Merge examples that have the same attributes (with the same values) and the same label.

    The weights of merged examples add up, so that the objective stays the same. Examples that share frequent attributes
    become neighbours, so that methods that visit the examples of an attribute find them in the same cache lines.
    """
    table = as_attributes(rows)
    labels = np.asarray(labels, dtype=np.int64)
    weight = np.ones(table.n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if labels.shape != (table.n_rows,) or weight.shape != (table.n_rows,):
        raise ValueError(f"{table.n_rows} rows, labels of shape {labels.shape}, weights of shape {weight.shape}")
    table = _sorted(table)
    keys = np.stack([*_hashes(table), labels.view(np.uint64)], axis=1)
    _, first, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    index = index.reshape(-1)
    order = np.lexsort((first, _neighbourhoods(table)[first]))
    first, index = first[order], np.argsort(order)[index]
    _check_equal(table, first[index])
    kept = table.take(first)
    merged: Floats = np.bincount(index, weights=weight, minlength=len(first)).astype(np.float64)
    return Contexts(kept, labels[first], merged, index.astype(np.int64))


def _layout_of_pairs(structure: Multiclass, n_attributes: int, attributes: ArrayLike, labels: ArrayLike) -> RowLayout:
    a, y = np.asarray(attributes, dtype=np.int64), np.asarray(labels, dtype=np.int64)
    if a.shape != y.shape or a.ndim != 1:
        raise ValueError(f"pairs: attributes of shape {a.shape}, labels of shape {y.shape}")
    for name, values, limit in (("attribute", a, n_attributes), ("label", y, structure.n_labels)):
        bad = np.flatnonzero((values < 0) | (values >= limit))
        if bad.size:
            raise ValueError(f"pair {bad[0]}: {name} {values[bad[0]]} is not in [0, {limit})")
    flat = np.unique(a * structure.n_labels + y)
    indptr = np.searchsorted(flat, np.arange(n_attributes + 1) * structure.n_labels).astype(np.int64)
    return RowLayout.from_pairs(n_attributes, structure.n_labels, structure.width, indptr, flat % structure.n_labels)


def _sorted(table: Attributes) -> Attributes:
    """Return the rows with attributes in order, without ignored ones."""
    row = np.repeat(np.arange(table.n_rows), np.diff(table.row_ptr))
    keep = np.flatnonzero(table.attributes >= 0)
    order = keep[np.lexsort((table.attributes[keep], row[keep]))]
    row_ptr = pointers(np.bincount(row[keep], minlength=table.n_rows))
    values = None if table.values is None else table.values[order]
    return Attributes(row_ptr, table.attributes[order], table.num_attributes, values)


def _neighbourhoods(table: Attributes) -> UInt64s:
    """Return a bit for each of the 64 most frequent attributes that a row has, the highest for the most frequent."""
    counts = np.bincount(table.attributes, minlength=table.num_attributes)
    bits = np.zeros(table.num_attributes, dtype=np.uint64)
    frequent = np.argsort(-counts, kind="stable")[:64]
    bits[frequent] = np.uint64(1) << np.arange(63, 63 - len(frequent), -1).astype(np.uint64)
    keys = np.bitwise_or.reduceat(np.append(bits[table.attributes], np.uint64(0)), table.row_ptr[:-1])
    return np.where(np.diff(table.row_ptr) > 0, keys, np.uint64(0))  # reduceat gives an empty row its neighbour's


def _hashes(table: Attributes) -> list[UInt64s]:
    """Return two hashes of each row: sums of scrambled (attribute, value) pairs."""
    found = []
    for salt in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03):
        mixed = _scramble(table.attributes.astype(np.uint64) + np.uint64(salt))
        if table.values is not None:
            mixed = _scramble(mixed ^ (table.values + 0.0).view(np.uint64))  # -0.0 + 0.0 is 0.0
        sums = np.append(np.uint64(0), np.cumsum(mixed, dtype=np.uint64))
        found.append(sums[table.row_ptr[1:]] - sums[table.row_ptr[:-1]])
    return found


def _scramble(x: UInt64s) -> UInt64s:
    """Scramble numbers by the finaliser of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _check_equal(table: Attributes, like: Ints) -> None:
    """Raise ArithmeticError if rows with equal hashes differ."""
    other = table.take(like)
    parts = ("row_ptr", "attributes", "values")
    if not all(np.array_equal(getattr(table, name), getattr(other, name)) for name in parts):
        raise ArithmeticError("two different contexts have the same hash")
