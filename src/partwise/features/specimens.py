"""Specimens of the feature maps that have access by column."""

import numpy as np

from ..penalties import L2
from ..problem import Batch, LabelledBatch
from ..specimens import specimen
from ..structures import Multiclass
from ..structures.specimens import gold_of
from .maxent import maxent_map


@specimen("Multiclass, maxent map, two batches", batches=2)
@specimen("Multiclass, maxent map, l2 = 0", penalty=L2(0.0))
@specimen("Multiclass, maxent map")
def _maxent() -> LabelledBatch:
    return _of_value(1.0)


@specimen("Multiclass, maxent map, negative features")
def _negative() -> LabelledBatch:
    return _of_value(-1.0)


def _of_value(value: float) -> LabelledBatch:
    structure = Multiclass(1, 2)
    return LabelledBatch(Batch(structure, maxent_map(structure, np.full((1, 1), value))), gold_of(structure, 1))
