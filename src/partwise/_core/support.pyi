"""Sums and products of plain arrays, and what the machine offers."""

from typing import overload

import numpy as np
from numpy.typing import NDArray

from partwise.support.arrays import Floats, Ints

def padded_width(n_labels: int) -> int:
    """The row width used for this many labels."""

def cpu_level() -> int:
    """Return the x86-64 level (1 to 4) of this machine; 0 on other machines."""

def set_deadline(seconds: float | None) -> None:
    """Raise OutOfTime from calls of this thread that still work after so many seconds; None removes the limit."""

def out_of_time() -> bool: ...
def stacked_products(left: Floats, right: Floats, n_jobs: int = 1) -> Floats:
    """Return out[i, a] = left[i, a] @ right[a]: the same bits for any number of rows i and any n_jobs."""

def dot(x: Floats, y: Floats, n_jobs: int = 1) -> float:
    """Return <x, y>: the same bits for any n_jobs, as from `row_dots` and `add_rows`."""

def row_dots(rows: Floats, v: Floats, n_jobs: int = 1) -> Floats: ...
def add_rows(coefficients: Floats, rows: Floats, out: Floats, n_jobs: int = 1) -> None:
    """Add coefficients @ rows to out, of shapes (k,), (k, n) and (n,)."""

@overload
def sparse_product(indptr: NDArray[np.int32], indices: NDArray[np.int32], data: Floats, right: Floats) -> Floats: ...
@overload
def sparse_product(indptr: Ints, indices: Ints, data: Floats, right: Floats) -> Floats: ...
