"""Types of arrays, and offsets from lengths."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Booleans = NDArray[np.bool_]


def pointers(lengths: ArrayLike) -> Ints:
    """CSR-style offsets: 0 and the running sums of `lengths`."""
    sizes = np.asarray(lengths)
    out = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=out[1:])
    return out
