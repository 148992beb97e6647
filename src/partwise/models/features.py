"""Rows of attributes, and the pairs (attribute, column) that have a weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from partwise.features import Attributes, RowLayout
from partwise.support.arrays import Booleans, Floats, InputRows, Ints, pointers

#: Numbers of 64 bits, with a sign or without.
Keys: TypeAlias = NDArray[Any]

# Dense input with at most this share of nonzeros is kept as sparse attributes: the sparse kernels touch one row of
# weights per nonzero, the dense ones every row. At 50% both take the same time and memory.
SPARSE_DENSITY = 0.5


@dataclass(frozen=True, eq=False)
class Rows:
    """The positions of all sequences, concatenated: sparse attributes, or a dense array with a column per attribute."""

    lengths: Ints
    n_attributes: int
    table: Attributes | InputRows
    unknown: tuple[int, int] = (0, 0)  # attributes that are not in the vocabulary, and of how many

    @property
    def n_rows(self) -> int:
        return int(self.lengths.sum())

    def attributes(self) -> Attributes:
        """Return the rows as sparse attributes: the nonzeros if they are dense."""
        if isinstance(self.table, Attributes):
            return self.table
        flat, width = self.table.ravel(), self.n_attributes
        places = np.flatnonzero(flat != 0)  # of a boolean array: three times as fast as of the floats
        starts = np.arange(self.n_rows + 1, dtype=np.int64) * width
        row_ptr = np.searchsorted(places, starts).astype(np.int64)
        columns = places - np.repeat(starts[:-1], np.diff(row_ptr))
        return Attributes(row_ptr, columns, width, flat[places].astype(np.float64, copy=False))

    def with_ones(self) -> Rows:
        """Return the same rows with one more attribute, of value 1 everywhere."""
        n_rows, size = self.n_rows, self.n_attributes + 1
        if isinstance(self.table, Attributes):
            last = np.full(n_rows, self.n_attributes, dtype=np.int64)
            return Rows(self.lengths, size, with_last(self.table, [last], size))
        array = np.empty((n_rows, size), dtype=self.table.dtype)
        array[:, :-1] = self.table
        array[:, -1] = 1.0
        return Rows(self.lengths, size, array)

    def compact(self) -> Rows:
        """Return the same rows in the storage that trains faster."""
        density = Density()
        density.add(self)
        return density.compact(self)


def with_last(rows: Attributes, more: Sequence[Ints], size: int) -> Attributes:
    """Return rows with more attributes of value 1 at their ends: more[k][p] is one of row p. size: of all of them."""
    row_ptr = pointers(np.diff(rows.row_ptr) + len(more))
    attributes = np.empty(int(row_ptr[-1]), dtype=np.int64)
    is_new = np.zeros(len(attributes), dtype=bool)
    for k, ids in enumerate(more):
        places = row_ptr[1:] - len(more) + k
        attributes[places] = ids
        is_new[places] = True
    attributes[~is_new] = rows.attributes
    values = None
    if rows.values is not None:
        values = np.ones(len(attributes))
        values[~is_new] = rows.values
    return Attributes(row_ptr, attributes, size, values)


class Density:
    """The share of nonzeros of dense rows over all blocks, which decides how all of them are stored."""

    def __init__(self) -> None:
        self.nonzero = self.size = 0
        self.sparse = False

    def add(self, rows: Rows) -> None:
        if isinstance(rows.table, Attributes):
            self.sparse = True
        else:
            self.nonzero += int(np.count_nonzero(rows.table))
            self.size += rows.table.size

    def compact(self, rows: Rows) -> Rows:
        """Return rows of one of the blocks, in the storage that trains faster on all of them."""
        dense = not self.sparse and self.nonzero > SPARSE_DENSITY * self.size
        if dense or isinstance(rows.table, Attributes):
            return rows
        return Rows(rows.lengths, rows.n_attributes, rows.attributes())


def csr_attributes(matrix: sparse.csr_array) -> Attributes:
    """Return a canonical CSR matrix as attributes; without values if all are 1."""
    data = np.ascontiguousarray(matrix.data, dtype=np.float64)
    values = None if (data == 1.0).all() else data
    return Attributes(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), int(matrix.shape[1]), values)


#: Share of weights that are not zero above which model files hold all of them.
DENSE = 0.8


def is_sparse(weights: Floats) -> bool:
    """Return whether so many weights are zero that files leave them out."""
    return int(np.count_nonzero(weights)) < DENSE * len(weights)


class PairLayout:
    """A RowLayout that can be pickled."""

    def __init__(self, core: RowLayout, all_pairs: bool) -> None:
        self.core = core
        self.all_pairs = all_pairs

    @classmethod
    def every(cls, n_attributes: int, n_columns: int, width: int) -> PairLayout:
        return cls(RowLayout.dense(n_attributes, n_columns, width), all_pairs=True)

    @classmethod
    def some(
        cls, n_attributes: int, n_columns: int, width: int, indptr: Ints, columns: Ints | NDArray[np.uint16]
    ) -> PairLayout:
        return cls(RowLayout.from_pairs(n_attributes, n_columns, width, indptr, columns), all_pairs=False)

    def __reduce__(self) -> tuple[object, ...]:
        shape = (self.core.num_attributes, self.core.n_columns, self.core.width)
        if self.all_pairs:
            return PairLayout.every, shape
        return PairLayout.some, (*shape, *self.core.pairs())

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the attributes and the columns of all pairs, in the order of their weights."""
        indptr, columns = self.core.pairs()
        return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), columns

    def fitting(self, rows: Rows) -> tuple[Attributes | InputRows, RowLayout | None]:
        """Return rows in the form that suits the layout, and the layout (None: dense rows, all pairs)."""
        if self.all_pairs and not isinstance(rows.table, Attributes):
            return rows.table, None
        return rows.attributes(), self.core

    def chosen(self, kept: Booleans, number: Ints | None = None) -> PairLayout:
        """Return the layout of some of the pairs. number: new numbers of the attributes (-1: unused)."""
        (attributes, columns), core = self.pairs(), self.core
        attributes, n = attributes[kept], core.num_attributes
        if number is not None and n:
            attributes, n = number[attributes], int(number.max(initial=-1)) + 1
        return layout_of(n, core.n_columns, core.width, attributes, columns[kept])


