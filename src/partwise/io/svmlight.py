"""The svmlight format, which LIBLINEAR and LIBSVM read: ``label index:value index:value ...`` a line.

Indices are counted from 1 and rise in a row; ``#`` starts a comment. Query ids (``qid:``) are refused.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise._core import parse_svmlight as parse_natively
from partwise.io.blocks import from_line
from partwise.io.errors import FormatError
from partwise.io.files import Path, atomic_write, read_bytes

#: Columns that a file may have whatever its size, and columns for each of those that occur: models have weights for
#: every column, so that one large index in a small file would take gigabytes.
MAX_FEATURES, SPREAD = 1 << 19, 16


def read_svmlight(
    path: Path, *, n_features: int | None = None, zero_based: bool = False, max_features: int | None = MAX_FEATURES
) -> tuple[Any, NDArray[Any]]:
    """Read rows of numbers with their labels: a CSR matrix of float64, and integers or (if not all are whole) floats.

    FormatError if a line is not in the format or there are too many columns, ValueError for more than `n_features`.

    path: "-" is standard input. n_features: number of columns (None: as many as the file uses). zero_based: whether
    indices are counted from 0. max_features: refuse more columns than these and than 16 for each that occurs, as a
    model has weights for all columns; None, or an explicit `n_features`: accept any number.
    """
    X, y = parse_svmlight(read_bytes(path), path, n_features=n_features, zero_based=zero_based)
    if n_features is None and max_features is not None and not in_proportion(X, max_features):
        raise FormatError(
            f"{X.shape[1]:,} columns for {X.nnz:,} values, out of proportion: max_features={X.shape[1]} accepts them",
            path,
        )
    return X, y


def in_proportion(X: Any, most: int, n_weights: int = 1) -> bool:
    """Return whether a CSR matrix has at most so many weights, or at most 16 columns for each that occurs."""
    n = int(X.shape[1])
    if n * n_weights <= most:
        return True
    if n > SPREAD * X.nnz:
        return False
    seen = np.zeros(n, dtype=bool)
    seen[X.indices] = True
    return n <= SPREAD * int(np.count_nonzero(seen))


def parse_svmlight(
    data: bytes, path: Path = "<input>", *, n_features: int | None = None, zero_based: bool = False, line: int = 1
) -> tuple[Any, NDArray[Any]]:
    """Do what `read_svmlight` does with bytes in memory; `path` and the first line's number are for messages."""
    from scipy import sparse  # slow to import, and other formats do not need it

    with from_line(data, path, line) as text:
        labels, row_ptr, columns, values = parse_natively(text, 0 if zero_based else 1)
    used = int(columns.max(initial=-1)) + 1
    if n_features is not None and used > n_features:
        raise ValueError(f"{path} has {used} columns, more than n_features={n_features}")
    X = sparse.csr_matrix((values, columns, row_ptr), shape=(len(labels), used if n_features is None else n_features))
    whole = bool(np.all(labels == np.trunc(labels)) and np.all(np.abs(labels) < 2**53))
    return X, labels.astype(np.int64) if whole else labels


def write_svmlight(path: Path, X: Any, y: Any, *, zero_based: bool = False) -> None:
    """Write rows of finite numbers (a 2-D array or sparse matrix), zeros left out, with one label (a number) per row.

    path: "-" is standard output, ".gz" is compressed. zero_based: whether to count indices from 0.
    """
    from scipy import sparse

    rows = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) != rows.shape[0] or labels.dtype.kind not in "biuf":
        raise ValueError(f"y must be one number for each of {rows.shape[0]} rows")
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if not (np.isfinite(rows.data).all() and np.isfinite(labels).all()):
        raise ValueError("X and y must be finite (no NaN, no inf)")
    indices = (rows.indices + (0 if zero_based else 1)).tolist()
    fields = [f"{index}:{_number(value)}" for index, value in zip(indices, rows.data.tolist(), strict=True)]
    runs = zip(labels.tolist(), pairwise(rows.indptr.tolist()), strict=True)
    lines = [" ".join([_number(label), *fields[start:stop]]) + "\n" for label, (start, stop) in runs]
    with atomic_write(path) as file:
        file.write("".join(lines).encode("ascii"))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
