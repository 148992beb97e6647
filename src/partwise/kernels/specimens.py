"""Specimens of kernels."""

import numpy as np

from ..problem import Batch, LabelledBatch
from ..specimens import specimen
from ..structures import Chain, Multiclass
from ..structures.specimens import gold_of
from .features import kernel_map


@specimen("Multiclass with a kernel")
def _one_label() -> LabelledBatch:
    return _with_kernel(Multiclass(1, 2), 1)


@specimen("Chain with a kernel")
def _chain() -> LabelledBatch:
    return _with_kernel(Chain(np.array([2], dtype=np.int64), 2), 2)


def _with_kernel(structure: Multiclass | Chain, rows: int) -> LabelledBatch:
    batch = Batch(structure, kernel_map(structure, np.ones((rows, 1)), "rbf"))
    return LabelledBatch(batch, gold_of(structure, rows))
