"""Pairs (attribute, column) that have a weight each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.features import RowLayout
from partwise.support.arrays import Floats, Ints, pointers

#: Share of weights that are not zero above which model files hold all of them.
DENSE = 0.8


def few(weights: Floats) -> bool:
    """Whether so few weights are not zero that files leave out the others."""
    return int(np.count_nonzero(weights)) < DENSE * len(weights)


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


def layout_of(n_attributes: int, n_columns: int, width: int, ids: Ints, columns: Ints) -> PairLayout:
    """The layout of these pairs, which are in order."""
    indptr = pointers(np.bincount(ids, minlength=n_attributes))
    return PairLayout.some(n_attributes, n_columns, width, indptr, np.ascontiguousarray(columns))


def expand_pairs(indptr: Ints, columns: Ints) -> tuple[Ints, Ints]:
    """(row, column) of each entry of a CSR pattern."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), columns


def look_up(table: tuple[Ints, Ints, Floats], attributes: Ints, columns: Ints) -> Floats:
    """Values of (attribute, column) pairs in a table sorted by attribute, then column; 0 for pairs not in the table."""
    rows, table_columns, values = table
    if not len(rows):
        return np.zeros(len(attributes))
    stride = int(max(table_columns.max(), columns.max(initial=0))) + 1
    keys = rows * stride + table_columns
    wanted = np.where((attributes >= 0) & (columns >= 0), attributes * stride + columns, -1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    out: Floats = np.where(keys[place] == wanted, values[place], 0.0)
    return out
