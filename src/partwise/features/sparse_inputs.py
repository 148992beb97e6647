"""What SciPy does not look at: whether a sparse matrix is one.

Its own routines, and ours, follow row pointers and indices without a question; damaged ones end the process or read
someone else's memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def check_sparse(X: Any, name: str = "X") -> None:
    """Refuse a sparse matrix with pointers or indices out of range; anything else passes."""
    if not sparse.issparse(X) or X.ndim != 2:
        return
    if X.format == "coo":
        pairs = [(X.row, X.shape[0], "row"), (X.col, X.shape[1], "column")]
        n_values = min(len(X.row), len(X.col), len(X.data))
        if max(len(X.row), len(X.col), len(X.data)) != n_values:
            raise ValueError(f"{name} is a damaged sparse matrix: as many rows, columns and values are expected")
    elif X.format in ("csr", "csc", "bsr"):
        n_values = _check_pointers(X, name)
        width, what = (X.shape[0], "row") if X.format == "csc" else (X.shape[1], "column")
        if X.format == "bsr":
            width, what = width // X.blocksize[1], "block"
        pairs = [(X.indices[:n_values], width, what)]
    else:
        return
    for indices, size, what in pairs:
        if len(indices) and (indices.min() < 0 or indices.max() >= size):
            wrong = indices[(indices < 0) | (indices >= size)][0]
            raise ValueError(f"{name} is a damaged sparse matrix: {what} {wrong} is out of range, there are {size}")


def _check_pointers(X: Any, name: str) -> int:
    """The number of stored entries, once the pointers are known to be good."""
    pointers = X.indptr
    lines = X.shape[1] if X.format == "csc" else X.shape[0]
    if X.format == "bsr":
        lines //= X.blocksize[0]
    good = len(pointers) == lines + 1 and pointers[0] == 0 and bool((np.diff(pointers) >= 0).all())
    if not good or pointers[-1] > min(len(X.indices), len(X.data)):
        raise ValueError(f"{name} is a damaged sparse matrix: its index pointers do not rise from 0 to what it holds")
    return int(pointers[-1])
