"""Rows of input: dense arrays, sparse `Attributes`, and matrices of SciPy, which are checked before they are used.

SciPy's routines, and ours, do not check row pointers and indices; damaged ones end the process or read foreign memory.
Another thread may damage a matrix after it was checked, so a private copy is used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from partwise._core import sparse_product, stacked_products
from partwise.support.arrays import Booleans, Floats, InputRows, Ints, pointers, runs


@dataclass(frozen=True, eq=False)
class Attributes:
    """Sparse rows: row p has attributes[row_ptr[p]:row_ptr[p + 1]] with `values` (None: all 1); -1 is ignored."""

    row_ptr: Ints
    attributes: Ints
    num_attributes: int
    values: Floats | None = None

    @property
    def n_rows(self) -> int:
        return len(self.row_ptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.num_attributes

    def take(self, rows: Ints, axis: Literal[0] = 0) -> "Attributes":
        """Return these rows, in this order, some perhaps several times. axis: as for arrays."""
        sizes = np.diff(self.row_ptr)[rows]
        entries = runs(self.row_ptr[rows], sizes)
        values = None if self.values is None else self.values[entries]
        return Attributes(pointers(sizes), self.attributes[entries], self.num_attributes, values)

    def entries(self, chosen: Booleans) -> Iterator[tuple[int, int, float]]:
        """Yield (attribute, row, value) of the known attributes of the chosen rows."""
        owner = np.repeat(np.arange(self.n_rows), np.diff(self.row_ptr))
        some = np.flatnonzero(chosen[owner] & (self.attributes >= 0))
        values = np.ones(len(some)) if self.values is None else self.values[some]
        yield from zip(self.attributes[some].tolist(), owner[some].tolist(), values.tolist(), strict=True)


@overload
def as_rows(rows: object) -> Attributes | Floats: ...
@overload
def as_rows(rows: object, *, single: Literal[True]) -> Attributes | InputRows: ...
def as_rows(rows: object, *, single: bool = False) -> Attributes | InputRows:
    """Return rows as `Attributes` or as a C-contiguous array of floats; single: keep float32."""
    if isinstance(rows, Attributes):
        return rows
    if hasattr(rows, "tocsr"):  # a matrix of SciPy, recognised without importing SciPy
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


def as_attributes(rows: object) -> Attributes:
    """Return rows as `Attributes`, without the zeros of a dense array."""
    table = as_rows(rows)
    if not isinstance(table, Attributes):
        from scipy import sparse

        table = as_rows(sparse.csr_array(table))
        assert isinstance(table, Attributes)
    # 0/1 features are stored without values.
    if table.values is not None and np.all(table.values == 1.0):
        return Attributes(table.row_ptr, table.attributes, table.num_attributes)
    return table


def own_sparse(X: Any, name: str = "X") -> Any:
    """Return a copy of a sparse matrix, ValueError if it is damaged; return anything else unchanged."""
    from scipy import sparse

    if not sparse.issparse(X) or X.ndim != 2:
        return X
    n_rows, n_columns = shape = (int(X.shape[0]), int(X.shape[1]))
    damaged = f"{name} is a damaged sparse matrix:"
    if X.format == "coo":
        row, column, data = (np.array(part) for part in (X.row, X.col, X.data))
        if not len(row) == len(column) == len(data):
            raise ValueError(f"{damaged} as many rows, columns and values are expected")
        _check_range(row, n_rows, f"{damaged} row")
        _check_range(column, n_columns, f"{damaged} column")
        return sparse.coo_array((data, (row, column)), shape=shape)
    if X.format not in ("csr", "csc", "bsr"):
        return X.tocsr()  # a list or diagonal format, which SciPy checks
    ends, indices, data = (np.array(part) for part in (X.indptr, X.indices, X.data))
    lines, width, what, make = n_rows, n_columns, "column", sparse.csr_array
    if X.format == "csc":
        lines, width, what, make = n_columns, n_rows, "row", sparse.csc_array
    elif X.format == "bsr":
        lines, width = n_rows // data.shape[1], n_columns // data.shape[2]
        what, make = "block", sparse.bsr_array
    rising = len(ends) == lines + 1 and ends[0] == 0 and bool((np.diff(ends) >= 0).all())
    if not rising or ends[-1] > min(len(indices), len(data)):
        raise ValueError(f"{damaged} its index pointers do not rise from 0 to what it holds")
    _check_range(indices[: int(ends[-1])], width, f"{damaged} {what}")
    return make((data, indices, ends), shape=shape)


def _check_range(indices: NDArray[Any], size: int, what: str) -> None:
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        wrong = indices[(indices < 0) | (indices >= size)]
        raise ValueError(f"{what} {wrong[0]} is out of range, there are {size}")


def csr_product(X: Any, right: Floats) -> Floats:
    """Multiply a CSR matrix of floats by a dense one, without a crash if another thread changes X."""
    indptr, indices, data = X.indptr, X.indices, X.data
    if indptr.dtype != indices.dtype or indptr.dtype not in (np.int32, np.int64):
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    parts = (np.ascontiguousarray(part) for part in (indptr, indices, data, right))
    return sparse_product(*parts)


def row_products(X: Any, weights: Floats, n_jobs: int = 1) -> Floats:
    """Return X weights' by sums in a fixed order: one row gives the same bits as many, unlike with BLAS."""
    if hasattr(X, "tocsr"):
        return csr_product(X, weights.T)
    rows, columns = np.ascontiguousarray(X, dtype=np.float64)[:, None, :], np.ascontiguousarray(weights.T)[None]
    return stacked_products(rows, columns, n_jobs)[:, 0]
