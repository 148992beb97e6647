"""Array types, and sums and products of plain arrays."""

from typing import overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

def padded_width(n_labels: int) -> int:
    """The row width used for this many labels."""

def cpu_level() -> int:
    """The x86-64 level (1 to 4) this machine runs; 0 on other machines."""

def set_deadline(seconds: float | None) -> None:
    """Calls of this thread that still work so many seconds from now raise `partwise.problem.deadline.OutOfTime`; None:
    none does. They look at the clock about ten times a second."""

def out_of_time() -> bool:
    """Whether this thread's deadline has passed."""

def stacked_products(left: Floats, right: Floats, n_jobs: int = 1) -> Floats:
    """out[i, a] = left[i, a] @ right[a] of arrays of shapes (n, k, inner) and (k, inner, m): the same bits for any n
    and n_jobs."""

def dot(x: Floats, y: Floats, n_jobs: int = 1) -> float:
    """<x, y>: the same bits for any n_jobs, as in the two that follow."""

def row_dots(rows: Floats, v: Floats, n_jobs: int = 1) -> Floats:
    """rows @ v, of shapes (k, n) and (n,)."""

def add_rows(coefficients: Floats, rows: Floats, out: Floats, n_jobs: int = 1) -> None:
    """out += coefficients @ rows, of shapes (k,), (k, n) and (n,)."""

@overload
def sparse_product(indptr: NDArray[np.int32], indices: NDArray[np.int32], data: Floats, right: Floats) -> Floats:
    """The product of a CSR matrix and a dense one. Pointers and indices are looked at before they are followed,
    whatever another thread does to them: ValueError if one is out of range.
    """

@overload
def sparse_product(indptr: Ints, indices: Ints, data: Floats, right: Floats) -> Floats: ...
