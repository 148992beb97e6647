"""The objective, its dual and the gap, over one or more batches of examples."""

from .batch import Batch, LabelledBatch
from .problem import Problem

__all__ = ["Batch", "LabelledBatch", "Problem"]
