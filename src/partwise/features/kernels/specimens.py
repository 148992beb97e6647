"""Specimens of kernels."""

import numpy as np

from partwise.features.kernels.features import kernel_map
from partwise.problem import Batch, LabelledBatch
from partwise.specimens import specimen
from partwise.structures import Chain, Multiclass
from partwise.structures.specimens import gold_of


@specimen("Multiclass with a kernel")
def _one_label() -> LabelledBatch:
    return _with_kernel(Multiclass(1, 2), 1)


@specimen("Chain with a kernel")
def _chain() -> LabelledBatch:
    return _with_kernel(Chain(np.array([2], dtype=np.int64), 2), 2)


def _with_kernel(structure: Multiclass | Chain, rows: int) -> LabelledBatch:
    batch = Batch(structure, kernel_map(structure, np.ones((rows, 1)), "rbf"))
    return LabelledBatch(batch, gold_of(structure, rows))
