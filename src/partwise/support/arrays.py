"""Types of arrays, and offsets from lengths."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
#: Rows of input, held as they are given: float32 is not widened.
InputRows = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Booleans = NDArray[np.bool_]
#: An array of any kind of numbers.
Array = NDArray[Any]


def pointers(lengths: ArrayLike) -> Ints:
    """Return CSR-style offsets: 0 and the running sums of `lengths`."""
    sizes = np.asarray(lengths)
    out = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def runs(starts: Ints, lengths: Ints) -> Ints:
    """Return runs of consecutive numbers, concatenated: each run has its start and its length."""
    return np.arange(int(lengths.sum())) + np.repeat(starts - pointers(lengths)[:-1], lengths)
