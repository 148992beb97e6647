"""The specimen of graphs."""

import numpy as np

from partwise._core import LinearMap, SlotSegment
from partwise.problem import Batch, LabelledBatch
from partwise.specimens import specimen
from partwise.structures.graphs import graph


@specimen("Graph")
def _triangle() -> LabelledBatch:
    """A triangle of three vertices with two labels each, and one weight per slot."""
    structure = graph([([2, 2, 2], [(0, 1), (1, 2), (0, 2)], [0, 0, 0])])
    n = structure.num_slots(0)
    each = np.arange(n + 1, dtype=np.int64)
    features = LinearMap([SlotSegment(n, each[[0, n]], each, each[:-1].copy(), None, uses=3)])
    return LabelledBatch(Batch(structure, features), structure.encode(np.zeros(3, dtype=np.int64)))
