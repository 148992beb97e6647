"""What SciPy does not look at: whether a sparse matrix is one.

Its own routines, and ours, follow row pointers and indices without a question; damaged ones end the process or read
foreign memory. A matrix that another thread changes may become damaged after it was checked: what is followed is
a private copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from partwise._core import sparse_product, stacked_products

Array = NDArray[Any]


def own_sparse(X: Any, name: str = "X") -> Any:
    """A copy of a sparse matrix, in its format; ValueError if it is damaged. Anything else is given back as it is."""
    if not sparse.issparse(X) or X.ndim != 2:
        return X
    shape = (int(X.shape[0]), int(X.shape[1]))
    if X.format == "coo":
        row, column, data = (np.array(part) for part in (X.row, X.col, X.data))
        _check_coordinates(row, column, data, shape, name)
        return sparse.coo_array((data, (row, column)), shape=shape)
    if X.format in ("csr", "csc", "bsr"):
        indptr, indices, data = (np.array(part) for part in (X.indptr, X.indices, X.data))
        block = data.shape[1:] if X.format == "bsr" else (1, 1)
        _check_compressed(indptr, indices, data, shape, X.format, block, name)
        make = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}[X.format]
        return make((data, indices, indptr), shape=shape)
    return X.tocsr()  # of Python objects or diagonals, which SciPy does check


def csr_product(X: Any, right: NDArray[np.float64]) -> NDArray[np.float64]:
    """A CSR matrix of floats times a dense one. If another thread changes X, ValueError or other numbers."""
    indptr, indices, data = X.indptr, X.indices, X.data
    if indptr.dtype != indices.dtype or indptr.dtype not in (np.int32, np.int64):
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    parts = (np.ascontiguousarray(part) for part in (indptr, indices, data, right))
    return sparse_product(*parts)


def row_products(X: Any, weights: NDArray[np.float64], n_jobs: int = 1) -> NDArray[np.float64]:
    """X weights', by sums whose order is the same for one row and for many (that of BLAS is not)."""
    if sparse.issparse(X):
        return csr_product(X, weights.T)
    rows, columns = np.ascontiguousarray(X, dtype=np.float64)[:, None, :], np.ascontiguousarray(weights.T)[None]
    return stacked_products(rows, columns, n_jobs)[:, 0]


def _check_coordinates(row: Array, column: Array, data: Array, shape: tuple[int, int], name: str) -> None:
    if not len(row) == len(column) == len(data):
        raise ValueError(f"{name} is a damaged sparse matrix: as many rows, columns and values are expected")
    _check_range(row, shape[0], "row", name)
    _check_range(column, shape[1], "column", name)


def _check_compressed(
    pointers: Array,
    indices: Array,
    data: Array,
    shape: tuple[int, int],
    form: str,
    block: tuple[int, ...],
    name: str,
) -> None:
    lines, width, what = shape[0] // block[0], shape[1] // block[1], "block" if form == "bsr" else "column"
    if form == "csc":
        lines, width, what = shape[1], shape[0], "row"
    good = len(pointers) == lines + 1 and pointers[0] == 0 and bool((np.diff(pointers) >= 0).all())
    if not good or pointers[-1] > min(len(indices), len(data)):
        raise ValueError(f"{name} is a damaged sparse matrix: its index pointers do not rise from 0 to what it holds")
    _check_range(indices[: int(pointers[-1])], width, what, name)


def _check_range(indices: Array, size: int, what: str, name: str) -> None:
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        wrong = indices[(indices < 0) | (indices >= size)]
        raise ValueError(f"{name} is a damaged sparse matrix: {what} {wrong[0]} is out of range, there are {size}")
