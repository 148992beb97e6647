"""Rows of a classifier: matrices, dicts and lists of strings; and the features of rows with a label each."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from partwise.features import Attributes, FeatureMap, RowLayout, maxent_map, multiclass_map
from partwise.models.features import Rows
from partwise.models.readers import NameReader, Sequences
from partwise.structures import Multiclass
from partwise.support.arrays import Floats, Ints

#: So few pairs of attribute and label are stored by column, too.
FEW_PAIRS = 10_000
#: A penalty on the intercept does harm if a column's mean is this many times its standard deviation.
FAR = 10.0
#: A matrix of numbers, dense or sparse; or a list of items, which are dicts or lists of strings.
Matrix: TypeAlias = Any
Items: TypeAlias = list[object]


class ClassRows(NamedTuple):
    """A matrix of features, and (unknown attributes, all attributes) of the rows it was made of."""

    matrix: Matrix
    unknown: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class ItemRows(Sequences):
    """All examples as one sequence, whose positions are called rows."""

    one: str = "row"

    def where(self, lengths: Ints, row: int) -> str:
        return f"row {row}"


def as_items(X: Matrix) -> Items | None:
    """Return the examples of X if they are dicts or collections of strings; None for a matrix or anything else."""
    if isinstance(X, np.ndarray):
        items = X.tolist() if X.ndim == 1 and X.dtype == object else None
    elif isinstance(X, (list, tuple)):
        items = list(X)
    else:  # a column of a data frame
        items = list(X.to_list()) if hasattr(X, "to_list") and not hasattr(X, "columns") else None
    for item in items or ():
        if isinstance(item, (dict, set, frozenset)):
            return items
        if not isinstance(item, (list, tuple)):
            return None
        if item:
            return items if isinstance(item[0], str) else None
    return None


def could_be_items(X: Matrix) -> Items | None:
    """Return the same for a model that reads items: also where no example has an attribute."""
    items = as_items(X)
    if items is None and isinstance(X, (list, tuple)) and all(isinstance(each, (list, tuple)) for each in X):
        return list(X)
    return items


def item_rows(reader: NameReader, items: Items, min_count: int = 1) -> ClassRows:
    """Return a row per example, a column per attribute that the reader knows; it learns them if it knows none."""
    rows = reader.read(ItemRows([items], [0]), min_count)
    table = rows.attributes()
    known, row = table.attributes >= 0, np.repeat(np.arange(table.n_rows), np.diff(table.row_ptr))
    values = np.ones(len(row)) if table.values is None else table.values
    places = row[known], table.attributes[known]
    return ClassRows(sparse.csr_array((values[known], places), (table.n_rows, rows.n_attributes)), rows.unknown)


def n_rows(X: Matrix) -> int:
    """Return how many examples there are: items, or the rows of a matrix."""
    return len(X) if isinstance(X, list) else int(X.shape[0])


def take_rows(X: Matrix, which: Ints) -> Matrix:
    """Return some of the examples."""
    return [X[i] for i in which.tolist()] if isinstance(X, list) else X[which]


def classifier_map(
    structure: Multiclass, rows: Matrix | Attributes, by_features: bool | None, layout: RowLayout | None = None
) -> FeatureMap:
    """Return features of rows with a label each; by_features: with access to single ones (None: if that is cheap)."""
    if by_features is None:
        by_features = layout is not None and layout.num_pairs <= FEW_PAIRS
    return (maxent_map if by_features else multiclass_map)(structure, rows, layout=layout)


def far_columns(rows: Rows) -> Ints:
    """Return columns whose values are far from 0 beside their spread, and not all the same."""
    table = rows.table
    if not isinstance(table, Attributes):
        mean = table.mean(axis=0, dtype=np.float64)
        deviation = table.std(axis=0, dtype=np.float64)
    else:
        values = np.ones(len(table.attributes)) if table.values is None else table.values
        sums = (np.bincount(table.attributes, weights=own, minlength=rows.n_attributes) for own in (values, values**2))
        mean, square = (each / max(rows.n_rows, 1) for each in sums)
        deviation = np.sqrt(np.maximum(square - mean * mean, 0.0))
    same = deviation <= 1e-6 * np.abs(mean)
    return np.flatnonzero(~same & (np.abs(mean) > FAR * deviation))


def largest_sizes(rows: Rows) -> tuple[float, float]:
    """Return the largest norm of a row, and the largest absolute value."""
    table = rows.table
    if not isinstance(table, Attributes):
        squares: Floats = np.einsum("ij,ij->i", table, table, dtype=np.float64)
        values = np.abs(table)
    else:
        values = np.ones(len(table.attributes)) if table.values is None else np.abs(table.values)
        starts = table.row_ptr[:-1][np.diff(table.row_ptr) > 0]
        squares = np.add.reduceat(values * values, starts) * (1 + 1e-9) if len(starts) else np.zeros(0)
    return float(np.sqrt(squares.max(initial=0.0))), float(values.max(initial=0.0))