class KeyCounts:
    """How often each key occurs, over blocks; a key is a number of 64 bits, or several of them."""

    def __init__(self, *dtypes: type[np.int64] | type[np.uint64]) -> None:
        self._found: list[Keys] = [np.empty(0, dtype=dtype) for dtype in (*dtypes, np.int64)]
        self._new: list[Sequence[Keys]] = []
        self._n_new = 0

    def add(self, *keys: Keys, counts: Ints | None = None) -> None:
        """Count the keys of a block, of which arrays[k] is the k-th number; counts: how often each occurs."""
        self._new.append(_counted([*keys, np.ones(len(keys[0]), dtype=np.int64) if counts is None else counts]))
        self._n_new += len(self._new[-1][0])
        if self._n_new > len(self._found[0]):  # work in proportion to the keys, however many blocks there are
            self._merge()

    def _merge(self) -> None:
        self._found = _counted([np.concatenate(each) for each in zip(self._found, *self._new, strict=True)])
        self._new, self._n_new = [], 0

    def frequent(self, min_count: int) -> list[Keys]:
        """Return the keys that occur so often, in order, and how often they do."""
        self._merge()
        return [part[self._found[-1] >= min_count] for part in self._found]


def _counted(parts: Sequence[Keys]) -> list[Keys]:
    """Return keys in order, each once, with the sums of their counts, which are the last part."""
    order = np.lexsort(parts[-2::-1])
    *keys, counts = (part[order] for part in parts)
    new = np.ones(len(counts), dtype=bool)
    new[1:] = np.logical_or.reduce([part[1:] != part[:-1] for part in keys])
    first = np.flatnonzero(new)
    return [*(part[first] for part in keys), np.add.reduceat(counts, first) if len(first) else counts]


class PairCounts:
    """How often each pair (attribute, column) occurs, over blocks of rows."""

    def __init__(self, n_attributes: int, n_columns: int, width: int) -> None:
        self._sizes, self._keys = (n_attributes, n_columns, width), KeyCounts(np.int64)
        self._n_blocks = 0
        self._waiting: list[tuple[Attributes, Ints]] = []  # the first block: the core counts a single one faster

    def add(self, rows: Attributes, columns: Ints) -> None:
        """Count each known attribute of a row with the row's column."""
        self._n_blocks += 1
        self._waiting.append((rows, columns))
        while self._waiting and self._n_blocks > 1:
            rows, columns = self._waiting.pop()
            keys = rows.attributes * self._sizes[1] + np.repeat(columns, np.diff(rows.row_ptr))
            found, counts = np.unique(keys[rows.attributes >= 0], return_counts=True)
            self._keys.add(found, counts=counts)

    def layout(self, min_count: int) -> PairLayout:
        if self._waiting:
            rows, columns = self._waiting[0]
            core = RowLayout.observed(*self._sizes, rows.row_ptr, rows.attributes, columns, min_count)
            return PairLayout(core, all_pairs=False)
        return layout_of(*self._sizes, *np.divmod(self._keys.frequent(min_count)[0], self._sizes[1]))


def layout_of(n_attributes: int, n_columns: int, width: int, ids: Ints, columns: Ints) -> PairLayout:
    """Return the layout of these pairs, which are in order."""
    indptr = pointers(np.bincount(ids, minlength=n_attributes))
    return PairLayout.some(n_attributes, n_columns, width, indptr, np.ascontiguousarray(columns))


def numbered(chosen: Booleans, first: int = 0) -> Ints:
    """Return the numbers of the chosen ones, in order from `first`; -1 for the others."""
    return np.where(chosen, np.cumsum(chosen) + (first - 1), -1).astype(np.int64)


def places_in(known: Keys, keys: Keys) -> Ints:
    """Return where each key is among those known, which ascend; -1 for others."""
    if not len(known):
        return np.full(keys.shape, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, place, -1)


def look_up(table: tuple[Ints, Ints, Floats], attributes: Ints, columns: Ints) -> Floats:
    """Return values of (attribute, column) pairs in a table sorted by attribute, then column; 0 for missing pairs."""
    rows, table_columns, values = table
    if not len(rows):
        return np.zeros(len(attributes))
    stride = int(max(table_columns.max(), columns.max(initial=0))) + 1
    keys = rows * stride + table_columns
    place = places_in(keys, np.where((attributes >= 0) & (columns >= 0), attributes * stride + columns, -1))
    return np.where(place >= 0, values[place], 0.0)
