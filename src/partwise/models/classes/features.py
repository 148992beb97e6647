"""Rows of a classifier that are not a matrix: dicts and lists of strings; and masks of the labels rows may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from partwise.features import Attributes
from partwise.models.base import Reading
from partwise.models.errors import ConstraintError
from partwise.models.readers import NameReader, Sequences
from partwise.support.arrays import Ints


class ClassRows(NamedTuple):
    """A matrix of features, and (attributes that are not known, all attributes) of the rows it was made of."""

    matrix: Any
    unknown: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class _Items(Sequences):
    """All examples as one sequence, whose positions are called rows."""

    one: ClassVar[str] = "row"

    def where(self, lengths: Ints, row: int) -> str:
        return f"row {row}"


def as_items(X: Any) -> list[Any] | None:
    """The examples of X, if they are dicts or collections of strings; None for a matrix or anything else."""
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


def could_be_items(X: Any) -> list[Any] | None:
    """The same for a model that reads items: also where no example has an attribute."""
    items = as_items(X)
    if items is None and isinstance(X, (list, tuple)) and all(isinstance(each, (list, tuple)) for each in X):
        return list(X)
    return items


def items_of(items: list[Any]) -> Sequences:
    """Examples as a reader takes them."""
    return _Items([items], [0])


def item_rows(reader: NameReader, items: list[Any], min_count: int = 1) -> ClassRows:
    """A row per example, a column per attribute that the reader knows; it learns them if it knows none."""
    rows = reader.read(items_of(items), min_count)
    table = rows.table
    assert isinstance(table, Attributes)
    known, row = table.attributes >= 0, np.repeat(np.arange(table.n_rows), np.diff(table.row_ptr))
    values = np.ones(len(row)) if table.values is None else table.values
    places = row[known], table.attributes[known]
    return ClassRows(sparse.csr_array((values[known], places), (table.n_rows, rows.n_attributes)), rows.unknown)


def n_rows(X: Any) -> int:
    """How many examples there are: items, or the rows of a matrix."""
    return len(X) if isinstance(X, list) else int(X.shape[0])


def take_rows(X: Any, which: Ints) -> Any:
    """Some of the examples."""
    return [X[i] for i in which.tolist()] if isinstance(X, list) else X[which]


def set_allowed(reading: Reading, allowed: Any, classes: NDArray[Any]) -> None:
    """`allowed` of `MaxentClassifier`, as masks of the reading's structure."""
    if isinstance(allowed, (str, dict)) or len(allowed) != reading.n_examples:
        raise ValueError(f"allowed must hold one entry for each of {reading.n_examples} rows")
    index = {label: i for i, label in enumerate(classes.tolist())}
    structure: Any = reading.batch.structure
    for i, labels in enumerate(allowed):
        if labels is None:
            continue
        if isinstance(labels, str) or not hasattr(labels, "__iter__"):
            raise ValueError(f"allowed: row {i} must be None or a collection of labels, got {labels!r}")
        mask = np.zeros(structure.width, dtype=np.uint8)
        for label in labels:
            if label not in index:
                raise ValueError(f"allowed: row {i}: label {label!r} was not in the training data")
            mask[index[label]] = 1
        if not mask.any():
            raise ConstraintError(f"allowed: row {i} has no label left", i)
        structure.set_mask(i, mask)
