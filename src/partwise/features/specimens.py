"""Specimens of the feature maps that have access by column."""

import numpy as np

from partwise.features.maxent import maxent_map
from partwise.problem import Batch, LabelledBatch
from partwise.problem.penalties import L2
from partwise.specimens import specimen
from partwise.structures import Multiclass
from partwise.structures.specimens import gold_of


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
